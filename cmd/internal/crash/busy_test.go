package crash

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reins/chaos"
	"reins/cmd/internal/daemon"
	"reins/protocol"
	"reins/protocol/nats"
)

// stillFor is how long a busy page stands still.
const stillFor = 2 * time.Second

// crossingsAtOnce is how many pages of one browser are crossed at a time.
const crossingsAtOnce = 3

// here starts a daemon in this process, and returns how to connect to it.
func here(t *testing.T, bugs ...protocol.Bug) func() chaos.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "reins-busy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // the browser's user passes through
		t.Fatal(err)
	}
	seams := protocol.Seams{Planted: map[protocol.Bug]bool{}}
	for _, b := range bugs {
		seams.Planted[b] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	state := filepath.Join(dir, "state")
	d, err := daemon.Start(ctx, daemon.Config{StateDir: state, Writes: -1, URLs: -1, Seams: seams, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), runWithin)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Errorf("stopping the daemon: %v", err)
		}
	})
	return func() chaos.Client {
		ctx, cancel := context.WithTimeout(context.Background(), runWithin)
		defer cancel()
		c, err := nats.Dial(ctx, nats.ClientOptions{StateDir: state, Name: "chaos"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// at is where in a gesture its page may stand still.
type at struct {
	trigger     string
	least, more int // which of these events: least, and up to more after it
	moment      chaos.Moment
}

var moments = map[protocol.Method][]at{
	protocol.MethodClick: {{"mousedown", 1, 0, chaos.AfterIt}, {"click", 1, 0, chaos.BeforeIt}, {"mousedown", 1, 0, chaos.BeforeIt}},
	protocol.MethodDrag:  {{"mousemove", 2, 6, chaos.BeforeIt}, {"mousedown", 1, 0, chaos.AfterIt}, {"mouseup", 1, 0, chaos.BeforeIt}},
	protocol.MethodType:  {{"keydown", 2, 6, chaos.InIt}, {"input", 2, 6, chaos.BeforeIt}, {"keydown", 2, 6, chaos.BeforeIt}},
}

// crossings are rounds of each gesture on each kind of busy page.
func crossings(rounds int) []chaos.Crossing {
	var all []chaos.Crossing
	for round := range rounds {
		for method, in := range moments {
			for i, kind := range []string{"plain", "cross", "hidden"} {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				a := in[(round+i)%len(in)]
				all = append(all, chaos.Crossing{Name: fmt.Sprintf("busy-%s-%s-%d", method, kind, round), Hidden: kind == "hidden",
					Wait: time.Duration(rng.IntN(200)) * time.Millisecond,
					Busy: chaos.Busy{Method: method, For: stillFor, Cross: kind == "cross", Trigger: a.trigger, Nth: a.least + rng.IntN(a.more+1),
						Moment: a.moment, Spin: round%4 == 3}})
			}
		}
	}
	return all
}

// TestBusyPagesCrossAFence: input that a page got before a fence and acts on late
// belongs to an uncertain receipt, and comes before the next generation opens.
// Another page of the browser goes on meanwhile.
func TestBusyPagesCrossAFence(t *testing.T) {
	l := newLedger(t)
	connect := here(t)
	stop := make(chan struct{})
	var beside sync.WaitGroup
	other := connect()
	beside.Go(func() { bystander(t, other, l, stop) })
	client := connect()
	todo := crossings(number(t, "REINS_CHAOS_ROUNDS", 3))
	work := make(chan chaos.Crossing)
	var workers sync.WaitGroup
	var mu sync.Mutex
	late := map[protocol.Method]int{}
	said := map[string]int{}
	for range crossingsAtOnce {
		workers.Go(func() {
			for c := range work {
				r := c.Run(t.Context(), client, l)
				t.Logf("%s (%s %s#%d) → %s, %d events late, generation %d, in %v", c.Name, c.Moment, c.Trigger, c.Nth, r.Said, r.Late, r.Generation, r.Took.Round(100*time.Millisecond))
				mu.Lock()
				late[c.Method] += r.Late
				said[r.Said]++
				mu.Unlock()
				if !r.OK() {
					explain(t, r.Result, "go test -race -count=1 -run '^"+t.Name()+"$' -v ./cmd/internal/crash")
				}
			}
		})
	}
	for _, c := range todo {
		work <- c
	}
	close(work)
	workers.Wait()
	close(stop)
	beside.Wait()
	t.Logf("%d crossings, said: %v; late events: %v", len(todo), said, late)
	for method := range moments {
		if late[method] == 0 {
			t.Errorf("%s: nothing of it ever came late, so that the crossings show nothing", method)
		}
	}
}

// bystander clicks on pages of its own until stop is closed: each click has to be
// applied, in the page's first generation and first load.
func bystander(t *testing.T, client chaos.Client, l *chaos.Ledger, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		r := chaos.Bystander(t.Context(), client, l, fmt.Sprintf("bystander-%d", n), stop)
		t.Logf("%s: %v, the slowest click took %v", r.Name, r.Counts, r.Slowest.Round(time.Millisecond))
		if !r.OK() {
			explain(t, r.Result, "go test -race -count=1 -run '^"+t.Name()+"$' -v ./cmd/internal/crash")
			return
		}
	}
}

func TestTeethSkipBarrier(t *testing.T) {
	l := newLedger(t)
	client := here(t, protocol.BugSkipBarrier)()
	for _, c := range crossings(1) {
		if c.Method == protocol.MethodType && !c.Cross && !c.Hidden {
			r := c.Run(t.Context(), client, l)
			bitten(t, r.Result, "had opened")
		}
	}
}
