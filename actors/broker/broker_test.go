package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/index"
	"reins/actors/scope"
	"reins/protocol"
	"reins/targets"
)

// within is how long a test waits for what must come; nothing is timed by it.
const within = 20 * time.Second

var system = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// stand is a broker whose supervisors, scope and store are the test's.
type stand struct {
	t       *testing.T
	b       *Broker
	dir     *Directory
	caller  protocol.Caller
	running sync.WaitGroup
	scope   *actor.PID
	inbox   chan any // what the scope was sent

	mu      sync.Mutex
	calls   []string // of the supervisors
	stored  map[index.Key]index.Stored
	broken  error
	records map[protocol.ResourceID]protocol.Record
}

// Receive is the scope: the test reads what it was sent.
func (s *stand) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case scope.Do, scope.Cancel, scope.Lease, scope.BeginLook, scope.EndLook, scope.OwnerLost, scope.OwnerBack:
		s.inbox <- m
	}
}

func (s *stand) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *stand) said(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == what {
			return true
		}
	}
	return false
}

// The stand is the tree,

func (s *stand) Open(r protocol.Record) {
	s.say("open")
	s.dir.Update(r.ID, func(e *Entry) { e.Scope = s.scope })
}
func (s *stand) Look(id protocol.ResourceID)    { s.say("look %s", id) }
func (s *stand) Restart(id protocol.ResourceID) { s.say("restart %s", id) }
func (s *stand) Discard(protocol.ResourceID)    { s.say("discard") }

// the store,

func (s *stand) Operation(o protocol.OwnerID, id protocol.OperationID) (index.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[index.Key{Owner: o, ID: id}], s.broken
}

func (s *stand) PutRecord(r protocol.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.ID] = r
	return s.broken
}

func (s *stand) Entries(q protocol.HistoryQuery) ([]protocol.HistoryEntry, error) {
	return []protocol.HistoryEntry{{Resource: q.Resource}}, nil
}
func (s *stand) Health() (protocol.Reason, string) { return "", "" }

// and the previews.

func (s *stand) Demand(viewer string, d protocol.Demand) {
	s.say("demand %s %d", d.Resource, d.Width)
}

func newStand(t *testing.T, change ...func(*Config)) *stand {
	s := &stand{t: t, inbox: make(chan any, 64), stored: map[index.Key]index.Stored{}, records: map[protocol.ResourceID]protocol.Record{}}
	s.scope = system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }))
	s.dir = NewDirectory(func(protocol.Record) {})
	c := Config{System: system(), Directory: s.dir, Store: s, Previews: s, HashKey: []byte("key"), Version: "test", Logger: slog.New(slog.DiscardHandler),
		HostState: func() string { return "up" }, Late: func() uint64 { return 0 }, Running: &s.running}
	for _, f := range change {
		f(&c)
	}
	s.b = New(c)
	s.b.SetTree(s)
	s.caller = s.hello("a")
	t.Cleanup(func() {
		_ = system().Root.StopFuture(s.scope).Wait()
		done := make(chan struct{})
		go func() { s.running.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(within):
			t.Error("an operation never ended")
		}
	})
	return s
}

func (s *stand) hello(owner protocol.OwnerID) protocol.Caller {
	h := s.b.Hello(s.t.Context(), owner, protocol.Hello{Version: protocol.Version})
	if h.Problem != nil {
		s.t.Fatal(h.Problem)
	}
	return protocol.Caller{Owner: owner, Connection: h.Connection, UserTurn: "turn"}
}

// page lists a page that is ready.
func (s *stand) page(id protocol.ResourceID) {
	s.dir.Update(id, func(e *Entry) {
		e.Record = protocol.Record{ID: id, Kind: protocol.KindPage, Lifecycle: protocol.LifecycleReady, Generation: 1}
		e.Scope, e.Gen, e.Incarnation = s.scope, 1, reader{}
	})
}

// reader is an incarnation that can be looked at.
type reader struct{ targets.Incarnation }

func (reader) Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, string) {
	return protocol.ReadReply{Observation: &protocol.Observation{FrameID: "f"}}, "1x1"
}

func press(id protocol.OperationID, r protocol.ResourceID) protocol.Request {
	return protocol.Request{OperationID: id, Resource: r, Generation: 1, Method: protocol.MethodPress, Arguments: json.RawMessage(`{"key":"Enter"}`)}
}

// do sends a request in the background.
func (s *stand) do(ctx context.Context, c protocol.Caller, r protocol.Request) <-chan protocol.Receipt {
	raw, err := json.Marshal(r)
	if err != nil {
		s.t.Fatal(err)
	}
	answer := make(chan protocol.Receipt, 1)
	s.running.Go(func() { answer <- s.b.Do(ctx, c, raw) })
	return answer
}

func get[T any](s *stand, ch <-chan T) T {
	s.t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(within):
		s.t.Fatal("nothing came")
		panic("unreachable")
	}
}

// sent waits for the next message to the scope.
func sent[T any](s *stand) T {
	s.t.Helper()
	m := get(s, s.inbox)
	v, ok := m.(T)
	if !ok {
		s.t.Fatalf("the scope was sent %T", m)
	}
	return v
}

// idle checks that the scope was sent nothing.
func (s *stand) idle() {
	s.t.Helper()
	select {
	case m := <-s.inbox:
		s.t.Fatalf("the scope was sent %T", m)
	default:
	}
}

// applied is the answer of a scope that did it: it is on record before it is told.
func (s *stand) applied(op scope.Op) scope.Answer {
	a := scope.Answer{Key: op.Key, Recorded: true, Receipt: protocol.Receipt{OperationID: op.Key.ID, Resource: op.Request.Resource,
		Generation: op.Request.Generation, State: protocol.StateApplied, Effect: protocol.EffectConfirmed}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[index.Key(op.Key)] = index.Stored{Known: true, Hash: op.Hash, Receipt: &a.Receipt}
	return a
}

func (s *stand) expect(rc protocol.Receipt, state protocol.State, why protocol.Reason) {
	s.t.Helper()
	if rc.State != state || rc.Reason != why {
		s.t.Fatalf("%s/%s %s, want %s/%s", rc.State, rc.Reason, rc.Message, state, why)
	}
}

// TestDo: a request reaches its scope as it was sent, and its receipt comes back.
func TestDo(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	answer := s.do(t.Context(), s.caller, press("op1", "pg_1"))
	m := sent[scope.Do](s)
	if m.Op.Key != (scope.Key{Owner: "a", ID: "op1"}) || m.Op.UserTurn != "turn" || m.Op.RunFor != protocol.WriteDeadline || !m.Op.Until.IsZero() {
		t.Fatalf("%+v", m.Op)
	}
	m.Reply <- s.applied(m.Op)
	rc := get(s, answer)
	s.expect(rc, protocol.StateApplied, "")
	if rc.Method != protocol.MethodPress {
		t.Fatalf("its method is %q", rc.Method)
	}
}

// TestDoRefuses what can be decided before a scope is asked: nothing reaches one.
func TestDoRefuses(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	s.dir.Update("pg_2", func(e *Entry) { e.Record = protocol.Record{ID: "pg_2", Lifecycle: protocol.LifecycleClosed} })
	s.expect(s.b.Do(t.Context(), s.caller, []byte(`{"operation_id":`)), protocol.StateRefused, protocol.ReasonBadRequest)
	s.expect(get(s, s.do(t.Context(), s.caller, press("op1", "pg_9"))), protocol.StateRefused, protocol.ReasonUnknownResource)
	s.expect(get(s, s.do(t.Context(), s.caller, press("op2", "pg_2"))), protocol.StateRefused, protocol.ReasonResourceClosed)
	for _, c := range []protocol.Caller{{Owner: "a", Connection: "guess"}, {Owner: "b", Connection: s.caller.Connection}, {Owner: "a"}} {
		s.expect(get(s, s.do(t.Context(), c, press("op3", "pg_1"))), protocol.StateRefused, protocol.ReasonStaleConnection)
	}
	s.mu.Lock()
	s.broken = errors.New("no disk")
	s.mu.Unlock()
	s.expect(get(s, s.do(t.Context(), s.caller, press("op4", "pg_1"))), protocol.StateRefused, protocol.ReasonStorageUnavailable)
	s.mu.Lock()
	s.broken = nil
	s.mu.Unlock()
	s.b.Shut()
	s.expect(get(s, s.do(t.Context(), s.caller, press("op5", "pg_1"))), protocol.StateRefused, protocol.ReasonShuttingDown)
	s.idle()
}

// TestSameIDAtOnce (I1, I3): ten callers with one request: the scope gets it
// once, everybody the same receipt, and another content is refused.
func TestSameIDAtOnce(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	var answers []<-chan protocol.Receipt
	for range 10 {
		answers = append(answers, s.do(t.Context(), s.caller, press("op1", "pg_1")))
	}
	m := sent[scope.Do](s)
	other := press("op1", "pg_1")
	other.Arguments = json.RawMessage(`{"key":"Escape"}`)
	s.expect(get(s, s.do(t.Context(), s.caller, other)), protocol.StateRefused, protocol.ReasonOperationIDReused)
	m.Reply <- s.applied(m.Op)
	for _, a := range answers {
		s.expect(get(s, a), protocol.StateApplied, "")
	}
	s.idle()
	// The same id of another owner is another operation.
	b := s.hello("b")
	sent[scope.OwnerBack](s)
	answer := s.do(t.Context(), b, press("op1", "pg_1"))
	m = sent[scope.Do](s)
	m.Reply <- s.applied(m.Op)
	s.expect(get(s, answer), protocol.StateApplied, "")
}

// TestCallerStopsWaiting (I2): the operation goes on, and its receipt is kept.
func TestCallerStopsWaiting(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	ctx, cancel := context.WithCancel(t.Context())
	answer := s.do(ctx, s.caller, press("op1", "pg_1"))
	m := sent[scope.Do](s)
	cancel()
	s.expect(get(s, answer), protocol.StateUncertain, protocol.ReasonAnswerLost)
	later := make(chan protocol.Receipt, 1)
	s.running.Go(func() { later <- s.b.Receipt(context.WithoutCancel(ctx), s.caller, "op1") })
	m.Reply <- scope.Answer{Key: m.Op.Key, Receipt: protocol.Receipt{OperationID: "op1", State: protocol.StateUncertain, Reason: protocol.ReasonAnswerLost, Message: "kept"}}
	rc := get(s, later)
	s.expect(rc, protocol.StateUncertain, protocol.ReasonAnswerLost)
	again := get(s, s.do(t.Context(), s.caller, press("op1", "pg_1")))
	if again.Message != "kept" { // not recorded, so answered from memory
		t.Fatalf("again it is %+v", again)
	}
	s.idle()
}

// TestStoredReceipt: what is on record is answered from there.
func TestStoredReceipt(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	r := press("op1", "pg_1")
	stored := protocol.Receipt{OperationID: "op1", State: protocol.StateApplied}
	s.stored[index.Key{Owner: "a", ID: "op1"}] = index.Stored{Known: true, Hash: protocol.ContentHash([]byte("key"), r), Receipt: &stored}
	s.expect(get(s, s.do(t.Context(), s.caller, r)), protocol.StateApplied, "")
	s.expect(s.b.Receipt(t.Context(), s.caller, "op1"), protocol.StateApplied, "")
	s.expect(s.b.Cancel(t.Context(), s.caller, "op1"), protocol.StateApplied, "")
	s.expect(s.b.Receipt(t.Context(), s.caller, "op2"), protocol.StateRefused, protocol.ReasonUnknownOperation)
	s.idle()
}

// TestCancel: of what runs, of what is unknown, and one that comes first.
func TestCancel(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	answer := s.do(t.Context(), s.caller, press("op1", "pg_1"))
	m := sent[scope.Do](s)
	cancelled := make(chan protocol.Receipt, 1)
	s.running.Go(func() { cancelled <- s.b.Cancel(t.Context(), s.caller, "op1") })
	if c := sent[scope.Cancel](s); c.Key != m.Op.Key {
		t.Fatalf("%v is cancelled", c.Key)
	}
	m.Reply <- scope.Answer{Key: m.Op.Key, Receipt: protocol.Receipt{OperationID: "op1", State: protocol.StateFailed, Reason: protocol.ReasonCancelled}, Recorded: true}
	s.expect(get(s, answer), protocol.StateFailed, protocol.ReasonCancelled)
	s.expect(get(s, cancelled), protocol.StateFailed, protocol.ReasonCancelled)

	s.expect(s.b.Cancel(t.Context(), s.caller, "op2"), protocol.StateRefused, protocol.ReasonUnknownOperation)
	s.expect(get(s, s.do(t.Context(), s.caller, press("op2", "pg_1"))), protocol.StateCancelled, protocol.ReasonCancelled)
	s.idle()
	s.expect(s.b.Cancel(t.Context(), protocol.Caller{Owner: "a", Connection: "guess"}, "op1"), protocol.StateRefused, protocol.ReasonStaleConnection)
}

// TestOpen: the record is stored before anybody is told; a refusal closes what
// was never used; the ceiling is an answer.
func TestOpen(t *testing.T) {
	s := newStand(t, func(c *Config) { c.MaxPages = 2 })
	open := func(id protocol.OperationID) protocol.Request {
		return protocol.Request{OperationID: id, Method: protocol.MethodOpen, Arguments: json.RawMessage(`{"kind":"page"}`)}
	}
	answer := s.do(t.Context(), s.caller, open("op1"))
	m := sent[scope.Do](s)
	id := m.Op.Request.Resource
	s.mu.Lock()
	stored := s.records[id]
	s.mu.Unlock()
	if stored.Lifecycle != protocol.LifecycleOpening || stored.Owner != "a" {
		t.Fatalf("stored is %+v", stored)
	}
	m.Reply <- s.applied(m.Op)
	if rc := get(s, answer); rc.Resource != id {
		t.Fatalf("the receipt names %q, not %q", rc.Resource, id)
	}
	if s.said("discard") {
		t.Fatal("what was opened is closed")
	}
	answer = s.do(t.Context(), s.caller, open("op2"))
	m = sent[scope.Do](s)
	m.Reply <- scope.Answer{Key: m.Op.Key, Receipt: protocol.Receipt{OperationID: "op2", State: protocol.StateRefused, Reason: protocol.ReasonCouldNotRestore}}
	s.expect(get(s, answer), protocol.StateRefused, protocol.ReasonCouldNotRestore)
	if !s.said("discard") {
		t.Fatal("what was never used stays open")
	}
	s.expect(get(s, s.do(t.Context(), s.caller, open("op3"))), protocol.StateRefused, protocol.ReasonTooMany)
	s.idle()
}

// TestRead: an observation gets its token from the scope, under the generation it
// was made in; one whose incarnation ended meanwhile is made again.
func TestRead(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	raw := []byte(`{"resource":"pg_1","method":"observe"}`)
	reply := make(chan protocol.ReadReply, 1)
	s.running.Go(func() { reply <- s.b.Read(t.Context(), s.caller, raw) })
	sent[scope.BeginLook](s).Reply <- scope.Looked{Gen: 1, Epoch: 7, Open: true}
	end := sent[scope.EndLook](s)
	if end.Owner != "a" || end.Gen != 1 || end.Epoch != 7 || end.Geometry != "1x1" {
		t.Fatalf("%+v", end)
	}
	end.Reply <- scope.Minted{Stale: true} // it is over: not answered, but looked at again
	s.dir.Update("pg_1", func(e *Entry) { e.Gen = 2 })
	sent[scope.BeginLook](s).Reply <- scope.Looked{Gen: 2, Epoch: 9, Open: true}
	sent[scope.EndLook](s).Reply <- scope.Minted{Token: "ob_1", Epoch: 9}
	r := get(s, reply)
	if r.Problem != nil || r.Observation.Token != "ob_1" || r.Observation.Generation != 2 || r.Observation.Epoch != 9 {
		t.Fatalf("%+v %+v", r.Problem, r.Observation)
	}
}

// TestReadWaits for a target that comes back, and wakes one that failed.
func TestReadWaits(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	for _, l := range []protocol.Lifecycle{protocol.LifecycleRestoring, protocol.LifecycleFailed} {
		s.dir.Update("pg_1", func(e *Entry) {
			e.Record.Lifecycle, e.Incarnation = l, nil
			e.Record.Message = string(l)
		})
		reply := make(chan protocol.ReadReply, 1)
		s.running.Go(func() {
			reply <- s.b.Read(t.Context(), s.caller, []byte(`{"resource":"pg_1","method":"observe"}`))
		})
		if _, ok := s.dir.Wait(t.Context(), "pg_1", func(Entry) bool { return s.said("look pg_1") || s.poke() }); !ok {
			t.Fatal("nobody was told that somebody waits")
		}
		s.dir.Update("pg_1", func(e *Entry) { e.Record.Lifecycle, e.Incarnation = protocol.LifecycleReady, reader{} })
		sent[scope.BeginLook](s).Reply <- scope.Looked{Gen: 1, Open: true}
		sent[scope.EndLook](s).Reply <- scope.Minted{Token: "ob_1"}
		if r := get(s, reply); r.Problem != nil {
			t.Fatal(r.Problem)
		}
		s.mu.Lock()
		s.calls = nil
		s.mu.Unlock()
	}
	s.dir.Update("pg_1", func(e *Entry) { e.Record.Lifecycle = protocol.LifecycleClosed })
	if r := s.b.Read(t.Context(), s.caller, []byte(`{"resource":"pg_1","method":"observe"}`)); r.Problem == nil || r.Problem.Reason != protocol.ReasonResourceClosed {
		t.Fatalf("%v", r.Problem)
	}
	if r := s.b.Read(t.Context(), s.caller, []byte(`{"resource":"pg_9","method":"observe"}`)); r.Problem == nil || r.Problem.Reason != protocol.ReasonUnknownResource {
		t.Fatalf("%v", r.Problem)
	}
}

// poke changes something, so that whoever waits for the directory looks again.
func (s *stand) poke() bool {
	s.running.Go(func() { s.dir.Update("pg_other", func(*Entry) {}) })
	return false
}

// TestClaim, Release, Restart and the rest that goes straight through.
func TestClaim(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	told := make(chan *protocol.Problem, 1)
	s.running.Go(func() { told <- s.b.Claim(t.Context(), s.caller, "pg_1") })
	l := sent[scope.Lease](s)
	if l.Owner != "a" || l.Release {
		t.Fatalf("%+v", l)
	}
	l.Reply <- nil
	if p := get(s, told); p != nil {
		t.Fatal(p)
	}
	s.running.Go(func() { told <- s.b.Release(t.Context(), s.caller, "pg_1") })
	sent[scope.Lease](s).Reply <- &protocol.Problem{Reason: protocol.ReasonHeldBy, HeldBy: "b"}
	if p := get(s, told); p == nil || p.HeldBy != "b" {
		t.Fatal(p)
	}
	s.dir.Update("pg_1", func(e *Entry) { e.Record.HeldBy = "b" })
	if p := s.b.Restart(t.Context(), s.caller, "pg_1"); p == nil || p.Reason != protocol.ReasonHeldBy {
		t.Fatal(p)
	}
	s.dir.Update("pg_1", func(e *Entry) { e.Record.HeldBy = "" })
	if p := s.b.Restart(t.Context(), s.caller, "pg_1"); p != nil || !s.said("restart pg_1") {
		t.Fatal(p)
	}
	for _, d := range []protocol.Demand{{Resource: "pg_1", Width: 63}, {Resource: "pg_1", Width: 4097}, {Resource: "pg_1", TTLMS: 999}, {Resource: "pg_1", TTLMS: 60001}} {
		if p := s.b.Demand(t.Context(), s.caller, d); p == nil || p.Reason != protocol.ReasonBadArguments {
			t.Fatalf("%+v: %v", d, p)
		}
	}
	if p := s.b.Demand(t.Context(), s.caller, protocol.Demand{Resource: "pg_1", Width: 64}); p != nil || !s.said("demand pg_1 64") {
		t.Fatal(p)
	}
	if _, p := s.b.History(t.Context(), s.caller, protocol.HistoryQuery{Limit: 1001}); p == nil {
		t.Fatal("a limit over 1,000 is taken")
	}
	if all, p := s.b.Resources(t.Context(), s.caller); p != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, p)
	}
}
