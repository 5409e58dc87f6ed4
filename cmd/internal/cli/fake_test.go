package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"reins/protocol"
)

// recorder is a session that answers from its fields and keeps what was asked.
type recorder struct {
	mu        sync.Mutex
	requests  []protocol.Request
	reads     []protocol.ReadRequest
	cancelled []protocol.OperationID
	asked     []string

	records []protocol.Record
	answer  func(context.Context, protocol.Request) (protocol.Receipt, error)
	reply   protocol.ReadReply
	problem error
	watched func(watcher)
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, what)
}

func (r *recorder) Do(ctx context.Context, q protocol.Request) (protocol.Receipt, error) {
	r.mu.Lock()
	r.requests = append(r.requests, q)
	r.mu.Unlock()
	if r.answer != nil {
		return r.answer(ctx, q)
	}
	return protocol.Receipt{OperationID: q.OperationID, Resource: q.Resource, Method: q.Method, State: protocol.StateApplied, Effect: protocol.EffectDelivered}, nil
}

func (r *recorder) Cancel(_ context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelled = append(r.cancelled, id)
	return protocol.Receipt{OperationID: id, State: protocol.StateCancelled}, r.problem
}

func (r *recorder) Receipt(_ context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	return protocol.Receipt{OperationID: id, State: protocol.StateUncertain, ObserveRequired: true}, r.problem
}

func (r *recorder) Read(_ context.Context, q protocol.ReadRequest) (protocol.ReadReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, q)
	return r.reply, r.problem
}

func (r *recorder) Release(_ context.Context, id protocol.ResourceID) error {
	r.note("release " + string(id))
	return r.problem
}

func (r *recorder) Restart(_ context.Context, id protocol.ResourceID) error {
	r.note("restart " + string(id))
	return r.problem
}

func (r *recorder) Resources(context.Context) ([]protocol.Record, error) {
	return r.records, r.problem
}

func (r *recorder) History(_ context.Context, q protocol.HistoryQuery) ([]protocol.HistoryEntry, error) {
	return []protocol.HistoryEntry{{Event: "receipt", Resource: q.Resource, Generation: 1}}, r.problem
}

func (r *recorder) Demand(_ context.Context, d protocol.Demand) error {
	r.note("demand " + string(d.Resource))
	return r.problem
}

func (r *recorder) Status(context.Context) (protocol.Status, error) {
	return protocol.Status{Version: "1", Store: "ok", Browser: "up"}, r.problem
}

func (r *recorder) Watch(ctx context.Context, _ protocol.ResourceID, w watcher) error {
	if r.watched != nil {
		r.watched(w)
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (r *recorder) Close() { r.note("close") }

// ran is what one command line came to.
type result struct {
	code     int
	out, err string
	*recorder
}

// command runs a command line against a recorder that knows pg_1 at generation 3.
func command(t *testing.T, r *recorder, stdin string, args ...string) result {
	t.Helper()
	if r == nil {
		r = &recorder{}
	}
	if r.records == nil {
		r.records = []protocol.Record{{ID: "pg_1", Kind: protocol.KindPage, Generation: 3, Lifecycle: protocol.LifecycleReady}}
	}
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(stdin), out: &out, err: &err}
	a.dial = func(context.Context, string, string, string) (session, error) { return r, nil }
	code := a.run(t.Context(), args)
	return result{code, out.String(), err.String(), r}
}
