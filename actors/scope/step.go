package scope

import (
	"fmt"
	"time"

	"reins/protocol"
)

// Step advances the scope by one event at the time now and returns what has to
// be done. It is the only place where a scope decides anything.
func Step(s *State, now time.Time, ev Event) []Command {
	st := &stepper{State: s, now: now}
	switch e := ev.(type) {
	case Submit:
		st.submit(e.Op)
	case Cancel:
		st.cancel(e.Key)
	case Claim:
		st.claim(e)
	case Release:
		st.release(e)
	case OwnerLost:
		if s.lease.owner == e.Owner && s.lease.lost.IsZero() {
			s.lease.lost = now
		}
	case OwnerBack:
		if s.lease.owner == e.Owner {
			s.lease.lost = time.Time{}
		}
	case Resolved:
		st.resolved(e)
	case AdmissionStored:
		st.admissionStored(e)
	case Ran:
		st.ran(e)
	case EndingStored:
		st.endingStored(e)
	case Fence:
		st.fence(e)
	case Settle:
		st.settle(e)
	case Open:
		st.openFor(e)
	case Look:
		st.do(Looked{Ask: e.Ask, Gen: s.gen, Epoch: s.epoch, Open: s.open})
	case Seen:
		st.seen(e)
	case Disturbed:
		st.disturbed(e)
	case Reserved:
		s.asked = 0
		if !e.OK {
			return nil // asked again at the next event, so that a failing store is not hammered
		}
		s.reserve = max(s.reserve, e.UpTo)
	case Tick:
		st.expire()
	}
	st.advance()
	st.keepReserve()
	return st.out
}

// keepReserve asks for more epochs while half of the reserve is still there, so
// that those spent on disturbances are durable before they are used, too.
func (s *stepper) keepReserve() {
	if s.asked == 0 && s.epoch+protocol.EpochReserve/2 > s.reserve {
		s.asked = s.epoch + protocol.EpochReserve
		s.do(Reserve{UpTo: s.asked})
	}
}

type stepper struct {
	*State
	now time.Time
	out []Command
}

func (s *stepper) do(c Command) { s.out = append(s.out, c) }

// submit admits an operation to the queue or answers why not.
func (s *stepper) submit(op Op) {
	m := op.Request.Method
	waits := s.opening && m == protocol.MethodOpen
	switch {
	case s.closed:
		s.refuse(op, protocol.ReasonResourceClosed, "")
	case !s.open && !waits && m != protocol.MethodClose:
		s.refuse(op, s.reason, s.message)
	case m != protocol.MethodOpen && op.Request.Generation != s.gen && (m != protocol.MethodClose || s.gen != 0):
		// A target that has not come back in this life of the scope can be closed by
		// whatever generation it had.
		s.refuse(op, protocol.ReasonStaleGeneration, fmt.Sprintf("%s is at generation %d, the request names %d. Observe and use generation %d.", s.resource, s.gen, op.Request.Generation, s.gen))
	case s.leaseOf() != "" && s.leaseOf() != op.Key.Owner:
		s.refuseHeld(op)
	case len(s.queue) >= s.limits.Queue:
		s.refuse(op, protocol.ReasonBusy, fmt.Sprintf("%d operations wait for %s already; wait for answers before sending more.", len(s.queue), s.resource))
	default:
		s.take(op.Key.Owner)
		op.Queued = s.now
		s.queue = append(s.queue, op)
	}
}

// advance brings the next queued operation to the head, if nothing runs.
func (s *stepper) advance() {
	if s.settling && s.run == nil {
		s.settled() // before a close that waits behind it begins
	}
	for s.run == nil && len(s.queue) > 0 {
		op := s.queue[0]
		if !s.open && (op.Request.Method != protocol.MethodClose || s.closed) {
			return // only an open operation waits here; Fence empties the queue
		}
		s.queue = s.queue[1:]
		s.head(op)
	}
}

// head checks what must hold at the head of the queue, then has the locator resolved.
func (s *stepper) head(op Op) {
	if s.refuseLate(op) {
		return
	}
	t, reason := s.checkToken(op)
	if reason != "" {
		s.refuse(op, reason, "")
		return
	}
	if op.Until.IsZero() {
		op.Until = s.now.Add(op.RunFor)
	}
	gen := s.gen
	if gen == 0 {
		gen = op.Request.Generation // a close before anything was opened here
	}
	s.tries++
	s.run = &runningOp{op: op, stage: resolving, gen: gen, try: s.tries, seen: t,
		timing: protocol.Timing{QueuedUS: s.now.Sub(op.Queued).Microseconds()}}
	if op.Request.Method == protocol.MethodClose {
		s.cue(protocol.CueAttempted, protocol.Receipt{})
		s.admit()
		return
	}
	if s.planted[protocol.BugEffectBeforePersist] {
		s.run.epoch = s.nextEpoch()
	}
	s.do(Resolve{Op: op, Gen: gen, Try: s.tries, Geometry: t.geometry})
}

// refuseLate refuses an operation that has waited too long for the head, and
// reports whether it did.
func (s *stepper) refuseLate(op Op) bool {
	switch {
	case !op.Until.IsZero() && !s.now.Before(op.Until):
		s.refuse(op, protocol.ReasonDeadline, "The deadline passed while it waited in the queue; nothing happened.")
	case !op.QueueUntil.IsZero() && !s.now.Before(op.QueueUntil):
		s.refuse(op, protocol.ReasonQueueTimeout, "")
	default:
		return false
	}
	return true
}

// checkToken says whether the observation of a request still holds, and what it
// was bound to; the zero token where the request names none.
func (s *stepper) checkToken(op Op) (token, protocol.Reason) {
	if op.Request.Method == protocol.MethodClose {
		return token{}, ""
	}
	name := op.Request.Observation
	t, known := s.tokens.by[name]
	fresh := known && t.owner == op.Key.Owner && t.gen == s.gen && t.epoch >= s.floor
	switch {
	case s.mark != 0 && op.Request.Method != protocol.MethodOpen && (!fresh || t.epoch < s.mark):
		return token{}, protocol.ReasonObserveRequired
	case name != "" && !fresh:
		return token{}, protocol.ReasonStaleObservation
	}
	return t, ""
}

// outdated reports whether something else happened since the observation that
// the running operation was checked with at the head.
func (s *stepper) outdated(r *runningOp) bool {
	return r.seen != (token{}) && r.seen.epoch < s.floor
}

func (s *stepper) resolved(e Resolved) {
	r := s.run
	if r == nil || r.try != e.Try || r.stage != resolving || r.gen != e.Gen {
		return
	}
	r.timing.ResolveUS = e.Took.Microseconds()
	r.element, r.point = e.Element, e.Point
	p := e.Problem
	switch {
	case r.withdrawn != "":
		s.run = nil
		s.answerWithdrawn(r.op, r.withdrawn)
		return
	case !s.now.Before(r.op.Until):
		p = &protocol.Problem{Reason: protocol.ReasonDeadline, Message: "The deadline passed while the element was looked for; nothing happened."}
	case p == nil && s.outdated(r):
		p = &protocol.Problem{Reason: protocol.ReasonStaleObservation, Message: protocol.ReasonStaleObservation.Sentence()}
	}
	s.cue(protocol.CueAttempted, protocol.Receipt{})
	if p == nil {
		s.admit()
		return
	}
	s.run = nil
	rc := s.refusal(r.op, p.Reason, p.Message)
	rc.Candidates = p.Candidates
	rc.Timing = r.timing
	if p.Dialog != nil {
		rc.Page = &protocol.Page{Dialog: p.Dialog}
	}
	s.cueFor(r, protocol.CueFailed, rc)
	s.do(Answer{Key: r.op.Key, Receipt: rc})
}

// admit has the admission stored: the first synced write.
func (s *stepper) admit() {
	r := s.run
	r.stage = admitting
	if s.planted[protocol.BugEffectBeforePersist] && r.op.Request.Method != protocol.MethodClose {
		s.do(Run{Op: r.op, Gen: r.gen, Epoch: r.epoch, Geometry: r.seen.geometry})
	}
	c := StoreAdmission{Op: r.op, Gen: r.gen, Epoch: s.epoch + 1}
	// A batch uses an epoch a primitive, and disturbances go on meanwhile.
	if s.epoch+protocol.EpochReserve/4 > s.reserve {
		c.Reserve = s.epoch + protocol.EpochReserve
	}
	r.reserve = c.Reserve
	s.do(c)
}

// admissionStored is the step under the short lock: everything is checked once
// more, the epoch advances, and only then is input given.
func (s *stepper) admissionStored(e AdmissionStored) {
	r := s.run
	if r == nil || r.op.Key != e.Key || r.stage != admitting {
		return
	}
	r.timing.PersistUS = e.Took.Microseconds()
	if e.Problem != nil {
		s.run = nil
		rc := s.refusal(r.op, e.Problem.Reason, e.Problem.Message)
		s.cueFor(r, protocol.CueFailed, rc)
		s.do(Answer{Key: r.op.Key, Receipt: rc})
		return
	}
	s.reserve = max(s.reserve, r.reserve)
	closing := r.op.Request.Method == protocol.MethodClose
	if r.withdrawn == "" {
		r.withdrawn = s.recheck(r, closing)
	}
	if r.withdrawn != "" {
		s.end(s.receipt(r, protocol.StateCancelled, r.withdrawn, "It was withdrawn before anything was sent; nothing happened."))
		return
	}
	r.stage = running
	if s.planted[protocol.BugEffectBeforePersist] && !closing {
		s.cue(protocol.CueDispatched, protocol.Receipt{})
		return
	}
	r.epoch = s.nextEpoch()
	s.cue(protocol.CueDispatched, protocol.Receipt{})
	s.do(Run{Op: r.op, Gen: r.gen, Epoch: r.epoch, Geometry: r.seen.geometry})
}

// recheck says why an operation that was in order at the head must not be
// dispatched now.
func (s *stepper) recheck(r *runningOp, closing bool) protocol.Reason {
	switch {
	case closing && s.closed:
		return protocol.ReasonResourceClosed // it closed by itself meanwhile
	case !closing && (!s.open || r.gen != s.gen) && !s.planted[protocol.BugAdmissionLeftOpen]:
		return protocol.ReasonFenced
	case !s.now.Before(r.op.Until):
		return protocol.ReasonDeadline
	case s.outdated(r):
		return protocol.ReasonStaleObservation
	}
	return ""
}

// nextEpoch advances the epoch before a dispatch and outdates what others saw.
func (s *stepper) nextEpoch() protocol.Epoch {
	s.epoch++
	s.tokens.dropOthers(s.lease.owner)
	return s.epoch
}

// ran takes the outcome of the running operation; any other is late.
func (s *stepper) ran(e Ran) {
	r := s.run
	late := r == nil || r.op.Key != e.Key || r.gen != e.Gen || r.stage != running
	if late && s.planted[protocol.BugLateOverwrites] && r != nil && r.op.Key == e.Key && r.stage == ending {
		late = false
	}
	if late {
		s.do(Late{Key: e.Key, Gen: e.Gen, Outcome: e.Outcome})
		return
	}
	o := checked(e.Outcome)
	if o.Begun > 1 {
		s.epoch += protocol.Epoch(o.Begun - 1)
	}
	state, reason, message := o.State, o.Reason, o.Message
	if o.Navigated && o.Page != nil {
		s.document = o.Page.Document
	}
	if r.withdrawn != "" && state != protocol.StateApplied {
		reason, message = r.withdrawn, ""
	}
	rc := s.receipt(r, state, reason, message)
	rc.Effect, rc.Progress, rc.Page, rc.Download = o.Effect, o.Progress, o.Page, o.Download
	rc.Candidates, rc.ActualValue = o.Candidates, o.ActualValue
	if o.LastDone != unknown {
		rc.LastAppliedIndex = protocol.Index(o.LastDone)
	}
	rc.Timing.ResolveUS += o.AimUS
	rc.Timing.InputUS, rc.Timing.SettleUS = o.InputUS, o.SettleUS
	rc.ObserveRequired = o.ObserveRequired || state == protocol.StateUncertain
	if o.Unanswered {
		s.suspect(r, protocol.ReasonAnswerLost, "input was given and its answer never came")
	}
	if o.Navigated || state == protocol.StateFailed || state == protocol.StateUncertain {
		s.disturb()
	}
	if rc.ObserveRequired {
		s.disturb()
		s.require()
	} else if (state == protocol.StateApplied || state == protocol.StateFailed) && s.open && r.op.Request.Method != protocol.MethodClose {
		s.mark = 0
		s.tokens.put(e.Token, token{owner: r.op.Key.Owner, gen: s.gen, epoch: s.epoch, geometry: o.Geometry})
		rc.ObservationToken = e.Token
	}
	s.end(rc)
	if r.op.Request.Method == protocol.MethodClose && state == protocol.StateApplied {
		s.closed, s.open = true, false
		s.flush(protocol.ReasonResourceClosed, "")
	}
}

// end has the outcome of the running operation stored: the second synced write.
func (s *stepper) end(rc protocol.Receipt) {
	r := s.run
	r.stage = ending
	r.receipt = rc
	s.lease.used = s.now
	s.do(StoreEnding{Op: r.op, Receipt: rc})
}

func (s *stepper) endingStored(e EndingStored) {
	r := s.run
	if r == nil || r.op.Key != e.Key || r.stage != ending {
		return
	}
	s.run = nil
	rc := r.receipt
	if !e.OK {
		rc = unstored(rc)
		s.disturb()
		s.require()
	}
	phase := protocol.CueAcknowledged
	switch rc.State {
	case protocol.StateFailed, protocol.StateCancelled:
		phase = protocol.CueFailed
	case protocol.StateUncertain:
		phase = protocol.CueUnknown
	}
	s.cueFor(r, phase, rc)
	s.do(Answer{Key: r.op.Key, Receipt: rc, Recorded: e.OK})
}

func (s *stepper) seen(e Seen) {
	if e.Gen != s.gen || !s.open {
		s.do(Tokened{Ask: e.Ask, Stale: true})
		return
	}
	s.tokens.put(e.Token, token{owner: e.Owner, gen: e.Gen, epoch: e.Epoch, geometry: e.Geometry})
	s.do(Tokened{Ask: e.Ask})
}

// disturbed outdates what was observed, unless the change is one that an
// operation of ours reports or has reported itself.
func (s *stepper) disturbed(e Disturbed) {
	ours := e.Document != "" && e.Document == s.document
	if e.Gen != s.gen || ours || (s.run != nil && s.run.stage == running) {
		return
	}
	s.document = e.Document
	s.disturb()
}

// disturb outdates every token there is.
func (s *stepper) disturb() {
	s.epoch++
	s.floor = s.epoch
}

// require makes the next write need an observation that begins after now.
func (s *stepper) require() { s.mark = s.floor }
