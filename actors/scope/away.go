package scope

import "reins/protocol"

// TurnAway answers what a scope that is over did not receive. Nothing of it happened.
func TurnAway(m any) {
	switch m := m.(type) {
	case Do:
		m.Reply <- restarted(m.Op)
	case Lease:
		m.Reply <- gone()
	case BeginLook:
		m.Reply <- Looked{}
	case EndLook:
		m.Reply <- Minted{Stale: true}
	}
}

func gone() *protocol.Problem {
	return &protocol.Problem{Reason: protocol.ReasonScopeRestarted, Message: protocol.ReasonScopeRestarted.Sentence()}
}

// restarted refuses an operation that died with its scope before anything of it
// was recorded.
func restarted(op Op) Answer {
	return Answer{Key: op.Key, Receipt: protocol.Receipt{OperationID: op.Key.ID, Resource: op.Request.Resource, Generation: op.Request.Generation,
		Method: op.Request.Method, State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1),
		Reason: protocol.ReasonScopeRestarted, Message: protocol.ReasonScopeRestarted.Sentence()}}
}
