package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"reins/protocol"
	"reins/targets"
)

// grant is a permit that counts, and that ends after so many uses.
type grant struct {
	mu     sync.Mutex
	used   int
	begun  int
	most   int // uses allowed; 0: any number
	ended  bool
	onUsed func(n int)
}

func (g *grant) Use() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || (g.most > 0 && g.used >= g.most) {
		return targets.ErrRevoked
	}
	g.used++
	if g.onUsed != nil {
		g.onUsed(g.used)
	}
	return nil
}

func (g *grant) Begin(int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return targets.ErrRevoked
	}
	g.begun++
	return nil
}

func (g *grant) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// tab is a Page under test.
type tab struct {
	t   *testing.T
	inc *incarnation
}

// serve answers with pages written in a test, the files of testdata/cases, and
// routes that never end.
func serve(t *testing.T, pages map[string]string) string {
	t.Helper()
	stop := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/cases/", http.StripPrefix("/cases/", http.FileServer(http.Dir("testdata/cases"))))
	mux.HandleFunc("/cases/hang/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		hang(r, stop)
	})
	mux.HandleFunc("/cases/hang/", func(_ http.ResponseWriter, r *http.Request) { hang(r, stop) })
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { hang(r, stop) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		fmt.Fprint(w, "a,b\n1,2\n")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() { close(stop); s.CloseClientConnections(); s.Close() })
	return s.URL
}

func hang(r *http.Request, stop <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-stop:
	}
}

// page is a whole document around a body.
func page(body string) string { return "<!doctype html><meta charset=utf-8><title>T</title>" + body }

// open makes a new Page in the shared browser and loads a URL.
func open(t *testing.T, url string) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	spec := targets.Spec{Resource: resource(), Generation: 3, URL: "about:blank", Viewport: protocol.Viewport{Width: 1280, Height: 720, Scale: 1}}
	inc, _, err := sharedHost(t).Attach(ctx, spec)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	tb := &tab{t: t, inc: inc.(*incarnation)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := inc.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Logf("close: %v", err)
		}
	})
	if url != "" {
		tb.must(tb.do(protocol.MethodNavigate, protocol.NavigateArguments{URL: url}))
	}
	return tb
}

var resourceCount struct {
	sync.Mutex
	n int
}

func resource() protocol.ResourceID {
	resourceCount.Lock()
	defer resourceCount.Unlock()
	resourceCount.n++
	return protocol.ResourceID(fmt.Sprintf("pg_test%d", resourceCount.n))
}

// openBody opens a page with that body.
func openBody(t *testing.T, body string) *tab {
	t.Helper()
	return open(t, serve(t, map[string]string{"/": page(body)})+"/")
}

// try prepares and runs one operation.
func (tb *tab) try(g *grant, geometry string, m protocol.Method, args any) (targets.Outcome, *protocol.Problem) {
	tb.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		tb.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := targets.Call{Operation: "op", Method: m, Arguments: raw, Geometry: geometry}
	pre, pr := tb.inc.Prepare(ctx, c)
	if pr != nil {
		return targets.Outcome{}, pr
	}
	return tb.inc.Run(ctx, c, pre, g), nil
}

// do runs one operation that has to be admitted.
func (tb *tab) do(m protocol.Method, args any) targets.Outcome {
	tb.t.Helper()
	o, pr := tb.try(&grant{}, "", m, args)
	if pr != nil {
		tb.t.Fatalf("%s %+v was refused: %v", m, args, pr)
	}
	return o
}

// refused expects that an operation is refused for that reason.
func (tb *tab) refused(want protocol.Reason, m protocol.Method, args any) *protocol.Problem {
	tb.t.Helper()
	g := &grant{}
	o, pr := tb.try(g, "", m, args)
	if pr == nil {
		tb.t.Fatalf("%s %+v was not refused but %+v", m, args, o)
	}
	if pr.Reason != want {
		tb.t.Fatalf("%s: refused for %v, want %s", m, pr, want)
	}
	if g.used != 0 || g.begun != 0 {
		tb.t.Fatalf("%s: refused, and %d inputs were given", m, g.used)
	}
	return pr
}

// must expects that an operation was applied.
func (tb *tab) must(o targets.Outcome) targets.Outcome {
	tb.t.Helper()
	if o.State != protocol.StateApplied || o.LastDone < 0 {
		tb.t.Fatalf("not applied: %s", show(o))
	}
	return o
}

// is expects a state and a reason.
func (tb *tab) is(o targets.Outcome, s protocol.State, r protocol.Reason) targets.Outcome {
	tb.t.Helper()
	if o.State != s || o.Reason != r {
		tb.t.Fatalf("want %s/%s, got %s", s, r, show(o))
	}
	return o
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}

func (tb *tab) click(l protocol.Locator) targets.Outcome {
	tb.t.Helper()
	return tb.do(protocol.MethodClick, protocol.ClickArguments{Locator: &l})
}

func (tb *tab) fill(l protocol.Locator, text string) targets.Outcome {
	tb.t.Helper()
	return tb.do(protocol.MethodFill, protocol.FillArguments{Locator: &l, Text: text})
}

func (tb *tab) typeIn(l protocol.Locator, text string) targets.Outcome {
	tb.t.Helper()
	return tb.do(protocol.MethodType, protocol.TypeArguments{Locator: &l, Text: text})
}

func button(name string) protocol.Locator { return protocol.Locator{Role: "button", Name: name} }
func label(name string) protocol.Locator  { return protocol.Locator{Label: name} }
func css(q string) protocol.Locator       { return protocol.Locator{CSS: q} }

// read looks at the page.
func (tb *tab) read(m protocol.Method, args any) (protocol.ReadReply, string) {
	tb.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		tb.t.Fatal(err)
	}
	return tb.inc.Read(context.Background(), protocol.ReadRequest{Method: m, Arguments: raw})
}

// look observes and expects an observation.
func (tb *tab) look(a protocol.ObserveArguments) (*protocol.Observation, string) {
	tb.t.Helper()
	r, g := tb.read(protocol.MethodObserve, a)
	if r.Observation == nil {
		tb.t.Fatalf("observe: %+v", r.Problem)
	}
	return r.Observation, g
}

func (tb *tab) observe() *protocol.Observation {
	tb.t.Helper()
	o, _ := tb.look(protocol.ObserveArguments{})
	return o
}

// control finds a listed control.
func (tb *tab) control(o *protocol.Observation, role, name string) protocol.Control {
	tb.t.Helper()
	for _, c := range o.Controls {
		if c.Role == role && c.Name == name {
			return c
		}
	}
	tb.t.Fatalf("no %s %q in %s", role, name, show(o.Controls))
	return protocol.Control{}
}

// ask evaluates a function in the page, through the isolated world's DOM.
func (tb *tab) ask(fn string, out any) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := retry(ctx, tb.inc, func() (bool, error) {
		f := tb.inc.mainFrame()
		if f == nil {
			return false, errNoDocument
		}
		return true, f.call(ctx, fn, out)
	})
	if err != nil {
		tb.t.Fatalf("asking the page: %v", err)
	}
}

// text is the text of the element with that id.
func (tb *tab) text(id string) string {
	tb.t.Helper()
	var s string
	tb.ask("() => { const e = document.getElementById("+quote(id)+"); return e ? e.textContent : '(none)'; }", &s)
	return s
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// eventually waits until the page says so.
func (tb *tab) eventually(text string) {
	tb.t.Helper()
	raw, _ := json.Marshal(protocol.WaitArguments{Text: text})
	r, _ := tb.inc.Read(context.Background(), protocol.ReadRequest{Method: protocol.MethodWait, Arguments: raw, DeadlineMS: 10000})
	if r.Verdict == nil || !r.Verdict.Holds {
		tb.t.Fatalf("%q never came: %s", text, show(r))
	}
}

// holds verifies an assertion.
func (tb *tab) verify(a protocol.VerifyArguments) *protocol.Verdict {
	tb.t.Helper()
	r, _ := tb.read(protocol.MethodVerify, a)
	if r.Verdict == nil {
		tb.t.Fatalf("verify %+v: %+v", a, r.Problem)
	}
	return r.Verdict
}

// result compares what a case's page recorded with what is expected, by path.
func (tb *tab) result(want map[string]any) {
	tb.t.Helper()
	var got map[string]any
	tb.ask("() => JSON.parse(document.getElementById('result').textContent)", &got)
	for path, v := range want {
		have := at(got, path)
		if !reflect.DeepEqual(norm(have), norm(v)) {
			tb.t.Errorf("%s is %v, want %v; all: %s", path, have, v, show(got))
		}
	}
}

func at(v any, path string) any {
	for _, k := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// norm makes values comparable as JSON; an absent count is 0.
func norm(v any) any {
	if v == nil {
		return 0.0
	}
	b, _ := json.Marshal(v)
	var out any
	_ = json.Unmarshal(b, &out)
	return out
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// shared is the one browser of all tests of acting.
var shared struct {
	once sync.Once
	host *Host
	dir  string
	err  error
}

func sharedHost(t *testing.T) *Host {
	t.Helper()
	shared.once.Do(func() {
		shared.dir, shared.err = os.MkdirTemp("", "reins-act")
		if shared.err != nil {
			return
		}
		if shared.err = os.Chmod(shared.dir, 0o755); shared.err != nil {
			return
		}
		shared.host = New(Options{
			ProfileDir: filepath.Join(shared.dir, "profile"), DownloadDir: filepath.Join(shared.dir, "downloads"),
			Seams: protocol.Seams{At: func(s protocol.Step, r protocol.ResourceID, op protocol.OperationID) { passed(s, r) }},
		})
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		_, shared.err = shared.host.Start(ctx)
	})
	if shared.err != nil {
		t.Fatalf("the shared browser: %v", shared.err)
	}
	return shared.host
}

// stopShared ends the shared browser.
func stopShared() {
	if shared.host != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = shared.host.Stop(ctx)
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}

// steps are the steps that operations passed, by resource.
var steps struct {
	sync.Mutex
	of map[protocol.ResourceID][]protocol.Step
	at func(protocol.Step)
}

func passed(s protocol.Step, r protocol.ResourceID) {
	steps.Lock()
	if steps.of == nil {
		steps.of = map[protocol.ResourceID][]protocol.Step{}
	}
	steps.of[r] = append(steps.of[r], s)
	at := steps.at
	steps.Unlock()
	if at != nil {
		at(s)
	}
}

func call(m protocol.Method, args any) targets.Call {
	raw, _ := json.Marshal(args)
	return targets.Call{Operation: "op", Method: m, Arguments: raw}
}

func withTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}
