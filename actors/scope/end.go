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
	if r := a.st.run; r != nil {
		a.endDead(r)
	}
	for key, ch := range a.replies {
		ch <- Answer{Key: key, Receipt: protocol.Receipt{OperationID: key.ID, Resource: a.Resource, Generation: a.st.gen,
			State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1),
			Reason: protocol.ReasonScopeRestarted, Message: protocol.ReasonScopeRestarted.Sentence()}}
	}
	a.replies = nil
	gone := &protocol.Problem{Reason: protocol.ReasonScopeRestarted, Message: protocol.ReasonScopeRestarted.Sentence()}
	for _, ch := range a.told {
		ch <- gone
	}
	for _, ch := range a.looks {
		ch <- Looked{}
	}
	for _, m := range a.minted {
		m.reply <- Minted{Stale: true}
	}
	a.told, a.looks, a.minted = nil, nil, nil
}

// endDead gives the operation past the queue its outcome. What was not
// dispatched is cancelled, the rest uncertain; a receipt that was being stored
// stays what it is.
func (a *shell) endDead(r *runningOp) {
	ch := a.replies[r.op.Key]
	delete(a.replies, r.op.Key)
	if r.stage == resolving {
		a.replies[r.op.Key] = ch // nothing recorded: refused with the rest
		return
	}
	rc := r.receipt
	if r.stage != ending {
		state := protocol.StateUncertain
		if r.stage == admitting {
			// Whether the admission is stored is open; that nothing was sent is not.
			state = protocol.StateCancelled
		}
		rc = (&stepper{State: &a.st, now: time.Now()}).receipt(r, state, protocol.ReasonScopeRestarted, "")
		rc.ObserveRequired = state == protocol.StateUncertain
	}
	key, op := r.op.Key, r.op
	a.work(func() {
		recorded := a.Store.Finish(op, rc) == nil
		if !recorded {
			rc.State, rc.Reason, rc.Message = protocol.StateUncertain, protocol.ReasonOutcomeNotStored, protocol.ReasonOutcomeNotStored.Sentence()
		}
		if ch != nil {
			ch <- Answer{Key: key, Receipt: rc, Recorded: recorded}
		}
	})
}

// turnAway answers what arrives after the end.
func (a *shell) turnAway(m any) {
	gone := &protocol.Problem{Reason: protocol.ReasonScopeRestarted, Message: protocol.ReasonScopeRestarted.Sentence()}
	switch m := m.(type) {
	case Do:
		m.Reply <- Answer{Key: m.Op.Key, Receipt: protocol.Receipt{OperationID: m.Op.Key.ID, Resource: a.Resource, Generation: m.Op.Request.Generation,
			State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1), Reason: gone.Reason, Message: gone.Message}}
	case Lease:
		m.Reply <- gone
	case BeginLook:
		m.Reply <- Looked{}
	case EndLook:
		m.Reply <- Minted{Stale: true}
	}
}
