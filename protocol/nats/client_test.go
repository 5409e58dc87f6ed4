package nats_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reins/protocol"
	"reins/protocol/nats"
)

// TestNothingIsSentLater holds I2 and I3 over the end of a daemon: what could
// not be sent is an error at once and stays unsent, and what was sent is not
// sent again.
func TestNothingIsSentLater(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	applied(t, c, "before")
	began, release := make(chan struct{}), make(chan struct{})
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt {
			close(began)
			<-release
			return protocol.Receipt{}
		}
	})
	under := make(chan error, 1)
	go func() {
		_, err := c.Do(limited(t), reload("under-way"))
		under <- err
	}()
	<-began
	w.server.Shutdown() // as a death of the daemon looks from outside
	problem(t, "the one under way", <-under, protocol.ReasonAnswerLost)
	for _, id := range []string{"gone-1", "gone-2", "gone-3"} {
		_, err := c.Do(limited(t), reload(id))
		problem(t, "one without a daemon", err, protocol.ReasonDaemonUnreachable)
	}
	_, err := c.Status(limited(t))
	problem(t, "a question without a daemon", err, protocol.ReasonDaemonUnreachable)
	if !strings.Contains(err.Error(), "reins serve") {
		t.Errorf("%v does not say what to do", err)
	}
	close(release)
	w.stop()

	w.handler.set(func() { w.handler.do = nil })
	w.handler.restart()
	w.start()
	other := w.client("bob")
	applied(t, other, "other")
	applied(t, c, "after") // the same client goes on, with a new hello
	if got, want := strings.Join(w.handler.asked("do"), ","), "do alice before,do alice under-way,do bob other,do alice after"; got != want {
		t.Errorf("the handler saw\n%s\nwant\n%s", got, want)
	}
}

// TestStaleConnection holds that a write whose nonce is unknown is refused and
// not sent again by the client, and that the next one says hello first.
func TestStaleConnection(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	applied(t, c, "op-1")
	w.handler.restart()
	rc, err := c.Do(limited(t), reload("op-2"))
	if err != nil {
		t.Fatal(err)
	}
	is(t, rc, protocol.StateRefused, protocol.ReasonStaleConnection)
	applied(t, c, "op-3")
	if got, want := w.handler.all(), "hello alice test of alice,do alice op-1,do alice op-2,hello alice test of alice,do alice op-3"; got != want {
		t.Errorf("the handler saw\n%s\nwant\n%s", got, want)
	}
}

// TestBadMessages holds that what is no request is refused with the right
// reason, and that what is no text, or too large, does not even leave.
func TestBadMessages(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	fill := func(text string) string {
		return `{"operation_id":"op-1","resource":"pg_1","generation":1,"method":"fill","arguments":{"locator":{"label":"Name"},"text":"` + text + `"}}`
	}
	for _, row := range []struct {
		name, raw string
		why       protocol.Reason
		leaves    bool
	}{
		{"8 MB", fill(strings.Repeat("x", 8<<20)), protocol.ReasonTooLarge, false},
		{"a bit over the limit", fill(strings.Repeat("x", protocol.MaxRequestBytes)), protocol.ReasonTooLarge, false},
		{"not UTF-8", fill("\xff\xfe"), protocol.ReasonNotText, false},
		{"NUL", fill("a\x00b"), protocol.ReasonNotText, false},
		{"escaped NUL", fill(`a\u0000b`), protocol.ReasonNotText, false},
		{"no JSON", `{`, protocol.ReasonBadRequest, true},
		{"nothing", ``, protocol.ReasonBadRequest, true},
		{"unknown method", `{"operation_id":"op-1","method":"klick"}`, protocol.ReasonUnknownMethod, true},
	} {
		before := len(w.handler.asked("do"))
		rc, err := c.DoRaw(limited(t), []byte(row.raw))
		if err != nil || rc.State != protocol.StateRefused || rc.Reason != row.why || len(rc.Message) < 15 {
			t.Errorf("%s: got %s/%s %q %v, want refused/%s with a sentence", row.name, rc.State, rc.Reason, rc.Message, err, row.why)
		}
		if left := len(w.handler.asked("do")) > before; left != row.leaves {
			t.Errorf("%s: left the client: %v, want %v", row.name, left, row.leaves)
		}
	}
	big := reload("op-2")
	big.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("y", 8<<20) + `"}`)
	odd := reload("op-\xff")
	nul := reload("op-3")
	nul.Arguments = json.RawMessage("{\"x\":\"\x00\"}")
	for why, r := range map[protocol.Reason]protocol.Request{protocol.ReasonTooLarge: big, protocol.ReasonNotText: odd} {
		rc, err := c.Do(limited(t), r)
		if err != nil {
			t.Fatal(err)
		}
		is(t, rc, protocol.StateRefused, why)
	}
	if rc, err := c.Do(limited(t), nul); err != nil || rc.Reason != protocol.ReasonNotText || rc.OperationID != "op-3" {
		t.Errorf("a NUL in the arguments: %+v %v", rc, err)
	}
	if r, err := c.Read(limited(t), protocol.ReadRequest{Resource: "pg_1", Method: "\xff"}); err != nil || r.Problem == nil || r.Problem.Reason != protocol.ReasonNotText {
		t.Errorf("a look that is no text: %+v %v", r, err)
	}
	for _, ms := range []int64{-1, 1 << 62, 9_223_372_036_854_775_807} {
		far := reload("op-far")
		far.DeadlineMS = ms
		if rc, err := c.Do(limited(t), far); err != nil || rc.Reason != protocol.ReasonBadRequest {
			t.Errorf("a deadline of %d ms: %+v %v", ms, rc, err)
		}
	}
	applied(t, c, "op-4")
}

// TestCallersTime holds what the end of the caller's own context means.
func TestCallersTime(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Do(over, reload("never"))
	problem(t, "a context that has ended", err, protocol.ReasonCancelled)
	began, release := make(chan struct{}, 2), make(chan struct{})
	defer close(release)
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt {
			began <- struct{}{}
			<-release
			return protocol.Receipt{}
		}
		w.handler.read = func(context.Context, protocol.Caller, []byte) protocol.ReadReply {
			began <- struct{}{}
			<-release
			return protocol.ReadReply{}
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() { <-began; stop() }()
	_, err = c.Do(ctx, reload("sent"))
	problem(t, "a context that ends after it was sent", err, protocol.ReasonAnswerLost)
	ctx, stop = context.WithCancel(context.Background())
	go func() { <-began; stop() }()
	_, err = c.Read(ctx, protocol.ReadRequest{Resource: "pg_1", Method: protocol.MethodObserve})
	problem(t, "a look that was given up", err, protocol.ReasonDeadline)
	if got := w.handler.asked("do"); len(got) != 1 || got[0] != "do alice sent" {
		t.Errorf("the handler saw %q", got)
	}
}

// TestCloseEndsCalls holds that a call that waits returns when the client is closed.
func TestCloseEndsCalls(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	began, release := make(chan struct{}), make(chan struct{})
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt {
			close(began)
			<-release
			return protocol.Receipt{}
		}
	})
	defer close(release)
	go func() { <-began; c.Close() }()
	_, err := c.Do(limited(t), reload("op-1"))
	problem(t, "a call of a client that was closed", err, protocol.ReasonAnswerLost)
}

// TestAnswerThatIsNone holds that an answer which is no receipt is not taken for one.
func TestAnswerThatIsNone(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	w.handler.set(func() {
		w.handler.do = func(context.Context, protocol.Caller, []byte) protocol.Receipt { return protocol.Receipt{} }
	})
	_, err := c.Do(limited(t), reload("op-1"))
	problem(t, "an empty receipt", err, protocol.ReasonAnswerLost)
}

// TestDialling holds that what keeps a client from connecting is said with its
// own reason and the way out.
func TestDialling(t *testing.T) {
	w := newWorld(t)
	good := w.owner("alice")
	state := w.options.StateDir
	dir := func(name string, files map[string]string) string {
		d := t.TempDir()
		for file, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(d, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(d, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	here := string(encoded(t, nats.Address{URL: w.server.URL(), Process: 1, Protocol: 1}))
	bad := good
	bad.Password = nats.NewPassword()
	for _, row := range []struct {
		name string
		o    nats.ClientOptions
		why  protocol.Reason
		says string
	}{
		{"nowhere", nats.ClientOptions{}, protocol.ReasonBadRequest, "state directory"},
		{"twice", nats.ClientOptions{StateDir: state, URL: w.server.URL()}, protocol.ReasonBadRequest, "either"},
		{"no credentials", nats.ClientOptions{URL: w.server.URL()}, protocol.ReasonBadRequest, "credentials"},
		{"no URL", nats.ClientOptions{URL: "http://x", Credentials: &good}, protocol.ReasonBadRequest, "nats://"},
		{"password in URL", nats.ClientOptions{URL: "nats://u:p@127.0.0.1:1", Credentials: &good}, protocol.ReasonBadRequest, "without a password"},
		{"bad owner", nats.ClientOptions{StateDir: state, Owner: "Al*ce"}, protocol.ReasonBadRequest, "owner"},
		{"reserved owner", nats.ClientOptions{StateDir: state, Owner: "cue"}, protocol.ReasonBadRequest, "owner"},
		{"bad turn", nats.ClientOptions{StateDir: state, UserTurn: "a\nb"}, protocol.ReasonBadRequest, "user turn"},
		{"no state", nats.ClientOptions{StateDir: filepath.Join(state, "none")}, protocol.ReasonDaemonUnreachable, "reins serve"},
		{"no daemon", nats.ClientOptions{StateDir: t.TempDir()}, protocol.ReasonDaemonUnreachable, "reins serve"},
		{"damaged address", nats.ClientOptions{StateDir: dir("a", map[string]string{"nats.json": "{"})}, protocol.ReasonDaemonUnreachable, "restart the daemon"},
		{"dead daemon", nats.ClientOptions{StateDir: dir("b", map[string]string{"nats.json": `{"url":"nats://127.0.0.1:1","pid":1,"protocol":1}`,
			"credentials/cli.json": strings.ReplaceAll(string(encoded(t, good)), "alice", "cli")})}, protocol.ReasonDaemonUnreachable, "reins serve --state"},
		{"newer daemon", nats.ClientOptions{StateDir: dir("c", map[string]string{"nats.json": `{"url":"nats://127.0.0.1:1","pid":1,"protocol":2,"more":1}`})}, protocol.ReasonVersion, "version 2"},
		{"unknown owner", nats.ClientOptions{StateDir: state, Owner: "carol"}, protocol.ReasonNotAllowed, "reins owner add"},
		{"damaged credentials", nats.ClientOptions{StateDir: dir("d", map[string]string{"nats.json": here, "credentials/cli.json": `{"owner":"cli"}`})}, protocol.ReasonNotAllowed, "damaged"},
		{"another's credentials", nats.ClientOptions{StateDir: dir("e", map[string]string{"nats.json": here, "credentials/cli.json": string(encoded(t, good))})}, protocol.ReasonNotAllowed, "another owner"},
		{"wrong password", nats.ClientOptions{URL: w.server.URL(), Credentials: &bad}, protocol.ReasonNotAllowed, "does not accept"},
	} {
		c, err := nats.Dial(limited(t), row.o)
		if err == nil {
			c.Close()
		}
		problem(t, row.name, err, row.why)
		if !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %q does not say %q", row.name, err, row.says)
		}
		if strings.Contains(err.Error(), good.Password) || strings.Contains(err.Error(), bad.Password) {
			t.Errorf("%s: the error has a password in it", row.name)
		}
	}
	if log := w.log.String(); strings.Contains(log, good.Password) || strings.Contains(log, bad.Password) {
		t.Error("the log has a password in it")
	}
}

// TestVersions holds that a daemon that speaks another version is said to.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.owner("alice")
	for name, hello := range map[string]func(protocol.OwnerID, protocol.Hello) protocol.HelloReply{
		"refused": func(protocol.OwnerID, protocol.Hello) protocol.HelloReply {
			return protocol.HelloReply{Version: 2, Problem: &protocol.Problem{Reason: protocol.ReasonVersion, Message: protocol.ReasonVersion.Sentence()}}
		},
		"newer": func(protocol.OwnerID, protocol.Hello) protocol.HelloReply {
			return protocol.HelloReply{Version: 2, Connection: "n"}
		},
		"no nonce": func(protocol.OwnerID, protocol.Hello) protocol.HelloReply { return protocol.HelloReply{Version: 1} },
		"bad nonce": func(protocol.OwnerID, protocol.Hello) protocol.HelloReply {
			return protocol.HelloReply{Version: 1, Connection: "a\r\nb"}
		},
	} {
		w.handler.set(func() { w.handler.hello = hello })
		_, err := nats.Dial(limited(t), nats.ClientOptions{StateDir: w.options.StateDir, Owner: "alice"})
		problem(t, name, err, protocol.ReasonVersion)
	}
}

// TestSeveralAtOnce holds that many callers share one connection and one hello,
// also when it has to be made anew.
func TestSeveralAtOnce(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	w.stop()
	w.handler.restart()
	w.start()
	errs := make(chan error, 32)
	for range cap(errs) {
		go func() {
			_, err := c.Status(limited(t))
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := w.handler.asked("hello"); len(got) != 2 {
		t.Errorf("hello was said %d times, want once before and once after", len(got))
	}
	if took := w.service.Counts().Requests; took != 33 {
		t.Errorf("%d requests came, want 33", took)
	}
}
