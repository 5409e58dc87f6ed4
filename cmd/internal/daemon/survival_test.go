package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reins/protocol"
)

// browsers lists the pids of processes of this daemon's profile.
func (w *world) browsers() []int {
	w.t.Helper()
	c, _ := w.config.withDefaults()
	var out []int
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(b), c.ProfileDir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// mainBrowser is the pid of the browser's main process.
func (w *world) mainBrowser() int {
	w.t.Helper()
	for _, pid := range w.browsers() {
		if !strings.Contains(commandLine(pid), "--type=") {
			return pid
		}
	}
	w.t.Fatal("no browser runs")
	return 0
}

// renderers are the pids of the processes that pages live in.
func (w *world) renderers() (out []int) {
	for _, pid := range w.browsers() {
		if strings.Contains(commandLine(pid), "--type=renderer") {
			out = append(out, pid)
		}
	}
	return out
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone: empty
	return string(b)
}

func TestRendererCrash(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/one")
	other := c.opened(w.web.URL + "/page/two")
	o := c.observe(id)
	for _, pid := range w.renderers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	r := c.ready(id, 2)
	if r.Generation != 2 || !strings.HasSuffix(r.URL, "/page/one") {
		t.Fatalf("came back as %s", show(r))
	}
	is(t, c.with(o, protocol.MethodClick, button("Alpha")), protocol.StateRefused, protocol.ReasonStaleGeneration)
	is(t, c.do(id, protocol.MethodClick, button("Alpha")), protocol.StateRefused, protocol.ReasonObserveRequired)
	is(t, c.with(c.observe(id), protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	if g := c.ready(other, 2).Generation; g != 2 {
		t.Fatalf("the other page is at generation %d", g)
	}
	if n := w.web.got("/page/one"); n != 2 {
		t.Fatalf("the page was loaded %d times, want 2: opening and return", n)
	}
}

// manyPages is how many Pages the survival tests open.
const manyPages = 50

// TestManyPagesSurvive kills the browser, and then the daemon, with fifty Pages
// open: distinct URLs, three twins, five slow ones, two closed before.
func TestManyPagesSurvive(t *testing.T) {
	w := &world{t: t, web: newSite(t)}
	w.spawn()
	c := w.client("cli")
	began := time.Now()
	var ids []protocol.ResourceID
	paths := map[protocol.ResourceID]string{}
	for i := range manyPages {
		path := fmt.Sprintf("/page/p%d", i)
		if i >= 45 && i < 48 {
			path = "/page/twin"
		}
		id := c.opened(w.web.URL + path)
		ids, paths[id] = append(ids, id), path
	}
	t.Logf("%d pages opened in %v", manyPages, time.Since(began).Round(time.Millisecond))
	closed := ids[:2]
	for _, id := range closed {
		is(t, c.do(id, protocol.MethodClose, m{}), protocol.StateApplied, "")
	}
	ids = ids[2:]
	old := c.observe(ids[0])
	release := make(chan struct{})
	slow := map[protocol.ResourceID]bool{}
	w.web.mu.Lock()
	for _, id := range ids[:5] {
		slow[id] = true
		w.web.hold[paths[id]] = release
	}
	w.web.mu.Unlock()

	before := w.web.counts()
	if err := syscall.Kill(w.mainBrowser(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.comeBack(c, "browser killed", ids, closed, paths, before, 2, release)
	is(t, c.with(old, protocol.MethodClick, button("Alpha")), protocol.StateRefused, protocol.ReasonStaleGeneration)

	old = c.observe(ids[6])
	before = w.web.counts()
	w.kill()
	c.close()
	w.respawn()
	began = time.Now()
	c = w.client("cli")
	t.Logf("daemon killed: a new one answers after %v", time.Since(began).Round(time.Millisecond))
	w.comeBack(c, "daemon killed", ids, closed, paths, before, 3, nil)
	is(t, c.with(old, protocol.MethodClick, button("Alpha")), protocol.StateRefused, protocol.ReasonStaleGeneration)
	is(t, c.do(ids[7], protocol.MethodClick, button("Alpha")), protocol.StateRefused, protocol.ReasonObserveRequired)
	is(t, c.with(c.observe(ids[7]), protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")

	w.kill()
	end := time.Now().Add(patience)
	for len(w.browsers()) > 0 {
		if time.Now().After(end) {
			t.Fatalf("browser processes outlive a killed daemon: %v", w.browsers())
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (s *site) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for k, v := range s.gets {
		out[k] = v
	}
	return out
}

// comeBack waits until every page is back at gen and checks that each return was
// one GET, that ids and URLs are the same, and that closed ones stay closed.
func (w *world) comeBack(c *client, what string, ids, closed []protocol.ResourceID, paths map[protocol.ResourceID]string,
	before map[string]int, gen protocol.Generation, release chan struct{}) {
	w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	listed, err := c.Resources(ctx)
	if err != nil || len(listed) != len(ids)+len(closed) {
		w.t.Fatalf("%s: %d resources are listed (%v), want %d", what, len(listed), err, len(ids)+len(closed))
	}
	w.t.Logf("%s: all listed after %v", what, time.Since(began).Round(time.Millisecond))
	var five time.Duration
	for back := 0; back < len(ids); {
		all, err := c.Resources(ctx)
		if err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
		back = 0
		for _, r := range all {
			if r.Lifecycle == protocol.LifecycleReady && r.Generation >= gen {
				back++
			}
		}
		if back >= 5 && five == 0 {
			five = time.Since(began)
		}
		if release != nil && back >= len(ids)/2 {
			close(release)
			release = nil
		}
		<-time.After(20 * time.Millisecond)
	}
	w.t.Logf("%s: 5 ready after %v, all %d after %v", what, five.Round(time.Millisecond), len(ids), time.Since(began).Round(time.Millisecond))
	for _, id := range ids {
		r := c.record(id)
		if r.Generation != gen || !strings.HasSuffix(r.URL, paths[id]) {
			w.t.Errorf("%s: %s came back as generation %d with %q, want %d with %s", what, id, r.Generation, r.URL, gen, paths[id])
		}
	}
	for _, id := range closed {
		if r := c.record(id); r.Lifecycle != protocol.LifecycleClosed {
			w.t.Errorf("%s: %s was closed and is %s", what, id, r.Lifecycle)
		}
	}
	want := map[string]int{}
	for _, id := range ids {
		want[paths[id]]++
	}
	after := w.web.counts()
	for path, n := range want {
		if got := after[path] - before[path]; got != n {
			w.t.Errorf("%s: the server saw %d GETs of %s, want %d", what, got, path, n)
		}
	}
}
