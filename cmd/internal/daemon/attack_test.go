package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reins/protocol"
	"reins/supervisors"
)

// Pages that mean harm, by name.
var hostilePages = map[string]string{
	"title":  `<button>Go</button><script>document.title = 'T'.repeat(300000)</script>`,
	"prompt": `<button onclick="prompt('A'.repeat(300000), 'B'.repeat(300000))">Go</button>`,
	"echo": `<label>Password <input type=password></label>
		<button onclick="prompt('you typed ' + document.querySelector('input').value, document.querySelector('input').value)">Go</button>`,
}

// hostileSite serves the hostile pages at /NAME, and at /count a page that
// reports what its field holds to the ledger.
func hostileSite(t *testing.T, ledger *site) string {
	t.Helper()
	counting := strings.Replace(fmt.Sprintf(ledgerPage, "count"), "encodeURIComponent(b.textContent)", "encodeURIComponent(n.value)", 1)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		switch {
		case name == "ledger":
			ledger.ServeHTTP(rw, r)
		case name == "count":
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(rw, counting)
		default:
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(rw, "<!doctype html><html lang=en><body>"+hostilePages[name])
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/"
}

// What a page says of itself has a bound wherever it goes: a record that grows
// with it would take the list of all resources away from everybody.
func TestAttackEndlessWords(t *testing.T) {
	w := newWorld(t)
	url := hostileSite(t, w.web)
	c := w.client("cli")
	id := c.opened(url + "title")
	c.until(id, "titled", func(r protocol.Record) bool { return r.Title != "" })
	if n := len(show(c.observe(id))); n > protocol.ObservationBytes {
		t.Errorf("an observation has %d bytes because of its page's title", n)
	}
	asking := c.opened(url + "prompt")
	rc := c.do(asking, protocol.MethodClick, button("Go"))
	is(t, rc, protocol.StateApplied, protocol.ReasonDialogOpen)
	if n := len(show(rc)); n > protocol.ObservationMax {
		t.Errorf("a receipt has %d bytes because of a dialog", n)
	}
	for _, id := range []protocol.ResourceID{id, asking} {
		if n := len(show(c.record(id))); n > protocol.ObservationMax {
			t.Errorf("a record has %d bytes because of what its page says", n)
		}
	}
}

// A password that a page shows in a dialog is in no receipt and in no record:
// records go to every owner.
func TestAttackSecretInDialog(t *testing.T) {
	const secret = "Sup3rSecretWord"
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(hostileSite(t, w.web) + "echo")
	is(t, c.do(id, protocol.MethodFill, m{"locator": m{"label": "Password"}, "text": secret}), protocol.StateApplied, "")
	rc := c.do(id, protocol.MethodClick, button("Go"))
	is(t, rc, protocol.StateApplied, protocol.ReasonDialogOpen)
	record := c.until(id, "asking", func(r protocol.Record) bool { return r.Dialog != nil })
	for what, v := range map[string]any{"receipt": rc, "record": record, "observation": c.observe(id)} {
		if strings.Contains(show(v), secret) {
			t.Errorf("the %s has the password: %s", what, show(v))
		}
	}
}

// A browser that cannot make processes for pages any more is made anew: it
// would never recover by itself.
func TestAttackZygoteKilled(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/one")
	killed := 0
	for _, pid := range w.browsers() {
		if strings.Contains(commandLine(pid), "--type=zygote") && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("this browser has no zygote to kill")
	}
	other := c.opened(w.web.URL + "/page/two")
	is(t, c.do(other, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	c.ready(id, 2)
	is(t, c.with(c.observe(id), protocol.MethodClick, button("Beta")), protocol.StateApplied, "")
}

// Only an observation or a restart leaves failed: a caller that goes on sending
// writes must not keep a broken browser starting.
func TestAttackWritesLeaveFailedAlone(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Policy = supervisors.Policy{First: time.Millisecond, Last: time.Millisecond, Max: 1, Period: time.Hour}
	})
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/one")
	end := time.Now().Add(patience)
	for c.record(id).Lifecycle != protocol.LifecycleFailed {
		if time.Now().After(end) {
			t.Fatalf("never failed: %s", show(c.record(id)))
		}
		for _, pid := range w.browsers() {
			if !strings.Contains(commandLine(pid), "--type=") {
				_ = syscall.Kill(pid, syscall.SIGKILL) // gone already: the next one
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	for range 3 {
		rc := c.do(id, protocol.MethodClick, button("Alpha"))
		is(t, rc, protocol.StateRefused, protocol.ReasonBackendUnavailable)
		if r := c.record(id); r.Lifecycle != protocol.LifecycleFailed {
			t.Fatalf("a write left failed: %s", show(r))
		}
	}
	is(t, c.with(c.observe(id), protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
}

// The end of a daemon in the middle of an operation: uncertain, in words that do
// not say that nothing happened, the same after the restart, and no browser left.
func TestAttackStopInTheMiddle(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	never := make(chan struct{})
	defer close(never)
	w.web.mu.Lock()
	w.web.hold["/page/never"] = never
	w.web.mu.Unlock()
	id := c.opened(w.web.URL + "/page/one")
	got := make(chan protocol.Receipt, 1)
	go func() {
		rc, err := c.Do(context.Background(), protocol.Request{OperationID: "middle", Resource: id, Generation: 1, Method: protocol.MethodNavigate,
			Arguments: args(t, m{"url": w.web.URL + "/page/never"})})
		if err != nil {
			rc.Message = err.Error()
		}
		got <- rc
	}()
	for w.web.got("/page/never") == 0 {
		<-time.After(5 * time.Millisecond)
	}
	w.stop()
	rc := <-got
	is(t, rc, protocol.StateUncertain, protocol.ReasonScopeRestarted)
	if strings.Contains(rc.Message, "Nothing happened") || strings.Contains(rc.Message, "send again") {
		t.Errorf("an uncertain operation says %q", rc.Message)
	}
	if left := w.browsers(); len(left) > 0 {
		t.Errorf("processes of the browser outlive the daemon: %v", left)
	}
	c.close()
	w.start()
	c = w.client("cli")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if after, err := c.Receipt(ctx, "middle"); err != nil || show(after) != show(rc) {
		t.Errorf("another receipt after the restart: %s %v, before it %s", show(after), err, show(rc))
	}
}

// Owners that write to their pages while processes are killed at random: what
// the ledger saw is what the receipts say.
func TestAttackKillStorm(t *testing.T) {
	const owners, rounds = 3, 6
	w := newWorld(t)
	url := hostileSite(t, w.web)
	var mu sync.Mutex
	receipts := map[string]protocol.Receipt{}
	var clients, all sync.WaitGroup
	stop := make(chan struct{})
	for i := range owners {
		c := w.client(fmt.Sprintf("owner%d", i))
		id := c.opened(url + "count")
		clients.Go(func() {
			for k := range rounds {
				name := fmt.Sprintf("click-%d-%d", i, k)
				r := c.readWithin(20*time.Second, id, protocol.MethodObserve, m{})
				if r.Problem != nil {
					continue
				}
				rc := c.with(*r.Observation, protocol.MethodFill, m{"locator": m{"label": "Name"}, "text": name})
				if rc.State != protocol.StateApplied {
					continue
				}
				rc = c.send(protocol.Request{OperationID: protocol.OperationID(name), Resource: id, Generation: rc.Generation,
					Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 8000})
				mu.Lock()
				receipts[name] = rc
				mu.Unlock()
			}
		})
	}
	all.Go(func() {
		for k := 0; ; k++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(400+k*137%700) * time.Millisecond):
			}
			if p := w.browsers(); len(p) > 0 {
				_ = syscall.Kill(p[k*7919%len(p)], syscall.SIGKILL) // gone already: nothing to kill
			}
		}
	})
	clients.Wait()
	close(stop)
	all.Wait()
	seen := map[string]int{}
	for _, did := range w.web.did() {
		seen[did]++
	}
	states := map[protocol.State]int{}
	for name, rc := range receipts {
		states[rc.State]++
		n := seen[name]
		switch {
		case n > 1:
			t.Errorf("%s happened %d times: %s", name, n, show(rc))
		case n == 1 && (rc.State == protocol.StateRefused || rc.State == protocol.StateCancelled):
			t.Errorf("%s happened, and the receipt says it did not: %s", name, show(rc))
		case n == 0 && rc.State == protocol.StateApplied:
			t.Errorf("%s did not happen, and the receipt says it did: %s", name, show(rc))
		}
	}
	if len(seen) == 0 {
		t.Error("nothing happened at all: this run shows nothing")
	}
	t.Logf("receipts %v, ledger %d", states, len(w.web.did()))
}
