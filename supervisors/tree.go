package supervisors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/broker"
	"reins/actors/mailbox"
	"reins/actors/scope"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// Retained is a resource as the store had it.
type Retained struct {
	Record  protocol.Record
	Reserve protocol.Epoch
}

// Tree holds the supervisors of one host and its targets.
type Tree struct {
	*Shared
	system *actor.ActorSystem
	host   *actor.PID
	load   func() ([]Retained, error)
	phase  atomic.Value // HostPhase
}

// HostState says how the host is.
func (t *Tree) HostState() string {
	p, _ := t.phase.Load().(HostPhase)
	if p == "" {
		p = HostIdle
	}
	return string(p)
}

// messages of the host's supervisor
type (
	begin    struct{ reply chan error }
	openNew  struct{ record protocol.Record }
	stopTree struct{ reply chan struct{} }
	// PanicHost makes the host's supervisor panic in its mailbox: a fault to inject.
	PanicHost struct{ Why string }
)

// NewSystem makes the process's one actor system; only the library's warnings reach the log.
func NewSystem(log *slog.Logger) *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(quiet{log.Handler()}) }))
	mailbox.AnswerDeadLetters(s, scope.TurnAway, target.TurnAway)
	return s
}

type quiet struct{ slog.Handler }

func (h quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
func (h quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(a)} }
func (h quiet) WithGroup(n string) slog.Handler      { return quiet{h.Handler.WithGroup(n)} }

// NewTree makes a tree in an actor system. load returns everything
// retained; it is asked at the beginning and whenever the host's supervisor had
// to be made anew.
func NewTree(system *actor.ActorSystem, s *Shared, load func() ([]Retained, error)) *Tree {
	return &Tree{Shared: s, system: system, load: load}
}

// Begin starts the supervisors of everything retained and returns when they are
// listed; they come back in the background.
func (t *Tree) Begin(ctx context.Context) error {
	reply := make(chan error, 1)
	t.host = t.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &rootActor{tree: t} }))
	t.system.Root.Send(t.host, begin{reply: reply})
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open starts the supervisor of a new resource, whose record is stored already.
func (t *Tree) Open(r protocol.Record) { t.system.Root.Send(t.host, openNew{record: r}) }

// Look says that somebody waits for a resource; Restart asks for a new incarnation.
func (t *Tree) Look(id protocol.ResourceID) { t.send(id, Looked{}) }

// Restart asks for a new incarnation of a resource.
func (t *Tree) Restart(id protocol.ResourceID) { t.send(id, Restart{}) }

// Discard closes a resource that never came to be used.
func (t *Tree) Discard(id protocol.ResourceID) { t.send(id, WantShut{}) }

func (t *Tree) send(id protocol.ResourceID, ev TargetEvent) {
	if e, ok := t.Directory.Get(id); ok && e.Supervisor != nil {
		t.system.Root.Send(e.Supervisor, ev)
	}
}

// Stop ends the host and waits, within ctx, until nothing of the tree works any more.
func (t *Tree) Stop(ctx context.Context) error {
	if t.host == nil {
		return nil // it never began
	}
	reply := make(chan struct{})
	t.system.Root.Send(t.host, stopTree{reply: reply})
	select {
	case <-reply:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = t.system.Root.StopFuture(t.host).Wait() // only then no actor adds work any more
		t.Running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("some calls to the browser have not ended")
	}
}

// rootActor is the parent of the host's supervisor: it makes it anew from what
// is durable when it panics.
type rootActor struct {
	tree *Tree
	host *actor.PID
}

// Receive implements actor.Actor.
func (r *rootActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.spawn(ctx)
	case begin, openNew, stopTree, PanicHost:
		ctx.Send(r.host, m)
	}
}

func (r *rootActor) spawn(ctx actor.Context) {
	r.host = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &hostActor{tree: r.tree, st: NewHost(r.tree.Policy), restore: NewRestore(0), children: map[protocol.ResourceID]*actor.PID{}}
	}))
}

// HandleFailure implements actor.SupervisorStrategy.
func (r *rootActor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	sup.StopChildren(child)
	r.tree.Logger.Error("the host's supervisor panicked; it is made anew from the store", "reason", reason)
	ctx := sup.(actor.Context)
	r.spawn(ctx)
	ctx.Send(r.host, begin{reply: make(chan error, 1)})
}

// hostActor is the shell of the host's supervisor and of the coordinator of
// restores; the targets' supervisors are its children.
type hostActor struct {
	tree     *Tree
	st       HostState
	restore  RestoreState
	children map[protocol.ResourceID]*actor.PID
	self     *actor.PID
	root     *actor.RootContext
	timer    *time.Timer
}

// Receive implements actor.Actor.
func (a *hostActor) Receive(ctx actor.Context) {
	a.self, a.root = ctx.Self(), ctx.ActorSystem().Root
	switch m := ctx.Message().(type) {
	case *actor.Stopping:
		if a.timer != nil {
			a.timer.Stop()
		}
	case PanicHost:
		panic(m.Why)
	case begin:
		a.begin(m)
	case retained:
		for _, r := range m.all {
			a.spawn(ctx, r)
		}
	case openNew:
		a.spawn(ctx, Retained{Record: m.record})
	case askSlot:
		e, _ := a.tree.Directory.Get(m.id)
		a.turns(RestoreStep(&a.restore, Wish{Resource: m.id, Wanted: m.wanted, Recent: e.Record.Changed}))
	case freeSlot:
		a.turns(RestoreStep(&a.restore, Made{Resource: m.id}))
	case needHost:
		a.step(Needed{Anew: m.anew})
	case stopTree:
		a.stop(m)
	case HostEvent:
		a.step(m)
	}
}

type retained struct{ all []Retained }

// begin reads what is retained outside of the mailbox; listing does not wait
// for any of it to come back.
func (a *hostActor) begin(m begin) {
	self, root := a.self, a.root
	a.tree.Running.Go(func() {
		all, err := a.tree.load()
		if err == nil {
			for _, r := range all {
				a.tree.Directory.Update(r.Record.ID, func(e *broker.Entry) {
					if e.Record.ID == "" {
						e.Record = r.Record
					}
				})
			}
			root.Send(self, retained{all: all})
		}
		m.reply <- err
	})
}

// spawn starts a target's supervisor, unless it is closed or has one.
func (a *hostActor) spawn(ctx actor.Context, r Retained) {
	id := r.Record.ID
	if a.children[id] != nil || r.Record.Lifecycle == protocol.LifecycleClosed {
		return
	}
	st := NewTarget(r.Record.Generation, a.tree.Policy, a.tree.Seams.Planted)
	st.hostUp = a.st.Phase() == HostRunning
	var live targets.Incarnation
	if e, ok := a.tree.Directory.Get(id); ok && e.Incarnation != nil {
		// Its supervisor died, what it supervised did not: that is fenced first.
		live, st.live, st.first = e.Incarnation, true, false
		st.gen = e.Gen
	}
	pid := ctx.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &targetActor{Shared: a.tree.Shared, id: id, reserve: r.Reserve, opening: st.first, st: st, host: a.self, live: live}
	}))
	a.children[id] = pid
}

// HandleFailure implements actor.SupervisorStrategy: a target's supervisor that
// panicked is made anew from what is durable.
func (a *hostActor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	sup.StopChildren(child)
	for id, pid := range a.children {
		if pid.Equal(child) {
			a.tree.Logger.Error("a target's supervisor panicked; it is made anew from the store", "resource", id, "reason", reason)
			delete(a.children, id)
			a.turns(RestoreStep(&a.restore, Forget{Resource: id}))
			self, root := a.self, a.root
			a.tree.Running.Go(func() {
				all, err := a.tree.load()
				if err != nil {
					a.tree.Logger.Error("the store does not answer", "error", err)
				}
				root.Send(self, retained{all: all})
			})
			return
		}
	}
}

func (a *hostActor) turns(ids []protocol.ResourceID) {
	for _, id := range ids {
		if pid := a.children[id]; pid != nil {
			a.root.Send(pid, SlotGranted{})
		} else {
			a.turns(RestoreStep(&a.restore, Forget{Resource: id}))
		}
	}
}

func (a *hostActor) step(ev HostEvent) {
	for _, c := range HostStep(&a.st, time.Now(), ev) {
		a.perform(c)
	}
	a.tree.phase.Store(a.st.Phase())
}

func (a *hostActor) perform(c HostCommand) {
	switch c := c.(type) {
	case StartHost:
		a.start(c)
	case TellUp:
		a.all(HostUp{})
	case TellDown:
		a.all(HostDown{})
	case TellFailed:
		a.all(HostFailed(c))
	case WakeHost:
		self, root := a.self, a.root
		a.timer = time.AfterFunc(c.After, func() { root.Send(self, HostWoke{Timer: c.Timer}) })
	}
}

func (a *hostActor) all(ev TargetEvent) {
	for _, pid := range a.children {
		a.root.Send(pid, ev)
	}
}

// hostWithin is how long a browser may take to come up.
const hostWithin = 30 * time.Second

// start brings the host up outside of the mailbox, and tells when it ended.
func (a *hostActor) start(c StartHost) {
	self, root, host := a.self, a.root, a.tree.Host
	a.tree.Running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				root.Send(self, Started{Life: c.Life, Message: fmt.Sprint("a fault while starting the browser: ", r)})
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), hostWithin)
		defer cancel()
		down, err := host.Start(ctx)
		if err != nil {
			root.Send(self, Started{Life: c.Life, Message: sentence(err)})
			return
		}
		root.Send(self, Started{Life: c.Life, OK: true})
		<-down
		root.Send(self, Ended(c))
	})
}

// sentence is what an error says; the reason code of a problem is told beside it.
func sentence(err error) string {
	if p, ok := errors.AsType[*protocol.Problem](err); ok {
		return p.Message
	}
	return err.Error()
}

// stop ends everything: supervisors first, so that nobody brings back what ends now.
func (a *hostActor) stop(m stopTree) {
	HostStep(&a.st, time.Now(), StopHost{})
	for _, pid := range a.children {
		a.root.Stop(pid)
	}
	a.children = map[protocol.ResourceID]*actor.PID{}
	a.tree.Running.Go(func() {
		defer close(m.reply)
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		if err := a.tree.Host.Stop(ctx); err != nil {
			a.tree.Logger.Warn("the browser did not end politely", "error", err)
		}
	})
}
