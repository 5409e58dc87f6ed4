package daemon

import (
	"context"
	"sync"
	"testing"
	"time"

	"reins/protocol"
)

// Each case is a thing that went wrong for somebody with some tool; the receipts
// count as much as what the page ends with.

func TestCaseDialogConfirmThenPrompt(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/cases/dialog-confirm-then-prompt.html")
	began := time.Now()
	rc := c.with(c.observe(id), protocol.MethodClick, button("Archive"))
	if rc.State != protocol.StateApplied || rc.Reason != protocol.ReasonDialogOpen || rc.Page == nil || rc.Page.Dialog == nil || rc.Page.Dialog.Type != "confirm" {
		t.Fatalf("the click does not name the dialog: %s", show(rc))
	}
	o := c.observe(id)
	if o.Page == nil || o.Page.Dialog == nil || o.Page.Dialog.Type != "confirm" || o.ControlsAvailable {
		t.Fatalf("the observation does not name the dialog: %s", show(o))
	}
	t.Logf("click and observation with a dialog open: %v", time.Since(began))
	is(t, c.with(o, protocol.MethodClick, button("Archive")), protocol.StateRefused, protocol.ReasonDialogOpen)
	rc = c.with(o, protocol.MethodDialog, m{"accept": true})
	if rc.State != protocol.StateApplied || rc.Page == nil || rc.Page.Dialog == nil || rc.Page.Dialog.Type != "prompt" || rc.Page.Dialog.Default != "none" {
		t.Fatalf("the prompt that follows is not named with its default: %s", show(rc))
	}
	rc = c.do(id, protocol.MethodDialog, m{"accept": true, "text": "duplicate"})
	is(t, rc, protocol.StateApplied, "")
	v := c.read(id, protocol.MethodVerify, m{"assert": "text", "text": "archived"})
	if v.Verdict == nil || !v.Verdict.Holds {
		t.Fatalf("archived is not shown: %s", show(v))
	}
	r := c.result(id)
	if count(r, "click") != 1 || count(r, "confirmed") != 1 || count(r, "archived") != 1 || count(r, "declined") != 0 || r["reason"] != "duplicate" || r["untrusted"] != 0.0 {
		t.Fatalf("wrong result: %s", show(r))
	}
}

func TestCaseDialogWhileLoading(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	rc := c.open(w.web.URL + "/cases/dialog-while-loading.html")
	if rc.State != protocol.StateApplied || rc.Page == nil || rc.Page.Dialog == nil || rc.Page.Dialog.Type != "alert" {
		t.Fatalf("opening does not say that an alert is open: %s", show(rc))
	}
	id := rc.Resource
	rc = c.do(id, protocol.MethodDialog, m{"accept": true})
	if rc.State != protocol.StateApplied {
		t.Fatal(show(rc))
	}
	c.until(id, "asking its confirm", func(r protocol.Record) bool { return r.Dialog != nil && r.Dialog.Type == "confirm" })
	rc = c.do(id, protocol.MethodDialog, m{"accept": true})
	is(t, rc, protocol.StateApplied, "")
	rc = c.with(c.observe(id), protocol.MethodClick, button("Show departures"))
	is(t, rc, protocol.StateApplied, "")
	r := c.result(id)
	if r["early"] != 1.0 || count(r, "compact") != 1 || count(r, "full") != 0 || count(r, "go") != 1 || r["untrusted"] != 0.0 {
		t.Fatalf("wrong result: %s", show(r))
	}
}

func TestCaseSameRequestTwice(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/cases/ref-renumbered.html")
	req := protocol.Request{OperationID: "gamma", Resource: id, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Gamma"))}
	receipts := make([]protocol.Receipt, 2)
	var both sync.WaitGroup
	for i := range receipts {
		both.Go(func() { receipts[i] = c.send(req) })
	}
	both.Wait()
	third := c.send(req)
	is(t, third, protocol.StateApplied, "")
	if show(receipts[0]) != show(third) || show(receipts[1]) != show(third) {
		t.Fatalf("three receipts differ:\n%s\n%s\n%s", show(receipts[0]), show(receipts[1]), show(third))
	}
	other := req
	other.Arguments = args(t, button("Alpha"))
	is(t, c.send(other), protocol.StateRefused, protocol.ReasonOperationIDReused)
	r := c.result(id)
	if show(r["pressed"]) != `["Gamma"]` || count(r, "press") != 1 {
		t.Fatalf("wrong result: %s", show(r))
	}

	c.close()
	w.stop()
	w.start()
	c = w.client("cli")
	after := c.send(req)
	if show(after) != show(third) {
		t.Fatalf("another receipt after a restart:\n%s\n%s", show(after), show(third))
	}
	is(t, c.send(other), protocol.StateRefused, protocol.ReasonOperationIDReused)
}

func TestCaseTwoClientsOneTarget(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("first"), w.client("second")
	id := a.opened(w.web.URL + "/cases/ref-renumbered.html")
	held := a.observe(id)
	rc := b.do(id, protocol.MethodClick, button("Alpha"))
	is(t, rc, protocol.StateRefused, protocol.ReasonHeldBy)
	if rc.HeldBy != "first" {
		t.Fatalf("the holder is not named: %s", show(rc))
	}
	var beta, away protocol.Receipt
	var both sync.WaitGroup
	both.Go(func() { beta = a.with(held, protocol.MethodClick, button("Beta")) })
	both.Go(func() { away = b.do(id, protocol.MethodNavigate, m{"url": w.web.URL + "/page/elsewhere"}) })
	both.Wait()
	is(t, beta, protocol.StateApplied, "")
	is(t, away, protocol.StateRefused, protocol.ReasonHeldBy)
	token := a.observe(id)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := a.Release(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := b.Claim(ctx, id); err != nil {
		t.Fatal(err)
	}
	is(t, b.with(token, protocol.MethodClick, button("Gamma")), protocol.StateRefused, protocol.ReasonStaleObservation)
	is(t, a.with(token, protocol.MethodClick, button("Gamma")), protocol.StateRefused, protocol.ReasonHeldBy)
	r := b.result(id)
	if show(r["pressed"]) != `["Beta"]` || w.web.got("/page/elsewhere") != 0 {
		t.Fatalf("wrong result: %s", show(r))
	}
}

func TestCaseHandlerPanic(t *testing.T) {
	var once sync.Once
	w := newWorld(t, func(c *Config) {
		c.Seams = protocol.Seams{At: func(s protocol.Step, _ protocol.ResourceID, op protocol.OperationID) {
			if s == protocol.StepPressWritten && op == "beta" {
				once.Do(func() { panic("a fault between the press and the release") })
			}
		}}
	})
	c := w.client("cli")
	other := c.opened(w.web.URL + "/page/other")
	id := c.opened(w.web.URL + "/cases/ref-renumbered.html")
	rc := c.send(protocol.Request{OperationID: "beta", Resource: id, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Beta"))})
	is(t, rc, protocol.StateUncertain, protocol.ReasonFenced)
	is(t, c.do(other, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	o := c.observe(id)
	if o.Generation != 2 {
		t.Fatalf("generation %d, want 2", o.Generation)
	}
	is(t, c.with(o, protocol.MethodClick, button("Gamma")), protocol.StateApplied, "")
	r := c.result(id)
	pressed := show(r["pressed"])
	if pressed != `["Gamma"]` && pressed != `["Beta","Gamma"]` {
		t.Fatalf("wrong result: %s", show(r))
	}
	if w.web.got("/cases/ref-renumbered.html") != 1 {
		t.Fatal("the page was loaded again, though only its worker had a fault")
	}
	if c.record(other).Generation != 1 {
		t.Fatal("the other page noticed")
	}
}

func TestCaseHydrateLateHandler(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/cases/hydrate-late-handler.html")
	rc := c.do(id, protocol.MethodClick, button("Add to basket"))
	if rc.Effect == protocol.EffectConfirmed {
		t.Fatalf("the receipt claims a change of the basket: %s", show(rc))
	}
	r := c.readWithin(3*time.Second, id, protocol.MethodWait, m{"text": "Basket: 1"})
	if r.Verdict == nil {
		t.Fatal(show(r))
	}
	if !r.Verdict.Holds {
		is(t, c.with(c.observe(id), protocol.MethodClick, button("Add to basket")), protocol.StateApplied, "")
	}
	res := c.result(id)
	if count(res, "added") != 1 || count(res, "lost") > 1 || res["untrusted"] != 0.0 {
		t.Fatalf("wrong result: %s", show(res))
	}
}
