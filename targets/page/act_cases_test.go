package page

import (
	"strings"
	"testing"
	"time"

	"reins/protocol"
)

// openCase opens the page of one of the hard cases.
func openCase(t *testing.T, name string) *tab {
	t.Helper()
	return open(t, serve(t, nil)+"/cases/"+name+".html")
}

func TestCaseConfirmThenPrompt(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "dialog-confirm-then-prompt")
	begun := time.Now()
	o := tb.must(tb.click(button("Archive")))
	if d := o.Page.Dialog; o.Reason != protocol.ReasonDialogOpen || d == nil || d.Type != "confirm" || d.Message != "Archive record 17?" {
		t.Fatalf("the click does not name the dialog: %s", show(o))
	}
	if o.Effect != protocol.EffectDelivered {
		t.Errorf("the dialog proves that the click arrived, but the effect is %q", o.Effect)
	}
	ob := tb.observe()
	if ob.Page.Dialog == nil || ob.ControlsAvailable || time.Since(begun) > 3*time.Second {
		t.Fatalf("observe with a dialog, after %s: %s", time.Since(begun), show(ob))
	}
	tb.refused(protocol.ReasonDialogOpen, protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button("Archive"))})
	o = tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	if d := o.Page.Dialog; o.Reason != protocol.ReasonDialogOpen || d == nil || d.Type != "prompt" || d.Default != "none" {
		t.Fatalf("the answer does not name the next dialog: %s", show(o))
	}
	o = tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true, Text: ptr("duplicate")}))
	if o.Page.Dialog != nil || o.Reason != "" {
		t.Fatalf("after the last dialog: %s", show(o))
	}
	if v := tb.verify(protocol.VerifyArguments{Assert: "text", Text: "archived"}); !v.Holds {
		t.Fatalf("not archived: %s", show(v))
	}
	tb.refused(protocol.ReasonNoDialog, protocol.MethodDialog, protocol.DialogArguments{Accept: true})
	tb.result(map[string]any{"counts.click": 1, "counts.confirmed": 1, "counts.archived": 1, "counts.declined": 0, "reason": "duplicate", "untrusted": 0})
}

func TestCaseDialogWhileLoading(t *testing.T) {
	t.Parallel()
	tb := open(t, "")
	url := serve(t, nil) + "/cases/dialog-while-loading.html"
	begun := time.Now()
	o := tb.must(tb.do(protocol.MethodNavigate, protocol.NavigateArguments{URL: url}))
	if d := o.Page.Dialog; o.Reason != protocol.ReasonDialogOpen || d == nil || d.Type != "alert" || time.Since(begun) > 3*time.Second {
		t.Fatalf("opening, after %s: %s", time.Since(begun), show(o))
	}
	o = tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	if d := o.Page.Dialog; d == nil || d.Type != "confirm" {
		t.Fatalf("the confirm of the load event is not named: %s", show(o))
	}
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	tb.must(tb.click(button("Show departures")))
	tb.result(map[string]any{"early": 1, "counts.compact": 1, "counts.full": 0, "counts.go": 1, "untrusted": 0})
}

func TestCaseHydrateLateHandler(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "hydrate-late-handler")
	o := tb.must(tb.click(button("Add to basket")))
	if o.Effect == protocol.EffectConfirmed {
		t.Errorf("a click cannot confirm what the page makes of it: %s", show(o))
	}
	if v := tb.verify(protocol.VerifyArguments{Assert: "text", Text: "Basket: 1"}); !v.Holds {
		tb.observe()
		r, _ := tb.read(protocol.MethodWait, protocol.WaitArguments{Text: `"ready":true`})
		if !r.Verdict.Holds {
			t.Fatalf("the page never listens: %s", show(r))
		}
		tb.must(tb.click(button("Add to basket")))
	}
	tb.result(map[string]any{"counts.added": 1, "untrusted": 0})
}

func TestCaseComposerEnterSends(t *testing.T) {
	t.Parallel()
	for _, m := range []protocol.Method{protocol.MethodFill, protocol.MethodType} {
		t.Run(string(m), func(t *testing.T) {
			tb := openCase(t, "composer-enter-sends")
			l := label("Message")
			o := tb.must(tb.do(m, protocol.TypeArguments{Locator: &l, Text: "Line one\nLine two"}))
			if o.Effect != protocol.EffectConfirmed {
				t.Errorf("effect %q", o.Effect)
			}
			tb.must(tb.click(button("Send")))
			tb.result(map[string]any{"messages": []string{"Line one\nLine two"}, "counts.send": 1, "counts.enter": 0, "untrusted": 0})
		})
	}
}

func TestCaseRefRenumbered(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "ref-renumbered")
	beta := tb.control(tb.observe(), "button", "Beta")
	tb.must(tb.click(button("Add notice")))
	after := tb.observe()
	if again := tb.control(after, "button", "Beta"); again.Ref != beta.Ref {
		t.Errorf("the same node has another ref: %s, %s", beta.Ref, again.Ref)
	}
	if zeta := tb.control(after, "button", "Zeta"); zeta.Ref == beta.Ref {
		t.Fatal("a ref was used again")
	}
	tb.must(tb.click(protocol.Locator{Ref: beta.Ref}))
	tb.result(map[string]any{"pressed": []string{"Beta"}, "counts.add": 1, "untrusted": 0})
}

func TestCaseTextAstralCombining(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "text-astral-combining")
	text := "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1EF\U0001F1F5 \U00029E3D\U00020BB7 e\u0301 \u05E9\u05DC\u05D5\u05DD \u0939\u093F"
	if o := tb.must(tb.typeIn(label("Typed copy"), text)); o.Effect != protocol.EffectConfirmed {
		t.Errorf("typed: effect %q", o.Effect)
	}
	if o := tb.must(tb.fill(label("Filled copy"), text)); o.Effect != protocol.EffectConfirmed {
		t.Errorf("filled: effect %q", o.Effect)
	}
	tb.result(map[string]any{"aSame": true, "bSame": true, "untrusted": 0})
}

func TestCaseStickyStackedHeaders(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "sticky-stacked-headers")
	tb.observe()
	tb.must(tb.click(button("Pick row 30")))
	tb.result(map[string]any{"picked": []int{30}, "counts.wrong": 0, "untrusted": 0})
}

func TestCaseTargetShiftsLate(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "target-shifts-late")
	o := tb.click(button("Confirm the order"))
	if o.State != protocol.StateApplied {
		tb.is(o, protocol.StateFailed, protocol.ReasonMoved)
		tb.must(tb.click(button("Confirm the order")))
	}
	tb.result(map[string]any{"pressed": []string{"confirm"}, "counts.cancel": 0, "untrusted": 0})
}

func TestCaseBlurShiftsTarget(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "blur-shifts-target")
	tb.must(tb.click(label("Email")))
	o := tb.click(button("Save contact"))
	if o.Effect == protocol.EffectDelivered || o.Effect == protocol.EffectConfirmed || !o.ObserveRequired {
		t.Fatalf("the release met another element, and the receipt claims the button: %s", show(o))
	}
	tb.is(o, protocol.StateFailed, protocol.ReasonMoved)
	tb.observe()
	tb.must(tb.click(button("Save contact")))
	tb.result(map[string]any{"counts.save": 1, "untrusted": 0})
}

func TestCaseOverlayClickThrough(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "overlay-click-through")
	tb.must(tb.click(button("Publish")))
	tb.result(map[string]any{"counts.publish": 1, "counts.note": 0, "untrusted": 0})
}

func TestCaseGeomWrappedLink(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "geom-wrapped-link")
	tb.must(tb.click(protocol.Locator{Role: "link", Name: "open the guide now"}))
	tb.result(map[string]any{"counts.link": 1, "counts.missed": 0, "untrusted": 0})
}

func TestCaseFieldsetLegendException(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "fieldset-legend-exception")
	o := tb.observe()
	for name, role := range map[string]string{"Explain": "button", "Host": "textbox", "Apply": "button"} {
		if c := tb.control(o, role, name); !has(c.States, "disabled") {
			t.Errorf("%s is not listed as disabled: %v", name, c.States)
		}
	}
	if c := tb.control(o, "checkbox", "Use a relay"); has(c.States, "disabled") {
		t.Errorf("the checkbox of the first legend is listed as disabled")
	}
	tb.refused(protocol.ReasonDisabled, protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button("Apply"))})
	tb.must(tb.click(protocol.Locator{Role: "checkbox", Name: "Use a relay"}))
	tb.must(tb.fill(label("Host"), "relay-7"))
	tb.must(tb.click(button("Apply")))
	tb.result(map[string]any{"enabled": true, "host": "relay-7", "counts.apply": 1, "counts.help": 0, "counts.toggle": 1, "untrusted": 0})
}

func has(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

func TestCaseFrameCrossSiteOffset(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "frame-crosssite-offset")
	tb.eventuallyListed("button", "Cell 9")
	o := tb.observe()
	cells := 0
	for _, c := range o.Controls {
		if strings.HasPrefix(c.Name, "Cell ") {
			cells++
			if c.Frame == "" {
				t.Errorf("%s is not said to be in a frame", c.Name)
			}
		}
	}
	if cells != 9 {
		t.Fatalf("%d cells listed: %s", cells, show(o.Controls))
	}
	tb.control(o, "textbox", "Note")
	c := tb.must(tb.click(button("Cell 5")))
	if c.Effect != protocol.EffectDelivered {
		t.Errorf("effect %q", c.Effect)
	}
	tb.must(tb.fill(label("Note"), "blue"))
	tb.eventually(`"note":"blue"`)
	tb.result(map[string]any{"crossSite": true, "counts.cell5": 1, "counts.otherCell": 0, "note": "blue", "untrusted": 0})
}

// eventuallyListed waits until a control can be found.
func (tb *tab) eventuallyListed(role, name string) {
	tb.t.Helper()
	r, _ := tb.read(protocol.MethodWait, protocol.WaitArguments{Locator: &protocol.Locator{Role: role, Name: name}})
	if r.Verdict == nil || !r.Verdict.Holds {
		tb.t.Fatalf("%s %q never came: %s", role, name, show(r))
	}
}

func TestCaseFrameOcclusionRealm(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "frame-occlusion-realm")
	tb.eventuallyListed("button", "Open menu")
	tb.must(tb.click(button("Open menu")))
	tb.result(map[string]any{"counts.mousedown": 1, "counts.mouseup": 1, "counts.click": 1, "counts.legend": 0,
		"order": []string{"mousedown", "mouseup", "click"}, "menuOpen": true, "untrusted": 0})
}

func TestCaseModalSameLabels(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "modal-same-labels")
	var rows []protocol.Control
	for _, c := range tb.observe().Controls {
		if c.Name == "Delete" {
			rows = append(rows, c)
		}
	}
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	pr := tb.refused(protocol.ReasonAmbiguous, protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button("Delete"))})
	if len(pr.Candidates) != 4 || pr.Candidates[3].Ref != rows[3].Ref {
		t.Errorf("candidates: %s", show(pr.Candidates))
	}
	tb.must(tb.click(protocol.Locator{Ref: rows[1].Ref}))
	for _, c := range tb.observe().Controls {
		if strings.HasPrefix(c.Name, "Delete") && c.Role == "button" && !has(c.States, "inert") && c.Frame == "" && c.Bounds[0] < 400 {
			t.Errorf("a control behind the modal is not marked: %s", show(c))
		}
	}
	pr = tb.refused(protocol.ReasonObscured, protocol.MethodClick, protocol.ClickArguments{Locator: &protocol.Locator{Ref: rows[3].Ref}})
	if !strings.Contains(pr.Message, "dlg") && !strings.Contains(pr.Message, "dialog") && !strings.Contains(pr.Message, "html") {
		t.Errorf("the refusal does not name what is in front: %s", pr.Message)
	}
	tb.must(tb.click(button("Delete")))
	tb.result(map[string]any{"deleted": []int{2}, "counts.ask": 1, "counts.cancel": 0, "untrusted": 0})
}

func TestCaseInputValueTracker(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "input-value-tracker")
	tb.must(tb.fill(label("Holder"), "ada-17"))
	tb.must(tb.click(button("Save ticket")))
	tb.result(map[string]any{"saved": "ada-17", "counts.save": 1, "counts.noDifference": 0, "untrusted": 0})
}

func TestCaseDblclickOpensRow(t *testing.T) {
	t.Parallel()
	tb := openCase(t, "dblclick-opens-row")
	o := tb.must(tb.do(protocol.MethodClick, protocol.ClickArguments{Locator: &protocol.Locator{Text: "Folder 2"}, Count: 2}))
	if o.Effect != protocol.EffectDelivered {
		t.Errorf("effect %q", o.Effect)
	}
	tb.result(map[string]any{"opened": 2, "counts.open": 1, "counts.rename": 0, "details": []int{1, 2}, "untrusted": 0})
}

func TestCaseLoadNeverIdle(t *testing.T) {
	t.Parallel()
	tb := open(t, "")
	url := serve(t, nil) + "/cases/load-never-idle.html"
	begun := time.Now()
	o := tb.must(tb.do(protocol.MethodNavigate, protocol.NavigateArguments{URL: url}))
	if !o.Page.Loading || o.Page.Settled || time.Since(begun) > 8*time.Second {
		t.Fatalf("after %s: %s", time.Since(begun), show(o))
	}
	tb.observe()
	tb.must(tb.click(button("Mark as read")))
	tb.result(map[string]any{"counts.go": 1, "untrusted": 0})
}
