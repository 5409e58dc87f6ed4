package scope

import "reins/protocol"

// cancel withdraws an operation at whatever stage it is.
func (s *stepper) cancel(k Key) {
	for i, op := range s.queue {
		if op.Key == k {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			s.answerWithdrawn(op, protocol.ReasonCancelled)
			return
		}
	}
	if r := s.run; r != nil && r.op.Key == k {
		s.withdraw(r, protocol.ReasonCancelled)
	}
}

// withdraw takes back what has not been dispatched and stops what has. A close
// under way cannot be stopped in the middle.
func (s *stepper) withdraw(r *runningOp, why protocol.Reason) {
	if r.withdrawn == "" {
		r.withdrawn = why
	}
	if (r.stage == resolving || r.stage == running) && r.op.Request.Method != protocol.MethodClose && !r.revoked {
		r.revoked = true
		s.do(Revoke{Key: r.op.Key, Reason: why})
	}
}

// fence closes admission and empties the queue. What is past the queue is
// withdrawn and gets its outcome by Settle.
func (s *stepper) fence(e Fence) {
	s.open, s.reason, s.message = false, e.Reason, e.Message
	s.closed = e.Reason == protocol.ReasonResourceClosed
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
	if r := s.run; r != nil && r.op.Request.Method != protocol.MethodClose {
		s.withdraw(r, protocol.ReasonFenced)
	}
}

// settle makes sure that everything of the old generation gets its outcome.
// Final may come more than once: the first ends what still runs.
func (s *stepper) settle(e Settle) {
	s.settling, s.next = true, e.Gen
	r := s.run
	if r == nil {
		return // advance answers
	}
	if r.op.Request.Method == protocol.MethodClose {
		s.settled() // it goes on by itself: it gives no input that could come late
		return
	}
	switch r.stage {
	case resolving:
		s.run = nil
		s.answerWithdrawn(r.op, protocol.ReasonStaleGeneration)
	case running:
		if e.Final {
			s.endUncertain(protocol.ReasonFenced)
		}
	default:
		// Only the store keeps it: withdrawn it can never be dispatched, or its
		// outcome is known. A store that hangs holds up the queue, never the fence.
		if e.Final {
			s.settled()
		}
	}
}

func (s *stepper) settled() {
	s.settling = false
	s.do(Settled{Gen: s.next})
}

func (s *stepper) endUncertain(why protocol.Reason) {
	rc := s.receipt(s.run, protocol.StateUncertain, why, why.Sentence())
	rc.ObserveRequired = true
	s.disturb()
	s.require()
	s.end(rc)
}

func (s *stepper) openFor(e Open) {
	if e.Gen <= s.gen {
		return // a generation that was open once is never opened again
	}
	s.gen, s.open, s.closed, s.opening, s.settling = e.Gen, true, false, false, false
	s.document = e.Document
	s.reason, s.message = "", ""
	s.disturb()
	if e.Restarted {
		s.require()
	}
}

// expire ends what has waited or run too long, and leases nobody uses.
func (s *stepper) expire() {
	kept := s.queue[:0:0]
	for _, op := range s.queue {
		if !s.refuseLate(op) {
			kept = append(kept, op)
		}
	}
	s.queue = kept
	if r := s.run; r != nil && !r.op.Until.IsZero() && s.now.After(r.op.Until.Add(Grace)) {
		switch r.stage {
		case resolving:
			s.suspect(r, protocol.ReasonPageUnresponsive, "looking for the element did not end")
			s.run = nil
			if r.withdrawn != "" {
				s.answerWithdrawn(r.op, r.withdrawn)
			} else {
				s.refuse(r.op, protocol.ReasonDeadline, "The target did not answer in time while the element was looked for; nothing happened.")
			}
		case running:
			s.suspect(r, protocol.ReasonAnswerLost, "the operation did not end")
			s.endUncertain(protocol.ReasonAnswerLost)
		}
	}
	s.leaseOf()
}

// suspect has the incarnation fenced. Until the supervisor has done so nothing
// more goes to it: what it still holds could come in between.
func (s *stepper) suspect(r *runningOp, why protocol.Reason, msg string) {
	if r.gen != s.gen || r.op.Request.Method == protocol.MethodClose {
		return // fenced already, or nothing that a fence could help
	}
	if s.open {
		s.open, s.reason, s.message = false, protocol.ReasonRestoring, protocol.ReasonRestoring.Sentence()
	}
	s.do(Suspect{Gen: r.gen, Reason: why, Message: msg})
}
