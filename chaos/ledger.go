package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Entry is one thing that really happened, as the page saw it.
type Entry struct {
	Position  int // from 0, over all pages
	Operation string
	Part      string
	Page      string // the name of the page
	Load      int    // which load of the page saw it, from 1
	At        time.Time
	// Script: the event was made by a script, not by input.
	Script bool
}

func (e Entry) String() string {
	s := fmt.Sprintf("%d %s", e.Position, e.Operation)
	if e.Part != "" {
		s += "[" + e.Part + "]"
	}
	if e.Script {
		s += " by script"
	}
	return fmt.Sprintf("%s on %s, load %d", s, e.Page, e.Load)
}

// Ledger is a web server whose pages write down what happens to them. It lives
// outside of everything that is killed.
type Ledger struct {
	server  *http.Server
	address string
	serving sync.WaitGroup

	mu      sync.Mutex
	entries []Entry
	pages   map[string]*sheet
	hits    map[string]int
	holds   map[hold]*Held
	slow    map[string]time.Duration
	open    int           // connections
	changed chan struct{} // closed and replaced when anything above changes
}

// sheet is a page that was set up.
type sheet struct {
	calls []Call
	busy  *Busy
	hide  bool
	loads int
}

type hold struct{ operation, part string }

// Held holds up the page in the middle of a report: the entry is made, and the
// handler that reports does not return.
type Held struct {
	// Reached is closed when the report came.
	Reached <-chan struct{}
	reached chan struct{}
	most    time.Duration
	let     chan struct{}
	once    sync.Once
}

// Release lets the page go on.
func (h *Held) Release() { h.once.Do(func() { close(h.let) }) }

// NewLedger starts the server on the loopback.
func NewLedger() (*Ledger, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the ledger cannot listen: %w", err)
	}
	l := &Ledger{address: ln.Addr().String(), pages: map[string]*sheet{}, hits: map[string]int{}, holds: map[hold]*Held{},
		slow: map[string]time.Duration{}, changed: make(chan struct{})}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, ConnState: l.count}
	l.serving.Go(func() { _ = l.server.Serve(ln) })
	return l, nil
}

// Close ends the server.
func (l *Ledger) Close() error {
	err := l.server.Close()
	l.serving.Wait()
	return err
}

// count keeps the number of open connections.
func (l *Ledger) count(_ net.Conn, s http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s {
	case http.StateNew:
		l.open++
	case http.StateClosed, http.StateHijacked:
		l.open--
	}
	l.stir()
}

// stir wakes whoever waits; mu is held.
func (l *Ledger) stir() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until ok, which is called with mu held.
func (l *Ledger) await(ctx context.Context, ok func() bool) error {
	for {
		l.mu.Lock()
		done, changed := ok(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Quiet waits until no connection is open: what a dead browser had sent is in
// the ledger then, and nothing more of it can come.
func (l *Ledger) Quiet(ctx context.Context) error {
	if err := l.await(ctx, func() bool { return l.open == 0 }); err != nil {
		return fmt.Errorf("the ledger's connections are still open: %w", err)
	}
	return nil
}

// Until waits until an operation has n entries.
func (l *Ledger) Until(ctx context.Context, operation string, n int) error {
	return l.await(ctx, func() bool {
		have := 0
		for _, e := range l.entries {
			if e.Operation == operation {
				have++
			}
		}
		return have >= n
	})
}

// Entries is everything so far, in order.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Entry(nil), l.entries...)
}

// Loads is how often a page was asked for.
func (l *Ledger) Loads(page string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.pages[page]; s != nil {
		return s.loads
	}
	return 0
}

// Page sets up a page on which the calls can be made, and returns its URL.
func (l *Ledger) Page(name string, calls ...Call) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages[name] = &sheet{calls: calls}
	return "http://" + l.address + "/page/" + name
}

// Destination is the URL that stands for a navigation: asking for it is an entry.
func (l *Ledger) Destination(page, operation string) string {
	return "http://" + l.address + "/go/" + page + "/" + operation
}

// Hold makes the report of a part stand still for at most that long.
func (l *Ledger) Hold(operation, part string, most time.Duration) *Held {
	h := &Held{reached: make(chan struct{}), let: make(chan struct{}), most: most}
	h.Reached = h.reached
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[hold{operation, part}] = h
	return h
}

// Slow makes each report of an operation take that long.
func (l *Ledger) Slow(operation string, each time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow[operation] = each
}

// ServeHTTP implements http.Handler.
func (l *Ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "did":
		q := r.URL.Query()
		load, err := strconv.Atoi(q.Get("load"))
		if err != nil {
			http.Error(w, "load is no number", http.StatusBadRequest)
			return
		}
		l.enter(r.Context(), Entry{Operation: q.Get("op"), Part: q.Get("part"), Page: q.Get("page"), Load: load, Script: q.Get("trusted") != "true"})
		w.WriteHeader(http.StatusNoContent)
	case "go":
		page, operation, _ := strings.Cut(rest, "/")
		l.enter(r.Context(), Entry{Operation: operation, Page: page, Load: l.Loads(page)})
		http.Redirect(w, r, "/landed/"+page, http.StatusFound)
	case "page", "landed", "inner":
		l.page(w, kind, rest)
	case "block":
		l.block(r, rest)
	case "front":
		l.hit("front " + rest)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>front</title><link rel=icon href="data:,">in front`)
	default:
		http.NotFound(w, r)
	}
}

// hit counts a request that is no entry.
func (l *Ledger) hit(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hits[what]++
	l.stir()
}

// enter writes an entry down, and only then lets the page go on.
func (l *Ledger) enter(ctx context.Context, e Entry) {
	l.mu.Lock()
	e.Position, e.At = len(l.entries), time.Now()
	l.entries = append(l.entries, e)
	key := hold{e.Operation, e.Part}
	h := l.holds[key]
	delete(l.holds, key)
	slow := l.slow[e.Operation]
	l.stir()
	l.mu.Unlock()
	if h == nil && slow > 0 {
		h = &Held{reached: make(chan struct{}), most: slow}
	}
	if h == nil {
		return
	}
	close(h.reached)
	timer := time.NewTimer(h.most)
	defer timer.Stop()
	select {
	case <-h.let:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *Ledger) page(w http.ResponseWriter, kind, name string) {
	l.mu.Lock()
	s := l.pages[name]
	load := 0
	if s != nil {
		if kind != "inner" {
			s.loads++
		}
		load = s.loads
	}
	l.mu.Unlock()
	if s == nil {
		http.Error(w, "no such page", http.StatusNotFound)
		return
	}
	_, port, err := net.SplitHostPort(l.address)
	err = errors.Join(err, render(w, kind, name, port, load, s))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
