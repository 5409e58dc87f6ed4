package page

import (
	"strings"
	"testing"

	"reins/protocol"
)

func TestLocators(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `
<button>Save  all</button><button data-testid=x1>Save</button>
<label>First <input id=first></label><input placeholder="City name">
<p>Read <b>the guide</b> now</p>
<button style="display:none">Ghost</button>
<button>Twin</button><button>Twin</button>
<div id=h></div>
<iframe id=fr name=inner srcdoc="<button>Framed</button><button>Save</button>" width=300 height=100></iframe>
<script>document.getElementById('h').attachShadow({mode:'open'}).innerHTML = '<button class=deep>Deep</button>';</script>`)
	tb.eventuallyListed("button", "Framed")
	find := func(l protocol.Locator) (*found, *protocol.Problem) { return tb.inc.locate(t.Context(), l, "point") }
	for _, c := range []struct {
		l    protocol.Locator
		name string
	}{
		{button("Save all"), "Save all"},
		{protocol.Locator{Role: "button", Name: "SAVE A", Contains: true}, "Save all"},
		{protocol.Locator{TestID: "x1"}, "Save"},
		{label("First"), "First"},
		{protocol.Locator{Placeholder: "City name"}, "City name"},
		{protocol.Locator{Text: "the guide"}, ""},
		{protocol.Locator{Text: "Read the guide now"}, "Read the guide now"},
		{protocol.Locator{Text: "GUIDE NOW", Contains: true}, "Read the guide now"},
		{css("#first"), "First"},
		{css(".deep"), "Deep"},
		{button("Deep"), "Deep"},
		{button("Framed"), "Framed"},
		{protocol.Locator{Role: "button", Name: "Save", Frame: "inner"}, "Save"},
		{protocol.Locator{Role: "button", Name: "Save", Frame: "fr"}, "Save"},
		{protocol.Locator{Role: "button", Name: "Save", Frame: "about:srcdoc"}, "Save"},
	} {
		f, pr := find(c.l)
		if pr != nil {
			t.Errorf("%+v: %v", c.l, pr)
			continue
		}
		if c.name != "" && f.Name != c.name {
			t.Errorf("%+v is %q", c.l, f.Name)
		}
	}
	for _, c := range []struct {
		l    protocol.Locator
		want protocol.Reason
		n    int
	}{
		{button("Nobody"), protocol.ReasonNotFound, 0},
		{button("save all"), protocol.ReasonNotFound, 0},
		{css("button[style]"), protocol.ReasonNotVisible, 0},
		{button("Twin"), protocol.ReasonAmbiguous, 2},
		{button("Save"), protocol.ReasonAmbiguous, 2}, // one of them in the frame
		{protocol.Locator{Role: "button"}, protocol.ReasonAmbiguous, 7},
		{css("button["), protocol.ReasonBadArguments, 0},
		{protocol.Locator{Role: "button", Frame: "nowhere"}, protocol.ReasonNotFound, 0},
		{protocol.Locator{Ref: "e3.abcdefghi.b"}, protocol.ReasonStaleRef, 0},
		{protocol.Locator{Ref: "rubbish"}, protocol.ReasonStaleRef, 0},
	} {
		_, pr := find(c.l)
		if pr == nil || pr.Reason != c.want || len(pr.Candidates) != c.n {
			t.Errorf("%+v: %s, want %s with %d", c.l, show(pr), c.want, c.n)
		}
	}
	_, pr := find(button("Twin"))
	for _, c := range pr.Candidates {
		if _, pr := find(protocol.Locator{Ref: c.Ref}); pr != nil {
			t.Errorf("the ref of a candidate does not work: %v", pr)
		}
	}
}

func TestRefsAreNeverReused(t *testing.T) {
	t.Parallel()
	body := page(`<div id=list><button id=a>Alpha</button> <a id=l href="/one">Link</a> <input id=i aria-label=Field></div>
<form id=f action="/x"><button>Send</button></form>`)
	tb := open(t, serve(t, map[string]string{"/": body, "/elsewhere": body})+"/")
	ref := func(role, name string) protocol.Ref { return tb.control(tb.observe(), role, name).Ref }
	stale := func(r protocol.Ref, why string) {
		t.Helper()
		pr := tb.refused(protocol.ReasonStaleRef, protocol.MethodClick, protocol.ClickArguments{Locator: &protocol.Locator{Ref: r}})
		if !strings.Contains(pr.Message, why) {
			t.Errorf("%s, want a word about %q", pr.Message, why)
		}
	}
	works := func(r protocol.Ref) {
		t.Helper()
		tb.must(tb.do(protocol.MethodHover, protocol.HoverArguments{Locator: &protocol.Locator{Ref: r}}))
	}
	set := func(js string) { t.Helper(); tb.ask("() => { "+js+" }", nil) }

	alpha := ref("button", "Alpha")
	works(alpha)
	set(`document.getElementById('list').prepend(document.createElement('button'))`)
	works(alpha) // another node in front changes nothing
	set(`document.getElementById('a').textContent = 'Omega'`)
	stale(alpha, "changed")
	omega := ref("button", "Omega")
	if omega == alpha {
		t.Error("a ref was given to what the element became")
	}
	set(`document.getElementById('a').textContent = 'Alpha'`)
	stale(omega, "changed")
	set(`document.getElementById('a').textContent = 'Omega'`)
	works(omega)
	set(`document.getElementById('a').remove()`)
	stale(omega, "gone")

	link := ref("link", "Link")
	set(`document.getElementById('l').href = '/two'`)
	stale(link, "destination")
	send := ref("button", "Send")
	set(`document.getElementById('f').action = '/y'`)
	stale(send, "destination")

	link = ref("link", "Link")
	set(`history.pushState(null, '', '/elsewhere')`)
	stale(link, "another place")
	if again := ref("link", "Link"); again != link {
		t.Errorf("listed again after pushState: %s, before %s", again, link)
	}
	works(link)
	set(`location.hash = 'part'`)
	works(link)

	old := ref("textbox", "Field")
	tb.must(tb.do(protocol.MethodReload, protocol.EmptyArguments{}))
	stale(old, "document")
	if _, _, _, ok := parseRef(old); !ok {
		t.Fatal(old)
	}
	other := strings.Replace(string(ref("textbox", "Field")), "e3.", "e2.", 1)
	stale(protocol.Ref(other), "incarnation")
}

func TestFramesNest(t *testing.T) {
	t.Parallel()
	// A frame of another site in a frame of the same site, with borders, padding
	// and a scaled frame between.
	var base string
	pages := map[string]string{}
	base = serve(t, pages)
	other := strings.Replace(base, "127.0.0.1", "localhost", 1)
	pages["/"] = page(`<style>body{margin:0}</style><div style="height:900px">top</div>
<iframe src="/mid" style="margin-left:50px;border:5px solid;padding:7px;width:700px;height:500px;transform:scale(.8);transform-origin:0 0"></iframe><div style="height:900px"></div>`)
	pages["/mid"] = page(`<div style="height:300px">mid</div><iframe src="` + other + `/leaf" style="border:3px solid;padding:11px;width:400px;height:300px"></iframe>`)
	pages["/leaf"] = page(`<style>body{margin:0}</style><div style="height:500px">leaf</div><button onclick="this.textContent='hit'" style="width:16px;height:12px;padding:0;overflow:hidden">Deep</button><div style="height:300px"></div>`)
	tb := open(t, base+"/")
	tb.eventuallyListed("button", "Deep")
	o := tb.must(tb.click(button("Deep")))
	if o.Effect != protocol.EffectDelivered {
		t.Errorf("effect %q", o.Effect)
	}
	c := tb.control(tb.observe(), "button", "hit")
	if c.Bounds[0] < 0 || c.Bounds[1] < 0 || c.Bounds[1] > 720 || c.Bounds[2] < 12 || c.Bounds[2] > 13.6 {
		t.Errorf("after the click it is in view, scaled by 0.8: %v", c.Bounds)
	}
}
