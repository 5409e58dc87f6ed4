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
		st.settle(e.Final)
	case Open:
		st.openFor(e)
	case Look:
		st.do(Looked{Ask: e.Ask, Gen: s.gen, Epoch: s.epoch, Open: s.open})
	case Seen:
		st.seen(e)
	case Disturbed:
		// An operation of ours that is under way reports the change itself.
		if e.Gen == s.gen && (s.run == nil || s.run.stage != running) {
			st.disturb()
		}
	case Reserved:
		s.asked = 0
		if e.OK {
			s.reserve = max(s.reserve, e.UpTo)
		}
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
	case m != protocol.MethodOpen && op.Request.Generation != s.gen:
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
	for s.run == nil && len(s.queue) > 0 {
		op := s.queue[0]
		if !s.open && (op.Request.Method != protocol.MethodClose || s.closed) {
			return // only an open operation waits here; Fence empties the queue
		}
		s.queue = s.queue[1:]
		s.head(op)
	}
	if s.settling && s.run == nil {
		s.settling = false
		s.do(Settled{})
	}
}

// head checks what must hold at the head of the queue, then has the locator resolved.
func (s *stepper) head(op Op) {
	geometry, reason := s.checkToken(op)
	if reason != "" {
		s.refuse(op, reason, "")
		return
	}
	if op.Until.IsZero() {
		op.Until = s.now.Add(op.RunFor)
	}
	s.run = &runningOp{op: op, stage: resolving, gen: s.gen, headAt: s.now, geometry: geometry,
		timing: protocol.Timing{QueuedUS: s.now.Sub(op.Queued).Microseconds()}}
	if op.Request.Method == protocol.MethodClose {
		s.cue(protocol.CueAttempted, protocol.Receipt{})
		s.admit()
		return
	}
	if s.planted[protocol.BugEffectBeforePersist] {
		s.run.epoch = s.nextEpoch()
	}
	s.do(Resolve{Op: op, Gen: s.gen, Geometry: geometry})
}

// checkToken says whether the observation of a request still holds.
func (s *stepper) checkToken(op Op) (geometry string, reason protocol.Reason) {
	if op.Request.Method == protocol.MethodClose {
		return "", ""
	}
	name := op.Request.Observation
	t, known := s.tokens.by[name]
	fresh := known && t.owner == op.Key.Owner && t.gen == s.gen && t.epoch >= s.floor
	switch {
	case s.mark != 0 && op.Request.Method != protocol.MethodOpen && (!fresh || t.epoch < s.mark):
		return "", protocol.ReasonObserveRequired
	case name != "" && !fresh:
		return "", protocol.ReasonStaleObservation
	}
	return t.geometry, ""
}

func (s *stepper) resolved(e Resolved) {
	r := s.run
	if r == nil || r.op.Key != e.Key || r.stage != resolving || r.gen != e.Gen {
		return
	}
	r.timing.ResolveUS = e.Took.Microseconds()
	r.element, r.point = e.Element, e.Point
	s.cue(protocol.CueAttempted, protocol.Receipt{})
	switch {
	case r.withdrawn != "":
		s.run = nil
		s.answerWithdrawn(r.op, r.withdrawn)
	case e.Problem != nil:
		s.run = nil
		rc := s.refusal(r.op, e.Problem.Reason, e.Problem.Message)
		rc.Candidates = e.Problem.Candidates
		rc.Timing = r.timing
		if e.Problem.Dialog != nil {
			rc.Page = &protocol.Page{Dialog: e.Problem.Dialog}
		}
		s.cueFor(r, protocol.CueFailed, rc)
		s.do(Answer{Key: r.op.Key, Receipt: rc})
	default:
		s.admit()
	}
}

// admit has the admission stored: the first synced write.
func (s *stepper) admit() {
	r := s.run
	r.stage = admitting
	if s.planted[protocol.BugEffectBeforePersist] && r.op.Request.Method != protocol.MethodClose {
		s.do(Run{Op: r.op, Gen: r.gen, Epoch: r.epoch, Geometry: r.geometry})
	}
	c := StoreAdmission{Op: r.op, Gen: r.gen, Epoch: s.epoch + 1}
	// A batch uses an epoch a primitive, and one more may be needed behind it.
	if s.epoch+protocol.MaxPrimitives+8 > s.reserve {
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
	if r.withdrawn == "" && !s.open && !closing && !s.planted[protocol.BugAdmissionLeftOpen] {
		r.withdrawn = protocol.ReasonFenced
	}
	if r.withdrawn == "" && !s.now.Before(r.op.Until) {
		r.withdrawn = protocol.ReasonDeadline
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
	s.do(Run{Op: r.op, Gen: r.gen, Epoch: r.epoch, Geometry: r.geometry})
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
	o := e.Outcome
	if o.Begun > 1 {
		s.epoch += protocol.Epoch(o.Begun - 1)
	}
	state, reason := o.State, o.Reason
	if state == protocol.StateRefused {
		// Admitted, and not a byte of it was written: nothing happened.
		state = protocol.StateCancelled
	}
	message := o.Message
	if r.withdrawn != "" && state != protocol.StateApplied {
		reason, message = r.withdrawn, ""
	}
	rc := s.receipt(r, state, reason, message)
	rc.Effect, rc.Progress, rc.Page, rc.Download = o.Effect, o.Progress, o.Page, o.Download
	rc.Candidates, rc.ActualValue = o.Candidates, o.ActualValue
	rc.LastAppliedIndex = protocol.Index(o.LastDone)
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
		rc.State, rc.Reason = protocol.StateUncertain, protocol.ReasonOutcomeNotStored
		rc.Message = protocol.ReasonOutcomeNotStored.Sentence()
		rc.Effect, rc.ObservationToken, rc.ObserveRequired = "", "", true
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

// cancel withdraws an operation at whatever stage it is.
func (s *stepper) cancel(k Key) {
	for i, op := range s.queue {
		if op.Key == k {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			s.answerWithdrawn(op, protocol.ReasonCancelled)
			return
		}
	}
	if r := s.run; r != nil && r.op.Key == k && r.withdrawn == "" {
		r.withdrawn = protocol.ReasonCancelled
		if r.stage == running {
			s.do(Revoke{Key: k, Reason: protocol.ReasonCancelled})
		}
	}
}

// fence closes admission and empties the queue. What is past the queue is
// withdrawn and gets its outcome by Settle.
func (s *stepper) fence(e Fence) {
	s.open, s.reason, s.message = false, e.Reason, e.Message
	if e.Reason == protocol.ReasonResourceClosed {
		s.closed = true
	}
	// Its first incarnation is still to come after a restart that is only a delay.
	s.opening = s.opening && e.Reason == protocol.ReasonRestoring
	s.tokens = tokens{}
	if !s.opening {
		why := protocol.ReasonStaleGeneration
		if e.Reason != protocol.ReasonRestoring {
			why = e.Reason
		}
		s.flush(why, e.Message)
	}
	r := s.run
	if r == nil || r.op.Request.Method == protocol.MethodClose {
		return
	}
	if r.withdrawn == "" {
		r.withdrawn = protocol.ReasonFenced
	}
	if r.stage == running {
		s.do(Revoke{Key: r.op.Key, Reason: protocol.ReasonFenced})
	}
}

// settle makes sure that everything of the old generation gets its outcome.
func (s *stepper) settle(final bool) {
	s.settling = true
	r := s.run
	if r == nil || r.op.Request.Method == protocol.MethodClose {
		if r != nil { // the close goes on by itself; it is not of the old generation's input
			s.settling = false
			s.do(Settled{})
		}
		return
	}
	switch r.stage {
	case resolving:
		s.run = nil
		s.answerWithdrawn(r.op, protocol.ReasonStaleGeneration)
	case running:
		if final {
			s.endUncertain(protocol.ReasonFenced)
		}
	}
}

func (s *stepper) endUncertain(why protocol.Reason) {
	rc := s.receipt(s.run, protocol.StateUncertain, why, why.Sentence())
	rc.ObserveRequired = true
	s.disturb()
	s.require()
	s.end(rc)
}

func (s *stepper) openFor(e Open) {
	s.gen, s.open, s.closed, s.opening, s.settling = e.Gen, true, false, false, false
	s.reason, s.message = "", ""
	s.disturb()
	if e.Restarted {
		s.require()
	}
}

func (s *stepper) seen(e Seen) {
	if e.Gen != s.gen || !s.open {
		s.do(Tokened{Ask: e.Ask, Stale: true})
		return
	}
	s.tokens.put(e.Token, token{owner: e.Owner, gen: e.Gen, epoch: e.Epoch, geometry: e.Geometry})
	s.do(Tokened{Ask: e.Ask})
}

// disturb outdates every token there is.
func (s *stepper) disturb() {
	s.epoch++
	s.floor = s.epoch
}

// require makes the next write need an observation that begins after now.
func (s *stepper) require() { s.mark = s.floor }

// expire ends what has waited or run too long, and leases nobody uses.
func (s *stepper) expire() {
	kept := s.queue[:0:0]
	for _, op := range s.queue {
		switch {
		case !op.Until.IsZero() && !s.now.Before(op.Until):
			s.refuse(op, protocol.ReasonDeadline, "The deadline passed while it waited in the queue; nothing happened.")
		case !op.QueueUntil.IsZero() && !s.now.Before(op.QueueUntil):
			s.refuse(op, protocol.ReasonQueueTimeout, "")
		default:
			kept = append(kept, op)
		}
	}
	s.queue = kept
	if r := s.run; r != nil && !r.op.Until.IsZero() && s.now.After(r.op.Until.Add(Grace)) {
		switch r.stage {
		case resolving:
			s.suspect(r, protocol.ReasonPageUnresponsive, "looking for the element did not end")
			s.run = nil
			s.refuse(r.op, protocol.ReasonDeadline, "The target did not answer in time while the element was looked for; nothing happened.")
		case running:
			s.suspect(r, protocol.ReasonAnswerLost, "the operation did not end")
			s.endUncertain(protocol.ReasonAnswerLost)
		}
	}
	s.leaseOf()
}

func (s *stepper) suspect(r *runningOp, why protocol.Reason, msg string) {
	if !r.suspected {
		r.suspected = true
		s.do(Suspect{Gen: r.gen, Reason: why, Message: msg})
	}
}
