package supervisors

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reins/actors/broker"
	"reins/actors/index"
	"reins/protocol"
	"reins/targets"
)

var chaosSeed = flag.Uint64("chaos.seed", 0, "seed of TestShellChaos; 0 takes one from the clock")

// TestShellChaos kills actors, pages and the browser while several callers
// write, and then holds what the pages saw against what the callers were told:
//
//	an operation has at most one effect
//	applied happened; refused and cancelled did not
//	no effect of an older generation follows one of a newer
//	the store has the outcome that the caller was told
//
// To repeat a run: go test ./supervisors -run TestShellChaos -chaos.seed=N
// (the faults are the same, their moments are the scheduler's).
func TestShellChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := newStand(t)
	pages := []protocol.ResourceID{s.open(), s.open(), s.open()}

	var mu sync.Mutex
	told := map[protocol.OperationID]protocol.Receipt{}
	over := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			s.call(pages[i%len(pages)], over, func(rc protocol.Receipt) { mu.Lock(); told[rc.OperationID] = rc; mu.Unlock() })
		})
	}
	var trouble atomic.Int64 // of the barrier and of attaching
	s.browser.mu.Lock()
	s.browser.barrier = func(protocol.ResourceID) error { return planted(&trouble) }
	s.browser.attachErr = func(protocol.ResourceID) error { return planted(&trouble) }
	s.browser.onRun = func(context.Context, targets.Call) {}
	s.browser.mu.Unlock()

	for range 60 {
		r := pages[random.IntN(len(pages))]
		switch n := random.IntN(12); {
		case n < 8:
			kills[n%len(kills)].do(s, r)
		case n == 8:
			killHost.do(s, r)
		case n == 9:
			killBrowser.do(s, r)
		case n == 10:
			trouble.Add(1)
			kills[3].do(s, r)
		default: // a fault during a fault
			kills[0].do(s, r)
			kills[1].do(s, r)
			kills[3].do(s, r)
		}
		// Some work is done between two faults: a fault hits what lives.
		if random.IntN(3) > 0 {
			before := s.effects()
			s.until(func() bool { return s.effects() > before })
		}
	}
	trouble.Store(0)
	for _, r := range pages {
		s.works(r)
	}
	close(over)
	callers.Wait()
	for _, r := range pages {
		s.works(r) // liveness
	}
	s.verdict(told)
}

func planted(left *atomic.Int64) error {
	if left.Add(-1) >= 0 {
		return errors.New("planted")
	}
	left.Store(0)
	return nil
}

func (s *stand) effects() int {
	s.browser.mu.Lock()
	defer s.browser.mu.Unlock()
	return len(s.browser.ledger)
}

// until waits for something that every change of the directory may have brought.
func (s *stand) until(ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatal("nothing moves any more")
		}
	}
}

// call writes to a page until over: it observes, writes with the token, and goes
// on with the receipt's token as long as that holds.
func (s *stand) call(r protocol.ResourceID, over chan struct{}, tell func(protocol.Receipt)) {
	for {
		select {
		case <-over:
			return
		default:
		}
		gen, token, err := s.observe(r)
		if err != nil {
			continue
		}
		for range 5 {
			rc := s.request(protocol.Request{OperationID: s.id(), Resource: r, Generation: gen, Method: protocol.MethodPress, Observation: token,
				Arguments: json.RawMessage(`{"key":"Enter"}`)})
			tell(rc)
			if rc.State != protocol.StateApplied || rc.ObservationToken == "" {
				break
			}
			token = rc.ObservationToken
		}
	}
}

// verdict holds the ledger against the receipts.
func (s *stand) verdict(told map[protocol.OperationID]protocol.Receipt) {
	t := s.t
	s.browser.mu.Lock()
	defer s.browser.mu.Unlock()
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	seen, last := map[protocol.OperationID]int{}, map[protocol.ResourceID]protocol.Generation{}
	for _, e := range s.browser.ledger {
		seen[e.op]++
		if e.gen < last[e.resource] {
			t.Errorf("%s took %s under g%d after g%d", e.resource, e.op, e.gen, last[e.resource])
		}
		last[e.resource] = e.gen
		if rc, ok := told[e.op]; ok && rc.Generation != e.gen {
			t.Errorf("%s had its effect under g%d, its receipt says g%d", e.op, e.gen, rc.Generation)
		}
	}
	count := map[protocol.State]int{}
	for id, rc := range told {
		count[rc.State]++
		switch n := seen[id]; {
		case n > 1:
			t.Errorf("%s had %d effects", id, n)
		case rc.State == protocol.StateApplied && n != 1:
			t.Errorf("%s is applied and did not happen", id)
		case (rc.State == protocol.StateRefused || rc.State == protocol.StateCancelled) && n != 0:
			t.Errorf("%s is %s/%s and happened", id, rc.State, rc.Reason)
		}
		op := s.store.ops[index.Key{Owner: "a", ID: id}]
		switch {
		case rc.State == protocol.StateRefused && op != nil:
			t.Errorf("%s is refused/%s and is on record", id, rc.Reason)
		case rc.State == protocol.StateRefused || rc.Reason == protocol.ReasonOutcomeNotStored:
		case op == nil && rc.State == protocol.StateCancelled && rc.Reason == protocol.ReasonCancelled:
		case op == nil || op.r == nil || op.r.State != rc.State || op.r.Reason != rc.Reason:
			t.Errorf("%s was told %s/%s, the store has %+v", id, rc.State, rc.Reason, op)
		}
	}
	t.Logf("%d effects, told %v, generations %v, %d starts", len(s.browser.ledger), count, last, s.browser.starts)
	if count[protocol.StateApplied] < 50 {
		t.Errorf("only %d were applied: the run says nothing", count[protocol.StateApplied])
	}
}

var _ = broker.Entry{}
