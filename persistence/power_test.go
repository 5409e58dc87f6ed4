package persistence

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"reins/protocol"
)

// acked is what a store acknowledged.
type acked struct {
	mu          sync.Mutex
	operations  map[string]protocol.State // "" for an admission
	generations map[protocol.ResourceID]protocol.Generation
	epochs      map[protocol.ResourceID]protocol.Epoch
	titles      map[protocol.ResourceID]int
	cookies     int
}

func newAcked() *acked {
	return &acked{operations: map[string]protocol.State{}, generations: map[protocol.ResourceID]protocol.Generation{},
		epochs: map[protocol.ResourceID]protocol.Epoch{}, titles: map[protocol.ResourceID]int{}}
}

func (a *acked) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *acked) copy() *acked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &acked{operations: maps.Clone(a.operations), generations: maps.Clone(a.generations), epochs: maps.Clone(a.epochs),
		titles: maps.Clone(a.titles), cookies: a.cookies}
}

// work does operations of one worker until stop is closed, and notes each
// acknowledgement only when it came.
func (a *acked) work(s *Store, worker int, rng *rand.Rand, stop <-chan struct{}) error {
	page := protocol.ResourceID(fmt.Sprint("pg_", worker))
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		id := fmt.Sprintf("op-%d-%d", worker, i)
		m, err := s.Admit(admission("ann", id))
		if err != nil {
			return err
		}
		a.note(func() { a.operations[id] = "" })
		m.Set()
		if rng.IntN(4) > 0 {
			state := []protocol.State{protocol.StateApplied, protocol.StateFailed, protocol.StateUncertain}[rng.IntN(3)]
			if err := s.Finish(ending("ann", id, state)); err != nil {
				return err
			}
			a.note(func() { a.operations[id] = state })
		}
		switch rng.IntN(5) {
		case 0:
			g, err := s.RaiseGeneration(page)
			if err != nil {
				return err
			}
			a.note(func() { a.generations[page] = g })
		case 1:
			if err := s.ReserveEpoch(page, protocol.Epoch(i)); err != nil {
				return err
			}
			a.note(func() { a.epochs[page] = protocol.Epoch(i) })
		case 2:
			if err := s.PutDescriptor(Descriptor{Record: protocol.Record{ID: page, Title: fmt.Sprint(i)}}); err != nil {
				return err
			}
			a.note(func() { a.titles[page] = i })
		}
	}
}

// lost says what of the acknowledged is not in the store.
func (a *acked) lost(t *testing.T, s *Store) (lost []string) {
	for id, want := range a.operations {
		got := stateOf(t, s, "ann", id)
		recovered := got == "uncertain/recovered"
		switch {
		case got == "" || got == "open":
			lost = append(lost, fmt.Sprintf("%s: %q", id, got))
		case want != "" && got != string(want)+"/":
			lost = append(lost, fmt.Sprintf("%s: %s instead of %s", id, got, want))
		case want == "" && !recovered && got != "applied/" && got != "failed/" && got != "uncertain/":
			t.Errorf("%s became %s", id, got)
		}
	}
	all, err := s.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	found := map[protocol.ResourceID]Descriptor{}
	for _, d := range all {
		found[d.Record.ID] = d
	}
	for page, title := range a.titles {
		got := -1
		if _, err := fmt.Sscan(found[page].Record.Title, &got); err != nil || got < title {
			lost = append(lost, fmt.Sprintf("%s: title %d instead of %d", page, got, title))
		}
		if e := found[page].EpochReserve; e < a.epochs[page] {
			lost = append(lost, fmt.Sprintf("%s: epoch %d instead of %d", page, e, a.epochs[page]))
		}
	}
	for page, g := range a.generations {
		if next, err := s.RaiseGeneration(page); err != nil || next <= g {
			lost = append(lost, fmt.Sprintf("%s: generation %d again, %v", page, next, err))
		}
	}
	return lost
}

// powerCut runs a store on a file system that can lose what was not synced, cuts
// the power at some moment, and returns what is lost of what had been acknowledged.
func powerCut(t *testing.T, seed uint64, seams protocol.Seams) []string {
	rng := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewCrashableMem()
	s := mustOpen(t, "state/store", Options{FS: mem, Seams: seams})
	a, stop := newAcked(), make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		own := rand.New(rand.NewPCG(seed, uint64(w)+2))
		wg.Go(func() {
			if err := a.work(s, w, own, stop); err != nil {
				t.Error(err)
			}
		})
	}
	enough := 10 + rng.IntN(200)
	eventually(t, "some work is done", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.operations) >= enough
	})
	before := a.copy()
	after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	close(stop)
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, "state/store", Options{FS: after})
	lost := before.lost(t, again)
	if len(lost) == 0 {
		if err := again.Check(io.Discard); err != nil {
			t.Error(err)
		}
		checkRecovered(t, again)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	return lost
}

// checkRecovered holds I4: what was recovered is stored as it was told, and once.
func checkRecovered(t *testing.T, s *Store) {
	t.Helper()
	for _, r := range s.Recovered() {
		if got, want := stateOf(t, s, "ann", string(r.OperationID)), string(r.State)+"/"+string(r.Reason); got != want {
			t.Errorf("%s was told to be %s and is %s", r.OperationID, want, got)
		}
		if err := s.Finish(ending("ann", string(r.OperationID), protocol.StateApplied)); err == nil {
			t.Errorf("%s was finished after it was recovered", r.OperationID)
		}
	}
}

// TestPowerCut holds I1 against the loss of everything that was not synced.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(16) {
		for _, what := range powerCut(t, seed, protocol.Seams{}) {
			t.Errorf("seed %d lost %s", seed, what)
		}
	}
}

// TestPowerCutHasTeeth holds that the same test sees a log that is not synced.
func TestPowerCutHasTeeth(t *testing.T) {
	lost := 0
	for seed := range uint64(8) {
		lost += len(powerCut(t, seed, protocol.Seams{Planted: map[protocol.Bug]bool{protocol.BugNoSync: true}}))
	}
	if lost == 0 {
		t.Error("nothing was lost although nothing was synced")
	}
	t.Log("lost with the bug planted:", lost)
}
