package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"

	"reins/protocol"
	"reins/targets"
)

// ends runs an operation during which something ends it, at its n-th input.
func (tb *tab) ends(n int, end func(), m protocol.Method, args any) targets.Outcome {
	tb.t.Helper()
	var done sync.WaitGroup
	g := &grant{onUsed: func(used int) {
		if used == n {
			done.Go(end)
		}
	}}
	got, pr := tb.try(g, "", m, args)
	if pr != nil {
		tb.t.Fatal(pr)
	}
	done.Wait()
	return got
}

// TestRunEndsWithItsIncarnation holds that a fence and a crash in the middle end
// an operation at once, and that it is only called failed when nothing written
// is unanswered (I3 of targets).
func TestRunEndsWithItsIncarnation(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("abcdefghij", 60)
	for name, end := range map[string]func(*incarnation){
		"revoked": func(p *incarnation) { _ = p.Revoke(context.Background()) },
		"crashed": func(p *incarnation) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = p.sess.Call(ctx, cdproto.CommandPageCrash, nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := openBody(t, `<textarea aria-label=A></textarea>`)
			begun := time.Now()
			o := tb.ends(40, func() { end(tb.inc) }, protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("A")), Text: text})
			if time.Since(begun) > 8*time.Second {
				t.Errorf("it took %s", time.Since(begun))
			}
			if (o.State == protocol.StateUncertain) != o.Unanswered || o.LastDone != -1 {
				t.Errorf("%s", show(o))
			}
			want := protocol.ReasonFenced
			if name == "crashed" {
				want = protocol.ReasonRendererCrashed
			}
			if o.Reason != want || (o.State != protocol.StateUncertain && o.State != protocol.StateFailed) {
				t.Errorf("%s", show(o))
			}
		})
	}
}

// TestCancelled holds that an operation whose context ends stops at its next
// input and says how far it came.
func TestCancelled(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<textarea aria-label=A></textarea>`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	text := strings.Repeat("abcdefghij", 60)
	c := call(protocol.MethodType, protocol.TypeArguments{Locator: ptr(label("A")), Text: text})
	pre, pr := tb.inc.Prepare(ctx, c)
	if pr != nil {
		t.Fatal(pr)
	}
	o := tb.inc.Run(ctx, c, pre, &grant{onUsed: func(n int) {
		if n == 50 {
			cancel()
		}
	}})
	tb.is(o, protocol.StateFailed, protocol.ReasonCancelled)
	var v string
	tb.ask("() => document.querySelector('textarea').value", &v)
	if o.Progress.Done >= len(text) || v != text[:o.Progress.Done] {
		t.Errorf("the field holds %d characters, %d were reported: %s", len(v), o.Progress.Done, show(o))
	}
}

// TestHungFrame holds that a frame whose process does not answer hides nothing
// of the rest of the page.
func TestHungFrame(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/started" {
			close(started)
			return
		}
		fmt.Fprint(w, page(`<p>busy</p><script>addEventListener('message', () => {
const x = new XMLHttpRequest(); x.open('GET', '/started', false); x.send();
const t = performance.now(); while (performance.now() - t < 6000); });</script>`))
	}))
	defer busy.Close()
	tb := open(t, serve(t, map[string]string{"/": page(`<button onclick="document.title='worked'">Here</button>
<iframe name=busy src="` + strings.Replace(busy.URL, "127.0.0.1", "localhost", 1) + `/busy"></iframe>`)})+"/")
	tb.eventually("busy")
	tb.ask(`() => { frames[0].postMessage('go', '*'); }`, nil)
	<-started
	begun := time.Now()
	o := tb.observe()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("observe took %s", took)
	}
	tb.control(o, "button", "Here")
	if o.Omitted == nil || !strings.Contains(o.Omitted.How, "busy") {
		t.Errorf("the frame that does not answer is not told: %s", show(o.Omitted))
	}
	tb.must(tb.click(button("Here")))
}

// TestFramesTakeKeys types and presses in a frame of another site.
func TestFramesTakeKeys(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	base := serve(t, pages)
	other := strings.Replace(base, "127.0.0.1", "localhost", 1)
	pages["/"] = page(`<input aria-label=Outer><div style="height:900px"></div><iframe src="` + other + `/in" style="width:400px;height:200px"></iframe>`)
	pages["/in"] = page(`<div style="height:600px"></div><input aria-label=Inner><p id=k></p><script>addEventListener('keydown', e => { if (e.key.length > 1) document.getElementById('k').textContent += e.key; })</script>`)
	tb := open(t, base+"/")
	tb.eventuallyListed("textbox", "Inner")
	tb.must(tb.typeIn(label("Outer"), "out"))
	if o := tb.must(tb.typeIn(label("Inner"), "in ü")); o.Effect != protocol.EffectConfirmed {
		t.Errorf("%s", show(o))
	}
	if o := tb.must(tb.do(protocol.MethodPress, protocol.PressArguments{Key: "Home"})); o.Effect != protocol.EffectDelivered {
		t.Errorf("a key to what has the focus: %s", show(o))
	}
	tb.must(tb.do(protocol.MethodType, protocol.TypeArguments{Text: "x"}))
	for name, want := range map[string]string{"Outer": "out", "Inner": "xin ü"} {
		if v := tb.verify(protocol.VerifyArguments{Assert: "value", Locator: ptr(label(name)), Equals: &want}); !v.Holds {
			t.Errorf("%s: %s", name, show(v))
		}
	}
	if o := tb.must(tb.do(protocol.MethodScroll, protocol.ScrollArguments{Locator: ptr(label("Inner")), DY: -300})); o.Effect != protocol.EffectConfirmed {
		t.Errorf("the wheel in a frame: %s", show(o))
	}
}
