package supervisors

import (
	"context"
	"sync"
	"testing"
	"time"

	"reins/actors/broker"
	"reins/actors/scope"
	"reins/protocol"
	"reins/targets"
)

// I6: a close that reaches a target which has closed already, as where its page
// closed itself, is answered and does not wait for its deadline.
func TestShellCloseOfTheClosed(t *testing.T) {
	s := newStand(t)
	r := s.open()
	e := s.entry(r, func(e broker.Entry) bool { return e.Supervisor != nil })
	for range 2 { // the second meets a target that is closed
		answered := make(chan targets.Outcome, 1)
		system().Root.Send(e.Supervisor, scope.Close{Gen: e.Gen, Done: func(o targets.Outcome) { answered <- o }})
		ctx, cancel := context.WithTimeout(context.Background(), within)
		select {
		case o := <-answered:
			if o.State != protocol.StateApplied {
				t.Errorf("closing ended %s/%s", o.State, o.Reason)
			}
		case <-ctx.Done():
			t.Error("a close has no answer")
		}
		cancel()
		s.entry(r, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleClosed })
	}
}

// holding holds up the storing of what is ready until released.
type holding struct {
	*memory
	began, release chan struct{}
	once           sync.Once
}

func (h *holding) PutRecord(r protocol.Record) error {
	if r.Lifecycle == protocol.LifecycleReady {
		h.once.Do(func() {
			close(h.began)
			<-h.release
		})
	}
	return h.memory.PutRecord(r)
}

// I6: that a target is closed is stored after what was on its way to the store
// while it was open; the store's own check says so otherwise.
func TestShellClosedIsStoredLast(t *testing.T) {
	s := newStand(t)
	h := &holding{memory: s.store, began: make(chan struct{}), release: make(chan struct{})}
	s.tree.Store = h
	r := s.open()
	<-h.began
	e := s.entry(r, func(e broker.Entry) bool { return e.Supervisor != nil })
	answered := make(chan targets.Outcome, 1)
	system().Root.Send(e.Supervisor, scope.Close{Gen: e.Gen, Done: func(o targets.Outcome) { answered <- o }})
	select {
	case <-answered:
		t.Error("it is said to be closed while its record as open is still being stored")
		close(h.release)
	case <-time.After(200 * time.Millisecond):
		close(h.release)
		if o := <-answered; o.State != protocol.StateApplied {
			t.Errorf("closing ended %s/%s", o.State, o.Reason)
		}
	}
	s.entry(r, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleClosed })
}
