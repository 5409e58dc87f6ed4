package page

import (
	"encoding/json"
	"strings"
	"testing"

	"reins/protocol"
	"reins/targets"
)

func primitive(m protocol.Method, args any) protocol.Primitive {
	raw, _ := json.Marshal(args)
	return protocol.Primitive{Method: m, Arguments: raw}
}

func clickOn(l protocol.Locator) protocol.Primitive {
	return primitive(protocol.MethodClick, protocol.ClickArguments{Locator: &l})
}

func (tb *tab) batch(g *grant, list ...protocol.Primitive) targets.Outcome {
	tb.t.Helper()
	o, pr := tb.try(g, "", protocol.MethodBatch, protocol.BatchArguments{Primitives: list})
	if pr != nil {
		tb.t.Fatalf("refused: %v", pr)
	}
	return o
}

func TestBatch(t *testing.T) {
	t.Parallel()
	tb := open(t, serve(t, map[string]string{"/": page(`<input aria-label=Name><button onclick="document.title += '+'">Add</button>
<button onclick="alert('hi')">Alert</button><a href="/next">Leave</a><button onclick="window.open('/next')">Pop</button>
<button onclick="const b=document.createElement('button');b.textContent='Fresh';document.body.append(b)">Grow</button>`), "/next": page("Next")})+"/")
	name := label("Name")
	fillIt := primitive(protocol.MethodFill, protocol.FillArguments{Locator: &name, Text: "Ada"})

	g := &grant{}
	o := tb.must(tb.batch(g, fillIt, clickOn(button("Add")), clickOn(button("Grow")), clickOn(button("Fresh"))))
	if o.LastDone != 3 || o.Begun != 4 || g.begun != 4 || o.Reason != "" {
		t.Errorf("%s", show(o))
	}
	o = tb.is(tb.batch(&grant{}, clickOn(button("Add")), clickOn(button("Nobody")), clickOn(button("Add"))), protocol.StateFailed, protocol.ReasonNotFound)
	if o.LastDone != 0 || o.Begun != 1 || !strings.Contains(o.Message, "primitives[1]") {
		t.Errorf("%s", show(o))
	}
	o = tb.is(tb.batch(&grant{}, clickOn(button("Alert")), clickOn(button("Add"))), protocol.StateFailed, protocol.ReasonDialogOpen)
	if o.LastDone != 0 || o.Page.Dialog == nil {
		t.Errorf("a dialog: %s", show(o))
	}
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	o = tb.must(tb.batch(&grant{}, clickOn(button("Add")), clickOn(button("Alert"))))
	if o.LastDone != 1 || o.Reason != protocol.ReasonDialogOpen {
		t.Errorf("a dialog at the end: %s", show(o))
	}
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	o = tb.is(tb.batch(&grant{}, clickOn(button("Pop")), clickOn(button("Add"))), protocol.StateFailed, protocol.ReasonPopup)
	if o.LastDone != 0 {
		t.Errorf("a popup: %s", show(o))
	}
	o = tb.is(tb.batch(&grant{}, clickOn(protocol.Locator{Role: "link", Name: "Leave"}), clickOn(button("Add"))), protocol.StateFailed, protocol.ReasonNavigated)
	if o.LastDone != 0 || !o.Navigated {
		t.Errorf("a navigation: %s", show(o))
	}
}

// TestPermitEnds holds what is said when the permit ends: before the first byte
// nothing happened; later what was done stays done.
func TestPermitEnds(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button onclick="document.title += '+'">Add</button>`)
	add := clickOn(button("Add"))
	g := &grant{}
	g.revoke()
	o := tb.is(tb.batch(g, add), protocol.StateRefused, protocol.ReasonCancelled)
	if o.LastDone != -1 || o.Begun != 0 || g.used != 0 {
		t.Errorf("%s", show(o))
	}
	g = &grant{most: 3} // a move, a press and a release: one click
	o = tb.is(tb.batch(g, add, add), protocol.StateFailed, protocol.ReasonCancelled)
	if o.LastDone != 0 || o.Begun != 2 {
		t.Errorf("%s", show(o))
	}
	g = &grant{most: 2} // the button is down
	o = tb.is(tb.batch(g, add), protocol.StateFailed, protocol.ReasonCancelled)
	if o.LastDone != -1 || len(tb.inc.held.snapshot().buttons) != 0 {
		t.Errorf("%s %+v", show(o), tb.inc.held.snapshot())
	}
	if title := tb.observe().Page.Title; title != "T+" {
		t.Errorf("the page was clicked: %q", title)
	}
}
