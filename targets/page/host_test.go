package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"

	"reins/protocol"
	"reins/targets"
)

// parentEnv makes the test binary a daemon that starts a browser and waits to
// be killed.
const parentEnv = "REINS_TEST_PARENT_OF_BROWSER"

func init() {
	if dir := os.Getenv(parentEnv); dir != "" {
		actAsParent(dir)
		os.Exit(1)
	}
}

func actAsParent(dir string) {
	h := New(Options{ProfileDir: filepath.Join(dir, "profile")})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := h.Start(ctx); err != nil {
		fmt.Println("failed:", err)
		return
	}
	for _, r := range []protocol.ResourceID{"pg_a", "pg_b"} {
		if _, _, err := h.Attach(ctx, targets.Spec{Resource: r, Generation: 1}); err != nil {
			fmt.Println("failed:", err)
			return
		}
	}
	fmt.Println("ready")
	select {}
}

// patience bounds everything that a loaded machine may take long for.
const patience = 60 * time.Second

// browserDir is a directory that the browser's ordinary user can reach.
func browserDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reins-page")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// own names a resource of one test in the browser that tests share.
func own(t *testing.T, name string) protocol.ResourceID {
	return protocol.ResourceID("pg_" + t.Name() + "_" + name)
}

// startHost starts a browser of the test's own and stops it at its end.
func startHost(t *testing.T, change func(*Options)) *Host {
	t.Helper()
	dir := browserDir(t)
	o := Options{ProfileDir: filepath.Join(dir, "profile"), DownloadDir: filepath.Join(dir, "downloads")}
	if change != nil {
		change(&o)
	}
	h := New(o)
	if _, err := h.Start(within(t)); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Stop(within(t)); err != nil {
			t.Errorf("stop: %v", err)
		}
		noProcesses(t, o)
	})
	return h
}

// attachTo attaches to a resource, and closes it at the end of the test.
func attachTo(t *testing.T, h *Host, s targets.Spec) (*incarnation, bool) {
	t.Helper()
	p, loaded, err := h.attach(within(t), s)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	t.Cleanup(func() { _ = h.Destroy(within(t), s.Resource) })
	return p, loaded
}

// eval runs an expression in the page's own world.
func eval(t *testing.T, p *incarnation, expression string) string {
	t.Helper()
	return evalIn(t, p.frames()[0], expression)
}

func evalIn(t *testing.T, f *frame, expression string) string {
	t.Helper()
	var res struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := f.sess.Call(ctx, cdproto.CommandRuntimeEvaluate, map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true,
	}, &res)
	if err != nil {
		t.Fatalf("evaluating %q: %v", expression, err)
	}
	return fmt.Sprint(res.Result.Value)
}

// begin starts a command whose answer does not matter.
func begin(t *testing.T, p *incarnation, method string, params any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := p.sess.Start(ctx, method, params); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// next waits for an event of a kind.
func next(t *testing.T, p *incarnation, kind targets.EventKind) targets.Event {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case ev, ok := <-p.Events():
			if !ok {
				t.Fatalf("the incarnation ended without an event %q", kind)
			}
			if ev.Kind == kind {
				return ev
			}
		case <-timeout:
			t.Fatalf("no event %q", kind)
		}
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// noProcesses checks that nothing of a browser is left: by its arguments, and
// by its user where that is one of its own.
func noProcesses(t *testing.T, o Options) {
	t.Helper()
	eventually(t, "no process of the browser is left", func() bool { return len(processesOf(o)) == 0 })
}

func processesOf(o Options) []int {
	pids := leftovers(o)
	id := browserIdentity(o)
	if !id.other() {
		return pids
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return pids
	}
	for _, e := range entries {
		fi, err := os.Stat("/proc/" + e.Name())
		if err != nil {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(e.Name(), "%d", &pid); err != nil {
			continue
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) == id.uid && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// site is a server that counts what it is asked for.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
	hold chan struct{} // closed: /held answers
	held int           // requests to /wait under way
}

func newSite(t *testing.T, pages map[string]string) *site {
	t.Helper()
	s := &site{hold: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		switch r.URL.Path {
		case "/held":
			select {
			case <-s.hold:
			case <-r.Context().Done():
			}
			fmt.Fprint(w, "<title>held</title>")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<title>missing</title>")
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="of the host.txt"`)
			fmt.Fprint(w, "hello")
		case "/moved":
			http.Redirect(w, r, "http://localhost:"+r.Host[strings.LastIndexByte(r.Host, ':')+1:]+"/plain", http.StatusFound)
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "lasting", Value: "l1", MaxAge: 86400, SameSite: http.SameSiteLaxMode})
			fmt.Fprint(w, "<title>cookie</title>")
		case "/echo":
			fmt.Fprintf(w, "<title>echo</title><body>%s", r.Header.Get("Cookie"))
		case "/wait": // a synchronous request to it blocks a page without load on the machine
			d, _ := time.ParseDuration(r.URL.Query().Get("for"))
			s.waits(1)
			defer s.waits(-1)
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		default:
			body, ok := pages[r.URL.Path]
			if !ok {
				body = "<title>plain</title><body>plain"
			}
			fmt.Fprint(w, strings.ReplaceAll(body, "PORT", r.Host[strings.LastIndexByte(r.Host, ':')+1:]))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) waits(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += n
}

// waiting is how many pages are blocked.
func (s *site) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// count is how often a path was asked for.
func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.seen {
		if o == "GET "+path {
			n++
		}
	}
	return n
}

func TestRendererCrashEndsOnlyItsPage(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil)
	s := newSite(t, nil)
	p, loaded := attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 1, URL: s.URL + "/one"})
	q, _ := attachTo(t, h, targets.Spec{Resource: "pg_2", Generation: 1, URL: s.URL + "/two"})
	if !loaded {
		t.Fatal("a new Page is not said to be loaded")
	}
	if ev := next(t, p, targets.EventNavigated); ev.Page.URL != s.URL+"/one" || ev.Page.Document == "" {
		t.Errorf("navigated: %+v", ev.Page)
	}
	eventually(t, "its title and status are known", func() bool {
		snap := p.Snapshot()
		return snap.Title == "plain" && snap.HTTPStatus == 200
	})
	begin(t, p, cdproto.CommandPageCrash, map[string]any{})
	if ev := next(t, p, targets.EventCrashed); ev.Reason != protocol.ReasonRendererCrashed {
		t.Errorf("crashed: %+v", ev)
	}
	if _, ok := <-p.Events(); ok {
		t.Error("an event after the end")
	}
	if got := eval(t, q, "1+1"); got != "2" {
		t.Errorf("the other Page: %s", got)
	}
	p, loaded = attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 2, URL: s.URL + "/one"})
	if !loaded || s.count("/one") != 2 {
		t.Errorf("after a crash: loaded %v, %d requests", loaded, s.count("/one"))
	}
	eventually(t, "the new tab has loaded", func() bool { return eval(t, p, "document.title") == "plain" })
}

func TestKilledBrowserGoesDownAndComesBack(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil)
	s := newSite(t, nil)
	p, _ := attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 1, URL: s.URL + "/one"})
	b := h.browser()
	if err := syscall.Kill(b.proc.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ev := next(t, p, targets.EventCrashed); ev.Reason != protocol.ReasonBackendUnavailable {
		t.Errorf("crashed: %+v", ev)
	}
	select {
	case <-b.down:
	case <-within(t).Done():
		t.Fatal("down was never closed")
	}
	noProcesses(t, b.opts)
	if _, _, err := h.Attach(within(t), targets.Spec{Resource: "pg_1", Generation: 2}); !isProblem(err, protocol.ReasonBackendUnavailable) {
		t.Errorf("attach without a browser: %v", err)
	}
	if _, err := h.Start(within(t)); err != nil {
		t.Fatalf("start again: %v", err)
	}
	p, loaded := attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 2, URL: s.URL + "/one"})
	if !loaded || s.count("/one") != 2 || p.Snapshot().URL != s.URL+"/one" {
		t.Errorf("restored: loaded %v, %d requests, %+v", loaded, s.count("/one"), p.Snapshot())
	}
}

func isProblem(err error, r protocol.Reason) bool {
	var pr *protocol.Problem
	return errors.As(err, &pr) && pr.Reason == r
}

func TestNoBrowserOutlivesItsParent(t *testing.T) {
	t.Parallel()
	dir := browserDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the parent said %q: %v", line, err)
	}
	o := Options{ProfileDir: filepath.Join(dir, "profile")}
	if len(processesOf(o)) < 3 {
		t.Fatal("the browser's processes are not found, so that the test shows nothing")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	noProcesses(t, o)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the browser lived %v longer than its parent", d)
	}
}

func TestStartReapsAnEarlierBrowser(t *testing.T) {
	t.Parallel()
	dir := browserDir(t)
	o := Options{ProfileDir: filepath.Join(dir, "profile")}
	id := browserIdentity(o)
	if err := prepareDirs(within(t), o, id); err != nil {
		t.Fatal(err)
	}
	bin, err := FindBrowser("")
	if err != nil {
		t.Fatal(err)
	}
	// One that nothing ties to its parent, as a daemon of another kind might leave it.
	cmd := exec.Command(bin, "--headless=new", "--remote-debugging-port=0", "--user-data-dir="+o.ProfileDir, "about:blank")
	cmd.Env = browserEnv(o)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: id.credential()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	eventually(t, "the earlier browser locks its profile", func() bool {
		_, err := os.Lstat(filepath.Join(o.ProfileDir, "SingletonLock"))
		return err == nil
	})
	eventually(t, "the earlier browser has rewritten its arguments", func() bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		return err == nil && !strings.Contains(string(args), "\x00--headless")
	})
	h := New(o)
	if _, err := h.Start(within(t)); err != nil {
		t.Fatalf("start: %v", err)
	}
	select {
	case <-ended:
	case <-within(t).Done():
		t.Error("the earlier browser still runs")
	}
	attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 1})
	if err := h.Stop(within(t)); err != nil {
		t.Errorf("stop: %v", err)
	}
	noProcesses(t, o)
}

func TestNamesProfile(t *testing.T) {
	for args, want := range map[string]bool{
		"chromium\x00--user-data-dir=/a/profile\x00about:blank\x00":    true,
		"chromium --user-data-dir=/a/profile about:blank\x00":          true,
		"chromium --user-data-dir=/a/profile":                          true,
		"chromium\x00--user-data-dir=/a/profile2\x00":                  false,
		"x --user-data-dir=/a/profile2 --user-data-dir=/a/profile\x00": true,
		"vi /a/profile\x00": false,
	} {
		if got := namesProfile([]byte(args), "/a/profile"); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

func TestMissingBrowserIsNamed(t *testing.T) {
	t.Parallel()
	dir := browserDir(t)
	script := filepath.Join(dir, "wrapper")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ browser, says string }{
		{filepath.Join(dir, "nothing"), "nothing"},
		{script, "is a script"},
		{"/bin/true", "does not come up"},
	} {
		h := New(Options{Browser: c.browser, ProfileDir: filepath.Join(dir, "profile")})
		_, err := h.Start(within(t))
		if !isProblem(err, protocol.ReasonBackendUnavailable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.browser, err)
		}
	}
	if bin, err := FindBrowser("chromium"); err != nil || bin != "/usr/lib/chromium/chromium" {
		t.Errorf("the command chromium is %q, %v", bin, err)
	}
}
