package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reins/protocol"
	"reins/protocol/nats"
)

// childEnv holds the Config of a daemon that this binary is to run instead of
// tests, so that a test can kill a whole daemon.
const childEnv = "REINS_TEST_DAEMON"

func TestMain(m *testing.M) {
	if raw := os.Getenv(childEnv); raw != "" {
		runChild(raw)
	}
	goleak.VerifyTestMain(m,
		// The actor library's dead-letter throttle has no end; it is one a system.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// child is what a daemon in a process of its own is started with.
type child struct{ StateDir, ProfileDir string }

func runChild(raw string) {
	var c child
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := Run(ctx, Config{StateDir: c.StateDir, ProfileDir: c.ProfileDir, Writes: -1, URLs: -1,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// spawn runs the daemon in a process of its own.
func (w *world) spawn() {
	w.t.Helper()
	w.config.StateDir, w.config.ProfileDir = openTemp(w.t), filepath.Join(openTemp(w.t), "profiles")
	w.respawn()
	w.t.Cleanup(func() { w.kill() })
}

func (w *world) respawn() {
	w.t.Helper()
	w.process = exec.Command(os.Args[0])
	w.process.Env = append(os.Environ(), childEnv+"="+show(child{w.config.StateDir, w.config.ProfileDir}))
	w.process.Stderr = os.Stderr
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends the daemon's process with SIGKILL.
func (w *world) kill() {
	if w.process == nil {
		return
	}
	_ = w.process.Process.Kill()
	_ = w.process.Wait() // killed: its error says so
	w.process = nil
}

// patience is the deadline of whatever a test waits for; nothing is timed by it.
const patience = 60 * time.Second

// world is a daemon with a browser, clients, and a web server that counts.
type world struct {
	t      *testing.T
	config Config
	d      *Daemon
	web    *site
	// process is the daemon where it runs in one of its own.
	process *exec.Cmd
	n       atomic.Int64
}

// newWorld starts a daemon on a fresh state directory.
func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, web: newSite(t)}
	w.config = Config{StateDir: openTemp(t), Writes: -1, URLs: -1, Logger: testLogger(t)}
	for _, f := range change {
		f(&w.config)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// openTemp is a temporary directory that the browser's user can pass through.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reins-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "state")
}

// testLogger shows warnings where a test is run with -v, through the test's own log.
func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(&logWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type logWriter struct {
	mu   sync.Mutex
	t    *testing.T
	done bool
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

func (w *world) start() {
	w.t.Helper()
	lw := &logWriter{t: w.t}
	w.t.Cleanup(func() { lw.mu.Lock(); lw.done = true; lw.mu.Unlock() })
	w.config.Logger = slog.New(slog.NewTextHandler(lw, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := Start(ctx, w.config)
	if err != nil {
		w.t.Fatalf("starting the daemon: %v", err)
	}
	w.d = d
}

func (w *world) stop() {
	if w.d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.d.Close(ctx); err != nil {
		w.t.Errorf("stopping the daemon: %v", err)
	}
	w.d = nil
}

// client connects as an owner.
func (w *world) client(owner string) *client {
	w.t.Helper()
	if owner != "cli" {
		if _, err := nats.AddOwner(w.config.StateDir, owner); err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var c *nats.Client
	for err := error(nil); c == nil; {
		c, err = nats.Dial(ctx, nats.ClientOptions{StateDir: w.config.StateDir, Owner: protocol.OwnerID(owner), Name: "test"})
		if err != nil && (w.process == nil || ctx.Err() != nil) {
			w.t.Fatalf("connecting as %s: %v", owner, err)
		}
		if err != nil { // a daemon that has just been spawned
			<-time.After(20 * time.Millisecond)
		}
	}
	cl := &client{w: w, t: w.t, Client: c}
	w.t.Cleanup(cl.close)
	return cl
}

type client struct {
	w *world
	t *testing.T
	*nats.Client
	once sync.Once
}

func (c *client) close() { c.once.Do(func() { c.Client.Close() }) }

func args(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type m = map[string]any

func (c *client) id() protocol.OperationID {
	return protocol.OperationID(fmt.Sprintf("op-%d", c.w.n.Add(1)))
}

// send sends a request as it is and returns the receipt.
func (c *client) send(r protocol.Request) protocol.Receipt {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	rc, err := c.Do(ctx, r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", r.Method, r.OperationID, err)
	}
	return rc
}

// do sends a write under a new id and the generation that the page has now.
func (c *client) do(id protocol.ResourceID, method protocol.Method, a any) protocol.Receipt {
	c.t.Helper()
	return c.send(protocol.Request{OperationID: c.id(), Resource: id, Generation: c.record(id).Generation, Method: method, Arguments: args(c.t, a)})
}

// with sends a write with the token of an observation.
func (c *client) with(o protocol.Observation, method protocol.Method, a any) protocol.Receipt {
	c.t.Helper()
	return c.send(protocol.Request{OperationID: c.id(), Resource: o.Target.Resource, Generation: o.Generation, Observation: o.Token, Method: method, Arguments: args(c.t, a)})
}

func (c *client) open(url string) protocol.Receipt {
	c.t.Helper()
	return c.send(protocol.Request{OperationID: c.id(), Method: protocol.MethodOpen, Arguments: args(c.t, m{"kind": "page", "url": url})})
}

// opened opens a page that must come.
func (c *client) opened(url string) protocol.ResourceID {
	c.t.Helper()
	rc := c.open(url)
	if rc.State != protocol.StateApplied {
		c.t.Fatalf("open %s: %s", url, show(rc))
	}
	return rc.Resource
}

func (c *client) read(id protocol.ResourceID, method protocol.Method, a any) protocol.ReadReply {
	c.t.Helper()
	return c.readWithin(patience, id, method, a)
}

func (c *client) readWithin(d time.Duration, id protocol.ResourceID, method protocol.Method, a any) protocol.ReadReply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	r, err := c.Read(ctx, protocol.ReadRequest{Resource: id, Method: method, Arguments: args(c.t, a), DeadlineMS: d.Milliseconds()})
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return r
}

func (c *client) observe(id protocol.ResourceID) protocol.Observation {
	c.t.Helper()
	r := c.read(id, protocol.MethodObserve, m{})
	if r.Observation == nil {
		c.t.Fatalf("observe %s: %+v", id, r.Problem)
	}
	return *r.Observation
}

func (c *client) record(id protocol.ResourceID) protocol.Record {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := c.Resources(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range all {
		if r.ID == id {
			return r
		}
	}
	c.t.Fatalf("no resource %s in %d records", id, len(all))
	return protocol.Record{}
}

// until waits for a record to be as wanted.
func (c *client) until(id protocol.ResourceID, what string, ok func(protocol.Record) bool) protocol.Record {
	c.t.Helper()
	end := time.Now().Add(patience)
	for {
		r := c.record(id)
		if ok(r) {
			return r
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s did not become %s: %+v", id, what, r)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (c *client) ready(id protocol.ResourceID, gen protocol.Generation) protocol.Record {
	c.t.Helper()
	return c.until(id, fmt.Sprintf("ready at generation %d or later", gen), func(r protocol.Record) bool {
		return r.Lifecycle == protocol.LifecycleReady && r.Generation >= gen
	})
}

func button(name string) m { return m{"locator": m{"role": "button", "name": name}} }

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// is fails the test unless the receipt has this state and reason.
func is(t *testing.T, rc protocol.Receipt, state protocol.State, why protocol.Reason) {
	t.Helper()
	if rc.State != state || rc.Reason != why {
		t.Fatalf("got %s/%s, want %s/%s: %s", rc.State, rc.Reason, state, why, show(rc))
	}
}

// result is what a case's page says happened.
func (c *client) result(id protocol.ResourceID) m {
	c.t.Helper()
	var out m
	o := c.observe(id)
	for _, line := range o.Text {
		if i := strings.Index(line, "{"); i >= 0 && json.Unmarshal([]byte(line[i:]), &out) == nil && out["counts"] != nil {
			return out
		}
	}
	c.t.Fatalf("the page shows no result: %q", o.Text)
	return nil
}

func count(r m, name string) int {
	n, _ := r["counts"].(map[string]any)[name].(float64)
	return int(n)
}

// site is a web server outside of everything that is killed. It counts the GETs
// of each path and what pages report to /ledger?did=….
type site struct {
	*httptest.Server
	mu     sync.Mutex
	gets   map[string]int
	ledger []string
	hold   map[string]chan struct{}
}

func newSite(t *testing.T) *site {
	s := &site{gets: map[string]int{}, hold: map[string]chan struct{}{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

const casesDir = "../../../targets/page/testdata/cases"

// ServeHTTP serves /cases/NAME, /page/NAME (a small page of that name), /ledger.
func (s *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	key := r.URL.RequestURI()
	s.mu.Lock()
	s.gets[key]++
	wait := s.hold[r.URL.Path]
	s.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-r.Context().Done():
			return
		}
	}
	name := strings.TrimPrefix(r.URL.Path, "/cases/")
	switch {
	case r.URL.Path == "/ledger":
		s.mu.Lock()
		s.ledger = append(s.ledger, r.URL.Query().Get("did"))
		s.mu.Unlock()
	case name != r.URL.Path:
		http.ServeFile(rw, r, filepath.Join(casesDir, filepath.Base(name)))
	case strings.HasPrefix(r.URL.Path, "/page/"):
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, ledgerPage, r.URL.Path)
	default:
		http.NotFound(rw, r)
	}
}

const ledgerPage = `<!doctype html><html lang=en><title>%[1]s</title><link rel=icon href="data:,">
<h1>%[1]s</h1><button id=a>Alpha</button><button id=b>Beta</button><label>Name <input id=n></label>
<script>for (const b of document.querySelectorAll('button')) b.onclick = () => {
 const x = new XMLHttpRequest(); x.open('GET', '/ledger?did=' + encodeURIComponent(b.textContent), false); x.send() }
</script>`

func (s *site) did() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ledger...)
}

func (s *site) got(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets[path]
}
