package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"reins/protocol"
)

// Call is one operation as it was asked for. What is asked again under the same
// id is the same Call.
type Call struct {
	Operation  protocol.OperationID
	Resource   protocol.ResourceID
	Method     protocol.Method
	Generation protocol.Generation // named by the latest request
	// Parts is what the ledger has of it when all of it happened, in order. nil:
	// the ledger may have anything of it, such as the moves of a drag.
	Parts []string
	// Batch: each part is a primitive, so that the last index counts parts.
	Batch bool
	Sent  []time.Time // of each request
	// Cancelled is when its cancel was asked for; zero for never.
	Cancelled time.Time
}

// Told is one answer about an operation.
type Told struct {
	Operation protocol.OperationID
	At        time.Time
	// Asked: by asking for the receipt, not by the request itself.
	Asked   bool
	Receipt protocol.Receipt
}

// Opening is when a generation was open, at the latest.
type Opening struct {
	Resource   protocol.ResourceID
	Generation protocol.Generation
	At         time.Time
}

// Fault is when something was broken. Until is when it was whole again; the zero
// value means the end of the run.
type Fault struct {
	At, Until time.Time
	What      string
}

// History is what was asked, what was answered and what was broken. It is safe
// for concurrent use.
type History struct {
	mu       sync.Mutex
	calls    []*Call
	told     []Told
	lost     []Lost
	openings []Opening
	faults   []Fault
	notes    []note
}

// Lost is an operation whose answer did not come.
type Lost struct {
	Operation protocol.OperationID
	At        time.Time
	Why       string
}

type note struct {
	at   time.Time
	text string
}

// Sending notes that an operation is about to be sent, or sent again.
func (h *History) Sending(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, old := range h.calls {
		if old.Operation == c.Operation {
			old.Generation = c.Generation
			old.Sent = append(old.Sent, now)
			return
		}
	}
	c.Sent = []time.Time{now}
	h.calls = append(h.calls, &c)
}

// Cancelling notes that an operation's cancel is about to be sent.
func (h *History) Cancelling(id protocol.OperationID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.Operation == id {
			c.Cancelled = time.Now()
		}
	}
}

// Tell notes an answer.
func (h *History) Tell(id protocol.OperationID, asked bool, r protocol.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, Told{Operation: id, At: time.Now(), Asked: asked, Receipt: r})
}

// Lose notes that an answer did not come.
func (h *History) Lose(id protocol.OperationID, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = append(h.lost, Lost{Operation: id, At: time.Now(), Why: why.Error()})
}

// Opened notes that a generation is open since at, or was earlier.
func (h *History) Opened(r protocol.ResourceID, g protocol.Generation, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, o := range h.openings {
		if o.Resource == r && o.Generation == g {
			if at.Before(o.At) {
				h.openings[i].At = at
			}
			return
		}
	}
	h.openings = append(h.openings, Opening{Resource: r, Generation: g, At: at})
}

// Break notes that something is broken from now on; the result ends it.
func (h *History) Break(what string) (whole func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.faults)
	h.faults = append(h.faults, Fault{At: time.Now(), What: what})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.faults[i].Until = time.Now()
	}
}

// Note keeps a line for whoever reads the history of a failed run.
func (h *History) Note(format string, a ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, note{at: time.Now(), text: fmt.Sprintf(format, a...)})
}

// openedAfter is when a generation above g opened first; false if none did.
func (h *History) openedAfter(r protocol.ResourceID, g protocol.Generation) (first Opening, ok bool) {
	for _, o := range h.openings {
		if o.Resource == r && o.Generation > g && (!ok || o.At.Before(first.At)) {
			first, ok = o, true
		}
	}
	return first, ok
}

// OpenedAfter is when a generation of a resource above g opened first.
func (h *History) OpenedAfter(r protocol.ResourceID, g protocol.Generation) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.openedAfter(r, g)
	return o.At, ok
}

func (h *History) toldOf(id protocol.OperationID) []Told {
	var all []Told
	for _, t := range h.told {
		if t.Operation == id {
			all = append(all, t)
		}
	}
	return all
}

// Final is the first final receipt of an operation that was told.
func (h *History) Final(id protocol.OperationID) (protocol.Receipt, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := final(h.toldOf(id))
	return t.Receipt, ok
}

// final is the first answer that is recorded for good. An operation that was
// cancelled while it waited leaves no record.
func final(told []Told) (Told, bool) {
	for _, t := range told {
		if t.Receipt.Final() && !unrecorded(t.Receipt) {
			return t, true
		}
	}
	return Told{}, false
}

func unrecorded(r protocol.Receipt) bool {
	return r.State == protocol.StateCancelled && r.Reason == protocol.ReasonCancelled
}

// Counts counts the operations by what was said of them in the end. The state
// of one whose answer never came and which nobody knows is "unknown".
func (h *History) Counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, c := range h.calls {
		out[said(h.toldOf(c.Operation))]++
	}
	return out
}

func said(told []Told) string {
	if t, ok := final(told); ok {
		return string(t.Receipt.State)
	}
	if len(told) == 0 {
		return "lost"
	}
	last := told[len(told)-1].Receipt
	if last.Reason == protocol.ReasonUnknownOperation {
		return "unknown"
	}
	return string(last.State)
}

// Print writes everything in the order of time, with the ledger's entries.
func (h *History) Print(w io.Writer, entries []Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := slices.Clone(h.notes)
	add := func(at time.Time, format string, a ...any) {
		lines = append(lines, note{at: at, text: fmt.Sprintf(format, a...)})
	}
	for _, c := range h.calls {
		for _, at := range c.Sent {
			add(at, "→ %s: %s %s", c.Operation, c.Method, c.Resource)
		}
		if !c.Cancelled.IsZero() {
			add(c.Cancelled, "→ %s: cancel", c.Operation)
		}
	}
	for _, t := range h.told {
		how := "←"
		if t.Asked {
			how = "?"
		}
		add(t.At, "%s %s: %s", how, t.Operation, text(t.Receipt))
	}
	for _, l := range h.lost {
		add(l.At, "✗ %s: no answer: %s", l.Operation, l.Why)
	}
	for _, o := range h.openings {
		add(o.At, "  %s opened at generation %d", o.Resource, o.Generation)
	}
	for _, f := range h.faults {
		add(f.At, "! %s", f.What)
	}
	for _, e := range entries {
		add(e.At, "■ ledger: %s", e)
	}
	slices.SortStableFunc(lines, func(a, b note) int { return a.at.Compare(b.at) })
	for _, l := range lines {
		fmt.Fprintln(w, l.at.Format("15:04:05.000000"), strings.TrimRight(l.text, "\n"))
	}
}

// text is a receipt as people compare it.
func text(r protocol.Receipt) string {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Sprintf("%+v", r)
	}
	return string(b)
}
