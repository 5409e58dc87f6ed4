package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reins/protocol"
)

// Everything wrong that a caller can send is a refusal or a failure with a
// reason of its own and a sentence that says what to do.
func TestBadInput(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/bad")
	o := c.observe(id)
	long := strings.Repeat("x", 8<<20)
	raw := func(method, arguments string) string {
		return fmt.Sprintf(`{"operation_id":"bad-%d","resource":%q,"generation":1,"method":%q,"arguments":%s}`, w.n.Add(1), id, method, arguments)
	}
	rows := []struct {
		name, raw string
		why       protocol.Reason
	}{
		{"not JSON", `{`, protocol.ReasonBadRequest},
		{"empty", ``, protocol.ReasonBadRequest},
		{"an array", `[]`, protocol.ReasonBadRequest},
		{"unknown field", `{"operation_id":"x","bogus":1}`, protocol.ReasonBadRequest},
		{"no id", fmt.Sprintf(`{"resource":%q,"generation":1,"method":"click","arguments":{"locator":{"text":"a"}}}`, id), protocol.ReasonBadRequest},
		{"unknown method", raw("klick", `{}`), protocol.ReasonUnknownMethod},
		{"wrong type", raw("click", `{"locator":"Save"}`), protocol.ReasonBadArguments},
		{"unknown argument", raw("click", `{"locator":{"text":"a"},"foo":1}`), protocol.ReasonBadArguments},
		{"count out of range", raw("click", `{"locator":{"text":"a"},"count":9}`), protocol.ReasonBadArguments},
		{"no locator", raw("click", `{}`), protocol.ReasonBadArguments},
		{"scroll out of range", raw("scroll", `{"dy":1e9}`), protocol.ReasonBadArguments},
		{"viewport out of range", raw("viewport", `{"width":0,"height":10}`), protocol.ReasonBadArguments},
		{"8 MB argument", raw("fill", `{"locator":{"label":"Name"},"text":"`+long+`"}`), protocol.ReasonTooLarge},
		{"invalid UTF-8", raw("fill", "{\"locator\":{\"label\":\"Name\"},\"text\":\"\xff\xfe\"}"), protocol.ReasonNotText},
		{"NUL", raw("fill", `{"locator":{"label":"Name"},"text":"a\u0000b"}`), protocol.ReasonNotText},
		{"URL with credentials", raw("navigate", `{"url":"http://u:p@127.0.0.1/"}`), protocol.ReasonURLCredentials},
		{"file URL", raw("navigate", `{"url":"file:///etc/passwd"}`), protocol.ReasonURLNotAllowed},
		{"javascript URL", raw("navigate", `{"url":"javascript:alert(1)"}`), protocol.ReasonURLNotAllowed},
		{"not a URL", raw("navigate", `{"url":"http://"}`), protocol.ReasonURLInvalid},
		{"unknown key", raw("press", `{"key":"Hyper+Q"}`), protocol.ReasonUnknownKey},
		{"point without token", raw("click", `{"point":{"x":1,"y":1}}`), protocol.ReasonTokenRequired},
		{"unknown ref", raw("click", `{"locator":{"ref":"pg_none.1.x.1"}}`), protocol.ReasonStaleRef},
		{"nothing matches", raw("click", `{"locator":{"role":"button","name":"Nowhere"}}`), protocol.ReasonNotFound},
		{"several match", raw("click", `{"locator":{"css":"button"}}`), protocol.ReasonAmbiguous},
		{"unknown resource", `{"operation_id":"r1","resource":"pg_none","generation":1,"method":"reload"}`, protocol.ReasonUnknownResource},
		{"other generation", fmt.Sprintf(`{"operation_id":"r2","resource":%q,"generation":7,"method":"reload"}`, id), protocol.ReasonStaleGeneration},
		{"forged token", fmt.Sprintf(`{"operation_id":"r3","resource":%q,"generation":1,"method":"reload","observation":"ob_forged"}`, id), protocol.ReasonStaleObservation},
		{"no dialog", raw("dialog", `{"accept":true}`), protocol.ReasonNoDialog},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	for _, row := range rows {
		rc, err := c.DoRaw(ctx, []byte(row.raw))
		if err != nil {
			p, ok := err.(*protocol.Problem) //nolint:errorlint // the client returns it unwrapped
			if !ok {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			rc = protocol.Receipt{State: protocol.StateRefused, Reason: p.Reason, Message: p.Message}
		}
		if rc.State != protocol.StateRefused || rc.Reason != row.why || len(rc.Message) < 15 {
			t.Errorf("%s: got %s/%s %q, want refused/%s with a sentence", row.name, rc.State, rc.Reason, rc.Message, row.why)
		}
	}
	is(t, c.with(o, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	if got := w.web.did(); len(got) != 1 {
		t.Fatalf("something refused was done: %q", got)
	}
}

// Addresses that do not answer as they should.
func TestBadAddresses(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/good")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := free.Addr().String()
	_ = free.Close()
	tls := httptest.NewTLSServer(w.web)
	tls.Config.ErrorLog = nil
	defer tls.Close()
	never := make(chan struct{})
	defer close(never)
	w.web.mu.Lock()
	w.web.hold["/page/never"] = never
	w.web.mu.Unlock()
	for _, row := range []struct {
		url string
		why protocol.Reason
	}{
		{"http://no-such-host.invalid/", protocol.ReasonNameNotResolved},
		{"http://" + refused + "/", protocol.ReasonConnRefused},
		{tls.URL + "/page/tls", protocol.ReasonCertificate},
		{w.web.URL + "/page/never", protocol.ReasonNavigationSlow},
	} {
		began := time.Now()
		rc := c.send(protocol.Request{OperationID: c.id(), Resource: id, Generation: 1, Method: protocol.MethodNavigate,
			Arguments: args(t, m{"url": row.url}), DeadlineMS: 4000})
		if rc.State != protocol.StateFailed || rc.Reason != row.why || len(rc.Message) < 15 {
			t.Errorf("%s: got %s, want failed/%s", row.url, show(rc), row.why)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: hung past its deadline: %v", row.url, took)
		}
	}
	if r := c.record(id); !strings.HasSuffix(r.URL, "/page/good") {
		t.Errorf("the last confirmed URL is %q after failed navigations, want the good page", r.URL)
	}
	is(t, c.with(c.observe(id), protocol.MethodNavigate, m{"url": w.web.URL + "/page/again"}), protocol.StateApplied, "")
}

func TestDeadlineInTheQueue(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	never := make(chan struct{})
	defer close(never)
	w.web.mu.Lock()
	w.web.hold["/page/slow"] = never
	w.web.mu.Unlock()
	id := c.opened(w.web.URL + "/page/deadline")
	slow := make(chan protocol.Receipt, 1)
	go func() {
		slow <- c.send(protocol.Request{OperationID: "slow", Resource: id, Generation: 1, Method: protocol.MethodNavigate,
			Arguments: args(t, m{"url": w.web.URL + "/page/slow"}), DeadlineMS: 3000})
	}()
	for w.web.got("/page/slow") == 0 {
		<-time.After(10 * time.Millisecond)
	}
	is(t, c.send(protocol.Request{OperationID: "late", Resource: id, Generation: 1, Method: protocol.MethodReload, DeadlineMS: 200}),
		protocol.StateRefused, protocol.ReasonDeadline)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	waits := make(chan protocol.Receipt, 1)
	go func() {
		waits <- c.send(protocol.Request{OperationID: "waits", Resource: id, Generation: 1, Method: protocol.MethodReload})
	}()
	// The cancel may overtake its operation: it is remembered, and cancels it all the same.
	if _, err := c.Cancel(ctx, "waits"); err != nil {
		t.Fatal(err)
	}
	if rc := <-waits; rc.State != protocol.StateCancelled {
		t.Fatalf("a queued operation that was cancelled: %s", show(rc))
	}
	is(t, <-slow, protocol.StateFailed, protocol.ReasonNavigationSlow)
}

// The daemon's other errors name the way out, too.
func TestSecondDaemonOnTheSameStore(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := Start(ctx, w.config); err == nil || !strings.Contains(err.Error(), "store") {
		t.Fatalf("a second daemon on one store: %v", err)
	}
	c := w.client("cli")
	c.opened(w.web.URL + "/page/still-there")
}

func TestMissingBrowser(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Browser = "/nonexistent/chromium" })
	c := w.client("cli")
	rc := c.open("about:blank")
	is(t, rc, protocol.StateRefused, protocol.ReasonBackendUnavailable)
	if !strings.Contains(rc.Message, "/nonexistent/chromium") {
		t.Fatalf("the message does not name it: %q", rc.Message)
	}
}
