package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"reins/protocol"
)

const (
	// patience bounds whatever a run waits for; nothing is timed by it.
	patience = 40 * time.Second
	// orphansWithin is how long processes of a dead daemon may take to be gone.
	orphansWithin = 5 * time.Second
	// settleEvery is how often a state is asked for again.
	settleEvery = 20 * time.Millisecond
)

// Result is what came of a run.
type Result struct {
	Name       string
	Said       string // what was said of the operation under test, before it was sent again
	Happened   int    // how many parts of it the ledger had then
	Violations []string
	Err        error // the run itself did not go as planned
	Orphans    int
	Duplicates int
	Counts     map[string]int
	Took       time.Duration
	History    *History
	Entries    []Entry
	Log        string
}

// OK reports whether nothing is wrong.
func (r Result) OK() bool { return r.Err == nil && len(r.Violations) == 0 }

// world is what a run works with: a page of the ledger, opened in the system.
type world struct {
	sys    System // nil where somebody else has it
	ledger *Ledger
	h      *History
	name   string
	text   string // what an operation types
	client Client
	page   protocol.ResourceID
	gen    protocol.Generation
	calls  map[protocol.OperationID]Call
	sent   map[protocol.OperationID]protocol.Request
	mu     sync.Mutex
}

func newWorld(sys System, l *Ledger, name, text string, calls ...Call) *world {
	w := &world{sys: sys, ledger: l, h: &History{}, name: name, text: text, calls: map[protocol.OperationID]Call{}, sent: map[protocol.OperationID]protocol.Request{}}
	for _, c := range calls {
		w.calls[c.Operation] = c
	}
	return w
}

func (w *world) id(role string) protocol.OperationID {
	return protocol.OperationID(w.name + "-" + role)
}

// start brings the system up and connects to it.
func (w *world) start(ctx context.Context, f Faults) error {
	if err := w.sys.Start(ctx, f); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	w.h.Note("the daemon serves")
	c, err := w.sys.Client(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	w.client = c
	return nil
}

// disconnect ends the connection, which is dead or about to be.
func (w *world) disconnect() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// open opens the page.
func (w *world) open(ctx context.Context, url string) error {
	raw, err := json.Marshal(protocol.OpenArguments{Kind: protocol.KindPage, URL: url})
	if err != nil {
		return err
	}
	c := Call{Operation: w.id("open"), Method: protocol.MethodOpen}
	w.h.Sending(c)
	rc, err := w.client.Do(ctx, protocol.Request{OperationID: c.Operation, Method: c.Method, Arguments: raw})
	if err != nil {
		return fmt.Errorf("opening the page: %w", err)
	}
	w.h.Tell(c.Operation, false, rc)
	if rc.State != protocol.StateApplied {
		return fmt.Errorf("opening the page: %s", text(rc))
	}
	w.page, w.gen = rc.Resource, rc.Generation
	w.h.Opened(w.page, w.gen, time.Now())
	return nil
}

// token observes.
func (w *world) token(ctx context.Context) (protocol.Token, error) {
	r, err := w.client.Read(ctx, protocol.ReadRequest{Resource: w.page, Method: protocol.MethodObserve, DeadlineMS: patience.Milliseconds() / 2})
	switch {
	case err != nil:
		return "", fmt.Errorf("observing: %w", err)
	case r.Observation == nil:
		return "", fmt.Errorf("observing: %w", r.Problem)
	}
	return r.Observation.Token, nil
}

// request makes the request of a call, under the generation that the run knows.
func (w *world) request(id protocol.OperationID, t protocol.Token) protocol.Request {
	c := w.calls[id]
	return protocol.Request{OperationID: id, Resource: w.page, Generation: w.gen, Method: c.Method, Observation: t,
		Arguments: w.ledger.arguments(c, w.name, w.text), DeadlineMS: patience.Milliseconds()}
}

// do sends a request and notes what was told. An answer that does not come is
// no error: that is what runs are about.
func (w *world) do(ctx context.Context, r protocol.Request) (protocol.Receipt, bool) {
	c := w.calls[r.OperationID]
	c.Resource, c.Generation = r.Resource, r.Generation
	w.h.Sending(c)
	w.mu.Lock()
	w.sent[r.OperationID] = r
	w.mu.Unlock()
	rc, err := w.client.Do(ctx, r)
	if err == nil {
		w.h.Tell(r.OperationID, false, rc)
		return rc, true
	}
	var p *protocol.Problem
	if errors.As(err, &p) && p.Reason != protocol.ReasonAnswerLost {
		// The client says that nothing happened: that has to be so, too.
		w.h.Tell(r.OperationID, false, protocol.Receipt{OperationID: r.OperationID, State: protocol.StateRefused, Reason: p.Reason, Message: p.Message})
		return protocol.Receipt{}, false
	}
	w.h.Lose(r.OperationID, err)
	return protocol.Receipt{}, false
}

// must does an operation that has to be applied.
func (w *world) must(ctx context.Context, id protocol.OperationID) error {
	t, err := w.token(ctx)
	if err != nil {
		return err
	}
	rc, ok := w.do(ctx, w.request(id, t))
	if !ok || rc.State != protocol.StateApplied {
		return fmt.Errorf("%s has to be applied: %s", id, text(rc))
	}
	return nil
}

// ask asks for a receipt.
func (w *world) ask(ctx context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	rc, err := w.client.Receipt(ctx, id)
	if err != nil {
		return rc, fmt.Errorf("asking for the receipt of %s: %w", id, err)
	}
	w.h.Tell(id, true, rc)
	return rc, nil
}

// askAll asks for the receipt of everything that was sent.
func (w *world) askAll(ctx context.Context) error {
	w.mu.Lock()
	ids := make([]protocol.OperationID, 0, len(w.sent)+1)
	for id := range w.sent {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	slices.Sort(ids)
	for _, id := range append(ids, w.id("open")) {
		if _, err := w.ask(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// back waits until the page is ready at a generation above the one known.
func (w *world) back(ctx context.Context) error {
	for {
		all, err := w.client.Resources(ctx)
		if err != nil {
			return fmt.Errorf("listing: %w", err)
		}
		i := slices.IndexFunc(all, func(r protocol.Record) bool { return r.ID == w.page })
		switch {
		case i < 0:
			return fmt.Errorf("%s is not among the %d resources any more", w.page, len(all))
		case all[i].Lifecycle == protocol.LifecycleReady && all[i].Generation > w.gen:
			w.gen = all[i].Generation
			w.h.Opened(w.page, w.gen, time.Now())
			return w.openings(ctx)
		case all[i].Lifecycle == protocol.LifecycleFailed || all[i].Lifecycle == protocol.LifecycleClosed:
			return fmt.Errorf("%s is %s: %s %s", w.page, all[i].Lifecycle, all[i].Reason, all[i].Message)
		}
		if err := pause(ctx, settleEvery); err != nil {
			return fmt.Errorf("%s did not come back above generation %d: it is %s at %d: %w", w.page, w.gen, all[i].Lifecycle, all[i].Generation, err)
		}
	}
}

// openings takes over from the system's history when each generation opened,
// which is earlier than it could be seen from outside.
func (w *world) openings(ctx context.Context) error {
	entries, err := w.client.History(ctx, protocol.HistoryQuery{Resource: w.page, Limit: 1000})
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	for _, e := range entries {
		if e.Event == "opened" {
			w.h.Opened(e.Resource, e.Generation, time.UnixMilli(int64(e.At)))
		}
	}
	return nil
}

// ended waits until nothing is left of a daemon that has ended, and until what
// its browser had sent is in the ledger. It returns how many processes stayed.
func (w *world) ended(ctx context.Context) (orphans int, err error) {
	within, cancel := context.WithTimeout(ctx, orphansWithin)
	defer cancel()
	var left []string
	for {
		if left = w.sys.Orphans(); len(left) == 0 {
			break
		}
		if pause(within, settleEvery) != nil {
			return len(left), fmt.Errorf("%d processes outlived the daemon by %v: %v", len(left), orphansWithin, left)
		}
	}
	quiet, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return 0, w.ledger.Quiet(quiet)
}

// finish checks the history against the ledger's entries of this run.
func (w *world) finish(r *Result, under protocol.OperationID, floor int) {
	r.Name, r.History = w.name, w.h
	for _, e := range w.ledger.Entries() {
		if e.Page == w.name {
			r.Entries = append(r.Entries, e)
		}
	}
	r.Violations = append(r.Violations, Check(w.h, r.Entries, floor)...)
	seen := map[hold]bool{}
	for _, e := range r.Entries {
		if k := (hold{e.Operation, e.Part}); seen[k] {
			r.Duplicates++
		} else {
			seen[k] = true
		}
	}
	if r.Said == "" {
		r.Said = w.said(under)
	}
	r.Counts = w.h.Counts()
	if w.sys != nil {
		r.Log = w.sys.Log()
	}
}

// said is what was said of an operation so far.
func (w *world) said(id protocol.OperationID) string {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	return said(w.h.toldOf(id))
}

// happened is how many parts of an operation the ledger has.
func (w *world) happened(id protocol.OperationID) int {
	n := 0
	for _, e := range w.ledger.Entries() {
		if e.Operation == string(id) {
			n++
		}
	}
	return n
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
