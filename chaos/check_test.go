package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reins/protocol"
)

// start is when the histories of these tests begin; ms is a time after it.
var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

// story is a history with its ledger, told step by step. Each step is 10 ms
// after the one before.
type story struct {
	h       History
	entries []Entry
	now     int
}

func (s *story) tick() time.Time { s.now += 10; return ms(s.now) }

// ask sends an operation of one part under a generation.
func (s *story) ask(id string, g protocol.Generation, change ...func(*Call)) *story {
	c := Call{Operation: protocol.OperationID(id), Resource: "pg", Method: protocol.MethodClick, Generation: g, Parts: []string{""}}
	for _, f := range change {
		f(&c)
	}
	c.Sent = []time.Time{s.tick()}
	s.h.calls = append(s.h.calls, &c)
	return s
}

func parts(p ...string) func(*Call) { return func(c *Call) { c.Parts = p } }
func batch(c *Call)                 { c.Parts, c.Batch = []string{"a", "b", "c"}, true }

// did is an entry of the ledger.
func (s *story) did(id, part string, load int) *story {
	s.entries = append(s.entries, Entry{Position: len(s.entries), Operation: id, Part: part, Page: "page", Load: load, At: s.tick()})
	return s
}

// say answers an operation under the generation it named.
func (s *story) say(id string, state protocol.State, change ...func(*protocol.Receipt)) *story {
	r := protocol.Receipt{OperationID: protocol.OperationID(id), Resource: "pg", State: state}
	for _, c := range s.h.calls {
		if c.Operation == r.OperationID {
			r.Generation = c.Generation
		}
	}
	for _, f := range change {
		f(&r)
	}
	s.h.told = append(s.h.told, Told{Operation: r.OperationID, At: s.tick(), Receipt: r})
	return s
}

func why(reason protocol.Reason) func(*protocol.Receipt) {
	return func(r *protocol.Receipt) { r.Reason = reason }
}
func last(i int) func(*protocol.Receipt) {
	return func(r *protocol.Receipt) { r.LastAppliedIndex = protocol.Index(i) }
}
func noEffect(r *protocol.Receipt) { r.Effect = protocol.EffectNone }

func (s *story) opened(g protocol.Generation) *story { s.h.Opened("pg", g, s.tick()); return s }

func (s *story) broken() *story {
	s.h.faults = append(s.h.faults, Fault{At: s.tick(), What: "broken"})
	return s
}

func (s *story) whole() *story { s.h.faults[len(s.h.faults)-1].Until = s.tick(); return s }

const unknownOp = protocol.ReasonUnknownOperation

// Each history that is wrong in one way is found by its rule, and by no other
// name. What is right is not complained about.
func TestCheck(t *testing.T) {
	long := parts("1a", "2b", "3c")
	for name, row := range map[string]struct {
		want string // a part of the violation; empty: none
		tell func(*story)
	}{
		"all is well": {"", func(s *story) {
			s.opened(1).ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied).ask("b", 1).broken().did("b", "", 1).opened(2).
				say("b", protocol.StateUncertain).say("b", protocol.StateUncertain).whole().ask("c", 2).did("c", "", 2).say("c", protocol.StateApplied)
		}},
		"uncertain and it did not happen": {"", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied).ask("b", 1).broken().say("b", protocol.StateUncertain)
		}},
		"refused, then sent again and applied": {"", func(s *story) {
			s.ask("a", 1).say("a", protocol.StateRefused, why(unknownOp)).did("a", "", 1).say("a", protocol.StateApplied)
		}},
		"cancelled while it waited leaves no record": {"", func(s *story) {
			s.ask("w", 1).did("w", "", 1).say("w", protocol.StateApplied)
			s.ask("a", 1).say("a", protocol.StateCancelled, why(protocol.ReasonCancelled)).say("a", protocol.StateRefused, why(unknownOp))
		}},
		"the parts of a drag are nobody's business": {"", func(s *story) {
			s.ask("a", 1, parts()).did("a", "move#1", 1).did("a", "move#2", 1).say("a", protocol.StateApplied)
		}},
		"a batch that stopped": {"", func(s *story) {
			s.ask("w", 1).did("w", "", 1).say("w", protocol.StateApplied)
			s.ask("a", 1, batch).did("a", "a", 1).did("a", "b", 1).say("a", protocol.StateFailed, last(1))
		}},
		"a receipt that changes": {"its final receipt changed", func(s *story) {
			s.ask("a", 1).broken().did("a", "", 1).say("a", protocol.StateUncertain).say("a", protocol.StateApplied)
		}},
		"a receipt that gets another reason": {"its final receipt changed", func(s *story) {
			s.ask("a", 1).broken().did("a", "", 1).say("a", protocol.StateUncertain).say("a", protocol.StateUncertain, why(protocol.ReasonFenced))
		}},
		"a receipt that is forgotten": {"later nobody knew of it", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied).say("a", protocol.StateRefused, why(unknownOp))
		}},
		"a known id that is refused": {"its final receipt changed", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied).say("a", protocol.StateRefused, why(protocol.ReasonStaleGeneration))
		}},
		"happened twice": {"it happened twice", func(s *story) {
			s.ask("a", 1).did("a", "", 1).did("a", "", 1).say("a", protocol.StateApplied)
		}},
		"parts with a gap": {"its parts are not in order", func(s *story) {
			s.ask("a", 1, long).broken().did("a", "1a", 1).did("a", "3c", 1).say("a", protocol.StateUncertain)
		}},
		"parts out of order": {"its parts are not in order", func(s *story) {
			s.ask("a", 1, long).did("a", "2b", 1).did("a", "1a", 1).did("a", "3c", 1).say("a", protocol.StateApplied)
		}},
		"more parts than there are": {"its parts are not in order", func(s *story) {
			s.ask("a", 1, long).did("a", "1a", 1).did("a", "2b", 1).did("a", "3c", 1).did("a", "4d", 1).say("a", protocol.StateApplied)
		}},
		"applied and it did not happen": {"it was said to be applied", func(s *story) {
			s.ask("a", 1).say("a", protocol.StateApplied)
		}},
		"applied before it happened": {"it was said to be applied", func(s *story) {
			s.ask("a", 1).say("a", protocol.StateApplied).did("a", "", 1)
		}},
		"applied in part": {"the ledger had 2 of its 3 parts", func(s *story) {
			s.ask("a", 1, long).did("a", "1a", 1).did("a", "2b", 1).say("a", protocol.StateApplied)
		}},
		"refused and it happened": {"it was said to be refused", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateRefused)
		}},
		"unknown and it happened": {"it was said to be unknown", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateRefused, why(unknownOp))
		}},
		"unknown, happened, and sent again": {"from before that", func(s *story) {
			s.ask("a", 1, parts("")).did("a", "", 1).say("a", protocol.StateRefused, why(unknownOp)).say("a", protocol.StateApplied)
		}},
		"cancelled and it happened": {"it was said to be cancelled", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateCancelled, why(protocol.ReasonRecovered))
		}},
		"no effect and there was one": {"it was said to have had no effect", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateFailed, noEffect)
		}},
		"the last index says too much": {"its primitive 1 was said to be the last applied", func(s *story) {
			s.ask("a", 1, batch).broken().did("a", "a", 1).say("a", protocol.StateUncertain, last(1))
		}},
		"the last index says too little": {"it was said to have stopped after primitive 0", func(s *story) {
			s.ask("a", 1, batch).did("a", "a", 1).did("a", "b", 1).say("a", protocol.StateFailed, last(0))
		}},
		"dispatched under another generation": {"was dispatched under 2", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied, func(r *protocol.Receipt) { r.Generation = 2 })
		}},
		"dispatched under a generation that was over": {"was asked for after generation 2 had opened", func(s *story) {
			s.opened(2).ask("a", 1).broken().say("a", protocol.StateUncertain)
		}},
		"an effect of the old generation after the new one opened": {"after generation 2 had opened", func(s *story) {
			s.ask("a", 1).broken().opened(2).did("a", "", 1).say("a", protocol.StateUncertain)
		}},
		"an effect of the old generation of which nobody was told": {"after generation 2 had opened", func(s *story) {
			s.ask("a", 1).broken().opened(2).did("a", "", 1)
		}},
		"two documents of a page": {"two documents of one page act at once", func(s *story) {
			s.ask("a", 1).did("a", "", 2).say("a", protocol.StateApplied).ask("b", 1).did("b", "", 1).say("b", protocol.StateApplied)
		}},
		"uncertain without a fault": {"nothing was broken while it was in flight", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateUncertain)
		}},
		"uncertain before a fault": {"nothing was broken while it was in flight", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateUncertain).broken()
		}},
		"uncertain after a fault": {"nothing was broken while it was in flight", func(s *story) {
			s.broken().whole().ask("a", 1).did("a", "", 1).say("a", protocol.StateUncertain)
		}},
		"cancelled when it was nearly over": {"", func(s *story) {
			s.ask("a", 1, long).did("a", "1a", 1).did("a", "2b", 1)
			s.h.calls[0].Cancelled = s.tick()
			s.did("a", "3c", 1).say("a", protocol.StateApplied)
		}},
		"cancelled, and it went on": {"it ran to its end", func(s *story) {
			s.ask("a", 1, long)
			s.h.calls[0].Cancelled = s.tick()
			s.did("a", "1a", 1).did("a", "2b", 1).did("a", "3c", 1).say("a", protocol.StateApplied)
		}},
		"nobody asked for it": {"nobody asked for it", func(s *story) { s.did("a", "", 1) }},
		"made by a script": {"made by a script", func(s *story) {
			s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied)
			s.entries[0].Script = true
		}},
		"the ledger has them in another order than time": {"there is no order", func(s *story) {
			s.ask("a", 1).did("b", "", 1).did("a", "", 1).say("a", protocol.StateApplied).ask("b", 1).say("b", protocol.StateApplied)
			s.entries[0].At = ms(s.now - 5) // so that only the positions are wrong
		}},
		"one operation in the middle of another": {"other operations are between its parts", func(s *story) {
			s.ask("a", 1, long).ask("b", 1).did("a", "1a", 1).did("b", "", 1).did("a", "2b", 1).did("a", "3c", 1)
			s.say("a", protocol.StateApplied).say("b", protocol.StateApplied)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{}
			row.tell(s)
			found := Check(&s.h, s.entries, 0)
			if row.want == "" && len(found) > 0 {
				t.Errorf("complains: %q", found)
			}
			if row.want != "" && !strings.Contains(strings.Join(found, "\n"), row.want) {
				t.Errorf("found %q, and nothing says %q", found, row.want)
			}
		})
	}
}

// A generation that goes back is only seen by the search for an order, when no
// opening was noted.
func TestOrderOfGenerations(t *testing.T) {
	s := &story{}
	s.ask("a", 2).did("a", "", 1).say("a", protocol.StateApplied).ask("b", 1).did("b", "", 1).say("b", protocol.StateApplied)
	if found := Check(&s.h, s.entries, 0); len(found) != 1 || !strings.Contains(found[0], "no order") {
		t.Errorf("found %q", found)
	}
}

func TestFloor(t *testing.T) {
	s := &story{}
	s.ask("a", 1).did("a", "", 1).say("a", protocol.StateApplied).ask("b", 1).broken().say("b", protocol.StateUncertain)
	if found := Check(&s.h, s.entries, 1); len(found) > 0 {
		t.Errorf("complains: %q", found)
	}
	if found := Check(&s.h, s.entries, 2); len(found) != 1 || !strings.Contains(found[0], "void") {
		t.Errorf("found %q", found)
	}
}

// Thousands of operations are ordered in a moment.
func TestOrderOfMany(t *testing.T) {
	s := &story{}
	for i := range 2_000 {
		id := fmt.Sprint("op-", i)
		s.ask(id, protocol.Generation(1+i/200)).did(id, "", 1+i/200).say(id, protocol.StateApplied)
	}
	c := &checker{h: &s.h, entries: s.entries, by: map[string][]Entry{}}
	for _, e := range s.entries {
		c.by[e.Operation] = append(c.by[e.Operation], e)
	}
	c.order()
	if len(c.found) > 0 {
		t.Error(c.found)
	}
}
