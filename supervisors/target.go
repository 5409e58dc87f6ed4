package supervisors

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/broker"
	"reins/actors/scope"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// Deadlines of what a supervisor has done outside of its mailbox.
const (
	revokeWithin  = 2 * time.Second
	attachWithin  = 20 * time.Second
	barrierWithin = 5 * time.Second
	destroyWithin = 8 * time.Second
	closeWithin   = 5 * time.Second
)

// Store is what a supervisor keeps durably.
type Store interface {
	RaiseGeneration(protocol.ResourceID) (protocol.Generation, error)
	PutRecord(protocol.Record) error
	History(protocol.HistoryEntry)
}

// Shared is what every supervisor of a tree works with.
type Shared struct {
	Host      targets.Host
	Store     Store
	Scopes    scope.Store
	Directory *broker.Directory
	Publisher protocol.Publisher
	Seams     protocol.Seams
	Policy    Policy
	Limits    scope.Limits
	Logger    *slog.Logger
	Running   *sync.WaitGroup
	// Late counts results that came after their operation had its outcome.
	Late atomic.Uint64
}

// targetActor is the shell of one target's supervisor. It is the parent of the
// scope and of the incarnations, and its own supervisor strategy.
type targetActor struct {
	*Shared
	id       protocol.ResourceID
	reserve  protocol.Epoch // what the store had reserved
	spent    atomic.Uint64  // the highest epoch of this life
	opening  bool
	st       Target
	host     *actor.PID // the host's supervisor
	self     *actor.PID
	root     *actor.RootContext
	scope    *actor.PID
	inc      *actor.PID
	live     targets.Incarnation // what may still give input
	liveGen  protocol.Generation
	unsaved  bool
	saving   bool
	shutting *ShutTarget // waits for what is being stored
	timer    *time.Timer
	closings []func(targets.Outcome)
}

// Messages between a target's supervisor and its parent.
type (
	askSlot struct {
		id     protocol.ResourceID
		wanted bool
	}
	freeSlot struct{ id protocol.ResourceID }
	needHost struct{ anew bool }
	attached struct {
		Attached
		inc targets.Incarnation
	}
	saved struct{ ok bool }
	// PanicTarget makes a supervisor panic in its mailbox: a fault to inject.
	PanicTarget struct{ Why string }
)

// Receive implements actor.Actor.
func (a *targetActor) Receive(ctx actor.Context) {
	a.self, a.root = ctx.Self(), ctx.ActorSystem().Root
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.spawnScope(ctx)
		a.Directory.Update(a.id, func(e *broker.Entry) { e.Supervisor = a.self })
		a.step(ctx, Start{})
	case *actor.Stopping:
		if a.timer != nil {
			a.timer.Stop()
		}
	case PanicTarget:
		panic(m.Why)
	case attached:
		a.attached(ctx, m)
	case scope.Settled:
		a.Seams.Pass(protocol.StepFenceSettled, a.id, "")
		a.step(ctx, Settled(m))
	case scope.Suspect:
		a.step(ctx, Crash{Gen: m.Gen, Reason: m.Reason, Message: m.Message})
	case scope.Close:
		a.closings = append(a.closings, m.Done)
		a.step(ctx, WantShut{})
	case target.Crashed:
		a.step(ctx, Crash{Gen: m.Gen, Reason: m.Reason, Message: m.Message})
	case target.Happened:
		a.happened(ctx, m)
	case saved:
		a.saving = false
		if c := a.shutting; c != nil {
			a.shutting = nil
			a.shut(*c)
		}
		a.save()
	case TargetEvent:
		a.step(ctx, m)
	}
	a.answerClosings()
}

// answerClosings answers a close that came when the target was closing already,
// as where its page closed itself.
func (a *targetActor) answerClosings() {
	if a.st.Phase() != PhaseClosed {
		return
	}
	done := a.closings
	a.closings = nil
	for _, d := range done {
		d(closed())
	}
}

func closed() targets.Outcome {
	return targets.Outcome{State: protocol.StateApplied, Effect: protocol.EffectConfirmed, LastDone: 0, Begun: 1}
}

// HandleFailure implements actor.SupervisorStrategy: a child that panicked is
// stopped, never restarted in place, since that would keep its queue.
func (a *targetActor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	sup.StopChildren(child)
	ctx := sup.(actor.Context)
	a.Logger.Error("actor panicked", "actor", child.Id, "reason", reason)
	if child.Equal(a.scope) {
		a.spawnScope(ctx)
		a.step(ctx, Crash{Gen: a.st.Generation(), Reason: protocol.ReasonScopeRestarted, Message: "the scope's actor ended"})
		return
	}
	if child.Equal(a.inc) {
		a.step(ctx, Crash{Gen: a.st.Generation(), Reason: protocol.ReasonInternal, Message: "the incarnation's actor ended"})
	}
}

func (a *targetActor) spawnScope(ctx actor.Context) {
	// The next scope starts above whatever the one that died has used.
	reserve := max(a.reserve, protocol.Epoch(a.spent.Load()))
	a.scope = ctx.Spawn(scope.Props(scope.Config{Resource: a.id, Reserve: reserve, Opening: a.opening && a.scope == nil, Spent: &a.spent,
		Store: a.Scopes, Publisher: a.Publisher, Supervisor: a.self, Seams: a.Seams, Limits: a.Limits, Logger: a.Logger, Running: a.Running,
		OnLate: func() { a.Late.Add(1) },
		OnHeld: func(o protocol.OwnerID) {
			a.Directory.Update(a.id, func(e *broker.Entry) { e.Record.HeldBy = o })
		}}))
	a.Directory.Update(a.id, func(e *broker.Entry) { e.Scope = a.scope })
}

func (a *targetActor) step(ctx actor.Context, ev TargetEvent) {
	for _, c := range Step(&a.st, time.Now(), ev) {
		a.perform(ctx, c)
	}
}

// work runs f outside of the mailbox; its answer, or its panic, comes back as an event.
func (a *targetActor) work(what string, f func() any, failed func(message string) any) {
	self, root := a.self, a.root
	a.Running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				a.Logger.Error("supervisor's worker panicked", "resource", a.id, "in", what, "panic", r, "stack", string(debug.Stack()))
				root.Send(self, failed(fmt.Sprintf("a fault in %s", what)))
			}
		}()
		root.Send(self, f())
	})
}

func (a *targetActor) pass(s protocol.Step) { a.Seams.Pass(s, a.id, "") }

func (a *targetActor) perform(ctx actor.Context, c TargetCommand) {
	switch c := c.(type) {
	case CloseAdmission:
		ctx.Send(a.scope, scope.Fence{Reason: c.Reason, Message: c.Message})
		a.pass(protocol.StepFenceClosed)
	case PersistGeneration:
		a.work("persisting the generation", func() any {
			g, err := a.Store.RaiseGeneration(a.id)
			if err == nil {
				a.pass(protocol.StepFencePersisted)
			}
			return Persisted{Gen: g, OK: err == nil}
		}, func(string) any { return Persisted{} })
	case RevokeOld:
		a.revokeOld(c)
	case SettleOld:
		ctx.Send(a.scope, scope.Settle(c))
	case AskSlot:
		ctx.Send(a.host, askSlot{id: a.id, wanted: c.Wanted})
	case FreeSlot:
		ctx.Send(a.host, freeSlot{id: a.id})
	case NeedHost:
		ctx.Send(a.host, needHost{anew: c.Anew})
	case AttachNew:
		a.attach(c)
	case PassBarrier:
		inc := a.live
		a.work("the barrier", func() any {
			c2, cancel := context.WithTimeout(context.Background(), barrierWithin)
			defer cancel()
			err := inc.Barrier(c2)
			if err == nil {
				a.pass(protocol.StepFenceBarrier)
			}
			return Passed{Gen: c.Gen, OK: err == nil}
		}, func(string) any { return Passed{Gen: c.Gen} })
	case Destroy:
		a.work("destroying the target", func() any {
			c2, cancel := context.WithTimeout(context.Background(), destroyWithin)
			defer cancel()
			return Destroyed{Gen: c.Gen, OK: a.Host.Destroy(c2, a.id) == nil}
		}, func(string) any { return Destroyed{Gen: c.Gen} })
	case OpenAdmission:
		ctx.Send(a.scope, scope.Incarnate{Gen: c.Gen, PID: a.inc})
		ctx.Send(a.scope, scope.Open{Gen: c.Gen, Restarted: c.Restarted, Document: a.live.Snapshot().Document})
	case ShutTarget:
		a.shut(c)
	case Wake:
		a.wake(c)
	case Tell:
		a.tell(c)
	}
}

func (a *targetActor) wake(c Wake) {
	if a.timer != nil {
		a.timer.Stop()
	}
	after := c.After
	if c.Jitter {
		after += time.Duration(rand.Int64N(int64(c.After)/5 + 1))
	}
	self, root := a.self, a.root
	a.timer = time.AfterFunc(after, func() { root.Send(self, Woke{Timer: c.Timer}) })
}

// revokeOld takes the old incarnation's right to write away, at the place where
// its bytes leave. It does not wait for its actor to end.
func (a *targetActor) revokeOld(c RevokeOld) {
	old := a.live
	a.Directory.Update(a.id, func(e *broker.Entry) { e.Incarnation, e.Gen = nil, 0 })
	a.stopIncarnation()
	a.work("revoking", func() any {
		if old != nil {
			c2, cancel := context.WithTimeout(context.Background(), revokeWithin)
			defer cancel()
			if err := old.Revoke(c2); err != nil {
				a.Logger.Warn("revoking was not clean", "resource", a.id, "generation", c.Gen, "error", err)
			}
		}
		a.pass(protocol.StepFenceRevoked)
		return Revoked(c)
	}, func(string) any { return Revoked(c) })
}

func (a *targetActor) stopIncarnation() {
	if a.inc != nil {
		a.root.Stop(a.inc)
		a.inc = nil
	}
}

func (a *targetActor) attach(c AttachNew) {
	entry, _ := a.Directory.Get(a.id)
	spec := targets.Spec{Resource: a.id, Generation: c.Gen, URL: entry.Record.URL, Fresh: c.Fresh}
	if v := entry.Record.Viewport; v != nil {
		spec.Viewport = *v
	}
	a.work("attaching", func() any {
		c2, cancel := context.WithTimeout(context.Background(), attachWithin)
		defer cancel()
		inc, loaded, err := a.Host.Attach(c2, spec)
		if err != nil {
			return attached{Attached: Attached{Gen: c.Gen, Reason: protocol.ReasonCouldNotRestore, Message: err.Error()}}
		}
		a.pass(protocol.StepFenceAttached)
		return attached{Attached: Attached{Gen: c.Gen, OK: true, Loaded: loaded}, inc: inc}
	}, func(m string) any {
		return attached{Attached: Attached{Gen: c.Gen, Reason: protocol.ReasonInternal, Message: m}}
	})
}

// attached takes the new incarnation, unless it comes too late to be wanted.
func (a *targetActor) attached(ctx actor.Context, m attached) {
	if m.inc != nil && (m.Gen != a.st.Generation() || a.st.Phase() != PhaseAttaching) {
		a.Running.Go(func() {
			c, cancel := context.WithTimeout(context.Background(), revokeWithin)
			defer cancel()
			_ = m.inc.Revoke(c) // nobody uses it; its target is found again by the next attach
			for range m.inc.Events() {
			}
		})
		return
	}
	if m.inc != nil {
		a.live, a.liveGen = m.inc, m.Gen
		a.inc = ctx.Spawn(target.Props(target.Config{Resource: a.id, Gen: m.Gen, Incarnation: m.inc, Supervisor: a.self, Logger: a.Logger, Running: a.Running}))
	}
	a.step(ctx, m.Attached)
}
