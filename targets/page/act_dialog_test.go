package page

import (
	"testing"
	"time"

	"reins/protocol"
	"reins/targets"
)

// TestDialogsInTheMiddle opens dialogs from every kind of input. Each operation
// ends at once and says how far its input came, and the page works on after it.
func TestDialogsInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		name, body string
		m          protocol.Method
		args       any
		state      protocol.State
		effect     protocol.Effect
	}{
		{"press of the button", `<button onmousedown="alert('x')">Go</button>`, protocol.MethodClick,
			protocol.ClickArguments{Locator: ptr(button("Go"))}, protocol.StateFailed, ""},
		{"click", `<button onclick="alert('x')">Go</button>`, protocol.MethodClick,
			protocol.ClickArguments{Locator: ptr(button("Go"))}, protocol.StateApplied, protocol.EffectDelivered},
		{"after the click", `<button onclick="setTimeout(()=>alert('x'),20)">Go</button>`, protocol.MethodClick,
			protocol.ClickArguments{Locator: ptr(button("Go"))}, protocol.StateApplied, protocol.EffectDelivered},
		{"key", `<button onkeydown="alert('x')">Go</button>`, protocol.MethodPress,
			protocol.PressArguments{Key: "Enter", Locator: ptr(button("Go"))}, protocol.StateApplied, protocol.EffectDelivered},
		{"fill", `<input aria-label=F oninput="alert('x')">`, protocol.MethodFill,
			protocol.FillArguments{Locator: ptr(label("F")), Text: "abc"}, protocol.StateApplied, protocol.EffectDispatched},
		{"list", `<select aria-label=F onchange="alert('x')"><option>a<option>b</select>`, protocol.MethodFill,
			protocol.FillArguments{Locator: ptr(label("F")), Text: "b"}, protocol.StateApplied, protocol.EffectDispatched},
		{"third character", `<input aria-label=F oninput="if(this.value.length==3)alert('x')">`, protocol.MethodType,
			protocol.TypeArguments{Locator: ptr(label("F")), Text: "abcdefgh"}, protocol.StateFailed, ""},
		{"last character", `<input aria-label=F oninput="if(this.value.length==3)alert('x')">`, protocol.MethodType,
			protocol.TypeArguments{Locator: ptr(label("F")), Text: "abc"}, protocol.StateApplied, protocol.EffectDispatched},
		{"focus", `<input aria-label=F onfocus="alert('x')">`, protocol.MethodFill,
			protocol.FillArguments{Locator: ptr(label("F")), Text: "abc"}, protocol.StateFailed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tb := openBody(t, c.body)
			begun := time.Now()
			o := tb.is(tb.do(c.m, c.args), c.state, protocol.ReasonDialogOpen)
			if o.Effect != c.effect || o.Page.Dialog == nil || o.Unanswered || time.Since(begun) > 3*time.Second {
				t.Errorf("after %s: %s", time.Since(begun), show(o))
			}
			if c.state == protocol.StateFailed && (o.LastDone != -1 || !o.ObserveRequired) {
				t.Errorf("%s", show(o))
			}
			d := tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
			if d.Page.Dialog != nil {
				t.Errorf("after the answer: %s", show(d))
			}
			if s := tb.inc.held.snapshot(); len(s.buttons)+len(s.keys) != 0 {
				t.Errorf("still held: %+v", s)
			}
			if ob := tb.observe(); !ob.ControlsAvailable || len(ob.Controls) != 1 {
				t.Errorf("the page does not work on: %s", show(ob))
			}
		})
	}
}

// TestDialogText refuses text for what is no prompt, and gives it to a prompt.
func TestDialogText(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button onclick="document.title = String(prompt('Name?', 'none'))">Ask</button><button onclick="alert('x')">Tell</button>`)
	tb.must(tb.click(button("Tell")))
	tb.refused(protocol.ReasonBadArguments, protocol.MethodDialog, protocol.DialogArguments{Accept: true, Text: ptr("x")})
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{}))
	for _, c := range []struct {
		a    protocol.DialogArguments
		want string
	}{{protocol.DialogArguments{Accept: false}, "null"}, {protocol.DialogArguments{Accept: true, Text: ptr("Ada")}, "Ada"}, {protocol.DialogArguments{Accept: true, Text: ptr("")}, ""}, {protocol.DialogArguments{Accept: true}, "none"}} {
		tb.must(tb.click(button("Ask")))
		tb.must(tb.do(protocol.MethodDialog, c.a))
		if got := tb.observe().Page.Title; got != c.want {
			t.Errorf("%s gave %q, want %q", show(c.a), got, c.want)
		}
	}
}

// TestDialogEndsWaiting holds that a read does not wait behind a dialog.
func TestDialogEndsWaiting(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button onclick="setTimeout(()=>alert('x'),400)">Later</button>`)
	tb.must(tb.click(button("Later")))
	begun := time.Now()
	r, _ := tb.read(protocol.MethodWait, protocol.WaitArguments{Text: "never"})
	if r.Verdict == nil || r.Verdict.Reason != protocol.ReasonDialogOpen || r.Verdict.Page.Dialog == nil || time.Since(begun) > 3*time.Second {
		t.Errorf("after %s: %s", time.Since(begun), show(r))
	}
	for _, m := range []protocol.Method{protocol.MethodScreenshot, protocol.MethodVerify} {
		if r, _ := tb.read(m, protocol.VerifyArguments{Assert: "text", Text: "x"}); r.Problem == nil || r.Problem.Reason != protocol.ReasonDialogOpen || r.Problem.Dialog == nil {
			t.Errorf("%s: %s", m, show(r))
		}
	}
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
}

// TestReplacedElement draws the element anew between Prepare and Run.
func TestReplacedElement(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<div id=d><button onclick="document.title='old'">Go</button></div>`)
	ref := tb.control(tb.observe(), "button", "Go").Ref
	for _, c := range []struct {
		l     protocol.Locator
		state protocol.State
		title string
	}{{button("Go"), protocol.StateApplied, "new"}, {protocol.Locator{Ref: ref}, protocol.StateRefused, "T"}} {
		tb.ask(`() => { document.title = 'T'; document.getElementById('d').innerHTML = '<button onclick="document.title=&quot;old&quot;">Go</button>'; }`, nil)
		if c.l.Ref != "" {
			c.l.Ref = tb.control(tb.observe(), "button", "Go").Ref
		}
		a := call(protocol.MethodClick, protocol.ClickArguments{Locator: &c.l})
		pre, pr := tb.inc.Prepare(t.Context(), a)
		if pr != nil {
			t.Fatal(pr)
		}
		tb.ask(`() => { document.getElementById('d').innerHTML = '<button onclick="document.title=&quot;new&quot;">Go</button>'; }`, nil)
		o := tb.inc.Run(t.Context(), a, pre, &grant{})
		if o.State != c.state {
			t.Errorf("%+v: %s", c.l, show(o))
		}
		if got := tb.observe().Page.Title; got != c.title {
			t.Errorf("%+v: title %q", c.l, got)
		}
	}
}

// TestRunWithoutPrepare holds that what was not prepared here does nothing.
func TestRunWithoutPrepare(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<p>x</p>`)
	g := &grant{}
	o := tb.inc.Run(t.Context(), call(protocol.MethodReload, nil), targets.Prepared{}, g)
	tb.is(o, protocol.StateRefused, protocol.ReasonInternal)
	if g.used+g.begun != 0 {
		t.Error("a permit was asked")
	}
}
