package page

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"reins/protocol"
	"reins/targets"
)

func (tb *tab) navigate(url string) targets.Outcome {
	tb.t.Helper()
	return tb.do(protocol.MethodNavigate, protocol.NavigateArguments{URL: url})
}

func TestNavigate(t *testing.T) {
	t.Parallel()
	base := serve(t, map[string]string{"/a": page(`<h1>A</h1>`), "/b": page(`<h1>B</h1><a href="/a">to A</a><a href="#x">part</a>`)})
	tb := open(t, base+"/a")
	o := tb.must(tb.navigate(base + "/b?token=geheim&x=1"))
	if o.Effect != protocol.EffectConfirmed || !o.Navigated || o.Page.HTTPStatus != 200 || o.Page.Title != "T" || !o.Page.Settled {
		t.Errorf("%s", show(o))
	}
	if strings.Contains(show(o), "geheim") {
		t.Errorf("the URL is told with its secret: %s", show(o.Page))
	}
	if o := tb.must(tb.navigate(base + "/b#y")); o.Effect != protocol.EffectConfirmed {
		t.Errorf("to a fragment: %s", show(o))
	}
	if o := tb.must(tb.navigate(base + "/missing")); o.Page.HTTPStatus != 404 {
		t.Errorf("404: %s", show(o.Page))
	}
	tb.must(tb.navigate("about:blank"))
	for url, want := range map[string]protocol.Reason{
		"file:///etc/passwd": protocol.ReasonURLNotAllowed, "javascript:alert(1)": protocol.ReasonURLNotAllowed,
		"http://u:p@127.0.0.1/": protocol.ReasonURLCredentials, "rubbish": protocol.ReasonURLInvalid,
	} {
		tb.refused(want, protocol.MethodNavigate, protocol.NavigateArguments{URL: url})
	}
}

func TestNavigateFailures(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}))
	defer cut.Close()
	base := serve(t, map[string]string{"/": page(`<h1>Start</h1>`)})
	tb := open(t, base+"/")
	for _, c := range []struct {
		url  string
		want protocol.Reason
	}{
		{"http://" + closedPort(t) + "/", protocol.ReasonConnRefused},
		{"http://no-such-host.invalid/", protocol.ReasonNameNotResolved},
		{secure.URL + "/", protocol.ReasonCertificate},
		{cut.URL + "/", protocol.ReasonConnection},
	} {
		o := tb.is(tb.navigate(c.url), protocol.StateFailed, c.want)
		if o.LastDone != -1 || o.Unanswered || o.Effect != protocol.EffectNone || !strings.Contains(o.Message, "ERR_") {
			t.Errorf("%s: %s", c.url, show(o))
		}
	}
	// The page can be used again afterwards.
	tb.must(tb.navigate(base + "/"))
	o := tb.must(tb.navigate(base + "/file"))
	if o.Reason != protocol.ReasonDownloadStarted || o.Navigated || !strings.HasSuffix(o.Page.URL, "/") {
		t.Errorf("a download: %s", show(o))
	}
	c := call(protocol.MethodNavigate, protocol.NavigateArguments{URL: base + "/hang"})
	pre, pr := tb.inc.Prepare(t.Context(), c)
	if pr != nil {
		t.Fatal(pr)
	}
	ctx, cancel := withTimeout(t, 1500*time.Millisecond)
	defer cancel()
	begun := time.Now()
	o = tb.is(tb.inc.Run(ctx, c, pre, &grant{}), protocol.StateFailed, protocol.ReasonNavigationSlow)
	if time.Since(begun) > 2500*time.Millisecond || o.Unanswered {
		t.Errorf("after %s: %s", time.Since(begun), show(o))
	}
	if v := tb.verify(protocol.VerifyArguments{Assert: "text", Text: "Start"}); !v.Holds {
		t.Errorf("the page stays as it was: %s", show(v))
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	hits := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/favicon.ico" {
			hits++
		}
		fmt.Fprintf(w, "<!doctype html><title>%s</title><h1>at %s</h1>", r.URL.Path, r.URL.Path)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	tb := open(t, s.URL+"/one")
	tb.refused(protocol.ReasonNoHistory, protocol.MethodForward, protocol.EmptyArguments{})
	tb.must(tb.navigate(s.URL + "/two"))
	at := func(o targets.Outcome, path string) {
		t.Helper()
		tb.must(o)
		if o.Effect != protocol.EffectConfirmed || !strings.HasSuffix(o.Page.URL, path) {
			t.Errorf("want %s: %s", path, show(o))
		}
		if v := tb.verify(protocol.VerifyArguments{Assert: "text", Text: "at " + strings.TrimSuffix(path, "#p")}); !v.Holds {
			t.Errorf("%s: %s", path, show(v))
		}
	}
	at(tb.do(protocol.MethodBack, protocol.EmptyArguments{}), "/one")
	at(tb.do(protocol.MethodForward, protocol.EmptyArguments{}), "/two")
	before := hits
	at(tb.do(protocol.MethodReload, protocol.EmptyArguments{}), "/two")
	if hits != before+1 {
		t.Errorf("reload made %d requests", hits-before)
	}
	// A fragment is a place of its own in the history, of the same document.
	at(tb.navigate(s.URL+"/two#p"), "/two#p")
	at(tb.do(protocol.MethodBack, protocol.EmptyArguments{}), "/two")
	s.Close()
	tb.is(tb.do(protocol.MethodReload, protocol.EmptyArguments{}), protocol.StateFailed, protocol.ReasonConnRefused)
}

func TestClickNavigates(t *testing.T) {
	t.Parallel()
	tb := open(t, serve(t, map[string]string{
		"/":     page(`<a href="/next">Go on</a>`),
		"/next": page(`<h1>Next</h1>`),
	})+"/")
	o := tb.must(tb.click(protocol.Locator{Role: "link", Name: "Go on"}))
	if o.Effect != protocol.EffectDelivered || !o.Navigated || !strings.HasSuffix(o.Page.URL, "/next") || !o.Page.Settled {
		t.Errorf("%s", show(o))
	}
	if v := tb.verify(protocol.VerifyArguments{Assert: "text", Text: "Next"}); !v.Holds {
		t.Errorf("%s", show(v))
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	tb := open(t, serve(t, map[string]string{"/": page(`<a href="/file">Report</a><a href="#none">Nothing</a>`)})+"/")
	o := tb.must(tb.do(protocol.MethodDownload, protocol.DownloadArguments{Locator: &protocol.Locator{Role: "link", Name: "Report"}}))
	d := o.Download
	if o.Effect != protocol.EffectConfirmed || d == nil || d.Name != "report.csv" || d.Bytes != 8 || d.State != "completed" ||
		d.SHA256 != "492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470" {
		t.Fatalf("%s", show(o))
	}
	if b, err := os.ReadFile(d.Path); err != nil || string(b) != "a,b\n1,2\n" {
		t.Errorf("%q %v", b, err)
	}
}

func TestBeforeUnload(t *testing.T) {
	t.Parallel()
	base := serve(t, map[string]string{
		"/":  page(`<button>Touch</button><script>addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'x'; })</script>`),
		"/b": page(`<h1>B</h1>`),
	})
	tb := open(t, base+"/")
	tb.must(tb.click(button("Touch"))) // the browser asks only where somebody did something
	o := tb.must(tb.navigate(base + "/b"))
	if d := o.Page.Dialog; o.Reason != protocol.ReasonDialogOpen || d == nil || d.Type != "beforeunload" || o.Navigated {
		t.Fatalf("%s", show(o))
	}
	o = tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: false}))
	if o.Page.Dialog != nil || strings.HasSuffix(o.Page.URL, "/b") {
		t.Fatalf("stayed: %s", show(o))
	}
	o = tb.must(tb.navigate(base + "/b"))
	if o.Page.Dialog == nil {
		t.Fatalf("%s", show(o))
	}
	tb.must(tb.do(protocol.MethodDialog, protocol.DialogArguments{Accept: true}))
	tb.eventually("B")
}

func TestViewport(t *testing.T) {
	t.Parallel()
	tb := openBody(t, `<h1>Size</h1>`)
	o := tb.must(tb.do(protocol.MethodViewport, protocol.ViewportArguments{Width: 640, Height: 480}))
	if o.Effect != protocol.EffectConfirmed || !strings.HasPrefix(o.Geometry, "640x480@1") {
		t.Errorf("%s", show(o))
	}
	if ob := tb.observe(); ob.Viewport.Width != 640 || ob.Viewport.Height != 480 {
		t.Errorf("%s", show(ob.Viewport))
	}
	tb.refused(protocol.ReasonBadArguments, protocol.MethodViewport, protocol.ViewportArguments{Width: 0, Height: 5})
}
