package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
	"reins/protocol/nats"
)

// TestTwoOwners holds that a request belongs to the owner of its connection,
// and that each gets its own answers.
func TestTwoOwners(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.client("alice"), w.client("bob")
	for i := range 20 {
		applied(t, alice, fmt.Sprintf("a-%d", i))
		applied(t, bob, fmt.Sprintf("b-%d", i))
	}
	for _, s := range w.handler.asked("do") {
		if words := strings.Fields(s); words[1][0] != words[2][0] {
			t.Errorf("the handler saw %q", s)
		}
	}
	turn := w.dial(nats.ClientOptions{StateDir: w.options.StateDir, Owner: "alice", UserTurn: "turn-7"})
	applied(t, turn, "a-turn")
	w.handler.mu.Lock()
	defer w.handler.mu.Unlock()
	if first, last := w.handler.turns[0], w.handler.turns[len(w.handler.turns)-1]; first != "nonce-1" || last != "turn-7" {
		t.Errorf("user turns are %q and %q, want the connection's nonce and turn-7", first, last)
	}
}

// TestEveryCall holds that each method arrives as itself.
func TestEveryCall(t *testing.T) {
	w := newWorld(t)
	w.handler.set(func() { w.handler.records = []protocol.Record{{ID: "pg_1", Kind: protocol.KindPage, Generation: 3}} })
	c, ctx := w.client("alice"), limited(t)
	if rc, err := c.Cancel(ctx, "op-1"); err != nil || rc.State != protocol.StateCancelled {
		t.Errorf("cancel: %+v %v", rc, err)
	}
	if rc, err := c.Receipt(ctx, "op-1"); err != nil || rc.Reason != protocol.ReasonUnknownOperation {
		t.Errorf("receipt: %+v %v", rc, err)
	}
	if err := errors.Join(c.Claim(ctx, "pg_1"), c.Release(ctx, "pg_1"), c.Restart(ctx, "pg_1"), c.Demand(ctx, protocol.Demand{Resource: "pg_1", Width: 64})); err != nil {
		t.Error(err)
	}
	if r, err := c.Resources(ctx); err != nil || len(r) != 1 || r[0].Generation != 3 {
		t.Errorf("resources: %+v %v", r, err)
	}
	if h, err := c.History(ctx, protocol.HistoryQuery{Resource: "pg_1", Limit: 7}); err != nil || len(h) != 1 || h[0].Resource != "pg_1" {
		t.Errorf("history: %+v %v", h, err)
	}
	if s, err := c.Status(ctx); err != nil || s.Version != "test" || s.Resources["ready"] != 2 {
		t.Errorf("status: %+v %v", s, err)
	}
	if r, err := c.Read(ctx, protocol.ReadRequest{Resource: "pg_1", Method: protocol.MethodObserve}); err != nil || r.Verdict == nil || !r.Verdict.Holds {
		t.Errorf("read: %+v %v", r, err)
	}
	c.Close()
	want := "hello alice test of alice,cancel alice op-1,receipt alice op-1,claim alice pg_1,release alice pg_1,restart alice pg_1,demand alice pg_1 64,history alice 7,read alice,bye alice"
	if got := w.handler.all(); got != want {
		t.Errorf("the handler saw\n%s\nwant\n%s", got, want)
	}
	_, err := c.Status(ctx)
	problem(t, "a call of a closed client", err, protocol.ReasonDaemonUnreachable)
}

// TestProblemsArePassedOn holds that what the handler refuses is the error.
func TestProblemsArePassedOn(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client("alice"), limited(t)
	w.handler.set(func() {
		w.handler.problem = &protocol.Problem{Reason: protocol.ReasonHeldBy, Message: "Another owner holds this target.", HeldBy: "bob"}
	})
	for what, err := range map[string]error{"claim": c.Claim(ctx, "pg_1"), "demand": c.Demand(ctx, protocol.Demand{Resource: "pg_1"})} {
		problem(t, what, err, protocol.ReasonHeldBy)
	}
	_, err := c.Resources(ctx)
	problem(t, "resources", err, protocol.ReasonHeldBy)
	if err.(*protocol.Problem).HeldBy != "bob" {
		t.Errorf("who holds it is lost: %+v", err)
	}
}

// TestForgedReply holds I1: what would answer somebody else, or nobody, does
// not reach the handler.
func TestForgedReply(t *testing.T) {
	w := newWorld(t)
	alice, _ := w.raw("alice")
	bob, _ := w.raw("bob")
	got := make(chan *gonats.Msg, 16)
	if _, err := bob.ChanSubscribe("_INBOX_bob.>", got); err != nil {
		t.Fatal(err)
	}
	if err := bob.Flush(); err != nil {
		t.Fatal(err)
	}
	forged := []string{"_INBOX_bob.x", "_INBOX_alicex.y", "_INBOX_alice", "reins.v1.cue.pg_1", ""}
	for _, reply := range forged {
		if err := alice.PublishMsg(&gonats.Msg{Subject: "reins.v1.alice.do", Reply: reply, Header: headers(time.Now().Add(patience)), Data: encoded(t, reload("forged"))}); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, alice, "reins.v1.alice.do", headers(time.Now().Add(patience)), encoded(t, reload("honest")))
	if got := w.handler.asked("do"); len(got) != 1 || got[0] != "do alice honest" {
		t.Errorf("the handler saw %q, want the honest request only", got)
	}
	if n := w.service.Counts().Forged; n != uint64(len(forged)) {
		t.Errorf("%d forged ones were counted, want %d", n, len(forged))
	}
	if err := bob.Flush(); err != nil || len(got) != 0 {
		t.Errorf("bob got %d messages that were not for him (%v)", len(got), err)
	}
}

// TestEnvelope holds that a request that is late, of another version or without
// its headers is refused, and that the handler does not see it.
func TestEnvelope(t *testing.T) {
	w := newWorld(t)
	nc, _ := w.raw("alice")
	good := func() gonats.Header { return headers(time.Now().Add(patience)) }
	with := func(name, value string) gonats.Header {
		h := good()
		if h.Del(name); value != "" {
			h.Set(name, value)
		}
		return h
	}
	for _, row := range []struct {
		name string
		h    gonats.Header
		why  protocol.Reason
	}{
		{"late", headers(time.Now().Add(-time.Millisecond)), protocol.ReasonDeadline},
		{"long ago", headers(time.UnixMilli(1)), protocol.ReasonDeadline},
		{"no expiry", with(nats.HeaderExpires, ""), protocol.ReasonBadRequest},
		{"expiry in words", with(nats.HeaderExpires, "soon"), protocol.ReasonBadRequest},
		{"negative expiry", with(nats.HeaderExpires, "-5"), protocol.ReasonBadRequest},
		{"no version", with(nats.HeaderVersion, ""), protocol.ReasonVersion},
		{"newer version", with(nats.HeaderVersion, "2"), protocol.ReasonVersion},
		{"long nonce", with(nats.HeaderConnection, strings.Repeat("n", 200)), protocol.ReasonBadRequest},
		{"turn with a space", with(nats.HeaderUserTurn, "a b"), protocol.ReasonBadRequest},
		{"no headers", nil, protocol.ReasonVersion},
	} {
		rc := ask(t, nc, "reins.v1.alice.do", row.h, encoded(t, reload("op-"+row.name[:2])))
		if rc.State != protocol.StateRefused || rc.Reason != row.why || rc.OperationID == "" || rc.Message == "" {
			t.Errorf("%s: got %+v, want refused/%s with the id", row.name, rc, row.why)
		}
	}
	if got := w.handler.asked("do"); len(got) != 0 {
		t.Errorf("the handler saw %q", got)
	}
	if n := w.service.Counts().Late; n != 2 {
		t.Errorf("%d late ones were counted, want 2", n)
	}
	is(t, ask(t, nc, "reins.v1.alice.cancel", good(), []byte(`{"operation_id":"a b"}`)), protocol.StateRefused, protocol.ReasonBadRequest)
	is(t, ask(t, nc, "reins.v1.alice.cancel", good(), []byte(`{"operation":"a"}`)), protocol.StateRefused, protocol.ReasonBadRequest)
	is(t, ask(t, nc, "reins.v1.alice.do", good(), bytes.Repeat([]byte("x"), protocol.MaxRequestBytes+1)), protocol.StateRefused, protocol.ReasonTooLarge)
}

// TestPanics holds I4: after a panic in a write the answer does not say refused.
func TestPanics(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt { panic("in the write") }
		w.handler.read = func(context.Context, protocol.Caller, []byte) protocol.ReadReply { panic("in the look") }
	})
	rc, err := c.Do(limited(t), reload("op-1"))
	if err != nil || rc.OperationID != "op-1" || rc.Resource != "pg_1" || rc.LastAppliedIndex != nil || !rc.ObserveRequired {
		t.Errorf("got %+v %v, want the ids and nothing known", rc, err)
	}
	is(t, rc, protocol.StateUncertain, protocol.ReasonInternal)
	r, err := c.Read(limited(t), protocol.ReadRequest{Resource: "pg_1", Method: protocol.MethodObserve})
	if err != nil || r.Problem == nil || r.Problem.Reason != protocol.ReasonInternal {
		t.Errorf("got %+v %v, want the problem internal_error", r, err)
	}
	w.handler.set(func() { w.handler.do = nil })
	applied(t, c, "op-2")
	if n := w.service.Counts().Panics; n != 2 {
		t.Errorf("%d panics were counted, want 2", n)
	}
}

// TestBusy holds that the places are bounded, that one more is refused at once
// and that a cancel still comes through.
func TestBusy(t *testing.T) {
	w := newWorld(t, func(w *world) { w.serve.Requests = 2 })
	began, release := make(chan struct{}, 8), make(chan struct{})
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt {
			began <- struct{}{}
			<-release
			return protocol.Receipt{State: protocol.StateApplied}
		}
	})
	c := w.client("alice")
	answers := make(chan protocol.Receipt, 2)
	for i := range 2 {
		go func() {
			rc, _ := c.Do(limited(t), reload(fmt.Sprintf("op-%d", i)))
			answers <- rc
		}()
		<-began
	}
	rc, err := c.Do(limited(t), reload("op-3"))
	if err != nil || rc.OperationID != "op-3" {
		t.Errorf("got %+v %v", rc, err)
	}
	is(t, rc, protocol.StateRefused, protocol.ReasonBusy)
	if rc, err := c.Cancel(limited(t), "op-1"); err != nil || rc.State != protocol.StateCancelled {
		t.Errorf("a cancel while all places are taken: %+v %v", rc, err)
	}
	close(release)
	is(t, <-answers, protocol.StateApplied, "")
	is(t, <-answers, protocol.StateApplied, "")
	w.handler.set(func() { w.handler.do = nil })
	applied(t, c, "op-4")
}

// TestCloseWaits holds I6: Close ends the contexts of what still runs and waits
// for it, and who comes meanwhile is told so.
func TestCloseWaits(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{})
	w.handler.set(func() {
		w.handler.do = func(ctx context.Context, _ protocol.Caller, _ []byte) protocol.Receipt {
			close(began)
			<-ctx.Done()
			return protocol.Receipt{OperationID: "op-1", State: protocol.StateUncertain, Reason: protocol.ReasonAnswerLost}
		}
	})
	c := w.client("alice")
	answer := make(chan protocol.Receipt, 1)
	go func() {
		rc, _ := c.Do(limited(t), reload("op-1"))
		answer <- rc
	}()
	<-began
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		closed <- w.service.Close(ctx)
	}()
	eventually(t, "a request is refused while the daemon stops", func() bool {
		rc, err := c.Cancel(limited(t), "other")
		return err == nil && rc.Reason == protocol.ReasonShuttingDown
	})
	is(t, <-answer, protocol.StateUncertain, protocol.ReasonAnswerLost)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	_, err := c.Status(limited(t))
	problem(t, "after the service has gone", err, protocol.ReasonDaemonUnreachable)
}

// TestPicture holds that an image travels beside the JSON, unchanged, and that
// one that does not fit is a problem.
func TestPicture(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	shot := func(picture []byte) protocol.ReadReply {
		w.handler.set(func() {
			w.handler.read = func(context.Context, protocol.Caller, []byte) protocol.ReadReply {
				return protocol.ReadReply{Observation: &protocol.Observation{Token: "ob_1", Image: &protocol.Image{Width: 3, Height: 2}}, ImageBytes: picture}
			}
		})
		r, err := c.Read(limited(t), protocol.ReadRequest{Resource: "pg_1", Method: protocol.MethodScreenshot})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, picture := range [][]byte{[]byte("\x89PNG\r\n\x1a\n{\"\x00\xff}"), bytes.Repeat([]byte{0xfe}, 7<<20)} {
		if r := shot(picture); r.Observation == nil || r.Observation.Token != "ob_1" || !bytes.Equal(r.ImageBytes, picture) {
			t.Errorf("got %d bytes of %d, and %+v", len(r.ImageBytes), len(picture), r.Observation)
		}
	}
	if r := shot(make([]byte, protocol.MaxReplyBytes)); r.Problem == nil || r.Problem.Reason != protocol.ReasonImageTooLarge || r.ImageBytes != nil {
		t.Errorf("got %+v, want image_too_large", r.Problem)
	}
}

// TestSubjects holds that the table has every constant once, and that all of
// its requests are served.
func TestSubjects(t *testing.T) {
	w := newWorld(t)
	nc, _ := w.raw("alice")
	seen := map[string]bool{}
	for _, s := range nats.Subjects {
		if seen[s.Pattern] || !strings.HasPrefix(s.Pattern, "reins.v1.") {
			t.Errorf("%s is there twice, or is no subject of ours", s.Pattern)
		}
		seen[s.Pattern] = true
		if s.Answer == "" {
			continue
		}
		subject := strings.ReplaceAll(s.Pattern, "<owner>", "alice")
		if _, err := nc.RequestMsgWithContext(limited(t), &gonats.Msg{Subject: subject, Header: headers(time.Now().Add(patience)), Data: []byte(`{"bogus":1}`)}); err != nil {
			t.Errorf("%s: %v", s.Pattern, err)
		}
	}
	if len(seen) != 17 {
		t.Errorf("%d subjects, want 17", len(seen))
	}
}
