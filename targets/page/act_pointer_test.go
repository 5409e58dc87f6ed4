package page

import (
	"strings"
	"testing"
	"time"

	"reins/protocol"
	"reins/targets"
)

// recorder logs the trusted events that reach an element into #log.
const recorder = `<pre id=log style="position:fixed;bottom:0;pointer-events:none"></pre><script>
function rec(el, ...kinds) { for (const k of kinds) el.addEventListener(k, e => {
  document.getElementById('log').textContent += (e.isTrusted ? '' : '!') + k + (e.detail && k !== 'wheel' ? e.detail : '') + ' '; }); }
</script>`

func TestClickKinds(t *testing.T) {
	t.Parallel()
	tb := openBody(t, recorder+`<button id=b>Target</button><a id=a href="#x">Go</a><label><input id=c type=checkbox style="position:absolute;opacity:0;width:1px;height:1px">Box</label>
<script>const b=document.getElementById('b'); rec(b,'click','dblclick','auxclick','contextmenu','mousedown','mouseup');
b.addEventListener('click', e => { document.getElementById('log').textContent += [e.ctrlKey,e.shiftKey,e.altKey,e.metaKey].join() + ' '; });
b.addEventListener('contextmenu', e => e.preventDefault());
document.getElementById('c').addEventListener('change', e => { document.getElementById('log').textContent += 'checked:' + e.target.checked + ' '; });</script>`)
	l := button("Target")
	for _, c := range []struct {
		a    protocol.ClickArguments
		want string
	}{
		{protocol.ClickArguments{Locator: &l}, "mousedown1 mouseup1 click1 false,false,false,false "},
		{protocol.ClickArguments{Locator: &l, Count: 2}, "mousedown1 mouseup1 click1 false,false,false,false mousedown2 mouseup2 click2 false,false,false,false dblclick2 "},
		{protocol.ClickArguments{Locator: &l, Button: "right"}, "mousedown1 contextmenu mouseup1 auxclick1 "},
		{protocol.ClickArguments{Locator: &l, Button: "middle"}, "mousedown1 mouseup1 auxclick1 "},
		{protocol.ClickArguments{Locator: &l, Modifiers: []string{"Control", "Shift"}}, "mousedown1 mouseup1 click1 true,true,false,false "},
	} {
		tb.ask("() => { document.getElementById('log').textContent = ''; }", nil)
		o := tb.must(tb.do(protocol.MethodClick, c.a))
		if o.Effect != protocol.EffectDelivered {
			t.Errorf("%+v: effect %q: %s", c.a, o.Effect, o.Message)
		}
		if got := tb.text("log"); got != c.want {
			t.Errorf("%+v: the page saw %q, want %q", c.a, got, c.want)
		}
	}
	tb.ask("() => { document.getElementById('log').textContent = ''; }", nil)
	if o := tb.must(tb.click(label("Box"))); o.Effect != protocol.EffectDelivered || tb.text("log") != "checked:true " {
		t.Errorf("a hidden checkbox behind its label: %s, the page saw %q", show(o), tb.text("log"))
	}
}

func TestClickRefusals(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `
<button disabled>Off</button><button aria-disabled=true>Marked</button>
<button id=far style="position:absolute;top:3000px" onclick="this.textContent='reached'">Far</button>
<div style="height:60px;overflow:auto"><div style="height:400px">x</div><button onclick="this.textContent='scrolled'">Inner</button></div>
<button style="position:absolute;left:10px;top:300px;width:100px;height:40px">Covered</button>
<div id=lid role=dialog aria-label=Lid style="position:absolute;left:0;top:290px;width:300px;height:100px;background:#ccc"></div>
<button style="position:absolute;left:10px;top:500px" id=mv>Mover</button>
<style>@keyframes m{from{transform:translateX(0)}to{transform:translateX(300px)}} #mv{animation:m 1s infinite alternate linear}</style>`)
	click := func(l protocol.Locator) protocol.ClickArguments { return protocol.ClickArguments{Locator: &l} }
	tb.refused(protocol.ReasonDisabled, protocol.MethodClick, click(button("Off")))
	tb.refused(protocol.ReasonDisabled, protocol.MethodClick, click(button("Marked")))
	pr := tb.refused(protocol.ReasonObscured, protocol.MethodClick, click(button("Covered")))
	if !strings.Contains(pr.Message, `dialog "Lid" (div#lid)`) {
		t.Errorf("what covers it is not named: %s", pr.Message)
	}
	o := tb.click(button("Mover"))
	tb.is(o, protocol.StateRefused, protocol.ReasonUnstable)
	if o.LastDone != -1 {
		t.Errorf("%s", show(o))
	}
	tb.must(tb.click(button("Far")))
	tb.eventually("reached")
	tb.must(tb.click(button("Inner")))
	tb.eventually("scrolled")
}

func TestClickPoint(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<style>body{margin:0;height:3000px}</style><button style="position:absolute;left:100px;top:100px;width:80px;height:40px" onclick="this.textContent='hit'">Aim</button>
<iframe srcdoc="<button style='position:absolute;left:0;top:0;width:90px;height:40px' onclick=&quot;this.textContent='inner'&quot;>In</button>" style="position:absolute;left:300px;top:300px;border:0"></iframe>`)
	tb.eventuallyListed("button", "In")
	_, g := tb.look(protocol.ObserveArguments{})
	at := func(x, y float64, g string) (targets.Outcome, *protocol.Problem) {
		return tb.try(&grant{}, g, protocol.MethodClick, protocol.ClickArguments{Point: &protocol.Point{X: x, Y: y}})
	}
	o, pr := at(140, 120, g)
	if pr != nil || o.State != protocol.StateApplied || o.Effect != protocol.EffectDelivered || tb.text("log") != "(none)" {
		t.Fatalf("%v %s", pr, show(o))
	}
	tb.eventually("hit")
	o, pr = at(340, 320, o.Geometry)
	if pr != nil || o.Effect != protocol.EffectDelivered {
		t.Fatalf("into a frame: %v %s", pr, show(o))
	}
	tb.eventually("inner")
	for _, c := range []struct {
		x, y float64
		g    string
		want protocol.Reason
	}{{1280, 5, g, protocol.ReasonOutside}, {-1, 5, g, protocol.ReasonOutside}, {5, 5, "", protocol.ReasonTokenRequired}, {5, 5, "1x1@1+0,0#x", protocol.ReasonStaleGeometry}} {
		if _, pr := at(c.x, c.y, c.g); pr == nil || pr.Reason != c.want {
			t.Errorf("(%g, %g) %q: %v", c.x, c.y, c.g, pr)
		}
	}
	tb.ask("() => scrollTo(0, 50)", nil)
	if _, pr := at(140, 120, g); pr == nil || pr.Reason != protocol.ReasonStaleGeometry {
		t.Errorf("after scrolling: %v", pr)
	}
}

// TestClickNothingArrives holds that what did not arrive is not called done: the
// page takes the pointer away right at the press.
func TestClickNothingArrives(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button id=b>Swap</button><script>
document.getElementById('b').addEventListener('mousemove', () => { setTimeout(() => {
  document.getElementById('b').style.pointerEvents = 'none'; }, 0); });</script>`)
	o := tb.click(button("Swap"))
	if o.State == protocol.StateApplied {
		t.Fatalf("applied, and the button never saw it: %s", show(o))
	}
	if o.LastDone != -1 {
		t.Errorf("%s", show(o))
	}
}

func TestHoverScroll(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<style>#m{display:none} #t:hover + #m{display:block} body{height:3000px;margin:0}</style>
<button id=t>Menu</button><div id=m>opened</div>
<div id=box style="height:100px;width:200px;overflow:auto"><div style="height:1000px;width:900px">inside</div></div>
<div id=map style="height:100px">map</div><script>
document.getElementById('map').addEventListener('wheel', e => { e.preventDefault(); document.title = 'zoomed'; }, {passive:false});</script>`)
	if o := tb.must(tb.do(protocol.MethodHover, protocol.HoverArguments{Locator: ptr(button("Menu"))})); o.Effect != protocol.EffectConfirmed {
		t.Errorf("hover: %s", show(o))
	}
	if v := tb.verify(protocol.VerifyArguments{Assert: "present", Text: "opened"}); !v.Holds {
		t.Error("hover did not open the menu")
	}
	scroll := func(a protocol.ScrollArguments) targets.Outcome { t.Helper(); return tb.do(protocol.MethodScroll, a) }
	if o := tb.must(scroll(protocol.ScrollArguments{Locator: ptr(css("#box")), DY: 300, DX: 50})); o.Effect != protocol.EffectConfirmed {
		t.Errorf("a box: %s", show(o))
	}
	var pos []float64
	tb.ask("() => { const b = document.getElementById('box'); return [b.scrollLeft, b.scrollTop, scrollY]; }", &pos)
	if pos[0] != 50 || pos[1] != 300 || pos[2] != 0 {
		t.Errorf("scrolled to %v", pos)
	}
	if o := tb.must(scroll(protocol.ScrollArguments{Locator: ptr(css("#map")), DY: 100})); o.Effect != protocol.EffectDelivered || tb.observe().Page.Title != "zoomed" {
		t.Errorf("a page that uses the wheel itself: %s", show(o))
	}
	before := tb.must(scroll(protocol.ScrollArguments{DY: 100000}))
	o := tb.is(scroll(protocol.ScrollArguments{DY: 100}), protocol.StateFailed, protocol.ReasonNoEffect)
	if o.Effect != protocol.EffectNone || o.Geometry != before.Geometry {
		t.Errorf("at the end: %s after %s", show(o), before.Geometry)
	}
}

func TestDrag(t *testing.T) {
	t.Parallel()
	tb := openBody(t, recorder+`<style>div.x{user-select:none;position:absolute;width:60px;height:60px;background:#ccc}</style>
<div class=x id=s style="left:20px;top:100px">knob</div><div class=x id=d style="left:420px;top:100px">place</div>
<div class=x id=ns style="left:20px;top:300px" draggable=true>native</div><div class=x id=nd style="left:420px;top:300px">basket</div>
<script>
const s = document.getElementById('s'), d = document.getElementById('d'), nd = document.getElementById('nd'), ns = document.getElementById('ns');
let moves = 0;
rec(s, 'mousedown', 'click'); rec(d, 'mouseup'); d.addEventListener('mouseup', () => { document.title = 'dropped after ' + moves; });
addEventListener('mousemove', e => { if (e.buttons === 1) moves++; });
ns.addEventListener('dragstart', e => { e.dataTransfer.setData('text/plain', 'cargo'); });
nd.addEventListener('dragover', e => e.preventDefault());
nd.addEventListener('drop', e => { e.preventDefault(); nd.textContent = 'got ' + e.dataTransfer.getData('text/plain'); });
</script>`)
	drag := protocol.DragArguments{Locator: ptr(css("#s")), ToLocator: ptr(css("#d")), Steps: 7}
	o := tb.must(tb.do(protocol.MethodDrag, drag))
	if o.Effect != protocol.EffectDelivered || o.Progress.Done != 7 || o.Progress.Unit != "points" || tb.text("log") != "mousedown1 mouseup1 " {
		t.Errorf("%s; the page saw %q", show(o), tb.text("log"))
	}
	if title := tb.observe().Page.Title; title != "dropped after 7" {
		t.Errorf("title %q", title)
	}
	o = tb.must(tb.do(protocol.MethodDrag, protocol.DragArguments{Locator: ptr(css("#ns")), ToLocator: ptr(css("#nd"))}))
	if got := tb.text("nd"); got != "got cargo" {
		t.Errorf("native drag and drop: %q, %s", got, show(o))
	}
	if s := tb.inc.held.snapshot(); len(s.buttons) != 0 {
		t.Errorf("still held: %+v", s)
	}
	// A permit that ends in the middle stops it, and nothing is dropped.
	tb.ask("() => { document.getElementById('log').textContent = ''; document.title = 'still'; }", nil)
	g := &grant{most: 5} // a move, the press and three points
	o, pr := tb.try(g, "", protocol.MethodDrag, drag)
	if pr != nil {
		t.Fatal(pr)
	}
	tb.is(o, protocol.StateFailed, protocol.ReasonCancelled)
	if o.Progress.Done != 3 || o.LastDone != -1 || !strings.Contains(o.Message, "nothing was dropped") {
		t.Errorf("%s", show(o))
	}
	if log, title := tb.text("log"), tb.observe().Page.Title; log != "mousedown1 " || title != "still" {
		t.Errorf("after a drag that was cut: %q, %q", log, title)
	}
	if s := tb.inc.held.snapshot(); len(s.buttons) != 0 {
		t.Errorf("still held: %+v", s)
	}
	tb.must(tb.do(protocol.MethodHover, protocol.HoverArguments{Locator: ptr(css("#d"))}))
	if title := tb.observe().Page.Title; title != "still" {
		t.Errorf("the button was not let go: %q", title)
	}
}

// TestClickOnABusyPage holds that an answer which does not come in time is
// uncertain, and that the page tells afterwards why that is the right word.
func TestClickOnABusyPage(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button id=b onclick="document.title='clicked'">Busy</button><script>
document.getElementById('b').addEventListener('mousedown', () => { const t = performance.now(); while (performance.now() - t < 2500); });</script>`)
	c := call(protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button("Busy"))})
	pre, pr := tb.inc.Prepare(t.Context(), c)
	if pr != nil {
		t.Fatal(pr)
	}
	ctx, cancel := withTimeout(t, 900*time.Millisecond)
	defer cancel()
	begun := time.Now()
	o := tb.inc.Run(ctx, c, pre, &grant{})
	if took := time.Since(begun); took > 1900*time.Millisecond {
		t.Errorf("Run returned %s after its deadline", took-900*time.Millisecond)
	}
	tb.is(o, protocol.StateUncertain, protocol.ReasonAnswerLost)
	if !o.Unanswered || !o.ObserveRequired || o.LastDone != -1 {
		t.Errorf("%s", show(o))
	}
}

// TestSteps holds where an operation passes its steps: the press while its
// answer is still open.
func TestSteps(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button>Go</button><input aria-label=F>`)
	for _, c := range []struct {
		m protocol.Method
		a any
	}{
		{protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button("Go"))}},
		{protocol.MethodFill, protocol.FillArguments{Locator: ptr(label("F")), Text: "x"}},
		{protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("F")), Text: "xyz"}},
		{protocol.MethodPress, protocol.PressArguments{Key: "Control+A", Locator: ptr(label("F"))}},
		{protocol.MethodReload, protocol.EmptyArguments{}},
	} {
		steps.Lock()
		delete(steps.of, tb.inc.spec.Resource)
		steps.Unlock()
		tb.must(tb.do(c.m, c.a))
		steps.Lock()
		got := steps.of[tb.inc.spec.Resource]
		steps.Unlock()
		want := []protocol.Step{protocol.StepPressWritten, protocol.StepReleaseWritten, protocol.StepAcknowledged}
		if show(got) != show(want) {
			t.Errorf("%s passed %v", c.m, got)
		}
	}
}
