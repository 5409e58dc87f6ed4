package nats_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"reins/protocol"
	"reins/protocol/nats"
	"reins/protocol/nats/embed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the deadline of whatever a test waits for; nothing is timed by it.
const patience = 20 * time.Second

// fake is a handler that keeps what it was asked and answers from its fields.
type fake struct {
	mu     sync.Mutex
	seen   []string // "do alice op-1", in order
	turns  []string // the user turn of each write
	nonces map[string]protocol.OwnerID
	n      int

	// The answers, where they are not the usual ones; see set.
	do      func(context.Context, protocol.Caller, []byte) protocol.Receipt
	read    func(context.Context, protocol.Caller, []byte) protocol.ReadReply
	hello   func(protocol.OwnerID, protocol.Hello) protocol.HelloReply
	records []protocol.Record
	problem *protocol.Problem
}

func (f *fake) note(format string, a ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, fmt.Sprintf(format, a...))
}

// set changes the answers.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// asked lists what begins with a word.
func (f *fake) asked(word string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, s := range f.seen {
		if strings.HasPrefix(s, word+" ") {
			list = append(list, s)
		}
	}
	return list
}

// all is everything that was asked, in order.
func (f *fake) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.seen, ",")
}

// restart forgets every connection, as a new process would.
func (f *fake) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nonces = nil
}

func (f *fake) refusal() *protocol.Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

func (f *fake) known(c protocol.Caller) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nonces[c.Connection] == c.Owner
}

func (f *fake) Hello(_ context.Context, owner protocol.OwnerID, h protocol.Hello) protocol.HelloReply {
	f.mu.Lock()
	hello := f.hello
	f.mu.Unlock()
	if hello != nil {
		return hello(owner, h)
	}
	f.note("hello %s %s", owner, h.Client)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	nonce := fmt.Sprintf("nonce-%d", f.n)
	if f.nonces == nil {
		f.nonces = map[string]protocol.OwnerID{}
	}
	f.nonces[nonce] = owner
	return protocol.HelloReply{Version: protocol.Version, Owner: owner, Connection: nonce, Daemon: "test"}
}

func (f *fake) Alive(c protocol.Caller) { f.note("alive %s", c.Owner) }
func (f *fake) Bye(c protocol.Caller)   { f.note("bye %s", c.Owner) }

func (f *fake) Do(ctx context.Context, c protocol.Caller, raw []byte) protocol.Receipt {
	r, p := protocol.DecodeRequest(raw)
	f.note("do %s %s", c.Owner, r.OperationID)
	f.mu.Lock()
	f.turns = append(f.turns, c.UserTurn)
	do := f.do
	f.mu.Unlock()
	rc := protocol.Receipt{OperationID: r.OperationID, Resource: r.Resource, Generation: r.Generation, Method: r.Method, State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1)}
	switch {
	case do != nil:
		return do(ctx, c, raw)
	case p != nil:
		rc.Reason, rc.Message = p.Reason, p.Message
	case !f.known(c):
		rc.Reason, rc.Message = protocol.ReasonStaleConnection, protocol.ReasonStaleConnection.Sentence()
	default:
		rc.State, rc.Effect, rc.LastAppliedIndex = protocol.StateApplied, protocol.EffectDelivered, protocol.Index(0)
	}
	return rc
}

func (f *fake) Cancel(_ context.Context, c protocol.Caller, id protocol.OperationID) protocol.Receipt {
	f.note("cancel %s %s", c.Owner, id)
	return protocol.Receipt{OperationID: id, State: protocol.StateCancelled}
}

func (f *fake) Receipt(_ context.Context, c protocol.Caller, id protocol.OperationID) protocol.Receipt {
	f.note("receipt %s %s", c.Owner, id)
	return protocol.Receipt{OperationID: id, State: protocol.StateRefused, Reason: protocol.ReasonUnknownOperation}
}

func (f *fake) Read(ctx context.Context, c protocol.Caller, raw []byte) protocol.ReadReply {
	f.note("read %s", c.Owner)
	f.mu.Lock()
	read := f.read
	f.mu.Unlock()
	if read != nil {
		return read(ctx, c, raw)
	}
	return protocol.ReadReply{Verdict: &protocol.Verdict{Holds: true}}
}

func (f *fake) Claim(_ context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	f.note("claim %s %s", c.Owner, id)
	return f.refusal()
}

func (f *fake) Release(_ context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	f.note("release %s %s", c.Owner, id)
	return f.refusal()
}

func (f *fake) Restart(_ context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	f.note("restart %s %s", c.Owner, id)
	return f.refusal()
}

func (f *fake) Resources(context.Context, protocol.Caller) ([]protocol.Record, *protocol.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records, f.problem
}

func (f *fake) History(_ context.Context, c protocol.Caller, q protocol.HistoryQuery) ([]protocol.HistoryEntry, *protocol.Problem) {
	f.note("history %s %d", c.Owner, q.Limit)
	return []protocol.HistoryEntry{{Event: "receipt", Resource: q.Resource, Generation: 1}}, f.refusal()
}

func (f *fake) Demand(_ context.Context, c protocol.Caller, d protocol.Demand) *protocol.Problem {
	f.note("demand %s %s %d", c.Owner, d.Resource, d.Width)
	return f.refusal()
}

func (f *fake) Status(context.Context, protocol.Caller) protocol.Status {
	return protocol.Status{Version: "test", Store: "ok", Resources: map[string]int{"ready": 2}}
}

var _ protocol.Handler = (*fake)(nil)

// world is a bus with a service on it.
type world struct {
	t         testing.TB
	options   embed.Options
	serve     nats.ServeOptions
	handler   *fake
	server    *embed.Server
	bus       *gonats.Conn
	publisher *nats.Publisher
	service   *nats.Service
	log       *safeBuffer
}

func newWorld(t testing.TB, change ...func(*world)) *world {
	t.Helper()
	w := &world{t: t, handler: &fake{}, log: &safeBuffer{}}
	w.options = embed.Options{StateDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(w)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.t.Helper()
	var err error
	if w.server, err = embed.Start(w.options); err != nil {
		w.t.Fatal(err)
	}
	if w.bus, err = w.server.Connect(); err != nil {
		w.t.Fatal(err)
	}
	w.publisher = nats.NewPublisher(w.bus, w.options.Logger)
	o := w.serve
	o.Logger, o.Publisher = w.options.Logger, w.publisher
	if w.service, err = nats.Serve(w.bus, w.handler, o); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Announce(); err != nil {
		w.t.Fatal(err)
	}
	// A restart comes back at the same address.
	w.options.Listen = strings.TrimPrefix(w.server.URL(), "nats://")
}

// stop ends the daemon in order; it may be called twice.
func (w *world) stop() {
	w.t.Helper()
	if w.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.service.Close(ctx); err != nil {
		w.t.Errorf("closing the service: %v", err)
	}
	w.server.Shutdown()
	w.server = nil
}

func (w *world) owner(name string) nats.Credentials {
	w.t.Helper()
	file, err := nats.AddOwner(w.options.StateDir, name)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := nats.ReadCredentials(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) client(owner string) *nats.Client {
	w.t.Helper()
	w.owner(owner)
	return w.dial(nats.ClientOptions{StateDir: w.options.StateDir, Owner: protocol.OwnerID(owner), Name: "test of " + owner})
}

func (w *world) dial(o nats.ClientOptions) *nats.Client {
	w.t.Helper()
	o.Logger = w.options.Logger
	c, err := nats.Dial(limited(w.t), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// raw is a connection of an owner without any of our client's manners. Errors
// that the bus reports by itself go to the channel.
func (w *world) raw(owner string) (*gonats.Conn, chan error) {
	w.t.Helper()
	c := w.owner(owner)
	errs := make(chan error, 64)
	nc, err := gonats.Connect(w.server.URL(), gonats.UserInfo(c.User, c.Password), gonats.CustomInboxPrefix(nats.InboxPrefix(c.Owner)),
		gonats.ErrorHandler(func(_ *gonats.Conn, _ *gonats.Subscription, err error) { errs <- err }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc, errs
}

// headers are those of a good request of a raw connection.
func headers(expires time.Time) gonats.Header {
	return gonats.Header{nats.HeaderVersion: {"1"}, nats.HeaderConnection: {"nonce-raw"}, nats.HeaderExpires: {fmt.Sprint(expires.UnixMilli())}}
}

// ask is a request of a raw connection, answered by a receipt.
func ask(t testing.TB, nc *gonats.Conn, subject string, h gonats.Header, body []byte) protocol.Receipt {
	t.Helper()
	m, err := nc.RequestMsgWithContext(limited(t), &gonats.Msg{Subject: subject, Header: h, Data: body})
	if err != nil {
		t.Fatal(err)
	}
	var rc protocol.Receipt
	if err := json.Unmarshal(m.Data, &rc); err != nil {
		t.Fatalf("%v: %s", err, m.Data)
	}
	return rc
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// reload is a write that is as it should be.
func reload(id string) protocol.Request {
	return protocol.Request{OperationID: protocol.OperationID(id), Resource: "pg_1", Generation: 1, Method: protocol.MethodReload}
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// applied sends a write that must be applied.
func applied(t testing.TB, c *nats.Client, id string) {
	t.Helper()
	rc, err := c.Do(limited(t), reload(id))
	if err != nil || rc.State != protocol.StateApplied || rc.OperationID != protocol.OperationID(id) {
		t.Fatalf("%s: got %s %s/%s, %v; want it applied", id, rc.OperationID, rc.State, rc.Reason, err)
	}
}

// problem fails unless err is a problem with this reason and a sentence.
func problem(t testing.TB, what string, err error, why protocol.Reason) {
	t.Helper()
	p, ok := err.(*protocol.Problem) // the client promises this very type
	if !ok || p.Reason != why || len(p.Message) < 20 {
		t.Fatalf("%s: got %v, want a problem %s with a sentence", what, err, why)
	}
}

func is(t testing.TB, rc protocol.Receipt, state protocol.State, why protocol.Reason) {
	t.Helper()
	if rc.State != state || rc.Reason != why {
		t.Fatalf("got %s/%s %q, want %s/%s", rc.State, rc.Reason, rc.Message, state, why)
	}
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

// safeBuffer is a log that several may write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
