package nats

import (
	"context"
	"errors"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// answerWithin is how long questions take that have no deadline of their own.
const answerWithin = 15 * time.Second

// clientMargin is how much longer than a request's expiry a client waits for
// its answer: a bit longer than the daemon may take to give it.
const clientMargin = AnswerMargin + 3*time.Second

// question is what has to be known of a kind of request to send it and to say
// what it means that no answer came.
type question struct {
	pattern string
	changes bool          // something may have happened where no answer came
	within  time.Duration // it expires so much later; 0 takes answerWithin
	margin  time.Duration // the answer is waited for so much longer
}

// ask sends one request once, and decodes its answer.
func ask[T any](ctx context.Context, c *Client, q question, body []byte) (answer T, image []byte, p *protocol.Problem) {
	var none T
	if len(body) > protocol.MaxRequestBytes {
		return none, nil, problemOf(protocol.ReasonTooLarge, "The message has %d bytes; at most %d are taken. Nothing was sent.", len(body), protocol.MaxRequestBytes)
	}
	if ctx.Err() != nil {
		return none, nil, ended(ctx)
	}
	l, p := c.ready(ctx)
	if p != nil {
		return none, nil, p
	}
	within := q.expiry(ctx)
	wait, cancel := context.WithTimeout(ctx, within+q.margin)
	defer cancel()
	m, how, err := l.ask(wait, withOwner(q.pattern, c.Owner), c.header(l, time.Now().Add(within)), body)
	if how != answered {
		return none, nil, q.silence(ctx, how, err)
	}
	answer, image, err = decodeAnswer[T](m.Header, m.Data)
	if err != nil {
		return none, nil, q.silence(ctx, maybeSent, err)
	}
	if reasonOf(answer) == protocol.ReasonStaleConnection {
		c.forget(l.connection)
	}
	return answer, image, nil
}

// expiry is how long from now the request may still be begun. Where the caller
// waits less than that, the daemon is given a bit less than the caller waits, so
// that its answer comes in time.
func (q question) expiry(ctx context.Context) time.Duration {
	within := q.within
	if within == 0 {
		within = answerWithin
	}
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		within = min(within, left-min(left/10, time.Second))
	}
	return max(within, time.Millisecond)
}

// silence says what it means that no answer came (I3).
func (q question) silence(ctx context.Context, how sent, err error) *protocol.Problem {
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch {
	case how == notSent && ctx.Err() != nil:
		return ended(ctx)
	case how == notSent && errors.Is(err, gonats.ErrMaxPayload):
		return problemOf(protocol.ReasonTooLarge, "The message is over the limit of the bus. Nothing was sent.")
	case how == notSent:
		return problemOf(protocol.ReasonDaemonUnreachable, "The request could not be sent (%v). Nothing happened.", err)
	case how == unheard:
		return problemOf(protocol.ReasonDaemonUnreachable, "The bus is there and no daemon serves on it: it is starting or stopping. Nothing happened; try again.")
	case q.changes:
		return problemOf(protocol.ReasonAnswerLost,
			"The request was sent and no answer came (%v). It may or may not have had its effect, and it is not sent again. Ask for the receipt by the operation's id, and observe.", err)
	case late:
		return problemOf(protocol.ReasonDeadline, "The daemon did not answer in time. Nothing was changed by asking.")
	}
	return problemOf(protocol.ReasonDaemonUnreachable, "The connection broke before the answer came (%v). Nothing was changed by asking.", err)
}

// ended says why a context ended before anything was sent.
func ended(ctx context.Context) *protocol.Problem {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return problemOf(protocol.ReasonDeadline, "The time was over before the request could be sent. Nothing happened.")
	}
	return problemOf(protocol.ReasonCancelled, "The caller gave up before the request could be sent. Nothing happened.")
}

// reasonOf is the reason code of an answer of any type.
func reasonOf(answer any) protocol.Reason {
	var p *protocol.Problem
	switch a := answer.(type) {
	case protocol.Receipt:
		return a.Reason
	case protocol.ReadReply:
		p = a.Problem
	case problemAnswer:
		p = a.Problem
	case resourcesAnswer:
		p = a.Problem
	case historyAnswer:
		p = a.Problem
	case statusAnswer:
		p = a.Problem
	}
	if p == nil {
		return ""
	}
	return p.Reason
}

// asError keeps a nil problem from becoming an error that is not nil.
func asError(p *protocol.Problem) error {
	if p == nil {
		return nil
	}
	return p
}
