package scope

import (
	"fmt"
	"time"

	"reins/protocol"
	"reins/targets"
)

func (s *stepper) refusal(op Op, why protocol.Reason, message string) protocol.Receipt {
	if message == "" {
		message = why.Sentence()
	}
	gen := op.Request.Generation
	if gen == 0 {
		gen = s.gen
	}
	return protocol.Receipt{OperationID: op.Key.ID, Resource: s.resource, Generation: gen, Method: op.Request.Method,
		State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1), Reason: why, Message: message,
		ObserveRequired: why == protocol.ReasonObserveRequired}
}

func (s *stepper) refuse(op Op, why protocol.Reason, message string) {
	s.do(Answer{Key: op.Key, Receipt: s.refusal(op, why, message)})
}

func (s *stepper) refuseHeld(op Op) {
	rc := s.refusal(op, protocol.ReasonHeldBy, heldMessage(s.resource, s.lease.owner))
	rc.HeldBy = s.lease.owner
	s.do(Answer{Key: op.Key, Receipt: rc})
}

func heldMessage(r protocol.ResourceID, by protocol.OwnerID) string {
	return fmt.Sprintf("%s is held by %s. Wait until it lets go, or use another target.", r, by)
}

// answerWithdrawn answers an operation that left no record: cancelled by its
// owner, else refused.
func (s *stepper) answerWithdrawn(op Op, why protocol.Reason) {
	rc := s.refusal(op, why, "")
	switch why {
	case protocol.ReasonCancelled:
		rc.State, rc.Message = protocol.StateCancelled, "Cancelled before anything was sent; nothing happened."
	case protocol.ReasonFenced:
		rc.Reason, rc.Message = protocol.ReasonStaleGeneration, protocol.ReasonStaleGeneration.Sentence()
	}
	s.do(Answer{Key: op.Key, Receipt: rc})
}

// flush refuses everything that waits.
func (s *stepper) flush(why protocol.Reason, message string) {
	for _, op := range s.queue {
		s.refuse(op, why, message)
	}
	s.queue = nil
}

func (s *stepper) receipt(r *runningOp, state protocol.State, why protocol.Reason, message string) protocol.Receipt {
	if message == "" {
		message = why.Sentence()
	}
	rc := protocol.Receipt{OperationID: r.op.Key.ID, Resource: s.resource, Generation: r.gen, Method: r.op.Request.Method,
		State: state, Reason: why, Message: message, Timing: r.timing}
	if state == protocol.StateCancelled {
		rc.LastAppliedIndex = protocol.Index(-1)
	}
	return rc
}

// unknown stands for a last index that nobody can tell.
const unknown = -2

// checked holds an adapter to its contract: an outcome that cannot be true is
// uncertain, never better than that.
func checked(o targets.Outcome) targets.Outcome {
	switch o.State {
	case protocol.StateApplied, protocol.StateUncertain:
	case protocol.StateFailed:
		if o.Unanswered {
			o.State = protocol.StateUncertain // failed says that no written byte is unanswered
		}
	case protocol.StateRefused:
		if o.Unanswered {
			o.State = protocol.StateUncertain
			break
		}
		// Admitted, and not a byte of it was written: nothing happened.
		o.State, o.Effect, o.LastDone, o.Begun = protocol.StateCancelled, "", -1, 0
	default:
		o.State, o.Reason, o.Message, o.LastDone = protocol.StateUncertain, protocol.ReasonInternal, "", unknown
	}
	if o.State == protocol.StateUncertain && o.Reason == "" {
		o.Reason = protocol.ReasonAnswerLost
	}
	return o
}

func (s *stepper) cue(phase protocol.CuePhase, rc protocol.Receipt) { s.cueFor(s.run, phase, rc) }

func (s *stepper) cueFor(r *runningOp, phase protocol.CuePhase, rc protocol.Receipt) {
	s.do(Tell{Cue: protocol.Cue{Phase: phase, Resource: s.resource, Generation: r.gen, Owner: r.op.Key.Owner,
		OperationID: r.op.Key.ID, Method: r.op.Request.Method, At: protocol.Time(s.now.UnixMilli()),
		Point: r.point, Element: r.element, Words: words(r.op.Request.Method), State: rc.State, Reason: rc.Reason}})
}

// words says what people see for a method; never what is typed.
func words(m protocol.Method) string {
	switch m {
	case protocol.MethodClick, protocol.MethodDownload:
		return "Click"
	case protocol.MethodFill, protocol.MethodType:
		return "Type"
	case protocol.MethodScroll:
		return "Scroll"
	case protocol.MethodPress:
		return "Press a key"
	case protocol.MethodHover:
		return "Point"
	case protocol.MethodDrag:
		return "Drag"
	case protocol.MethodDialog:
		return "Answer a dialog"
	case protocol.MethodBatch:
		return "Several steps"
	case protocol.MethodClose:
		return "Close"
	case protocol.MethodViewport:
		return "Resize"
	}
	return "Go to a page"
}

// leaseOf returns who holds the lease now, ending one that has run out.
func (s *stepper) leaseOf() protocol.OwnerID {
	l := &s.lease
	if l.owner == "" || s.busyFor(l.owner) {
		return l.owner
	}
	idle := s.now.Sub(l.used) >= s.limits.LeaseIdle
	lost := !l.lost.IsZero() && s.now.Sub(l.lost) >= s.limits.LeaseLost
	if idle || lost {
		s.drop()
	}
	return l.owner
}

// busyFor reports whether owner has something queued or running here.
func (s *stepper) busyFor(owner protocol.OwnerID) bool {
	if s.run != nil && s.run.op.Key.Owner == owner {
		return true
	}
	for _, op := range s.queue {
		if op.Key.Owner == owner {
			return true
		}
	}
	return false
}

func (s *stepper) drop() {
	s.lease.last, s.lease.owner, s.lease.lost = s.lease.owner, "", time.Time{}
	s.do(Held{})
}

// take gives the lease to owner; a change of hands advances the epoch and
// outdates what was seen before.
func (s *stepper) take(owner protocol.OwnerID) {
	l := &s.lease
	l.used, l.lost = s.now, time.Time{}
	if l.owner == owner {
		return
	}
	if l.last != "" && l.last != owner {
		s.disturb()
	}
	l.owner = owner
	s.do(Held{Owner: owner})
}

func (s *stepper) claim(e Claim) {
	var p *protocol.Problem
	switch holder := s.leaseOf(); {
	case s.closed:
		p = &protocol.Problem{Reason: protocol.ReasonResourceClosed, Message: protocol.ReasonResourceClosed.Sentence()}
	case holder != "" && holder != e.Owner:
		p = &protocol.Problem{Reason: protocol.ReasonHeldBy, Message: heldMessage(s.resource, holder), HeldBy: holder}
	default:
		s.take(e.Owner)
	}
	s.do(Told{Ask: e.Ask, Problem: p})
}

func (s *stepper) release(e Release) {
	holder := s.leaseOf()
	var p *protocol.Problem
	switch {
	case holder == e.Owner && s.busyFor(e.Owner):
		p = &protocol.Problem{Reason: protocol.ReasonBusy, Message: "Operations of yours are still queued or running here; cancel them or wait, then release."}
	case holder == e.Owner && holder != "":
		s.drop()
	case holder != "":
		p = &protocol.Problem{Reason: protocol.ReasonHeldBy, Message: heldMessage(s.resource, holder), HeldBy: holder}
	}
	s.do(Told{Ask: e.Ask, Problem: p})
}

// Generation, Epoch, Holder and Waiting are for the shell's records and for tests.
func (s *State) Generation() protocol.Generation { return s.gen }

// Epoch is the scope's current epoch.
func (s *State) Epoch() protocol.Epoch { return s.epoch }

// Holder is who has the lease.
func (s *State) Holder() protocol.OwnerID { return s.lease.owner }

// Waiting is how many operations are queued.
func (s *State) Waiting() int { return len(s.queue) }

// NextDeadline is when the scope needs its next Tick; zero when nothing waits.
func (s *State) NextDeadline() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, op := range s.queue {
		sooner(op.Until)
		sooner(op.QueueUntil)
	}
	if s.run != nil && !s.run.op.Until.IsZero() && (s.run.stage == resolving || s.run.stage == running) {
		sooner(s.run.op.Until.Add(Grace + time.Millisecond))
	}
	if s.lease.owner != "" && s.run == nil && len(s.queue) == 0 {
		sooner(s.lease.used.Add(s.limits.LeaseIdle))
		if !s.lease.lost.IsZero() {
			sooner(s.lease.lost.Add(s.limits.LeaseLost))
		}
	}
	return next
}

// highest is the highest epoch that was used, or asked to be reserved.
func (s *State) highest() protocol.Epoch {
	h := max(s.epoch, s.reserve, s.asked)
	if s.run != nil {
		h = max(h, s.run.reserve)
	}
	return h
}
