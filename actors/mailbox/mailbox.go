package mailbox

import "github.com/asynkron/protoactor-go/actor"

// Answering makes mailboxes that hand what a stopped actor did not receive to
// turnAway, which must not block or panic. It is for actors without children:
// those have stopped when they are told to.
func Answering(turnAway func(message any)) actor.MailboxProducer {
	return func() actor.Mailbox { return &answering{Mailbox: actor.Unbounded()(), turnAway: turnAway} }
}

// AnswerDeadLetters hands what is sent to actors that are gone to each turnAway.
// Call it once a system.
func AnswerDeadLetters(s *actor.ActorSystem, turnAway ...func(message any)) {
	s.EventStream.Subscribe(func(ev any) {
		dead, ok := ev.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		for _, f := range turnAway {
			f(actor.UnwrapEnvelopeMessage(dead.Message))
		}
	})
}

type answering struct {
	actor.Mailbox
	turnAway func(any)
}

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
		l.over = true
		// The mailbox of an actor that panicked is suspended and keeps what is in it.
		l.mailbox.PostSystemMessage(&actor.ResumeMailbox{})
	}
}

// InvokeUserMessage implements actor.MessageInvoker.
func (l *lastWords) InvokeUserMessage(m any) {
	if l.over {
		l.mailbox.turnAway(actor.UnwrapEnvelopeMessage(m))
		return
	}
	l.MessageInvoker.InvokeUserMessage(m)
}
