package page

import (
	"bytes"
	"encoding/json"
	"image"
	"strings"
	"testing"
	"time"

	"reins/protocol"
)

const zoo = `
<h1>Settings</h1>
<nav><a href="/home">Home</a> <a id=plain>no link</a></nav>
<p>Some <b>bold</b> words.</p>
<form action="/save">
<label for=name>Name</label> <input id=name value="  Ada  " required>
<label>Mail <input type=email value="a@b.c" readonly></label>
<input aria-labelledby="l1 l2"><span id=l1>Zip</span> <span id=l2>code</span>
<input placeholder="Search here" type=search>
<textarea aria-label=Notes>one
two</textarea>
<label><input type=checkbox checked> Agree</label>
<label><input type=radio name=r> Red</label>
<select aria-label=Size><option>Small<option selected>Large<option disabled>Huge</select>
<input type=range aria-label=Volume value=30>
<input type=hidden name=h value=x>
<button>Save</button> <button disabled>Undo</button>
<input type=submit value="Send it">
</form>
<div role=switch aria-checked=true tabindex=0 aria-label=Dark>x</div>
<div role=button tabindex=0 aria-expanded=false>Menu</div>
<div contenteditable aria-label=Editor><div>first</div><div><br></div><div>third</div></div>
<img src="data:," alt="Logo" width=10 height=10>
<div style="display:none"><button>Hidden</button></div>
<div style="visibility:hidden"><button>Invisible</button></div>
<div id=host></div>
<progress value=3 max=10 aria-label=Done></progress>
<script>
const root = document.getElementById('host').attachShadow({mode:'open'});
root.innerHTML = '<button>In the shadow</button><p>Shadow words</p>';
</script>`

func TestObserve(t *testing.T) {
	t.Parallel()
	tb := openBody(t, zoo)
	o := tb.observe()
	for _, want := range []struct{ role, name, value, states string }{
		{"link", "Home", "-", "focusable"},
		{"textbox", "Name", "  Ada  ", "focusable,required"},
		{"textbox", "Mail", "a@b.c", "focusable,readonly"},
		{"textbox", "Zip code", "", "focusable"},
		{"searchbox", "Search here", "", "focusable"},
		{"textbox", "Notes", "one\ntwo", "focusable,multiline"},
		{"checkbox", "Agree", "-", "focusable,checked"},
		{"radio", "Red", "-", "focusable"},
		{"combobox", "Size", "Large", "focusable"},
		{"slider", "Volume", "30", "focusable"},
		{"button", "Save", "-", "focusable"},
		{"button", "Undo", "-", "disabled"},
		{"button", "Send it", "-", "focusable"},
		{"switch", "Dark", "-", "focusable,checked"},
		{"button", "Menu", "-", "focusable,collapsed"},
		{"textbox", "Editor", "first\n\nthird", "focusable,multiline"},
		{"button", "In the shadow", "-", "focusable"},
		{"progressbar", "Done", "3", ""},
	} {
		c := tb.control(o, want.role, want.name)
		value := "-"
		if c.Value != nil {
			value = *c.Value
		}
		if value != want.value || strings.Join(c.States, ",") != want.states {
			t.Errorf("%s %q: value %q, states %v; want %q, %s", want.role, want.name, value, c.States, want.value, want.states)
		}
		if c.Ref == "" || c.Bounds[2] <= 0 || c.Bounds[3] <= 0 {
			t.Errorf("%s %q: %s", want.role, want.name, show(c))
		}
	}
	if len(o.Controls) != 18 {
		t.Errorf("%d controls: %s", len(o.Controls), show(o.Controls))
	}
	text := strings.Join(o.Text, "\n")
	for _, want := range []string{"Settings", "Some bold words.", "Shadow words", "Options of Size: Small | Large | Huge"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the text: %q", want, o.Text)
		}
	}
	for _, not := range []string{"Hidden", "Invisible", "Ada", "first"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is in the text: %q", not, o.Text)
		}
	}
	if o.Page.Title != "T" || o.Viewport.Width != 1280 || o.Viewport.Height != 720 || !o.ControlsAvailable || o.Page.HTTPStatus != 200 {
		t.Errorf("%s %s", show(o.Page), show(o.Viewport))
	}
}

// TestObserveShapes looks at what pages make of ordinary elements.
func TestObserveShapes(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<style>body{cursor:pointer}</style><p>Plain words stay text.</p>
<table><tr><th>Name<th>Price<tr><td>Tea<td>3 €<td><button>Buy</button></table>
<div style="cursor:auto"><div style="cursor:pointer" id=card>Open card</div></div>
<div onclick="0"><p>`+strings.Repeat("Long story. ", 60)+`</p></div>
<div hidden><p>Nowhere</p></div><details><summary>More</summary><p>Folded</p></details>
<a href="/x"><img src="data:," alt="Pictured link" width=5 height=5></a>
<p>Before <button>Inline</button> after</p>`)
	o := tb.observe()
	text := strings.Join(o.Text, "\n")
	for _, want := range []string{"Plain words stay text.", "Name | Price", "Tea | 3 €", "Long story.", "Before Inline after"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	for _, not := range []string{"Nowhere", "Folded"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in %q", not, text)
		}
	}
	tb.control(o, "generic", "Open card")
	tb.control(o, "link", "Pictured link")
	if c := tb.control(o, "button", "More"); !has(c.States, "collapsed") {
		t.Errorf("%s", show(c))
	}
}

func TestObserveManyControls(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		b.WriteString("<p>Line " + itoa(i) + " <button>Press " + itoa(i) + "</button></p>")
	}
	tb := openBody(t, b.String())
	begun := time.Now()
	o := tb.observe()
	t.Logf("1,000 controls in %s, %d bytes, %d shown", time.Since(begun), len(show(o)), len(o.Controls))
	if len(show(o)) > protocol.ObservationBytes || len(o.Controls) < 80 {
		t.Errorf("%d bytes, %d controls", len(show(o)), len(o.Controls))
	}
	if o.Omitted == nil || o.Omitted.Controls != 1000-len(o.Controls) || !strings.Contains(o.Omitted.How, "offset") {
		t.Errorf("omitted: %s", show(o.Omitted))
	}
	next, _ := tb.look(protocol.ObserveArguments{Offset: len(o.Controls)})
	if next.Controls[0].Name != "Press "+itoa(len(o.Controls)) {
		t.Errorf("the next page begins with %s", show(next.Controls[0]))
	}
	found, _ := tb.look(protocol.ObserveArguments{Find: "PRESS 77"})
	if len(found.Controls) != 11 { // 77 and 770–779
		t.Errorf("found %d", len(found.Controls))
	}
	big, _ := tb.look(protocol.ObserveArguments{Limit: 300})
	if len(big.Controls) != 300 || len(show(big)) > protocol.ObservationMax {
		t.Errorf("limit 300: %d controls, %d bytes", len(big.Controls), len(show(big)))
	}
	all, _ := tb.look(protocol.ObserveArguments{Limit: 1000})
	if len(show(all)) > protocol.ObservationMax || len(all.Controls) < 300 {
		t.Errorf("limit 1000: %d controls, %d bytes", len(all.Controls), len(show(all)))
	}
}

func itoa(i int) string { return show(i) }

func TestObserveValues(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<textarea aria-label=Long></textarea><input aria-label=Astral><script>
document.querySelector('textarea').value = 'x'.repeat(9000);
document.querySelector('input').value = '\u{1F600}'.repeat(3);</script>`)
	o := tb.observe()
	long := tb.control(o, "textbox", "Long")
	if len(*long.Value) != protocol.ValueCodePoints || !long.ValueTruncated || long.ValueRedacted {
		t.Errorf("%d code points, truncated %v", len(*long.Value), long.ValueTruncated)
	}
	if c := tb.control(o, "textbox", "Astral"); *c.Value != "\U0001F600\U0001F600\U0001F600" || c.ValueTruncated {
		t.Errorf("%s", show(c))
	}
	v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: ptr(label("Long")), Equals: ptr(strings.Repeat("x", 9000))})
	if v.Holds {
		t.Error("equality holds for a value that is truncated")
	}
}

// TestSecretsStay holds I5 of targets with a page that does its best to leak.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	const secret = "korrekt-pferd-9"
	tb := openBody(t, `
<label>Password <input id=p type=password value="`+secret+`"></label>
<label>Code <input id=c autocomplete="one-time-code" value="834501"></label>
<p id=echo></p><button id=b>Show</button><input id=copy aria-label=Copy>
<label>New <input id=n type=password></label>
<script>
const p = document.getElementById('p');
document.getElementById('b').addEventListener('click', () => {
  p.type = 'text';
  document.getElementById('echo').textContent = 'You typed ' + p.value + ' and 834501.';
  document.getElementById('b').textContent = 'Hide ' + p.value;
  document.getElementById('copy').value = p.value;
  document.title = p.value;
  history.replaceState(null, '', '?q=' + p.value);
});
document.getElementById('n').addEventListener('input', (e) => { document.getElementById('echo').textContent = e.target.value; });
</script>`)
	clean := func(what string, v any, secrets ...string) {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append(secrets, secret, "834501") {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s tells the secret %q: %s", what, s, b)
			}
		}
	}
	o := tb.observe()
	clean("the first look", o)
	if c := tb.control(o, "textbox", "Password"); c.Value != nil || !c.ValueRedacted || !has(c.States, "protected") {
		t.Errorf("%s", show(c))
	}
	if c := tb.control(o, "textbox", "Code"); c.Value != nil || !c.ValueRedacted {
		t.Errorf("%s", show(c))
	}
	clean("the click", tb.must(tb.click(button("Show"))))
	o = tb.observe()
	clean("a look after it was shown", o)
	if c := tb.control(o, "textbox", "Password"); c.Value != nil || !c.ValueRedacted {
		t.Errorf("a field that was a password once: %s", show(c))
	}
	if c := tb.control(o, "textbox", "Copy"); c.Value == nil || *c.Value != redacted || !c.ValueRedacted {
		t.Errorf("an echo in another field: %s", show(c))
	}
	found, _ := tb.look(protocol.ObserveArguments{Find: "pferd"})
	if len(found.Controls)+len(found.Text) != 0 {
		t.Errorf("find can be asked about a secret: %s", show(found))
	}
	r, _ := tb.read(protocol.MethodVerify, protocol.VerifyArguments{Assert: "text", Text: "typed " + secret})
	if r.Problem == nil || r.Problem.Reason != protocol.ReasonSensitive {
		t.Errorf("verify with a secret: %s", show(r))
	}
	clean("the refusal", r)
	r, _ = tb.read(protocol.MethodVerify, protocol.VerifyArguments{Assert: "value", Locator: ptr(label("Password")), Equals: ptr("wrong")})
	if r.Problem == nil || r.Problem.Reason != protocol.ReasonSensitive {
		t.Errorf("verify of a secret field: %s", show(r))
	}
	clean("a refusal that names it", tb.refused(protocol.ReasonNotFound, protocol.MethodClick, protocol.ClickArguments{Locator: ptr(button(secret))}))
	filled := tb.must(tb.fill(label("New"), "neues Geheimnis 7"))
	if filled.Effect != protocol.EffectConfirmed || filled.ActualValue != nil {
		t.Errorf("filling a secret field: %s", show(filled))
	}
	clean("after filling", tb.observe(), "neues Geheimnis 7")
}

func TestScreenshot(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<h1>Picture</h1>`)
	for _, f := range []string{"png", "jpeg"} {
		r, g := tb.read(protocol.MethodScreenshot, protocol.ScreenshotArguments{Format: f})
		if r.Observation == nil || g == "" {
			t.Fatalf("%s", show(r))
		}
		size, kind, err := image.DecodeConfig(bytes.NewReader(r.ImageBytes))
		im, tr := r.Observation.Image, r.Observation.Transform
		if err != nil || kind != f || size.Width != 1280 || size.Height != 720 || im.Width != 1280 || im.MediaType != "image/"+f || tr.A != 1 || tr.D != 1 {
			t.Errorf("%v %s %+v %s %s", err, kind, size, show(im), show(tr))
		}
	}
	tb.must(tb.do(protocol.MethodViewport, protocol.ViewportArguments{Width: 400, Height: 300, Scale: 2}))
	r, _ := tb.read(protocol.MethodObserve, protocol.ObserveArguments{Image: true})
	im, tr := r.Observation.Image, r.Observation.Transform
	if im == nil || im.Width != 800 || im.Height != 600 || tr.A != 0.5 || tr.D != 0.5 || len(r.ImageBytes) == 0 {
		t.Errorf("device pixel ratio 2: %s %s", show(im), show(tr))
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<p id=a>before</p><button id=b>Go</button><input aria-label=V><script>
document.getElementById('b').addEventListener('click', () => {
  setTimeout(() => { document.getElementById('a').textContent = 'after'; }, 300);
  setTimeout(() => { history.pushState(null, '', '/there'); }, 400);
});</script>`)
	tb.must(tb.click(button("Go")))
	for _, a := range []protocol.WaitArguments{{Text: "after"}, {Text: "before", Gone: true}, {URL: "/there"}, {Locator: ptr(button("Go"))}} {
		if r, _ := tb.read(protocol.MethodWait, a); r.Verdict == nil || !r.Verdict.Holds {
			t.Errorf("%+v: %s", a, show(r))
		}
	}
	raw, _ := json.Marshal(protocol.WaitArguments{Text: "never"})
	begun := time.Now()
	r, _ := tb.inc.Read(t.Context(), protocol.ReadRequest{Method: protocol.MethodWait, Arguments: raw, DeadlineMS: 400})
	if r.Verdict == nil || r.Verdict.Holds || r.Verdict.Reason != protocol.ReasonWaitTimeout || time.Since(begun) > 3*time.Second {
		t.Errorf("after %s: %s", time.Since(begun), show(r))
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<p>Total: 12 €</p><ul><li>one<li>two<li>three</ul><input aria-label=City value="Bern"><button>Pay</button>
<select aria-label=Size><option value=s>Small<option value=l selected>Large</select>`)
	for _, c := range []struct {
		a     protocol.VerifyArguments
		holds bool
	}{
		{protocol.VerifyArguments{Assert: "text", Text: "Total: 12"}, true},
		{protocol.VerifyArguments{Assert: "text", Text: "Total: 13"}, false},
		{protocol.VerifyArguments{Assert: "text", Locator: ptr(css("p")), Equals: ptr("Total: 12 €")}, true},
		{protocol.VerifyArguments{Assert: "value", Locator: ptr(label("City")), Equals: ptr("Bern")}, true},
		{protocol.VerifyArguments{Assert: "value", Locator: ptr(label("City")), Equals: ptr("bern")}, false},
		{protocol.VerifyArguments{Assert: "value", Locator: ptr(label("Size")), Equals: ptr("Large")}, true},
		{protocol.VerifyArguments{Assert: "value", Locator: ptr(label("Size")), Equals: ptr("l")}, true},
		{protocol.VerifyArguments{Assert: "present", Locator: ptr(button("Pay"))}, true},
		{protocol.VerifyArguments{Assert: "absent", Locator: ptr(button("Cancel"))}, true},
		{protocol.VerifyArguments{Assert: "absent", Locator: ptr(button("Pay"))}, false},
		{protocol.VerifyArguments{Assert: "count", Locator: ptr(css("li")), Count: ptr(3)}, true},
		{protocol.VerifyArguments{Assert: "count", Locator: ptr(css("li")), Count: ptr(2)}, false},
		{protocol.VerifyArguments{Assert: "url", Text: "127.0.0.1"}, true},
		{protocol.VerifyArguments{Assert: "url", Equals: ptr("http://example.org/")}, false},
	} {
		v := tb.verify(c.a)
		if v.Holds != c.holds || (!v.Holds && v.Reason != protocol.ReasonAssertionFailed) {
			t.Errorf("%s: %s", show(c.a), show(v))
		}
	}
	v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: ptr(label("City")), Equals: ptr("Basel")})
	if v.Actual == nil || *v.Actual != "Bern" {
		t.Errorf("actual: %s", show(v))
	}
}

// TestReadsSurviveNavigation looks while the page goes from one document to the next.
func TestReadsSurviveNavigation(t *testing.T) {
	t.Parallel()
	url := serve(t, map[string]string{"/a": page(`<button>A</button><script>setTimeout(()=>location.href='/b',60)</script>`),
		"/b": page(`<button>B</button><script>setTimeout(()=>location.href='/a',60)</script>`)})
	tb := open(t, url+"/a")
	for range 8 {
		if r, _ := tb.read(protocol.MethodObserve, protocol.ObserveArguments{}); r.Observation == nil {
			t.Fatalf("observe: %s", show(r))
		}
		if r, _ := tb.read(protocol.MethodVerify, protocol.VerifyArguments{Assert: "absent", Text: "nowhere"}); r.Verdict == nil || !r.Verdict.Holds {
			t.Fatalf("verify: %s", show(r))
		}
	}
}

// TestPageSeesNothing holds that a page cannot tell that it is looked at.
func TestPageSeesNothing(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<button onclick="document.getElementById('p').textContent = JSON.stringify([typeof __reins, typeof __reins_report,
Object.getOwnPropertyNames(window).filter(k => k.startsWith('__reins')), document.documentElement.attributes.length])">Go</button><p id=p></p>`)
	tb.observe()
	tb.must(tb.click(button("Go")))
	if got := tb.text("p"); got != `["undefined","undefined",[],0]` {
		t.Errorf("the page sees %s", got)
	}
}
