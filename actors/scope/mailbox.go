package scope

import (
	"github.com/asynkron/protoactor-go/actor"

	"reins/protocol"
)

// answering is a scope's mailbox. The library drops, without a word, what is
// still unread when an actor stops or comes while it does; whoever sent it would
// wait for ever. Here it is answered.
type answering struct{ actor.Mailbox }

func newMailbox() actor.Mailbox { return &answering{actor.Unbounded()()} }

// RegisterHandlers implements actor.Mailbox.
func (m *answering) RegisterHandlers(i actor.MessageInvoker, d actor.Dispatcher) {
	m.Mailbox.RegisterHandlers(&lastWords{MessageInvoker: i, mailbox: m}, d)
}

// lastWords passes messages to the actor until it has stopped, and then turns
// them away. Only one goroutine at a time runs a mailbox.
type lastWords struct {
	actor.MessageInvoker
	mailbox *answering
	over    bool
}

// InvokeSystemMessage implements actor.MessageInvoker.
func (l *lastWords) InvokeSystemMessage(m any) {
	l.MessageInvoker.InvokeSystemMessage(m)
	if _, stop := m.(*actor.Stop); stop {
		l.over = true // a scope has no children to wait for
		// The mailbox of an actor that panicked is suspended and keeps what is in it.
		l.mailbox.PostSystemMessage(&actor.ResumeMailbox{})
	}
}

// InvokeUserMessage implements actor.MessageInvoker.
func (l *lastWords) InvokeUserMessage(m any) {
	if l.over {
		turnAway(actor.UnwrapEnvelopeMessage(m))
		return
	}
	l.MessageInvoker.InvokeUserMessage(m)
}

// AnswerDeadLetters turns away what is sent to a scope that is over. Call it once
// a system.
func AnswerDeadLetters(s *actor.ActorSystem) {
	s.EventStream.Subscribe(func(ev any) {
		if dead, ok := ev.(*actor.DeadLetterEvent); ok {
			turnAway(actor.UnwrapEnvelopeMessage(dead.Message))
		}
	})
}

// turnAway answers what arrives after the end. Nothing of it happened.
func turnAway(m any) {
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
