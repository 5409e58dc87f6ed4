package supervisors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/broker"
	"reins/actors/scope"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// within is how long a test waits for what must come; nothing is timed by it.
const within = 30 * time.Second

var system = sync.OnceValue(func() *actor.ActorSystem { return NewSystem(slog.New(slog.DiscardHandler)) })

// stand is everything but the browser, the store and the wire: broker,
// supervisors, scopes and incarnations as the daemon has them.
type stand struct {
	t       *testing.T
	browser *browser
	store   *memory
	tree    *Tree
	broker  *broker.Broker
	dir     *broker.Directory
	caller  protocol.Caller
	running sync.WaitGroup
	serial  atomic.Int64
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, browser: newBrowser(), store: newMemory()}
	log := slog.New(slog.DiscardHandler)
	s.dir = broker.NewDirectory(func(protocol.Record) {})
	s.broker = broker.New(broker.Config{System: system(), Directory: s.dir, Store: s.store, Previews: silent{}, HashKey: []byte("key"), Logger: log,
		Writes: -1, URLs: -1, Running: &s.running, HostState: func() string { return s.tree.HostState() }, Late: func() uint64 { return 0 }})
	s.tree = NewTree(system(), &Shared{Host: s.browser, Store: s.store, Scopes: s.store, Directory: s.dir, Publisher: silent{}, Logger: log, Running: &s.running,
		Policy: Policy{First: time.Millisecond, Last: 20 * time.Millisecond, Max: 1000}}, s.store.load)
	s.broker.SetTree(s.tree)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := s.tree.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	h := s.broker.Hello(ctx, "a", protocol.Hello{Version: protocol.Version})
	s.caller = protocol.Caller{Owner: "a", Connection: h.Connection}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := s.tree.Stop(ctx); err != nil {
			t.Error(err)
		}
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		for _, f := range s.store.faults {
			t.Error(f)
		}
	})
	return s
}

func (s *stand) request(r protocol.Request) protocol.Receipt {
	raw, err := json.Marshal(r)
	if err != nil {
		s.t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return s.broker.Do(ctx, s.caller, raw)
}

// open makes a new page.
func (s *stand) open() protocol.ResourceID {
	s.t.Helper()
	rc := s.request(protocol.Request{OperationID: s.id(), Method: protocol.MethodOpen, Arguments: json.RawMessage(`{"kind":"page"}`)})
	if rc.State != protocol.StateApplied {
		s.t.Fatalf("open: %s/%s %s", rc.State, rc.Reason, rc.Message)
	}
	return rc.Resource
}

func (s *stand) id() protocol.OperationID {
	return protocol.OperationID(fmt.Sprintf("op%d", s.serial.Add(1)))
}

// observe waits until a page is there and returns its generation and a token.
func (s *stand) observe(r protocol.ResourceID) (protocol.Generation, protocol.Token, error) {
	raw, err := json.Marshal(protocol.ReadRequest{Resource: r, Method: protocol.MethodObserve, DeadlineMS: within.Milliseconds()})
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reply := s.broker.Read(ctx, s.caller, raw)
	if reply.Problem != nil {
		return 0, "", reply.Problem
	}
	return reply.Observation.Generation, reply.Observation.Token, nil
}

func (s *stand) click(r protocol.ResourceID, gen protocol.Generation, token protocol.Token) protocol.Receipt {
	return s.request(protocol.Request{OperationID: s.id(), Resource: r, Generation: gen, Method: protocol.MethodPress, Observation: token,
		Arguments: json.RawMessage(`{"key":"Enter"}`)})
}

// works observes and clicks: admission is open, and the generation is returned.
func (s *stand) works(r protocol.ResourceID) protocol.Generation {
	s.t.Helper()
	gen, token, err := s.observe(r)
	if err != nil {
		s.t.Fatalf("%s: %v", r, err)
	}
	if rc := s.click(r, gen, token); rc.State != protocol.StateApplied {
		s.t.Fatalf("%s g%d: %s/%s %s", r, gen, rc.State, rc.Reason, rc.Message)
	}
	return gen
}

func (s *stand) entry(r protocol.ResourceID, ok func(broker.Entry) bool) broker.Entry {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	e, found := s.dir.Wait(ctx, r, ok)
	if !found {
		s.t.Fatalf("%s is %s g%d", r, e.Record.Lifecycle, e.Gen)
	}
	return e
}

// kill is a fault of one actor, by name.
type kill struct {
	name string
	do   func(*stand, protocol.ResourceID)
}

var kills = []kill{
	{"scope", func(s *stand, r protocol.ResourceID) {
		if e, ok := s.dir.Get(r); ok {
			system().Root.Send(e.Scope, scope.Panic{Why: "planted"})
		}
	}},
	{"supervisor", func(s *stand, r protocol.ResourceID) {
		if e, ok := s.dir.Get(r); ok {
			system().Root.Send(e.Supervisor, PanicTarget{Why: "planted"})
		}
	}},
	{"incarnation", func(s *stand, r protocol.ResourceID) {
		// Its name is not known outside: every child of the supervisor is told, and
		// only an incarnation takes it to heart.
		e, ok := s.dir.Get(r)
		if !ok || e.Supervisor == nil {
			return
		}
		for _, id := range system().ProcessRegistry.LocalPIDs.LocalPIDs {
			for _, name := range id.Keys() {
				if strings.HasPrefix(name, e.Supervisor.Id+"/") {
					system().Root.Send(actor.NewPID(e.Supervisor.Address, name), target.Panic{Why: "planted"})
				}
			}
		}
	}},
	{"renderer", func(s *stand, r protocol.ResourceID) {
		if e, ok := s.dir.Get(r); ok && e.Incarnation != nil {
			e.Incarnation.(*fakeIncarnation).crash()
		}
	}},
}

var killHost = kill{"host", func(s *stand, _ protocol.ResourceID) { system().Root.Send(s.tree.host, PanicHost{Why: "planted"}) }}

var killBrowser = kill{"browser", func(s *stand, _ protocol.ResourceID) { s.browser.kill() }}

// TestShellDeaths: whatever dies, its target comes back as the next generation
// with admission open, what ran gets its outcome, and others feel nothing.
func TestShellDeaths(t *testing.T) {
	for _, k := range append(kills, killHost, killBrowser) {
		t.Run(k.name, func(t *testing.T) {
			s := newStand(t)
			hit, other := s.open(), s.open()
			before, bystander := s.works(hit), s.works(other)

			// An operation stands in the middle of its run, without a byte written.
			reached := make(chan struct{})
			stuck := s.id()
			s.browser.mu.Lock()
			s.browser.onRun = func(ctx context.Context, c targets.Call) {
				if c.Operation == stuck {
					close(reached)
					<-ctx.Done()
				}
			}
			s.browser.mu.Unlock()
			answer := make(chan protocol.Receipt, 1)
			go func() {
				answer <- s.request(protocol.Request{OperationID: stuck, Resource: hit, Generation: before, Method: protocol.MethodPress, Arguments: json.RawMessage(`{"key":"Enter"}`)})
			}()
			<-reached
			queued := make(chan protocol.Receipt, 1)
			waiting := s.id()
			go func() {
				queued <- s.request(protocol.Request{OperationID: waiting, Resource: hit, Generation: before, Method: protocol.MethodPress, Arguments: json.RawMessage(`{"key":"Enter"}`)})
			}()

			k.do(s, hit)
			if rc := <-answer; rc.State != protocol.StateCancelled && rc.State != protocol.StateUncertain {
				t.Fatalf("what ran is %s/%s", rc.State, rc.Reason)
			}
			if rc := <-queued; rc.State != protocol.StateRefused {
				t.Fatalf("what waited is %s/%s", rc.State, rc.Reason)
			}
			s.entry(hit, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleReady && e.Gen > before })
			if after := s.works(hit); after <= before {
				t.Fatalf("g%d after g%d", after, before)
			}
			if rc := s.click(hit, before, ""); rc.State != protocol.StateRefused || rc.Reason != protocol.ReasonStaleGeneration {
				t.Fatalf("the old handle is %s/%s", rc.State, rc.Reason)
			}
			after := s.works(other)
			if k.name != "host" && k.name != "browser" && after != bystander {
				t.Fatalf("the bystander went from g%d to g%d", bystander, after)
			}
			s.browser.mu.Lock()
			defer s.browser.mu.Unlock()
			for _, e := range s.browser.ledger {
				if e.op == stuck || e.op == waiting {
					t.Fatalf("%s had an effect", e.op)
				}
			}
		})
	}
}

// TestShellBystanderIsNotDelayed (I7): while one target can never be attached,
// another that crashes is back.
func TestShellBystanderIsNotDelayed(t *testing.T) {
	s := newStand(t)
	bad, good := s.open(), s.open()
	s.browser.mu.Lock()
	s.browser.attachErr = func(r protocol.ResourceID) error {
		if r == bad {
			return errors.New("planted")
		}
		return nil
	}
	s.browser.mu.Unlock()
	for range 3 {
		kills[3].do(s, bad)
		before := s.works(good)
		kills[3].do(s, good)
		s.entry(good, func(e broker.Entry) bool { return e.Gen > before })
	}
}

// TestShellBarrierMissed (I8): what holds the input is destroyed, and the target
// comes back.
func TestShellBarrierMissed(t *testing.T) {
	s := newStand(t)
	r := s.open()
	var missed atomic.Bool
	s.browser.mu.Lock()
	s.browser.barrier = func(protocol.ResourceID) error {
		if missed.CompareAndSwap(false, true) {
			return errors.New("planted")
		}
		return nil
	}
	s.browser.mu.Unlock()
	before := s.works(r)
	kills[3].do(s, r)
	s.entry(r, func(e broker.Entry) bool { return e.Gen > before })
	s.works(r)
	s.browser.mu.Lock()
	defer s.browser.mu.Unlock()
	if s.browser.destroys != 1 {
		t.Fatalf("destroyed %d times", s.browser.destroys)
	}
}

// TestShellFailsAndIsRevived (I5): a browser that cannot be started is said to be
// unavailable; an observation tries again.
func TestShellFailsAndIsRevived(t *testing.T) {
	s := newStand(t)
	s.tree.Policy = Policy{First: time.Millisecond, Last: time.Millisecond, Max: 3}
	var broken atomic.Bool
	broken.Store(true)
	s.browser.mu.Lock()
	s.browser.startErr = func() error {
		if broken.Load() {
			return errors.New("planted")
		}
		return nil
	}
	s.browser.mu.Unlock()
	killHost.do(s, "") // so that it has the policy
	rc := s.request(protocol.Request{OperationID: s.id(), Method: protocol.MethodOpen, Arguments: json.RawMessage(`{"kind":"page"}`)})
	if rc.State != protocol.StateRefused || rc.Reason != protocol.ReasonBackendUnavailable {
		t.Fatalf("%s/%s %s", rc.State, rc.Reason, rc.Message)
	}
	s.entry(rc.Resource, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleClosed })
	broken.Store(false)
	r := s.open() // asks anew
	s.works(r)
	broken.Store(true)
	s.browser.kill()
	s.entry(r, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleFailed })
	if _, _, err := s.observe(r); err == nil {
		t.Fatal("it can be observed without a browser")
	}
	broken.Store(false)
	s.works(r)
}

// TestShellClose: closed stays closed, whatever dies, and its page is gone.
func TestShellClose(t *testing.T) {
	s := newStand(t)
	r := s.open()
	gen := s.works(r)
	rc := s.request(protocol.Request{OperationID: s.id(), Resource: r, Generation: gen, Method: protocol.MethodClose})
	if rc.State != protocol.StateApplied {
		t.Fatalf("%s/%s %s", rc.State, rc.Reason, rc.Message)
	}
	if rc := s.click(r, gen, ""); rc.State != protocol.StateRefused || rc.Reason != protocol.ReasonResourceClosed {
		t.Fatalf("%s/%s", rc.State, rc.Reason)
	}
	killHost.do(s, r)
	other := s.open()
	s.works(other)
	if e, _ := s.dir.Get(r); e.Record.Lifecycle != protocol.LifecycleClosed {
		t.Fatalf("it is %s", e.Record.Lifecycle)
	}
	if _, _, err := s.observe(r); err == nil {
		t.Fatal("it can be observed")
	}
	s.browser.mu.Lock()
	defer s.browser.mu.Unlock()
	if s.browser.pages[r] != nil {
		t.Fatal("its page is still there")
	}
}

// TestShellStoreFull: without a stored generation nothing comes back, and it does
// as soon as the store takes one.
func TestShellStoreFull(t *testing.T) {
	s := newStand(t)
	r := s.open()
	before := s.works(r)
	s.store.mu.Lock()
	s.store.full = true
	s.store.mu.Unlock()
	if rc := s.click(r, before, ""); rc.State != protocol.StateRefused || rc.Reason != protocol.ReasonStorageUnavailable {
		t.Fatalf("%s/%s", rc.State, rc.Reason)
	}
	kills[3].do(s, r)
	s.entry(r, func(e broker.Entry) bool {
		return e.Record.Lifecycle == protocol.LifecycleRestoring && e.Record.Reason == protocol.ReasonStorageUnavailable
	})
	s.store.mu.Lock()
	s.store.full = false
	s.store.mu.Unlock()
	if after := s.works(r); after <= before {
		t.Fatalf("g%d after g%d", after, before)
	}
}
