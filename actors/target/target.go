package target

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/mailbox"
	"reins/protocol"
	"reins/targets"
)

// Prepare has an operation's locator resolved. Context ends when the operation
// is withdrawn. Done is called outside of any mailbox.
type Prepare struct {
	Context context.Context
	Call    targets.Call
	Until   time.Time
	Done    func(p targets.Prepared, problem *protocol.Problem, took time.Duration)
}

// Run has the input given. Context ends when the permit is revoked.
type Run struct {
	Context  context.Context
	Call     targets.Call
	Prepared targets.Prepared
	Permit   targets.Permit
	Until    time.Time
	Done     func(targets.Outcome)
}

// Panic makes the actor panic in its mailbox: a fault to inject.
type Panic struct{ Why string }

// Crashed tells the supervisor that an incarnation is over.
type Crashed struct {
	Gen     protocol.Generation
	Reason  protocol.Reason
	Message string
}

// Happened passes an event of the target on to the supervisor.
type Happened struct {
	Gen   protocol.Generation
	Event targets.Event
}

// Config is what an incarnation's actor works with.
type Config struct {
	Resource    protocol.ResourceID
	Gen         protocol.Generation
	Incarnation targets.Incarnation
	Supervisor  *actor.PID
	Logger      *slog.Logger
	// Running counts the goroutines of all incarnations, so that the daemon's end can wait for them.
	Running *sync.WaitGroup
}

// Props returns how to spawn the actor.
func Props(c Config) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &incarnation{Config: c} }, actor.WithMailbox(mailbox.Answering(TurnAway)))
}

// TurnAway answers what an incarnation that is over did not receive: nothing of
// it was looked for, and no byte of it was written.
func TurnAway(m any) {
	switch m := m.(type) {
	case Prepare:
		m.Done(targets.Prepared{}, &protocol.Problem{Reason: protocol.ReasonRestoring, Message: protocol.ReasonRestoring.Sentence()}, 0)
	case Run:
		m.Done(targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonFenced, LastDone: -1})
	}
}

type incarnation struct{ Config }

// Receive implements actor.Actor.
func (a *incarnation) Receive(ctx actor.Context) {
	root := ctx.ActorSystem().Root
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.work(root, "events", func() { a.pump(root) })
	case Panic:
		panic(m.Why)
	case Prepare:
		a.work(root, "prepare "+string(m.Call.Method), func() {
			began := time.Now()
			c, cancel := context.WithDeadline(m.Context, m.Until)
			defer cancel()
			p, problem := a.Incarnation.Prepare(c, m.Call)
			m.Done(p, problem, time.Since(began))
		})
	case Run:
		a.work(root, "run "+string(m.Call.Method), func() {
			c, cancel := context.WithDeadline(m.Context, m.Until)
			defer cancel()
			m.Done(a.Incarnation.Run(c, m.Call, m.Prepared, m.Permit))
		})
	}
}

// pump passes the adapter's events on until the incarnation has ended.
func (a *incarnation) pump(root *actor.RootContext) {
	for ev := range a.Incarnation.Events() {
		root.Send(a.Supervisor, Happened{Gen: a.Gen, Event: ev})
	}
}

// work runs f outside of the mailbox; its panic is this incarnation's end.
func (a *incarnation) work(root *actor.RootContext, what string, f func()) {
	a.Running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				a.Logger.Error("adapter panicked", "resource", a.Resource, "generation", a.Gen, "in", what, "panic", r, "stack", string(debug.Stack()))
				root.Send(a.Supervisor, Crashed{Gen: a.Gen, Reason: protocol.ReasonInternal, Message: fmt.Sprintf("a fault in %s", what)})
			}
		}()
		f()
	})
}
