package nats

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"reins/protocol"
)

// Do sends one write, once, and returns its receipt; a message that is no text
// or over the limit is refused here. The error is a *[protocol.Problem] and means
// that there is no receipt: answer_lost that the write was sent and its outcome
// is unknown (ask for it with Receipt), everything else that nothing happened.
func (c *Client) Do(ctx context.Context, r protocol.Request) (protocol.Receipt, error) {
	raw, p := encodeRequest(r)
	if p != nil {
		return refused(r, p), nil
	}
	return c.write(ctx, r, raw)
}

// DoRaw is Do with a request that is JSON already.
func (c *Client) DoRaw(ctx context.Context, raw []byte) (protocol.Receipt, error) {
	r, p := protocol.DecodeRequest(raw)
	if p != nil && (p.Reason == protocol.ReasonTooLarge || p.Reason == protocol.ReasonNotText) {
		return refused(r, p), nil
	}
	return c.write(ctx, r, raw) // other refusals are the daemon's to say: it may know more than we do
}

// write sends a write. Of r only the method and the deadline count, which say
// how long it can take.
func (c *Client) write(ctx context.Context, r protocol.Request, raw []byte) (protocol.Receipt, error) {
	r.DeadlineMS = inRange(r.DeadlineMS)
	queue, run := protocol.Deadline(r)
	within := queue + run
	if r.DeadlineMS > 0 {
		within = run
	}
	return c.receipt(ctx, question{pattern: SubjectDo, changes: true, within: within, margin: clientMargin}, raw)
}

// inRange leaves a deadline that is none to the daemon to refuse: it must not
// make the request come too late for that.
func inRange(ms int64) int64 {
	if ms < 0 || ms > protocol.MaxDeadline.Milliseconds() {
		return 0
	}
	return ms
}

// Cancel asks that an operation of this owner stops, and returns what came of it.
func (c *Client) Cancel(ctx context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	return c.operation(ctx, question{pattern: SubjectCancel, changes: true}, id)
}

// Receipt returns the recorded receipt of an operation of this owner, or refused/unknown_operation.
func (c *Client) Receipt(ctx context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	return c.operation(ctx, question{pattern: SubjectReceipt}, id)
}

// Read looks at a target. What is wrong with the looking itself is in the
// reply's Problem; the error means that there is no reply.
func (c *Client) Read(ctx context.Context, r protocol.ReadRequest) (protocol.ReadReply, error) {
	if p := checkTexts(string(r.Resource), string(r.Method), string(r.Arguments)); p != nil {
		return protocol.ReadReply{Problem: p}, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return protocol.ReadReply{Problem: problemOf(protocol.ReasonBadArguments, "The arguments are not JSON: %v.", err)}, nil
	}
	r.DeadlineMS = inRange(r.DeadlineMS)
	q := question{pattern: SubjectRead, within: protocol.DeadlineOfRead(r), margin: clientMargin}
	reply, image, p := ask[protocol.ReadReply](ctx, c, q, raw)
	if p != nil {
		return protocol.ReadReply{}, p
	}
	reply.ImageBytes = image
	return reply, nil
}

// Claim takes the lease of a Page.
func (c *Client) Claim(ctx context.Context, id protocol.ResourceID) error {
	return c.onResource(ctx, SubjectClaim, id)
}

// Release gives the lease of a Page up.
func (c *Client) Release(ctx context.Context, id protocol.ResourceID) error {
	return c.onResource(ctx, SubjectRelease, id)
}

// Restart starts a failed resource again, or a ready one anew.
func (c *Client) Restart(ctx context.Context, id protocol.ResourceID) error {
	return c.onResource(ctx, SubjectRestart, id)
}

// Resources lists the records of all resources.
func (c *Client) Resources(ctx context.Context) ([]protocol.Record, error) {
	a, _, p := ask[resourcesAnswer](ctx, c, question{pattern: SubjectResources}, nil)
	return a.Resources, firstOf(p, a.Problem)
}

// History returns what happened, newest last.
func (c *Client) History(ctx context.Context, q protocol.HistoryQuery) ([]protocol.HistoryEntry, error) {
	a, p := askWith[historyAnswer](ctx, c, question{pattern: SubjectHistory}, q)
	return a.History, firstOf(p, a.Problem)
}

// Demand asks for preview frames of a resource for a while; Watch brings them.
func (c *Client) Demand(ctx context.Context, d protocol.Demand) error {
	a, p := askWith[problemAnswer](ctx, c, question{pattern: SubjectDemand}, d)
	return firstOf(p, a.Problem)
}

// Status returns how the daemon is.
func (c *Client) Status(ctx context.Context) (protocol.Status, error) {
	a, _, p := ask[statusAnswer](ctx, c, question{pattern: SubjectStatus}, nil)
	return a.Status, firstOf(p, a.Problem)
}

func (c *Client) onResource(ctx context.Context, pattern string, id protocol.ResourceID) error {
	a, p := askWith[problemAnswer](ctx, c, question{pattern: pattern, changes: true}, resourceMessage{id})
	return firstOf(p, a.Problem)
}

func (c *Client) operation(ctx context.Context, q question, id protocol.OperationID) (protocol.Receipt, error) {
	if p := protocol.CheckID("operation_id", string(id)); p != nil {
		return refused(protocol.Request{}, p), nil
	}
	raw, err := json.Marshal(operationMessage{id})
	if err != nil {
		return refused(protocol.Request{}, problemOf(protocol.ReasonBadRequest, "%v.", err)), nil
	}
	return c.receipt(ctx, q, raw)
}

// receipt asks for a receipt. An answer that is none is as good as no answer.
func (c *Client) receipt(ctx context.Context, q question, raw []byte) (protocol.Receipt, error) {
	rc, _, p := ask[protocol.Receipt](ctx, c, q, raw)
	if p == nil && rc.State == "" {
		p = q.silence(ctx, maybeSent, errAnswer)
	}
	if p != nil {
		return protocol.Receipt{}, p
	}
	return rc, nil
}

// askWith asks with a body that package protocol or this one has a type for.
func askWith[T any](ctx context.Context, c *Client, q question, body any) (T, *protocol.Problem) {
	raw, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, problemOf(protocol.ReasonBadRequest, "The message cannot be written as JSON: %v.", err)
	}
	a, _, p := ask[T](ctx, c, q, raw)
	return a, p
}

// firstOf is the problem of the asking, or else the one in the answer.
func firstOf(asking, inAnswer *protocol.Problem) error {
	if asking != nil {
		return asking
	}
	return asError(inAnswer)
}

// encodeRequest writes a request as JSON. It refuses what is over the limit, and
// what the encoder would repair: text that is not UTF-8.
func encodeRequest(r protocol.Request) ([]byte, *protocol.Problem) {
	if p := checkTexts(string(r.OperationID), string(r.Resource), string(r.Method), string(r.Observation), string(r.Arguments)); p != nil {
		return nil, p
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, problemOf(protocol.ReasonBadArguments, "The arguments are not JSON: %v.", err)
	}
	if len(raw) > protocol.MaxRequestBytes {
		return nil, problemOf(protocol.ReasonTooLarge, "The message has %d bytes; at most %d are taken. Send less, or in several operations.", len(raw), protocol.MaxRequestBytes)
	}
	return raw, nil
}

func checkTexts(texts ...string) *protocol.Problem {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return problemOf(protocol.ReasonNotText, "")
		}
	}
	return nil
}

// refused is the receipt of a write that was not sent.
func refused(r protocol.Request, p *protocol.Problem) protocol.Receipt {
	rc := protocol.Receipt{Generation: r.Generation, State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1), Reason: p.Reason, Message: p.Message}
	if protocol.CheckID("", string(r.OperationID)) == nil {
		rc.OperationID = r.OperationID
	}
	if protocol.CheckID("", string(r.Resource)) == nil {
		rc.Resource = r.Resource
	}
	if _, ok := r.Method.Info(); ok {
		rc.Method = r.Method
	}
	return rc
}
