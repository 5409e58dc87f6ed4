package scope

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/mailbox"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// Messages of the shell. Every reply channel has room for one and is answered
// at most once, so that answering never blocks.
type (
	// Do submits an operation.
	Do struct {
		Op    Op
		Reply chan<- Answer
	}
	// Lease claims or releases.
	Lease struct {
		Owner   protocol.OwnerID
		Release bool
		Reply   chan<- *protocol.Problem
	}
	// BeginLook and EndLook bracket an observation.
	BeginLook struct{ Reply chan<- Looked }
	EndLook   struct {
		Owner    protocol.OwnerID
		Gen      protocol.Generation
		Epoch    protocol.Epoch
		Geometry string
		Reply    chan<- Minted
	}
	// Minted is the token of an observation; Stale: its generation is over.
	Minted struct {
		Token protocol.Token
		Epoch protocol.Epoch
		Stale bool
	}
	// Incarnate names the incarnation that operations go to, before Open.
	Incarnate struct {
		Gen protocol.Generation
		PID *actor.PID
	}
	// Close asks the supervisor to close the target; it answers by Done.
	Close struct {
		Gen  protocol.Generation
		Done func(targets.Outcome)
	}
	// Panic makes the actor panic in its mailbox: a fault to inject.
	Panic struct{ Why string }

	resolvedMsg struct {
		Resolved
		prepared targets.Prepared
	}
	storedMsg struct {
		AdmissionStored
		mark Mark
	}
)

// Store is the part of the effect log that a scope writes.
type Store interface {
	// Admit is the first synced write; its mark is set before the first byte of input.
	Admit(op Op, gen protocol.Generation, epoch, reserve protocol.Epoch) (Mark, *protocol.Problem)
	// Finish is the second.
	Finish(op Op, r protocol.Receipt) error
	Reserve(r protocol.ResourceID, upTo protocol.Epoch) error
	History(h protocol.HistoryEntry)
}

// Config is what a scope's actor works with.
type Config struct {
	Resource protocol.ResourceID
	Reserve  protocol.Epoch // what the store had reserved
	Opening  bool
	// Spent is told the highest epoch that was used or asked to be reserved, so
	// that the next scope of this resource starts above it.
	Spent      *atomic.Uint64
	Store      Store
	Publisher  protocol.Publisher
	Supervisor *actor.PID
	Seams      protocol.Seams
	Limits     Limits
	Logger     *slog.Logger
	// OnHeld is told who has the lease; it does not block.
	OnHeld func(protocol.OwnerID)
	// OnLate counts a result that came too late.
	OnLate func()
	// Running counts the goroutines of all scopes.
	Running *sync.WaitGroup
}

// Props returns how to spawn the actor.
func Props(c Config) *actor.Props {
	if c.Spent == nil {
		c.Spent = new(atomic.Uint64) // nobody comes after it
	}
	return actor.PropsFromProducer(func() actor.Actor {
		return &shell{Config: c, st: New(c.Resource, c.Reserve, c.Opening, c.Limits, c.Seams.Planted),
			replies: map[Key]chan<- Answer{}, told: map[uint64]chan<- *protocol.Problem{},
			looks: map[uint64]chan<- Looked{}, minted: map[uint64]mint{}}
	}, actor.WithMailbox(mailbox.Answering(TurnAway)))
}

type mint struct {
	Minted
	reply chan<- Minted
}

type shell struct {
	Config
	st      State
	self    *actor.PID
	root    *actor.RootContext
	asked   uint64
	replies map[Key]chan<- Answer
	told    map[uint64]chan<- *protocol.Problem
	looks   map[uint64]chan<- Looked
	minted  map[uint64]mint

	inc      *actor.PID
	incGen   protocol.Generation
	prepared targets.Prepared
	try      uint64 // of the Resolve that prepared belongs to
	mark     Mark
	permit   *permit
	cancel   context.CancelFunc
	timer    *time.Timer
	wakeAt   time.Time
	sequence uint64
	dead     bool

	// What a scope that dies has to know of its running operation: what the store
	// was asked (nil: nothing yet) and the commands that were not carried out.
	admitted chan *protocol.Problem
	finished chan bool
	undone   []Command
}

// Receive implements actor.Actor.
func (a *shell) Receive(ctx actor.Context) {
	if a.self == nil { // once: workers read them
		a.self, a.root = ctx.Self(), ctx.ActorSystem().Root
	}
	if a.dead {
		TurnAway(ctx.Message())
		return
	}
	defer func() {
		if r := recover(); r != nil {
			a.die()
			panic(r)
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Stopping:
		a.die()
	case Panic:
		panic(m.Why)
	case Incarnate:
		a.inc, a.incGen = m.PID, m.Gen
	case Do:
		if _, twice := a.replies[m.Op.Key]; twice {
			m.Reply <- Answer{Key: m.Op.Key, Receipt: (&stepper{State: &a.st}).refusal(m.Op, protocol.ReasonOperationIDReused, "")}
			return
		}
		a.replies[m.Op.Key] = m.Reply
		a.step(Submit{Op: m.Op})
	case Lease:
		a.asked++
		a.told[a.asked] = m.Reply
		if m.Release {
			a.step(Release{Owner: m.Owner, Ask: a.asked})
		} else {
			a.step(Claim{Owner: m.Owner, Ask: a.asked})
		}
	case BeginLook:
		a.asked++
		a.looks[a.asked] = m.Reply
		a.step(Look{Ask: a.asked})
	case EndLook:
		a.asked++
		t := newToken()
		a.minted[a.asked] = mint{Minted: Minted{Token: t, Epoch: m.Epoch}, reply: m.Reply}
		a.step(Seen{Ask: a.asked, Owner: m.Owner, Gen: m.Gen, Epoch: m.Epoch, Geometry: m.Geometry, Token: t})
	case resolvedMsg:
		if m.Try == a.try { // what an earlier one found must not be used for this one
			a.prepared = m.prepared
		}
		a.step(m.Resolved)
	case storedMsg:
		a.mark = m.mark
		a.step(m.AdmissionStored)
	case Tick:
		a.wakeAt = time.Time{} // the timer has run out: arm it anew
		a.step(m)
	case Event:
		a.step(m)
	}
}

func newToken() protocol.Token {
	var b [12]byte
	rand.Read(b[:])
	return protocol.Token("ob_" + base64.RawURLEncoding.EncodeToString(b[:]))
}

func (a *shell) step(ev Event) {
	out := Step(&a.st, time.Now(), ev)
	a.Spent.Store(max(a.Spent.Load(), uint64(a.st.highest())))
	for i, c := range out {
		a.undone = out[i:]
		a.perform(c)
	}
	a.undone = nil
	a.arm()
}

// arm sets the one timer for the scope's next deadline.
func (a *shell) arm() {
	next := a.st.NextDeadline()
	if next.Equal(a.wakeAt) {
		return
	}
	a.wakeAt = next
	if a.timer != nil {
		a.timer.Stop()
	}
	if !next.IsZero() {
		self, root := a.self, a.root
		a.timer = time.AfterFunc(max(0, time.Until(next))+time.Millisecond, func() { root.Send(self, Tick{}) })
	}
}

func (a *shell) answer(c Answer) {
	if ch := a.replies[c.Key]; ch != nil {
		delete(a.replies, c.Key)
		ch <- c
	}
}

func (a *shell) perform(c Command) {
	switch c := c.(type) {
	case Answer:
		if c.Recorded {
			a.Seams.Pass(protocol.StepOutcomeAfter, a.Resource, c.Key.ID)
		}
		a.answer(c)
	case Told:
		if ch := a.told[c.Ask]; ch != nil {
			delete(a.told, c.Ask)
			ch <- c.Problem
		}
	case Looked:
		if ch := a.looks[c.Ask]; ch != nil {
			delete(a.looks, c.Ask)
			ch <- c
		}
	case Tokened:
		m := a.minted[c.Ask]
		delete(a.minted, c.Ask)
		m.Stale = c.Stale
		m.reply <- m.Minted
	case Resolve:
		a.resolve(c)
	case StoreAdmission:
		a.admit(c)
	case Run:
		a.run(c)
	case Revoke:
		a.revoke(c.Reason)
	case StoreEnding:
		a.finish(c)
	case Reserve:
		a.work(func() { a.send(Reserved{UpTo: c.UpTo, OK: a.Store.Reserve(a.Resource, c.UpTo) == nil}) })
	case Settled:
		a.root.Send(a.Supervisor, c)
	case Suspect:
		a.root.Send(a.Supervisor, c)
	case Tell:
		a.sequence++
		c.Cue.Sequence = a.sequence
		a.Publisher.Cue(c.Cue)
	case Late:
		a.late(c)
	case Held:
		a.OnHeld(c.Owner)
	}
}

func (a *shell) send(m any) { a.root.Send(a.self, m) }

// work runs f outside of the mailbox.
func (a *shell) work(f func()) {
	a.Running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				a.Logger.Error("scope worker panicked", "resource", a.Resource, "panic", r)
				a.send(Panic{Why: fmt.Sprint(r)})
			}
		}()
		f()
	})
}

func call(op Op, geometry string) targets.Call {
	return targets.Call{Operation: op.Key.ID, Method: op.Request.Method, Arguments: op.Request.Arguments, Geometry: geometry}
}

func (a *shell) resolve(c Resolve) {
	a.try, a.admitted, a.permit = c.Try, nil, nil
	op, gen, self, root := c.Op, c.Gen, a.self, a.root
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.root.Send(a.inc, target.Prepare{Context: ctx, Call: call(op, c.Geometry), Until: op.Until,
		Done: func(p targets.Prepared, problem *protocol.Problem, took time.Duration) {
			cancel()
			root.Send(self, resolvedMsg{prepared: p, Resolved: Resolved{Key: op.Key, Gen: gen, Try: c.Try, Problem: problem, Element: p.Element, Point: p.Point, Took: took}})
		}})
}

func (a *shell) admit(c StoreAdmission) {
	done := make(chan *protocol.Problem, 1)
	a.admitted, a.finished = done, nil
	a.work(func() {
		defer close(done)
		a.Seams.Pass(protocol.StepAdmitBefore, a.Resource, c.Op.Key.ID)
		began := time.Now()
		mark, problem := a.Store.Admit(c.Op, c.Gen, c.Epoch, c.Reserve)
		took := time.Since(began)
		done <- problem
		if problem == nil {
			a.Seams.Pass(protocol.StepAdmitAfter, a.Resource, c.Op.Key.ID)
		}
		a.send(storedMsg{mark: mark, AdmissionStored: AdmissionStored{Key: c.Op.Key, Problem: problem, Took: took}})
	})
}

func (a *shell) run(c Run) {
	op, self, root := c.Op, a.self, a.root
	done := func(o targets.Outcome) {
		root.Send(self, Ran{Key: op.Key, Gen: c.Gen, Outcome: o, Token: newToken()})
	}
	if op.Request.Method == protocol.MethodClose {
		if a.mark != nil {
			a.mark.Set()
		}
		a.root.Send(a.Supervisor, Close{Gen: c.Gen, Done: done})
		return
	}
	a.permit = &permit{mark: a.mark, once: a.Seams.Planted[protocol.BugPermitOnce],
		pass: func(s protocol.Step) { a.Seams.Pass(s, a.Resource, op.Key.ID) }}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.Seams.Pass(protocol.StepDispatch, a.Resource, op.Key.ID)
	a.root.Send(a.inc, target.Run{Context: ctx, Call: call(op, c.Geometry), Prepared: a.prepared, Permit: a.permit, Until: op.Until,
		Done: func(o targets.Outcome) { cancel(); done(o) }})
}

func (a *shell) revoke(why protocol.Reason) {
	if a.permit != nil {
		a.permit.revoke(why)
	}
	if a.cancel != nil && !a.Seams.Planted[protocol.BugPermitOnce] { // the bug would not show if its context ended
		a.cancel()
	}
}

func (a *shell) finish(c StoreEnding) {
	done := make(chan bool, 1)
	a.finished = done
	a.work(func() {
		defer close(done)
		a.Seams.Pass(protocol.StepOutcomeBefore, a.Resource, c.Op.Key.ID)
		err := a.Store.Finish(c.Op, c.Receipt)
		done <- err == nil
		if err != nil {
			a.Logger.Warn("outcome not stored", "resource", a.Resource, "operation", c.Op.Key.ID, "error", err)
		}
		a.send(EndingStored{Key: c.Op.Key, OK: err == nil})
	})
}

// late keeps what came after its operation had its outcome: as evidence only.
func (a *shell) late(c Late) {
	a.OnLate()
	a.Store.History(protocol.HistoryEntry{At: protocol.Time(time.Now().UnixMilli()), Event: "late", Resource: a.Resource,
		Generation: c.Gen, Owner: c.Key.Owner, OperationID: c.Key.ID, State: c.Outcome.State, Effect: c.Outcome.Effect, Reason: c.Outcome.Reason})
}
