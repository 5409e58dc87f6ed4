package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reins/protocol"
)

// openedLag is how much earlier than true the time of an opening may be noted:
// it comes in whole milliseconds.
const openedLag = time.Millisecond

// Check compares what was told with what happened. floor is how many operations
// must have been applied for the run to prove anything. Each violation is a
// sentence that names the operation. An empty answer is what a run is for.
func Check(h *History, entries []Entry, floor int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &checker{h: h, entries: entries, by: map[string][]Entry{}}
	for _, e := range entries {
		c.by[e.Operation] = append(c.by[e.Operation], e)
	}
	c.ledger()
	applied := 0
	for _, call := range h.calls {
		told := h.toldOf(call.Operation)
		c.receipts(call, told)
		c.parts(call)
		c.happened(call, told)
		c.generations(call, told)
		c.inFlight(call, told)
		c.stops(call, told)
		if f, ok := final(told); ok && f.Receipt.State == protocol.StateApplied {
			applied++
		}
	}
	if applied < floor {
		c.add("the run is void: %d operations were applied, less than its floor of %d", applied, floor)
	}
	c.order()
	return c.found
}

type checker struct {
	h       *History
	entries []Entry
	by      map[string][]Entry
	found   []string
}

func (c *checker) add(format string, a ...any) { c.found = append(c.found, fmt.Sprintf(format, a...)) }

// ledger holds I11 and the second half of I7, which need no receipts.
func (c *checker) ledger() {
	load := map[string]int{}
	for _, e := range c.entries {
		if e.Script {
			c.add("%s: the ledger has [%s], which was made by a script and not by input", e.Operation, e)
		}
		if !slices.ContainsFunc(c.h.calls, func(k *Call) bool { return string(k.Operation) == e.Operation }) {
			c.add("%s: the ledger has [%s], and nobody asked for it", e.Operation, e)
		}
		if e.Load < load[e.Page] {
			c.add("%s: the ledger has [%s] after load %d of that page: two documents of one page act at once", e.Operation, e, load[e.Page])
		}
		load[e.Page] = max(load[e.Page], e.Load)
	}
}

// receipts holds I1.
func (c *checker) receipts(call *Call, told []Told) {
	first, ok := final(told)
	if !ok {
		return
	}
	for _, t := range told {
		switch {
		case t.At.Before(first.At) || unrecorded(t.Receipt):
		case t.Receipt.Reason == protocol.ReasonUnknownOperation:
			c.add("%s: its final receipt said %s, and later nobody knew of it", call.Operation, first.Receipt.State)
		case t.Receipt.Reason == protocol.ReasonOperationIDReused:
			// It was asked for with other content: that says nothing of the first.
		case text(t.Receipt) != text(first.Receipt):
			c.add("%s: its final receipt changed: first %s, later %s", call.Operation, text(first.Receipt), text(t.Receipt))
		}
	}
}

// parts holds I2.
func (c *checker) parts(call *Call) {
	entries := c.by[string(call.Operation)]
	seen := map[string]int{}
	for _, e := range entries {
		if seen[e.Part]++; seen[e.Part] == 2 {
			c.add("%s: it happened twice: the ledger has [%s] again", call.Operation, e)
		}
	}
	if call.Parts == nil || len(seen) < len(entries) {
		return
	}
	for i, e := range entries {
		if i >= len(call.Parts) || e.Part != call.Parts[i] {
			c.add("%s: its parts are not in order: the ledger has %s, which is not how %s begins", call.Operation, partsOf(entries), strings.Join(call.Parts, ","))
			return
		}
	}
}

func partsOf(entries []Entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = e.Part
	}
	return strings.Join(parts, ",")
}

// happened holds I3, I4 and I5.
func (c *checker) happened(call *Call, told []Told) {
	entries := c.by[string(call.Operation)]
	first, ok := final(told)
	if !ok {
		if len(entries) > 0 && len(told) > 0 {
			c.add("%s: it was said to be %s, and the ledger has [%s]", call.Operation, said(told), entries[0])
		}
		return
	}
	for _, t := range told {
		// A refusal speaks of the requests before it.
		if t.At.Before(first.At) && nothing(t.Receipt) && len(entries) > 0 && entries[0].At.Before(t.At) {
			c.add("%s: it was said to be %s/%s, and the ledger has [%s] from before that", call.Operation, t.Receipt.State, t.Receipt.Reason, entries[0])
		}
	}
	r := first.Receipt
	last := -1
	if r.LastAppliedIndex != nil {
		last = *r.LastAppliedIndex
	}
	whole := len(call.Parts)
	switch {
	case nothing(r) && len(entries) > 0:
		c.add("%s: it was said to be %s/%s, and the ledger has [%s]", call.Operation, r.State, r.Reason, entries[0])
	case r.Effect == protocol.EffectNone && len(entries) > 0:
		c.add("%s: it was said to have had no effect, and the ledger has [%s]", call.Operation, entries[0])
	case r.State == protocol.StateApplied && call.Parts != nil && before(entries, first.At) < whole:
		c.add("%s: it was said to be applied, and the ledger had %d of its %d parts then", call.Operation, before(entries, first.At), whole)
	case call.Batch && before(entries, first.At) < last+1:
		c.add("%s: its primitive %d was said to be the last applied, and the ledger had %d of them then", call.Operation, last, before(entries, first.At))
	case call.Batch && r.State == protocol.StateFailed && len(entries) > last+1:
		c.add("%s: it was said to have stopped after primitive %d, and the ledger has %d of them", call.Operation, last, len(entries))
	}
}

// nothing: the receipt says that nothing happened.
func nothing(r protocol.Receipt) bool {
	return r.State == protocol.StateRefused || r.State == protocol.StateCancelled
}

func before(entries []Entry, t time.Time) int {
	n := 0
	for _, e := range entries {
		if !e.At.After(t) {
			n++
		}
	}
	return n
}

// generations holds I6 and the first half of I7.
func (c *checker) generations(call *Call, told []Told) {
	r := protocol.Receipt{Generation: call.Generation, Resource: call.Resource}
	if t, ok := final(told); ok {
		r = t.Receipt
		dispatched := !nothing(r)
		if dispatched && call.Generation != 0 && r.Generation != call.Generation {
			c.add("%s: it named generation %d and was dispatched under %d", call.Operation, call.Generation, r.Generation)
		}
		if o, over := c.h.openedAfter(r.Resource, call.Generation); dispatched && call.Generation != 0 && over && o.At.Before(call.Sent[0]) {
			c.add("%s: it was dispatched under generation %d, and was asked for after generation %d had opened", call.Operation, call.Generation, o.Generation)
		}
	}
	o, over := c.h.openedAfter(r.Resource, r.Generation)
	for _, e := range c.by[string(call.Operation)] {
		if over && r.Generation != 0 && e.At.After(o.At.Add(openedLag)) {
			c.add("%s: the ledger has [%s] of generation %d, %v after generation %d had opened", call.Operation, e, r.Generation,
				e.At.Sub(o.At).Round(time.Millisecond), o.Generation)
			return
		}
	}
}

// inFlight holds I8.
func (c *checker) inFlight(call *Call, told []Told) {
	t, ok := final(told)
	if !ok || t.Receipt.State != protocol.StateUncertain {
		return
	}
	for _, f := range c.h.faults {
		if !t.At.Before(f.At) && (f.Until.IsZero() || !call.Sent[0].After(f.Until)) {
			return
		}
	}
	c.add("%s: it is uncertain/%s, and nothing was broken while it was in flight", call.Operation, t.Receipt.Reason)
}

// stops holds I12.
func (c *checker) stops(call *Call, told []Told) {
	t, ok := final(told)
	if !ok || call.Cancelled.IsZero() || t.Receipt.State != protocol.StateApplied {
		return
	}
	if n := before(c.by[string(call.Operation)], call.Cancelled); n < len(call.Parts)/2 {
		c.add("%s: it was cancelled when %d of its %d parts had happened, and it ran to its end", call.Operation, n, len(call.Parts))
	}
}
