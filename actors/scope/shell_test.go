package scope

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/mailbox"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// patience is how long a test waits for what must come; nothing is timed by it.
const patience = 20 * time.Second

// system is the one actor system of these tests.
var system = sync.OnceValue(func() *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	mailbox.AnswerDeadLetters(s, TurnAway, target.TurnAway)
	return s
})

// stand is a scope with everything around it under the test's hand: each call of
// the adapter and of the store waits until the test lets it go.
type stand struct {
	t       *testing.T
	scope   *actor.PID
	parent  *actor.PID
	running sync.WaitGroup
	heard   chan any      // what the supervisor was sent
	over    chan struct{} // closed at the end of the test

	prepare chan held[targets.Prepared]
	run     chan held[targets.Outcome]
	admit   chan held[error]
	finish  chan held[error]

	mu    sync.Mutex
	owner protocol.OwnerID
	late  int
}

// held is one call that waits for its result.
type held[T any] struct {
	id     protocol.OperationID
	ctx    context.Context
	permit targets.Permit
	state  any // what Prepare had found
	rc     protocol.Receipt
	result chan T
}

// ask waits for the test's result, or for the end of the test.
func ask[T any](s *stand, ch chan held[T], c held[T]) (result T) {
	c.result = make(chan T, 1)
	select {
	case ch <- c:
	case <-s.over:
		return result
	}
	select {
	case result = <-c.result:
	case <-s.over:
	}
	return result
}

// take waits for a call of an operation.
func take[T any](s *stand, ch chan held[T], id protocol.OperationID) held[T] {
	s.t.Helper()
	select {
	case c := <-ch:
		if c.id != id {
			s.t.Fatalf("a call of %s, not of %s", c.id, id)
		}
		return c
	case <-time.After(patience):
		s.t.Fatalf("%s was never called", id)
		panic("unreachable")
	}
}

// The stand is the adapter,

func (s *stand) Prepare(ctx context.Context, c targets.Call) (targets.Prepared, *protocol.Problem) {
	return ask(s, s.prepare, held[targets.Prepared]{id: c.Operation, ctx: ctx}), nil
}

func (s *stand) Run(ctx context.Context, c targets.Call, p targets.Prepared, permit targets.Permit) targets.Outcome {
	return ask(s, s.run, held[targets.Outcome]{id: c.Operation, ctx: ctx, permit: permit, state: p.State})
}

func (*stand) Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, string) {
	return protocol.ReadReply{}, ""
}
func (*stand) Frames(context.Context, int, func(protocol.FrameHeader, []byte)) error { return nil }
func (*stand) Revoke(context.Context) error                                          { return nil }
func (*stand) Barrier(context.Context) error                                         { return nil }
func (*stand) Close(context.Context) error                                           { return nil }
func (*stand) Snapshot() protocol.Page                                               { return protocol.Page{} }
func (*stand) Events() <-chan targets.Event {
	ch := make(chan targets.Event)
	close(ch)
	return ch
}

// the store,

type noMark struct{}

func (noMark) Set() {}

func (s *stand) Admit(op Op, _ protocol.Generation, _, _ protocol.Epoch) (Mark, *protocol.Problem) {
	if err := orPanic(ask(s, s.admit, held[error]{id: op.Key.ID})); err != nil {
		return nil, &protocol.Problem{Reason: protocol.ReasonStorageUnavailable, Message: err.Error()}
	}
	return noMark{}, nil
}

func (s *stand) Finish(op Op, rc protocol.Receipt) error {
	return orPanic(ask(s, s.finish, held[error]{id: op.Key.ID, rc: rc}))
}
func (*stand) Reserve(protocol.ResourceID, protocol.Epoch) error { return nil }
func (s *stand) History(protocol.HistoryEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late++
}

// the publisher,

func (*stand) Cue(protocol.Cue)                   {}
func (*stand) Frame(protocol.FrameHeader, []byte) {}
func (*stand) Record(protocol.Record)             {}

// and the supervisor: what fails is stopped, never restarted in place.

func (s *stand) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.scope = ctx.Spawn(Props(Config{Resource: "pg_1", Store: s, Publisher: s, Supervisor: ctx.Self(), Logger: slog.New(slog.DiscardHandler),
			Running: &s.running, OnLate: func() {}, OnHeld: func(o protocol.OwnerID) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.owner = o
			}}))
		inc := ctx.Spawn(target.Props(target.Config{Resource: "pg_1", Gen: 1, Incarnation: s, Supervisor: ctx.Self(), Logger: slog.New(slog.DiscardHandler), Running: &s.running}))
		ctx.Send(s.scope, Incarnate{Gen: 1, PID: inc})
		ctx.Send(s.scope, Open{Gen: 1})
		s.heard <- "up"
	case Settled, Suspect, Close, target.Crashed:
		s.heard <- m
	}
}

func (s *stand) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	sup.StopChildren(child)
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, over: make(chan struct{}), heard: make(chan any, 64), prepare: make(chan held[targets.Prepared], 8), run: make(chan held[targets.Outcome], 8),
		admit: make(chan held[error], 8), finish: make(chan held[error], 8)}
	s.parent = system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }))
	s.hear()
	t.Cleanup(func() {
		close(s.over)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = system().Root.StopFuture(s.parent).Wait() // only then no work is added any more
			s.running.Wait()
		}()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("something of the scope never ended")
		}
	})
	return s
}

func (s *stand) hear() any {
	s.t.Helper()
	select {
	case m := <-s.heard:
		return m
	case <-time.After(patience):
		s.t.Fatal("the supervisor heard nothing")
		return nil
	}
}

func (s *stand) send(m any) { system().Root.Send(s.scope, m) }

// do submits a click.
func (s *stand) do(id protocol.OperationID) <-chan Answer {
	reply := make(chan Answer, 1)
	now := time.Now()
	s.send(Do{Reply: reply, Op: Op{Key: Key{Owner: "a", ID: id}, QueueUntil: now.Add(time.Minute), RunFor: time.Minute,
		Request: protocol.Request{OperationID: id, Resource: "pg_1", Generation: 1, Method: protocol.MethodClick}}})
	return reply
}

func (s *stand) answer(ch <-chan Answer) Answer {
	s.t.Helper()
	select {
	case a := <-ch:
		return a
	case <-time.After(patience):
		s.t.Fatal("nobody answered")
		panic("unreachable")
	}
}

// expect waits for an answer and checks its words.
func (s *stand) expect(ch <-chan Answer, state protocol.State, why protocol.Reason, recorded bool) protocol.Receipt {
	s.t.Helper()
	a := s.answer(ch)
	if a.Receipt.State != state || a.Receipt.Reason != why || a.Recorded != recorded {
		s.t.Fatalf("%s/%s recorded=%v, want %s/%s recorded=%v", a.Receipt.State, a.Receipt.Reason, a.Recorded, state, why, recorded)
	}
	return a.Receipt
}

// to brings an operation to a stage.
func (s *stand) to(st stage, id protocol.OperationID) (reply <-chan Answer, p held[targets.Prepared], adm held[error], r held[targets.Outcome], fin held[error]) {
	s.t.Helper()
	reply = s.do(id)
	p = take(s, s.prepare, id)
	if st == resolving {
		return
	}
	p.result <- targets.Prepared{State: string(id)}
	adm = take(s, s.admit, id)
	if st == admitting {
		return
	}
	adm.result <- nil
	r = take(s, s.run, id)
	if st == running {
		return
	}
	if err := r.permit.Use(); err != nil {
		s.t.Fatal(err)
	}
	r.result <- targets.Outcome{State: protocol.StateApplied, Begun: 1}
	fin = take(s, s.finish, id)
	return
}

// TestShellPath: an operation goes its whole way, and what Prepare had found
// reaches Run.
func TestShellPath(t *testing.T) {
	s := newStand(t)
	reply, _, _, r, _ := s.to(running, "op1")
	if r.state != "op1" {
		t.Fatalf("Run was given %v", r.state)
	}
	r.result <- targets.Outcome{State: protocol.StateApplied, Effect: protocol.EffectDelivered, Begun: 1}
	fin := take(s, s.finish, "op1")
	if fin.rc.State != protocol.StateApplied {
		t.Fatalf("%s is stored", fin.rc.State)
	}
	fin.result <- nil
	if rc := s.expect(reply, protocol.StateApplied, "", true); rc.ObservationToken == "" {
		t.Fatal("the receipt has no token")
	}
}

// TestShellNeverBlocks: while adapter and store hang, the scope answers others
// at once: no mailbox waits for either.
func TestShellNeverBlocks(t *testing.T) {
	for _, st := range []stage{resolving, admitting, running, ending} {
		t.Run(st.String(), func(t *testing.T) {
			s := newStand(t)
			s.to(st, "op1")
			queued := s.do("op2")
			claim := make(chan *protocol.Problem, 1)
			s.send(Lease{Owner: "b", Reply: claim})
			select {
			case p := <-claim:
				if p == nil || p.Reason != protocol.ReasonHeldBy || p.HeldBy != "a" {
					t.Fatalf("b was told %v", p)
				}
			case <-time.After(patience):
				t.Fatal("the scope does not answer")
			}
			s.send(Cancel{Key: Key{Owner: "a", ID: "op2"}})
			s.expect(queued, protocol.StateCancelled, protocol.ReasonCancelled, false)
		})
	}
}

// TestShellCancelStopsTheCall: a cancel reaches what runs in the adapter, and
// after it no input is given (I6 of the permit).
func TestShellCancelStopsTheCall(t *testing.T) {
	s := newStand(t)
	reply, p, _, _, _ := s.to(resolving, "op1")
	s.send(Cancel{Key: Key{Owner: "a", ID: "op1"}})
	ended(t, p.ctx)
	p.result <- targets.Prepared{}
	s.expect(reply, protocol.StateCancelled, protocol.ReasonCancelled, false)

	reply, _, _, r, _ := s.to(running, "op2")
	if err := r.permit.Use(); err != nil {
		t.Fatal(err)
	}
	s.send(Cancel{Key: Key{Owner: "a", ID: "op2"}})
	ended(t, r.ctx)
	if err := r.permit.Use(); !errors.Is(err, targets.ErrRevoked) {
		t.Fatalf("input may be given after the cancel: %v", err)
	}
	r.result <- targets.Outcome{State: protocol.StateFailed, LastDone: 0, Begun: 1}
	take(s, s.finish, "op2").result <- nil
	s.expect(reply, protocol.StateFailed, protocol.ReasonCancelled, true)
}

func ended(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the call was not stopped")
	}
}

// direct is an incarnation whose calls the test answers itself.
type direct struct{ calls chan any }

func (d direct) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case target.Prepare, target.Run:
		d.calls <- m
	}
}

func (d direct) next(t *testing.T) any {
	t.Helper()
	select {
	case m := <-d.calls:
		return m
	case <-time.After(patience):
		t.Fatal("the incarnation was never called")
		return nil
	}
}

// TestShellLateFind: what an earlier look for another operation found never
// becomes another's (I8).
func TestShellLateFind(t *testing.T) {
	s := newStand(t)
	d := direct{calls: make(chan any, 8)}
	pid := system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return d }))
	defer system().Root.Stop(pid)
	s.send(Incarnate{Gen: 1, PID: pid})
	first := s.do("op1")
	old := d.next(t).(target.Prepare)
	s.send(Fence{Reason: protocol.ReasonRestoring})
	s.send(Settle{Gen: 2})
	s.expect(first, protocol.StateRefused, protocol.ReasonStaleGeneration, false)
	if m, ok := s.hear().(Settled); !ok || m.Gen != 2 {
		t.Fatalf("heard %v", m)
	}
	s.send(Open{Gen: 2})
	reply := make(chan Answer, 1)
	s.send(Do{Reply: reply, Op: Op{Key: Key{Owner: "a", ID: "op2"}, RunFor: time.Minute,
		Request: protocol.Request{OperationID: "op2", Resource: "pg_1", Generation: 2, Method: protocol.MethodClick}}})
	d.next(t).(target.Prepare).Done(targets.Prepared{State: "op2"}, nil, 0)
	adm := take(s, s.admit, "op2")
	old.Done(targets.Prepared{State: "op1"}, nil, 0) // late, and before the admission in the mailbox
	adm.result <- nil
	run := d.next(t).(target.Run)
	if run.Prepared.State != "op2" {
		t.Fatalf("op2 was run on what %v had found", run.Prepared.State)
	}
	run.Done(targets.Outcome{State: protocol.StateApplied})
	take(s, s.finish, "op2").result <- nil
	s.expect(reply, protocol.StateApplied, "", true)
}

// TestShellPanicAnswersEverything: whatever a scope holds when it dies is
// answered, by what is known of it: also what is in its mailbox behind the
// panic, what comes later, and claims and observations (I4, I5).
func TestShellPanicAnswersEverything(t *testing.T) {
	for _, row := range []struct {
		at       stage
		given    bool // a byte of input had left
		state    protocol.State
		recorded bool
	}{
		{resolving, false, protocol.StateRefused, false},
		{admitting, false, protocol.StateCancelled, true},
		{running, false, protocol.StateCancelled, true},
		{running, true, protocol.StateUncertain, true},
		{ending, true, protocol.StateApplied, true},
	} {
		t.Run(fmt.Sprintf("%s given=%v", row.at, row.given), func(t *testing.T) {
			s := newStand(t)
			reply, _, adm, r, fin := s.to(row.at, "op1")
			if row.at == running && row.given {
				if err := r.permit.Use(); err != nil {
					t.Fatal(err)
				}
			}
			queued := s.do("op2")
			s.send(Panic{Why: "planted"})
			behind := s.do("op3")
			looked := make(chan Looked, 1)
			s.send(BeginLook{Reply: looked})
			s.expect(queued, protocol.StateRefused, protocol.ReasonScopeRestarted, false)
			s.expect(behind, protocol.StateRefused, protocol.ReasonScopeRestarted, false)
			if l := <-looked; l.Open {
				t.Fatal("a dead scope says that it is open")
			}
			if row.at == running {
				ended(t, r.ctx)
				if err := r.permit.Use(); !errors.Is(err, targets.ErrRevoked) {
					t.Fatalf("a dead scope's operation gives input: %v", err)
				}
			}
			switch row.at {
			case admitting: // what the store was asked is waited for
				adm.result <- nil
				take(s, s.finish, "op1").result <- nil
			case running:
				take(s, s.finish, "op1").result <- nil
			case ending: // and not asked twice
				fin.result <- nil
			}
			why := protocol.ReasonScopeRestarted
			if row.at == ending {
				why = ""
			}
			rc := s.expect(reply, row.state, why, row.recorded)
			if rc.ObserveRequired != (row.state == protocol.StateUncertain) {
				t.Fatalf("observe_required is %v", rc.ObserveRequired)
			}
			later := s.do("op4")
			s.expect(later, protocol.StateRefused, protocol.ReasonScopeRestarted, false)
			claim := make(chan *protocol.Problem, 1)
			s.send(Lease{Owner: "a", Reply: claim})
			if p := <-claim; p == nil || p.Reason != protocol.ReasonScopeRestarted {
				t.Fatalf("a claim was told %v", p)
			}
			minted := make(chan Minted, 1)
			s.send(EndLook{Owner: "a", Gen: 1, Reply: minted})
			if m := <-minted; !m.Stale {
				t.Fatal("a dead scope made a token")
			}
		})
	}
}

// TestShellDiesWithABrokenStore: what the store cannot take is said to be
// uncertain, or refused where it was never admitted.
func TestShellDiesWithABrokenStore(t *testing.T) {
	broken := errors.New("no disk")
	s := newStand(t)
	reply, _, adm, _, _ := s.to(admitting, "op1")
	s.send(Panic{Why: "planted"})
	adm.result <- broken
	s.expect(reply, protocol.StateRefused, protocol.ReasonScopeRestarted, false)

	s = newStand(t)
	reply, _, _, _, fin := s.to(ending, "op1")
	s.send(Panic{Why: "planted"})
	fin.result <- broken
	s.expect(reply, protocol.StateUncertain, protocol.ReasonOutcomeNotStored, false)
}

// TestShellStopAnswersEverything: a stop does, too, however much is in the mailbox.
func TestShellStopAnswersEverything(t *testing.T) {
	s := newStand(t)
	var replies []<-chan Answer
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		system().Root.Stop(s.parent)
	}()
	for i := range 2000 {
		replies = append(replies, s.do(protocol.OperationID(fmt.Sprint("op", i))))
	}
	<-stopped
	for i, ch := range replies {
		a := s.answer(ch)
		if a.Receipt.State != protocol.StateRefused {
			t.Fatalf("op%d is %s", i, a.Receipt.State)
		}
	}
}

// TestShellWorkerPanics: a store that panics is the end of the scope, not of the
// process, and everybody is answered.
func TestShellWorkerPanics(t *testing.T) {
	s := newStand(t)
	reply, _, adm, _, _ := s.to(admitting, "op1")
	queued := s.do("op2")
	adm.result <- errPanic
	take(s, s.finish, "op1").result <- nil
	s.expect(reply, protocol.StateCancelled, protocol.ReasonScopeRestarted, true)
	s.expect(queued, protocol.StateRefused, protocol.ReasonScopeRestarted, false)

	s = newStand(t)
	reply, _, _, _, fin := s.to(ending, "op1")
	fin.result <- errPanic
	s.expect(reply, protocol.StateUncertain, protocol.ReasonOutcomeNotStored, false)
}

// errPanic makes the store panic.
var errPanic = errors.New("planted")

func orPanic(err error) error {
	if errors.Is(err, errPanic) {
		panic(err)
	}
	return err
}
