package scope

import (
	"time"

	"reins/protocol"
)

// die answers everything the scope holds, when it panicked or is stopped:
// nothing that waits is left without an answer.
func (a *shell) die() {
	if a.dead {
		return
	}
	a.dead = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.revoke(protocol.ReasonScopeRestarted)
	for _, c := range a.undone {
		if c, ok := c.(Answer); ok {
			a.answer(c) // it was decided before the panic
		}
	}
	if r := a.st.run; r != nil {
		a.endDead(r)
	}
	for key, ch := range a.replies {
		ch <- restarted(Op{Key: key, Request: protocol.Request{Resource: a.Resource, Generation: a.st.gen}})
	}
	for _, ch := range a.told {
		ch <- gone()
	}
	for _, ch := range a.looks {
		ch <- Looked{}
	}
	for _, m := range a.minted {
		m.reply <- Minted{Stale: true}
	}
	a.replies, a.told, a.looks, a.minted = nil, nil, nil, nil
}

// endDead gives the operation past the queue its outcome. What gave no input is
// cancelled, the rest uncertain; an outcome that was being stored stays what it
// is. It waits for what the store was asked already, outside of the mailbox.
func (a *shell) endDead(r *runningOp) {
	if r.stage == resolving || (r.stage == admitting && a.admitted == nil) {
		return // nothing is recorded: refused with the rest
	}
	ch := a.replies[r.op.Key]
	delete(a.replies, r.op.Key)
	rc := r.receipt
	if r.stage != ending {
		state, message := protocol.StateCancelled, ""
		if r.stage == running && a.mayHaveGiven(r) {
			// The reason's own sentence says that nothing happened.
			state, message = protocol.StateUncertain, "The scope of this target ended in the middle of it: it may or may not have had its effect. Observe; it is not sent again."
		}
		rc = (&stepper{State: &a.st, now: time.Now()}).receipt(r, state, protocol.ReasonScopeRestarted, message)
		rc.ObserveRequired = state == protocol.StateUncertain
	}
	op, stage, admitted, finished := r.op, r.stage, a.admitted, a.finished
	a.work(func() {
		ans := Answer{Key: op.Key, Receipt: unstored(rc)} // stands if the store panics
		defer func() {
			if ch != nil {
				ch <- ans
			}
		}()
		if stage == admitting {
			if problem := <-admitted; problem != nil {
				ans = restarted(op)
				return
			}
		}
		if stage == ending && finished != nil {
			ans.Recorded = <-finished
		} else {
			ans.Recorded = a.Store.Finish(op, rc) == nil
		}
		if ans.Recorded {
			ans.Receipt = rc
		}
	})
}

// mayHaveGiven reports whether a byte of the running operation's input may have
// left. Its permit is revoked, so that none leaves from now on.
func (a *shell) mayHaveGiven(r *runningOp) bool {
	return r.op.Request.Method == protocol.MethodClose || (a.permit != nil && a.permit.used())
}

// unstored is what is said of an outcome that the store could not take.
func unstored(rc protocol.Receipt) protocol.Receipt {
	rc.State, rc.Reason, rc.Message = protocol.StateUncertain, protocol.ReasonOutcomeNotStored, protocol.ReasonOutcomeNotStored.Sentence()
	rc.Effect, rc.ObservationToken, rc.ObserveRequired = "", "", true
	return rc
}
