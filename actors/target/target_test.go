package target

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"reins/actors/mailbox"
	"reins/protocol"
	"reins/targets"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The actor library's throttle of dead letters has no end; it is one a system.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// within is how long a test waits for what must come; nothing is timed by it.
const within = 20 * time.Second

var system = sync.OnceValue(func() *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	mailbox.AnswerDeadLetters(s, TurnAway)
	return s
})

// stand is an incarnation's adapter, and its supervisor.
type stand struct {
	t       *testing.T
	events  chan targets.Event
	heard   chan any
	running sync.WaitGroup
	parent  *actor.PID
	pid     *actor.PID
	prepare func(context.Context) *protocol.Problem
	run     func(context.Context) targets.Outcome
}

func (s *stand) Prepare(ctx context.Context, _ targets.Call) (targets.Prepared, *protocol.Problem) {
	return targets.Prepared{State: "found"}, s.prepare(ctx)
}

func (s *stand) Run(ctx context.Context, _ targets.Call, p targets.Prepared, _ targets.Permit) targets.Outcome {
	if p.State != "found" {
		return targets.Outcome{State: protocol.StateUncertain}
	}
	return s.run(ctx)
}

func (*stand) Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, string) {
	return protocol.ReadReply{}, ""
}
func (*stand) Frames(context.Context, int, func(protocol.FrameHeader, []byte)) error { return nil }
func (*stand) Revoke(context.Context) error                                          { return nil }
func (*stand) Barrier(context.Context) error                                         { return nil }
func (*stand) Close(context.Context) error                                           { return nil }
func (*stand) Snapshot() protocol.Page                                               { return protocol.Page{} }
func (s *stand) Events() <-chan targets.Event                                        { return s.events }

// Receive is the supervisor's.
func (s *stand) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.pid = ctx.Spawn(Props(Config{Resource: "pg_1", Gen: 7, Incarnation: s, Supervisor: ctx.Self(), Logger: slog.New(slog.DiscardHandler), Running: &s.running}))
		s.heard <- "up"
	case Crashed, Happened:
		s.heard <- m
	}
}

// HandleFailure stops what failed.
func (s *stand) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	sup.StopChildren(child)
	s.heard <- "failed"
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, events: make(chan targets.Event, 4), heard: make(chan any, 16),
		prepare: func(context.Context) *protocol.Problem { return nil },
		run:     func(context.Context) targets.Outcome { return targets.Outcome{State: protocol.StateApplied} }}
	s.parent = system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }))
	s.hear()
	t.Cleanup(func() {
		stop(s.parent)
		close(s.events)
		done := make(chan struct{})
		go func() { s.running.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(within):
			t.Error("something of the incarnation never ended")
		}
	})
	return s
}

func (s *stand) hear() any { return get(s.t, s.heard) }

func get[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(within):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// found and done are what the two calls were answered.
type found struct {
	prepared targets.Prepared
	problem  *protocol.Problem
}

func (s *stand) sendPrepare() <-chan found {
	ch := make(chan found, 1)
	system().Root.Send(s.pid, Prepare{Context: s.t.Context(), Until: time.Now().Add(within),
		Done: func(p targets.Prepared, problem *protocol.Problem, _ time.Duration) { ch <- found{p, problem} }})
	return ch
}

func (s *stand) sendRun(until time.Time) <-chan targets.Outcome {
	ch := make(chan targets.Outcome, 1)
	system().Root.Send(s.pid, Run{Context: s.t.Context(), Prepared: targets.Prepared{State: "found"}, Until: until, Done: func(o targets.Outcome) { ch <- o }})
	return ch
}

// TestCalls (I1): two calls run at once, outside of the mailbox, with the
// deadline of the operation.
func TestCalls(t *testing.T) {
	s := newStand(t)
	s.run = func(ctx context.Context) targets.Outcome {
		<-ctx.Done() // hangs until its deadline
		return targets.Outcome{State: protocol.StateUncertain}
	}
	first := s.sendRun(time.Now().Add(time.Hour).Add(-time.Hour)) // over at once
	if o := get(t, first); o.State != protocol.StateUncertain {
		t.Fatalf("%+v", o)
	}
	hung := make(chan struct{})
	s.run = func(context.Context) targets.Outcome {
		<-hung
		return targets.Outcome{State: protocol.StateApplied}
	}
	second := s.sendRun(time.Now().Add(within))
	if f := get(t, s.sendPrepare()); f.problem != nil || f.prepared.State != "found" {
		t.Fatalf("%+v", f)
	}
	close(hung)
	if o := get(t, second); o.State != protocol.StateApplied {
		t.Fatalf("%+v", o)
	}
}

// TestAdapterPanics (I2, I3): the supervisor is told, the process lives, and
// nobody is told an outcome that is not known.
func TestAdapterPanics(t *testing.T) {
	s := newStand(t)
	s.run = func(context.Context) targets.Outcome { panic("planted") }
	answer := s.sendRun(time.Now().Add(within))
	if c, ok := s.hear().(Crashed); !ok || c.Gen != 7 || c.Reason != protocol.ReasonInternal {
		t.Fatalf("heard %+v", c)
	}
	s.prepare = func(context.Context) *protocol.Problem { panic("planted") }
	s.sendPrepare()
	if c, ok := s.hear().(Crashed); !ok || c.Gen != 7 {
		t.Fatalf("heard %+v", c)
	}
	select {
	case o := <-answer:
		t.Fatalf("it was answered: %+v", o)
	default:
	}
}

// TestEvents are passed on with the generation they belong to.
func TestEvents(t *testing.T) {
	s := newStand(t)
	s.events <- targets.Event{Kind: targets.EventNavigated, Page: protocol.Page{URL: "http://x.test/"}}
	if h, ok := s.hear().(Happened); !ok || h.Gen != 7 || h.Event.Page.URL != "http://x.test/" {
		t.Fatalf("heard %+v", h)
	}
}

// TestTurnedAway (I4): what comes behind a panic, or after the end, is answered:
// nothing of it happened.
func TestTurnedAway(t *testing.T) {
	s := newStand(t)
	system().Root.Send(s.pid, Panic{Why: "planted"})
	for range 2 {
		if f := get(t, s.sendPrepare()); f.problem == nil || f.problem.Reason != protocol.ReasonRestoring {
			t.Fatalf("%+v", f)
		}
		if o := get(t, s.sendRun(time.Now().Add(within))); o.State != protocol.StateRefused || o.LastDone != -1 {
			t.Fatalf("%+v", o)
		}
		stop(s.pid) // the second time it is gone
	}
}

// stop ends an actor and waits until it has, with everything below it.
func stop(pid *actor.PID) {
	ended := make(chan struct{})
	watcher := system().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
			ctx.Stop(pid)
		case *actor.Terminated:
			close(ended)
		}
	}))
	<-ended
	system().Root.Stop(watcher)
}
