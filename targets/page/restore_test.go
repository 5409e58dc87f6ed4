package page

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"

	"reins/targets"
)

func TestARestoreAsksTheServerOnce(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	for _, c := range []struct {
		path, lands string // lands: what the server is asked for in the end
		confirmed   string
		status      int
	}{
		{"/plain", "/plain", s.URL + "/plain", 200},
		{"/missing", "/missing", s.URL + "/missing", 404},
		{"/moved", "/moved", "http://localhost:" + port(s.URL) + "/plain", 200},
		{"/empty", "/empty", s.URL + "/empty", 0},
		{"/file", "/file", s.URL + "/file", 0},
	} {
		r := own(t, c.path[1:])
		p, loaded := attachTo(t, h, targets.Spec{Resource: r, Generation: 1, URL: s.URL + c.path})
		if !loaded {
			t.Errorf("%s: not loaded", c.path)
		}
		if err := p.Barrier(within(t)); err != nil {
			t.Errorf("%s: barrier: %v", c.path, err)
		}
		eventually(t, c.path+" is confirmed", func() bool {
			snap := p.Snapshot()
			return snap.URL == c.confirmed && snap.HTTPStatus == c.status && !snap.Loading
		})
		// Another incarnation on the living tab asks for nothing.
		q, loaded := attachTo(t, h, targets.Spec{Resource: r, Generation: 2, URL: s.URL + c.path})
		if loaded || q.target != p.target || q.Snapshot().URL != c.confirmed {
			t.Errorf("%s: attached again: loaded %v, %+v", c.path, loaded, q.Snapshot())
		}
		if !p.isOver() {
			t.Errorf("%s: the earlier incarnation still lives", c.path)
		}
		if n := s.count(c.lands); n != 1 {
			t.Errorf("%s: the server was asked %d times", c.path, n)
		}
	}
}

func port(url string) string {
	for i := len(url) - 1; i >= 0; i-- {
		if url[i] == ':' {
			return url[i+1:]
		}
	}
	return ""
}

func TestAServerThatTakesItsTimeIsAskedOnce(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	p, loaded, err := h.attach(ctx, targets.Spec{Resource: own(t, "held"), Generation: 1, URL: s.URL + "/held"})
	if err != nil || !loaded {
		t.Fatalf("attach: %v, loaded %v", err, loaded)
	}
	defer func() { _ = h.Destroy(within(t), own(t, "held")) }()
	if snap := p.Snapshot(); !snap.Loading || snap.URL != s.URL+"/held" {
		t.Errorf("while it waits: %+v", snap)
	}
	if err := p.Barrier(within(t)); err != nil {
		t.Errorf("barrier: %v", err)
	}
	close(s.hold)
	if ev := next(t, p, targets.EventNavigated); ev.Page.Title != "held" && next(t, p, targets.EventTitle).Page.Title != "held" {
		t.Errorf("it came as %+v", ev.Page)
	}
	if n := s.count("/held"); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
}

func TestAFailedLoadIsAnIncarnation(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String() + "/gone"
	_ = l.Close()
	p, loaded := attachTo(t, h, targets.Spec{Resource: own(t, "dead"), Generation: 1, URL: dead})
	if !loaded {
		t.Error("not loaded")
	}
	if n := p.nav(); n.failed != "net::ERR_CONNECTION_REFUSED" || n.url != dead || n.document == "" {
		t.Errorf("nav: %+v", n)
	}
	if snap := p.Snapshot(); snap.URL != dead {
		t.Errorf("snapshot: %+v", snap)
	}
	// A page that leads to a dead address keeps its last confirmed one.
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "leads"), Generation: 1, URL: s.URL + "/plain"})
	eventually(t, "its title is known", func() bool { return q.Snapshot().Title == "plain" })
	begin(t, q, cdproto.CommandRuntimeEvaluate, map[string]any{"expression": "location.href='" + dead + "'"})
	eventually(t, "the address is known to be dead", func() bool { return q.nav().failed == "net::ERR_CONNECTION_REFUSED" })
	if snap := q.Snapshot(); snap.URL != s.URL+"/plain" || snap.Title != "plain" {
		t.Errorf("snapshot: %+v", snap)
	}
	if n := q.nav(); n.url != dead {
		t.Errorf("nav: %+v", n)
	}
}

// jar is a cookie store in memory.
type jar struct {
	mu      sync.Mutex
	cookies []byte
	clean   bool
	saves   int
}

func (j *jar) Load() ([]byte, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cookies, j.clean, nil
}

func (j *jar) Save(b []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cookies = append([]byte(nil), b...)
	j.saves++
	return nil
}

func (j *jar) MarkClean(clean bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clean = clean
	return nil
}

func TestCookiesOutliveAnUncleanEnd(t *testing.T) {
	t.Parallel()
	store := &jar{}
	h := startHost(t, func(o *Options) { o.Cookies = store })
	s := newSite(t, nil)
	attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 1, URL: s.URL + "/cookie"})
	eventually(t, "the cookies are saved", func() bool {
		b, _, _ := store.Load()
		return contains(b, "session") && contains(b, "lasting")
	})
	b := h.browser()
	if err := syscall.Kill(b.proc.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.down
	if _, err := h.Start(within(t)); err != nil {
		t.Fatal(err)
	}
	p, _ := attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 2, URL: s.URL + "/echo"})
	want := map[string]bool{"session=s1; lasting=l1": true, "lasting=l1; session=s1": true}
	if got := ""; true {
		eventually(t, "the server gets both cookies again", func() bool {
			got = eval(t, p, "document.body?.textContent ?? ''")
			return want[got]
		})
	}
	// After an end in order the profile has what lasts, and nothing is set again.
	if err := h.Stop(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, clean, _ := store.Load(); !clean {
		t.Fatal("a stop in order is not marked as clean")
	}
	if _, err := h.Start(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, clean, _ := store.Load(); clean {
		t.Error("a running browser is marked as ended in order")
	}
	p, _ = attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 3, URL: s.URL + "/echo"})
	eventually(t, "the profile kept the lasting cookie", func() bool {
		return eval(t, p, "document.body?.textContent ?? ''") == "lasting=l1"
	})
}

func contains(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		if string(b[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}
