package nats

import (
	"context"
	"time"

	"reins/protocol"
)

// answer is what a request is answered with.
type answer struct {
	body  any
	image []byte
}

// verb is one kind of request.
type verb struct {
	pattern string
	// hello has no connection yet, so it needs no headers.
	hello bool
	// quiet may be sent without a reply subject.
	quiet bool
	// light ones answer at once, so they have places of their own: a cancel or
	// a hello comes through where everything else is full.
	light bool
	// margin is how much longer than the expiry the handler may take: it has
	// deadlines of its own, and its answer is worth more than ours.
	margin time.Duration
	// refuse says why the handler was not called.
	refuse func(raw []byte, p *protocol.Problem) answer
	// broken answers for a handler that was called and panicked.
	broken func(raw []byte) answer
	// call decodes the body and calls the handler. raw is within the limit.
	call func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer
}

// AnswerMargin is how much longer than a write's or look's own deadline the
// daemon may take to answer it; the client waits 3 s more than that.
const AnswerMargin = 5 * time.Second

// verbs are served, each on its own subscription.
var verbs = []*verb{
	{pattern: SubjectHello, hello: true, light: true, refuse: refuseHello, broken: brokenHello, call: callHello},
	{pattern: SubjectAlive, quiet: true, light: true, refuse: refuseAny, broken: brokenAny, call: message(func(_ context.Context, h protocol.Handler, c protocol.Caller, _ noMessage) any {
		h.Alive(c)
		return problemAnswer{}
	})},
	{pattern: SubjectBye, quiet: true, light: true, refuse: refuseAny, broken: brokenAny, call: message(func(_ context.Context, h protocol.Handler, c protocol.Caller, _ noMessage) any {
		h.Bye(c)
		return problemAnswer{}
	})},
	{pattern: SubjectDo, margin: AnswerMargin, refuse: refuseWrite, broken: brokenWrite, call: func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
		return answer{body: h.Do(ctx, c, raw)}
	}},
	{pattern: SubjectCancel, light: true, refuse: refuseOperation, broken: brokenCancel, call: operation(protocol.Handler.Cancel)},
	{pattern: SubjectReceipt, refuse: refuseOperation, broken: brokenReceipt, call: operation(protocol.Handler.Receipt)},
	{pattern: SubjectRead, margin: AnswerMargin, refuse: refuseAny, broken: brokenAny, call: func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
		r := h.Read(ctx, c, raw)
		return answer{body: r, image: r.ImageBytes}
	}},
	{pattern: SubjectClaim, refuse: refuseAny, broken: brokenAny, call: onResource(protocol.Handler.Claim)},
	{pattern: SubjectRelease, light: true, refuse: refuseAny, broken: brokenAny, call: onResource(protocol.Handler.Release)},
	{pattern: SubjectRestart, refuse: refuseAny, broken: brokenAny, call: onResource(protocol.Handler.Restart)},
	{pattern: SubjectResources, refuse: refuseAny, broken: brokenAny, call: message(func(ctx context.Context, h protocol.Handler, c protocol.Caller, _ noMessage) any {
		records, p := h.Resources(ctx, c)
		return resourcesAnswer{records, p}
	})},
	{pattern: SubjectHistory, refuse: refuseAny, broken: brokenAny, call: message(func(ctx context.Context, h protocol.Handler, c protocol.Caller, q protocol.HistoryQuery) any {
		entries, p := h.History(ctx, c, q)
		return historyAnswer{entries, p}
	})},
	{pattern: SubjectDemand, refuse: refuseAny, broken: brokenAny, call: message(func(ctx context.Context, h protocol.Handler, c protocol.Caller, d protocol.Demand) any {
		return problemAnswer{h.Demand(ctx, c, d)}
	})},
	{pattern: SubjectStatus, light: true, refuse: refuseAny, broken: brokenAny, call: message(func(ctx context.Context, h protocol.Handler, c protocol.Caller, _ noMessage) any {
		return h.Status(ctx, c)
	})},
}

// message makes a call of a function that takes a decoded body.
func message[T any](do func(context.Context, protocol.Handler, protocol.Caller, T) any) func(context.Context, protocol.Handler, protocol.Caller, []byte) answer {
	return func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
		body, p := decodeBody[T](raw)
		if p != nil {
			return refuseAny(raw, p)
		}
		return answer{body: do(ctx, h, c, body)}
	}
}

func operation(do func(protocol.Handler, context.Context, protocol.Caller, protocol.OperationID) protocol.Receipt) func(context.Context, protocol.Handler, protocol.Caller, []byte) answer {
	return func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
		body, p := decodeBody[operationMessage](raw)
		if p == nil {
			p = protocol.CheckID("operation_id", string(body.OperationID))
		}
		if p != nil {
			return refuseOperation(raw, p)
		}
		return answer{body: do(h, ctx, c, body.OperationID)}
	}
}

func onResource(do func(protocol.Handler, context.Context, protocol.Caller, protocol.ResourceID) *protocol.Problem) func(context.Context, protocol.Handler, protocol.Caller, []byte) answer {
	return func(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
		body, p := decodeBody[resourceMessage](raw)
		if p == nil {
			p = protocol.CheckID("resource", string(body.Resource))
		}
		if p != nil {
			return refuseAny(raw, p)
		}
		return answer{body: problemAnswer{do(h, ctx, c, body.Resource)}}
	}
}

func callHello(ctx context.Context, h protocol.Handler, c protocol.Caller, raw []byte) answer {
	body, p := decodeBody[protocol.Hello](raw)
	if p != nil {
		return refuseHello(raw, p)
	}
	return answer{body: h.Hello(ctx, c.Owner, body)}
}

// decodeBody reads a body; none at all is {}.
func decodeBody[T any](raw []byte) (T, *protocol.Problem) {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	return protocol.DecodeMessage[T](raw)
}

func refuseAny(_ []byte, p *protocol.Problem) answer { return answer{body: problemAnswer{p}} }

func brokenAny([]byte) answer { return refuseAny(nil, problemOf(protocol.ReasonInternal, "")) }

func refuseHello(_ []byte, p *protocol.Problem) answer {
	return answer{body: protocol.HelloReply{Version: protocol.Version, Problem: p}}
}

func brokenHello(raw []byte) answer { return refuseHello(raw, problemOf(protocol.ReasonInternal, "")) }

// refuseWrite names the ids of a write as far as they can be read.
func refuseWrite(raw []byte, p *protocol.Problem) answer {
	r, _ := protocol.DecodeRequest(raw)
	return answer{body: protocol.Receipt{OperationID: r.OperationID, Resource: r.Resource, Generation: r.Generation, Method: r.Method,
		State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1), Reason: p.Reason, Message: p.Message}}
}

// brokenWrite is for a handler that panicked in a write: what it had done by
// then is not known here (I4).
func brokenWrite(raw []byte) answer {
	r, _ := protocol.DecodeRequest(raw)
	return answer{body: protocol.Receipt{OperationID: r.OperationID, Resource: r.Resource, Generation: r.Generation, Method: r.Method,
		State: protocol.StateUncertain, Reason: protocol.ReasonInternal, ObserveRequired: true,
		Message: "A fault inside reins ended the request; the log has it. It may or may not have had its effect: ask for the receipt by its id, and observe."}}
}

func refuseOperation(raw []byte, p *protocol.Problem) answer {
	return answer{body: protocol.Receipt{OperationID: idIn(raw), State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1),
		Reason: p.Reason, Message: p.Message}}
}

// brokenCancel does not say refused either: the operation may have been stopped.
func brokenCancel(raw []byte) answer {
	return answer{body: protocol.Receipt{OperationID: idIn(raw), State: protocol.StateUncertain, Reason: protocol.ReasonInternal,
		Message: "A fault inside reins ended the request; the log has it. Whether the operation was cancelled is not known: ask for its receipt."}}
}

func brokenReceipt(raw []byte) answer {
	return refuseOperation(raw, problemOf(protocol.ReasonInternal, ""))
}

// idIn reads the operation id of a message, if it is well-formed.
func idIn(raw []byte) protocol.OperationID {
	body, p := decodeBody[operationMessage](raw)
	if p != nil || protocol.CheckID("operation_id", string(body.OperationID)) != nil {
		return ""
	}
	return body.OperationID
}
