package page

import (
	"strings"
	"testing"

	"reins/protocol"
)

const fields = `
<input id=a aria-label=Plain value=old><textarea id=b aria-label=Area>old</textarea>
<input id=n type=number aria-label=Number><input id=e type=email aria-label=Mail value="x@y.z">
<input type=date aria-label=Date><input type=color aria-label=Colour><input type=range aria-label=Volume min=0 max=10>
<select aria-label=Size><option value=s>Small<option value=l>Large<option disabled>Huge</select>
<div id=r contenteditable aria-label=Rich><div>old</div></div>
<input aria-label=Short maxlength=3><input aria-label=Upper oninput="this.value=this.value.toUpperCase()">
<input aria-label=Mask oninput="this.value=this.value.replace(/\D/g,'').replace(/^(..)(.)/,'$1-$2')">
<input aria-label=Fixed readonly><input aria-label=Off disabled><button>Go</button>
<input aria-label=Back id=back oninput="setTimeout(()=>{this.value='reset'},0)">`

func TestFill(t *testing.T) {
	t.Parallel()
	tb := openBody(t, fields)
	for _, c := range []struct{ name, text, value string }{
		{"Plain", "new  text ", "new  text "},
		{"Plain", "", ""},
		{"Plain", "ünï\U0001F600", "ünï\U0001F600"},
		{"Area", "one\ntwo\n\nthree", "one\ntwo\n\nthree"},
		{"Number", "42", "42"},
		{"Number", "7.5", "7.5"},
		{"Mail", "a@b.c", "a@b.c"},
		{"Date", "2026-03-01", "2026-03-01"},
		{"Colour", "#ff0000", "#ff0000"},
		{"Volume", "7", "7"},
		{"Size", "Large", "Large"},
		{"Size", "s", "Small"},
		{"Rich", "plain", "plain"},
		{"Rich", "one\ntwo\n\nthree", "one\ntwo\n\nthree"},
		{"Rich", "", ""},
	} {
		o := tb.fill(label(c.name), c.text)
		if o.State != protocol.StateApplied || o.Effect != protocol.EffectConfirmed {
			t.Errorf("%s %q: %s", c.name, c.text, show(o))
			continue
		}
		if v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: ptr(label(c.name)), Equals: &c.value}); !v.Holds {
			t.Errorf("%s %q holds %s", c.name, c.text, show(v))
		}
	}
	for name, want := range map[string]string{"Short": "abc", "Upper": "ABCDE", "Back": "reset"} {
		o := tb.fill(label(name), "abcde")
		tb.is(o, protocol.StateFailed, protocol.ReasonValueMismatch)
		if o.ActualValue == nil || *o.ActualValue != want || !o.ObserveRequired {
			t.Errorf("%s: %s", name, show(o))
		}
	}
	for name, want := range map[string]protocol.Reason{"Fixed": protocol.ReasonReadOnly, "Off": protocol.ReasonDisabled, "Go": protocol.ReasonNotFound} {
		tb.refused(want, protocol.MethodFill, protocol.FillArguments{Locator: ptr(label(name)), Text: "x"})
	}
	tb.refused(protocol.ReasonNotEditable, protocol.MethodFill, protocol.FillArguments{Locator: ptr(button("Go")), Text: "x"})
	tb.refused(protocol.ReasonNotFound, protocol.MethodFill, protocol.FillArguments{Locator: ptr(label("Size")), Text: "Tiny"})
	tb.refused(protocol.ReasonDisabled, protocol.MethodFill, protocol.FillArguments{Locator: ptr(label("Size")), Text: "Huge"})
	tb.refused(protocol.ReasonTextNotTypable, protocol.MethodFill, protocol.FillArguments{Locator: ptr(label("Plain")), Text: "a\nb"})
	o := tb.fill(label("Date"), "yesterday")
	tb.is(o, protocol.StateFailed, protocol.ReasonValueMismatch)
}

func TestType(t *testing.T) {
	t.Parallel()
	tb := openBody(t, fields)
	value := func(name, want string) {
		t.Helper()
		if v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: ptr(label(name)), Equals: &want}); !v.Holds {
			t.Errorf("%s holds %s, want %q", name, show(v), want)
		}
	}
	o := tb.must(tb.typeIn(label("Plain"), " and New! \U0001F600é"))
	value("Plain", "old and New! \U0001F600é")
	if o.Effect != protocol.EffectConfirmed || o.Progress.Done != 12 || o.Progress.Unit != "characters" {
		t.Errorf("%s", show(o))
	}
	tb.must(tb.typeIn(label("Area"), "er\nline"))
	value("Area", "older\nline")
	tb.must(tb.typeIn(label("Rich"), "er\nline"))
	value("Rich", "older\nline")
	tb.must(tb.typeIn(label("Mail"), "z"))
	value("Mail", "x@y.zz")
	tb.must(tb.typeIn(label("Number"), "12"))
	tb.must(tb.typeIn(label("Number"), "34"))
	value("Number", "1234")
	o = tb.must(tb.typeIn(label("Mask"), "123"))
	value("Mask", "12-3")
	if o.Effect != protocol.EffectDelivered {
		t.Errorf("a mask: %s", show(o))
	}
	long := strings.Repeat("The quick brown fox. ", 20)
	tb.must(tb.fill(label("Plain"), ""))
	tb.must(tb.typeIn(label("Plain"), long))
	value("Plain", long)
	o = tb.is(tb.typeIn(label("Short"), "abcde"), protocol.StateFailed, protocol.ReasonValueMismatch)
	if o.ActualValue == nil || *o.ActualValue != "abc" {
		t.Errorf("%s", show(o))
	}
	tb.refused(protocol.ReasonTextNotTypable, protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("Plain")), Text: "a\nb"})
	tb.refused(protocol.ReasonTextNotTypable, protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("Area")), Text: "a\tb"})
	tb.refused(protocol.ReasonNotEditable, protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("Size")), Text: "s"})
	// Without a locator the keys go to what has the focus.
	tb.must(tb.click(label("Upper")))
	tb.is(tb.do(protocol.MethodType, protocol.TypeArguments{Text: "ab"}), protocol.StateFailed, protocol.ReasonValueMismatch)
	value("Upper", "AB")
	tb.ask("() => { document.activeElement.blur(); }", nil)
	tb.refused(protocol.ReasonNotEditable, protocol.MethodType, protocol.TypeArguments{Text: "x"})
}

// TestTypeStopsWithItsPermit revokes the permit in the middle of a text.
func TestTypeStopsWithItsPermit(t *testing.T) {
	t.Parallel()
	tb := openBody(t, fields)
	g := &grant{most: 61}
	text := strings.Repeat("abcdefghij", 10)
	o, pr := tb.try(g, "", protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("Area")), Text: text})
	if pr != nil {
		t.Fatal(pr)
	}
	tb.is(o, protocol.StateFailed, protocol.ReasonCancelled)
	if o.LastDone != -1 || o.Unanswered || o.Progress == nil || o.Progress.Done == 0 || o.Progress.Done >= 100 || !o.ObserveRequired {
		t.Errorf("%s", show(o))
	}
	var v string
	tb.ask("() => document.querySelector('textarea').value", &v)
	if want := "old" + text[:o.Progress.Done]; v != want {
		t.Errorf("the field holds %d characters, %d were reported", len(v)-3, o.Progress.Done)
	}
	if s := tb.inc.held.snapshot(); len(s.keys)+len(s.buttons) != 0 {
		t.Errorf("still held: %+v", s)
	}
}

// TestTypeStopsWhenTheFocusLeaves holds that text does not run into another field.
func TestTypeStopsWhenTheFocusLeaves(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<input aria-label=One maxlength=200 oninput="if(this.value.length>10)document.getElementById('two').focus()"><input id=two aria-label=Two>`)
	o := tb.typeIn(label("One"), strings.Repeat("x", 100))
	tb.is(o, protocol.StateFailed, protocol.ReasonMoved)
	if o.Progress.Done > 2*chunkRunes {
		t.Errorf("%d characters were typed", o.Progress.Done)
	}
}

func TestPress(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<form onsubmit="event.preventDefault();document.title='sent'"><input id=i aria-label=Field value="one two"></form>
<button id=b onclick="this.textContent='pressed'">Press me</button><pre id=log></pre><script>
addEventListener('keydown', e => { document.getElementById('log').textContent += [e.key, e.code, e.ctrlKey, e.shiftKey, e.isTrusted].join(' ') + ';'; });</script>`)
	press := func(key string, l *protocol.Locator) {
		t.Helper()
		o := tb.must(tb.do(protocol.MethodPress, protocol.PressArguments{Key: key, Locator: l}))
		if o.Effect != protocol.EffectDelivered {
			t.Errorf("%s: %s", key, show(o))
		}
	}
	field := label("Field")
	press("Control+A", &field)
	press("x", &field)
	if v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: &field, Equals: ptr("x")}); !v.Holds {
		t.Errorf("select all and a letter: %s", show(v))
	}
	press("Shift+ArrowLeft", nil)
	press("Backspace", nil)
	if v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: &field, Equals: ptr("")}); !v.Holds {
		t.Errorf("select left and delete: %s", show(v))
	}
	press("Enter", nil)
	if tb.observe().Page.Title != "sent" {
		t.Error("Enter did not submit")
	}
	press("Tab", nil)
	press("Space", nil)
	tb.eventually("pressed")
	want := "Control ControlLeft true false true;a KeyA true false true;x KeyX false false true;" +
		"Shift ShiftLeft false true true;ArrowLeft ArrowLeft false true true;Backspace Backspace false false true;" +
		"Enter Enter false false true;Tab Tab false false true;  Space false false true;"
	if got := tb.text("log"); got != want {
		t.Errorf("the page saw\n%s\nwant\n%s", got, want)
	}
	tb.refused(protocol.ReasonUnknownKey, protocol.MethodPress, protocol.PressArguments{Key: "Ctrl+A"})
	if s := tb.inc.held.snapshot(); len(s.keys) != 0 {
		t.Errorf("still held: %+v", s)
	}
}
