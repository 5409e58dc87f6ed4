package scope

import (
	"fmt"

	"reins/protocol"
	"reins/targets"
)

// watch holds a scope's events and commands to the invariants of doc.go. It
// knows nothing of the state: only what went in and what came out.
type watch struct {
	bad string // the first violation

	now      int // counts events, as the order of things
	open     bool
	gen      protocol.Generation // the highest that was opened
	holder   protocol.OwnerID
	last     protocol.OwnerID // who had the lease before
	epoch    protocol.Epoch   // of the last dispatch
	reserve  protocol.Epoch   // durable
	ops      map[Key]*watched
	settling bool

	required  int // observations that began before this do not do; 0: none is needed
	disturbed int // tokens from before this are stale
	looks     map[uint64]int
	seen      map[protocol.Token]sighting
}

// watched is one operation from its Submit to its Answer.
type watched struct {
	op        Op
	at        int // when it was submitted
	resolve   bool
	admission *StoreAdmission
	stored    bool
	run       *Run
	outcome   *targets.Outcome // the first, while it ran
	ending    *StoreEnding
	kept      *bool // EndingStored
	answered  bool
	cancelled bool // before its dispatch
}

// sighting is what a token was bound to.
type sighting struct {
	owner protocol.OwnerID
	gen   protocol.Generation
	at    int
}

func newWatch(reserve protocol.Epoch) *watch {
	return &watch{reserve: reserve, epoch: reserve, ops: map[Key]*watched{}, looks: map[uint64]int{},
		seen: map[protocol.Token]sighting{}}
}

func (w *watch) fail(invariant, format string, args ...any) {
	if w.bad == "" {
		w.bad = invariant + ": " + fmt.Sprintf(format, args...)
	}
}

// past is the operation that is past the queue, if there is one.
func (w *watch) past() *watched {
	for _, o := range w.ops {
		if (o.resolve || o.admission != nil) && !o.answered {
			return o
		}
	}
	return nil
}

// running reports whether an operation is between its dispatch and its outcome.
func (w *watch) running() bool {
	o := w.past()
	return o != nil && o.run != nil && o.ending == nil
}

// event notes what went in; call it before Step, and command for what came out.
func (w *watch) event(ev Event) {
	w.now++
	switch e := ev.(type) {
	case Submit:
		w.ops[e.Op.Key] = &watched{op: e.Op, at: w.now}
	case Cancel:
		if o := w.ops[e.Key]; o != nil && o.run == nil {
			o.cancelled = true
		}
	case AdmissionStored:
		if o := w.ops[e.Key]; o != nil && o.admission != nil && o.ending == nil && o.run == nil {
			o.stored = e.Problem == nil
			if o.stored {
				w.reserve = max(w.reserve, o.admission.Reserve)
			}
		}
	case Ran:
		w.ran(e)
	case EndingStored:
		if o := w.ops[e.Key]; o != nil && o.ending != nil && o.kept == nil {
			o.kept = &e.OK
		}
	case Reserved:
		if e.OK {
			w.reserve = max(w.reserve, e.UpTo)
		}
	case Fence:
		w.open = false
	case Settle:
		w.settling = true
	case Open:
		if e.Gen > w.gen {
			w.gen, w.open, w.disturbed = e.Gen, true, w.now
			if e.Restarted {
				w.required = w.now
			}
		}
	case Look:
		w.looks[e.Ask] = w.now
	case Disturbed:
		if e.Gen == w.gen && !w.running() {
			w.disturbed = w.now
		}
	}
}

func (w *watch) ran(e Ran) {
	o := w.ops[e.Key]
	if o == nil || o.run == nil || o.run.Gen != e.Gen || o.ending != nil {
		return
	}
	out := e.Outcome
	o.outcome = &out
	nothing := out.State == protocol.StateRefused && !out.Unanswered
	if !nothing && (out.Navigated || out.State != protocol.StateApplied) {
		w.disturbed = w.now
	}
}

// command notes what came out.
func (w *watch) command(c Command) {
	switch c := c.(type) {
	case Resolve:
		w.begins(c.Op.Key, func(o *watched) { o.resolve = true })
	case StoreAdmission:
		w.begins(c.Op.Key, func(o *watched) { o.admission = &c })
	case Run:
		w.dispatched(c)
	case StoreEnding:
		w.ending(c)
	case Answer:
		w.answer(c)
	case Held:
		w.held(c)
	case Looked:
		w.looks[c.Ask] = w.now
	case Settled:
		if !w.settling {
			w.fail("I6", "settled twice")
		}
		w.settling = false
		if w.running() && w.past().op.Request.Method != protocol.MethodClose {
			w.fail("I6", "settled while %s runs", w.past().op.Key.ID)
		}
	case Suspect:
		w.open = false
	}
}

// begins checks what must hold for an operation that goes past the queue.
func (w *watch) begins(k Key, note func(*watched)) {
	o := w.ops[k]
	if o == nil || o.answered {
		w.fail("I4", "%s went past the queue, and nobody waits for it", k.ID)
		return
	}
	if p := w.past(); p != nil && p != o {
		w.fail("I1", "%s went past the queue while %s is there", k.ID, p.op.Key.ID)
	}
	m := o.op.Request.Method
	if m != protocol.MethodClose && !w.open {
		w.fail("I6", "%s went past the queue while admission is closed", k.ID)
	}
	if k.Owner != w.holder {
		w.fail("I7", "%s of %s went past the queue while %q holds the lease", k.ID, k.Owner, w.holder)
	}
	first := !o.resolve && o.admission == nil
	if first && w.required != 0 && m != protocol.MethodOpen && m != protocol.MethodClose {
		if s, ok := w.seen[o.op.Request.Observation]; !ok || s.at < w.required || s.owner != k.Owner {
			w.fail("I9", "%s went past the queue without an observation made after the uncertain one", k.ID)
		}
	}
	note(o)
}

func (w *watch) dispatched(c Run) {
	o := w.ops[c.Op.Key]
	switch {
	case o == nil || o.answered || o.admission == nil || !o.stored:
		w.fail("I2", "%s was dispatched before its admission was stored", c.Op.Key.ID)
		return
	case o.run != nil:
		w.fail("I2", "%s was dispatched twice", c.Op.Key.ID)
	case o.ending != nil:
		w.fail("I5", "%s was dispatched after its outcome was known", c.Op.Key.ID)
	}
	if o.cancelled {
		w.fail("I5", "%s was dispatched after it was cancelled", c.Op.Key.ID)
	}
	closing := o.op.Request.Method == protocol.MethodClose
	if !closing && (!w.open || c.Gen != w.gen) {
		w.fail("I6", "%s was dispatched under g%d while g%d is open=%v", c.Op.Key.ID, c.Gen, w.gen, w.open)
	}
	if c.Epoch <= w.epoch {
		w.fail("I3", "%s was dispatched at epoch %d, %d was used before", c.Op.Key.ID, c.Epoch, w.epoch)
	}
	if c.Epoch+protocol.MaxPrimitives > w.reserve {
		w.fail("I3", "%s was dispatched at epoch %d, only %d are reserved", c.Op.Key.ID, c.Epoch, w.reserve)
	}
	if c.Op.Key.Owner != w.holder {
		w.fail("I7", "%s of %s was dispatched while %q holds the lease", c.Op.Key.ID, c.Op.Key.Owner, w.holder)
	}
	if t := c.Op.Request.Observation; t != "" && !closing {
		s, ok := w.seen[t]
		if !ok || s.owner != c.Op.Key.Owner || s.gen != c.Gen || s.at < w.disturbed {
			w.fail("I9", "%s was dispatched with a stale observation", c.Op.Key.ID)
		}
	}
	w.epoch, o.run = c.Epoch, &c
}

// ending checks that an outcome is what is known of the operation.
func (w *watch) ending(c StoreEnding) {
	o := w.ops[c.Op.Key]
	if o == nil || o.answered {
		w.fail("I4", "an outcome of %s is stored, and nobody waits for it", c.Op.Key.ID)
		return
	}
	if o.ending != nil {
		w.fail("I8", "the outcome of %s is stored twice: %s, then %s", c.Op.Key.ID, o.ending.Receipt.State, c.Receipt.State)
	}
	state := c.Receipt.State
	switch {
	case o.run == nil && state != protocol.StateCancelled:
		w.fail("I5", "%s was not dispatched, its outcome is %s", c.Op.Key.ID, state)
	case o.run != nil && o.outcome == nil && state != protocol.StateUncertain:
		w.fail("I8", "%s has said nothing, its outcome is %s", c.Op.Key.ID, state)
	case o.run != nil && state == protocol.StateCancelled && (o.outcome.State != protocol.StateRefused || o.outcome.Unanswered):
		w.fail("I5", "%s gave input, its outcome is %s", c.Op.Key.ID, state)
	case o.outcome != nil && state == protocol.StateApplied && o.outcome.State != protocol.StateApplied:
		w.fail("I8", "%s said %s, its outcome is %s", c.Op.Key.ID, o.outcome.State, state)
	case o.outcome != nil && state == protocol.StateFailed && o.outcome.Unanswered:
		w.fail("I5", "%s has input unanswered, its outcome is %s", c.Op.Key.ID, state)
	}
	o.ending = &c
	if o.run != nil && o.outcome == nil {
		w.disturbed = w.now
	}
	if c.Receipt.ObserveRequired {
		w.required = w.now
	} else if state == protocol.StateApplied || state == protocol.StateFailed {
		if o.op.Request.Method != protocol.MethodClose && w.open {
			w.required = 0
		}
	}
	if t := c.Receipt.ObservationToken; t != "" {
		w.seen[t] = sighting{owner: o.op.Key.Owner, gen: c.Receipt.Generation, at: w.now}
	}
	if o.op.Request.Method == protocol.MethodClose && state == protocol.StateApplied {
		w.open = false
	}
}

func (w *watch) answer(c Answer) {
	o := w.ops[c.Key]
	if o == nil || o.answered {
		w.fail("I4", "%s was answered, and nobody waits for it", c.Key.ID)
		return
	}
	o.answered = true
	r := c.Receipt
	switch {
	case o.ending == nil && r.State != protocol.StateRefused && r.State != protocol.StateCancelled:
		w.fail("I5", "%s is said to be %s, without an outcome", c.Key.ID, r.State)
	case o.ending == nil && o.run != nil:
		w.fail("I5", "%s was dispatched and is said to be %s", c.Key.ID, r.State)
	case o.ending == nil && c.Recorded:
		w.fail("I5", "%s has no record", c.Key.ID)
	case o.ending != nil && (o.kept == nil || *o.kept != c.Recorded):
		w.fail("I8", "%s was answered before its outcome was stored", c.Key.ID)
	case o.ending != nil && c.Recorded && (r.State != o.ending.Receipt.State || r.Reason != o.ending.Receipt.Reason):
		w.fail("I8", "%s was stored as %s and answered as %s", c.Key.ID, o.ending.Receipt.State, r.State)
	case o.ending != nil && !c.Recorded && r.State != protocol.StateUncertain:
		w.fail("I8", "%s could not be stored and was answered as %s", c.Key.ID, r.State)
	}
	if o.ending != nil && !c.Recorded {
		w.required, w.disturbed = w.now, w.now
	}
}

func (w *watch) held(c Held) {
	if c.Owner != "" && w.holder != "" {
		w.fail("I7", "the lease went from %s to %s", w.holder, c.Owner)
	}
	if c.Owner == "" {
		for _, o := range w.ops {
			if !o.answered && o.at < w.now && o.op.Key.Owner == w.holder {
				w.fail("I7", "%s lost the lease while %s waits or runs", w.holder, o.op.Key.ID)
			}
		}
	}
	if c.Owner == "" {
		w.last = w.holder
	} else if w.last != "" && w.last != c.Owner {
		w.disturbed = w.now // a change of hands: what was seen before is stale
	}
	w.holder = c.Owner
}
