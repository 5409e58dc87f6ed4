package scope

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reins/protocol"
	"reins/targets"
)

// world is everything around a scope: callers, an adapter, a store and a
// supervisor that answer late, in any order, twice, or not before the end.
type world struct {
	t       *rapid.T
	st      State
	now     time.Time
	w       *watch
	limit   int
	serial  int
	asks    uint64
	gen     protocol.Generation
	fenced  bool
	settled bool
	closing bool
	tries   map[Key]uint64 // the latest of each
	pending []Command      // not answered yet
	again   []Event        // what was answered once, to come again
	tokens  []protocol.Token
	looked  []Looked
	keys    []Key // of what may be cancelled
	free    []Op  // refused: the same id may come again
}

// drive runs a scope in a random world and returns the first invariant that did
// not hold, or "".
func drive(t *rapid.T, planted map[protocol.Bug]bool) string {
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	reserve := protocol.Epoch(rapid.IntRange(0, 3).Draw(t, "reserve") * 1000)
	opening := rapid.Bool().Draw(t, "opening")
	x := &world{t: t, now: began, w: newWatch(reserve), limit: limit, tries: map[Key]uint64{},
		st: New("pg_1", reserve, opening, Limits{Queue: limit}, planted), fenced: true, settled: true}
	if !opening || rapid.Bool().Draw(t, "there") {
		x.reopen()
	}
	for n := rapid.IntRange(1, 120).Draw(t, "events"); n > 0 && x.w.bad == ""; n-- {
		rapid.SampledFrom(actions).Draw(t, "action")(x)
	}
	if x.w.bad == "" {
		x.drain()
	}
	return x.w.bad
}

// actions, the frequent ones more than once.
var actions = []func(*world){
	(*world).submit, (*world).submit, (*world).submit, (*world).answer, (*world).answer, (*world).answer, (*world).answer, (*world).answer, (*world).answer,
	(*world).observe, (*world).observe, (*world).observe, (*world).supervise, (*world).supervise, (*world).cancel, (*world).tick, (*world).tick,
	(*world).lease, (*world).disturb, (*world).repeat, (*world).stray, (*world).fence,
}

func (x *world) step(ev Event) []Command {
	if x.w.bad != "" {
		return nil
	}
	x.t.Logf("%8s %s", x.now.Sub(began), showEvent(ev))
	before := x.st.Epoch()
	x.w.event(ev)
	out := Step(&x.st, x.now, ev)
	if e, ok := ev.(Resolved); ok && e.Try != x.tries[e.Key] && len(out) > 0 {
		x.w.fail("I8", "what an earlier request of the id %s had found was used", e.Key.ID)
	}
	for _, c := range out {
		x.t.Logf("           %s", show(c))
		x.w.command(c)
		x.take(c)
	}
	if x.st.Epoch() < before {
		x.w.fail("I3", "the epoch went from %d to %d", before, x.st.Epoch())
	}
	if x.st.Waiting() > x.limit {
		x.w.fail("I10", "%d wait, the limit is %d", x.st.Waiting(), x.limit)
	}
	return out
}

func showEvent(ev Event) string {
	if e, ok := ev.(Submit); ok {
		r := e.Op.Request
		return fmt.Sprintf("submit %s of %s: %s g%d token=%s", r.OperationID, e.Op.Key.Owner, r.Method, r.Generation, r.Observation)
	}
	return fmt.Sprintf("%T%+v", ev, ev)
}

func (x *world) take(c Command) {
	switch c := c.(type) {
	case Resolve:
		x.tries[c.Op.Key] = c.Try
		x.pending = append(x.pending, c)
	case StoreAdmission, Run, StoreEnding, Reserve:
		x.pending = append(x.pending, c)
	case Settled:
		x.settled = true
	case Looked:
		x.looked = append(x.looked, c)
	case Answer:
		if o := x.w.ops[c.Key]; c.Receipt.State == protocol.StateRefused && o != nil {
			x.free = append(x.free, o.op)
		}
		if c.Receipt.ObservationToken != "" {
			x.tokens = append(x.tokens, c.Receipt.ObservationToken)
		}
	}
}

func (x *world) owner() protocol.OwnerID {
	return rapid.SampledFrom([]protocol.OwnerID{"a", "a", "a", "b", "c"}).Draw(x.t, "owner")
}

func (x *world) submit() {
	x.serial++
	id := protocol.OperationID(fmt.Sprintf("op%d", x.serial))
	m := rapid.SampledFrom([]protocol.Method{"click", "click", "click", "click", "click", "navigate", "open", "close"}).Draw(x.t, "method")
	gen := x.gen
	if rapid.IntRange(0, 9).Draw(x.t, "stale") == 0 {
		gen--
	}
	op := Op{Key: Key{Owner: x.owner(), ID: id}, RunFor: 45 * time.Second, QueueUntil: x.now.Add(120 * time.Second),
		Request: protocol.Request{OperationID: id, Resource: "pg_1", Generation: gen, Method: m}}
	if rapid.IntRange(0, 3).Draw(x.t, "deadline") == 0 {
		op.Until = x.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(x.t, "until")) * time.Second)
	}
	if len(x.tokens) > 0 && rapid.IntRange(0, 4).Draw(x.t, "named") > 0 {
		// mostly a young one
		i := len(x.tokens) - 1 - min(rapid.IntRange(0, 4).Draw(x.t, "token"), len(x.tokens)-1)
		op.Request.Observation = x.tokens[i]
		if s, ok := x.w.seen[op.Request.Observation]; ok && rapid.IntRange(0, 3).Draw(x.t, "own") > 0 {
			op.Key.Owner = s.owner
		}
	}
	if len(x.free) > 0 && rapid.IntRange(0, 3).Draw(x.t, "again") == 0 {
		old := x.free[len(x.free)-1] // the same id with other content
		op.Key, op.Request.OperationID = old.Key, old.Key.ID
	}
	if o := x.w.ops[op.Key]; o != nil && (!o.answered || o.ending != nil) {
		return // under way or bound for good: the index would not let it through
	}
	x.keys = append(x.keys, op.Key)
	x.step(Submit{Op: op})
}

func (x *world) cancel() {
	if len(x.keys) > 0 {
		x.step(Cancel{Key: rapid.SampledFrom(x.keys).Draw(x.t, "key")})
	}
}

// answer lets one pending command come back.
func (x *world) answer() {
	if len(x.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(x.pending)-1).Draw(x.t, "which")
	p := x.pending[i]
	x.pending = slices.Delete(x.pending, i, i+1)
	x.reply(p, rapid.IntRange(0, 9).Draw(x.t, "trouble"))
}

func (x *world) reply(c Command, trouble int) {
	switch c := c.(type) {
	case Resolve:
		ev := Resolved{Key: c.Op.Key, Gen: c.Gen, Try: c.Try}
		if trouble == 0 {
			ev.Problem = &protocol.Problem{Reason: protocol.ReasonNotFound}
		}
		x.once(ev)
	case StoreAdmission:
		ev := AdmissionStored{Key: c.Op.Key}
		if trouble == 0 {
			ev.Problem = &protocol.Problem{Reason: protocol.ReasonStorageUnavailable}
		}
		x.step(ev)
	case StoreEnding:
		x.step(EndingStored{Key: c.Op.Key, OK: trouble != 0})
	case Reserve:
		x.step(Reserved{UpTo: c.UpTo, OK: trouble > 1})
	case Run:
		if c.Op.Request.Method == protocol.MethodClose {
			x.close(c, trouble < 3)
			return
		}
		x.once(Ran{Key: c.Op.Key, Gen: c.Gen, Outcome: x.outcome(), Token: protocol.Token(fmt.Sprintf("r%d", len(x.again)))})
	}
}

// once gives an answer that may come once more, later.
func (x *world) once(ev Event) []Command {
	x.again = append(x.again, ev)
	return x.step(ev)
}

func (x *world) outcome() targets.Outcome {
	states := []protocol.State{protocol.StateApplied, protocol.StateApplied, protocol.StateApplied, protocol.StateFailed, protocol.StateUncertain, protocol.StateRefused, "nonsense"}
	o := targets.Outcome{State: rapid.SampledFrom(states).Draw(x.t, "state"), Begun: rapid.IntRange(0, protocol.MaxPrimitives).Draw(x.t, "begun")}
	switch rapid.IntRange(0, 9).Draw(x.t, "more") {
	case 0:
		o.Navigated = true
	case 1:
		o.Unanswered = true
	case 2:
		o.ObserveRequired = true
	}
	return o
}

// close is what the supervisor does with a close: admission is closed, the end
// is stored, and the scope is told.
func (x *world) close(c Run, failed bool) {
	x.step(Fence{Reason: protocol.ReasonResourceClosed})
	x.fenced, x.settled, x.closing = true, false, true
	ev := Ran{Key: c.Op.Key, Gen: c.Gen, Outcome: targets.Outcome{State: protocol.StateApplied}}
	if failed {
		ev.Outcome.State = protocol.StateFailed
	}
	x.step(ev)
	if failed {
		x.step(Fence{Reason: protocol.ReasonRestoring})
		x.closing = false
	}
}

func (x *world) observe() {
	if len(x.looked) > 0 && rapid.Bool().Draw(x.t, "seen") {
		l := x.looked[len(x.looked)-1]
		x.asks++
		tok := protocol.Token(fmt.Sprintf("t%d", x.asks))
		owner := x.owner()
		x.w.seen[tok] = sighting{owner: owner, gen: l.Gen, at: x.w.looks[l.Ask]}
		x.tokens = append(x.tokens, tok)
		x.step(Seen{Ask: x.asks, Owner: owner, Gen: l.Gen, Epoch: l.Epoch, Token: tok})
		return
	}
	x.asks++
	x.step(Look{Ask: x.asks})
}

// supervise goes one step on in the life of the incarnations.
func (x *world) supervise() {
	final := rapid.Bool().Draw(x.t, "final")
	switch {
	case x.closing:
	case !x.fenced && final: // half of the time nothing happens
	case !x.fenced:
		x.step(Fence{Reason: protocol.ReasonRestoring})
		x.fenced, x.settled = true, false
	case !x.settled:
		x.step(Settle{Gen: x.gen + 1, Final: final})
	default:
		x.reopen()
	}
}

// fence goes through a whole fence at once. Whatever hangs, it settles.
func (x *world) fence() {
	if x.closing || x.fenced {
		return
	}
	x.step(Fence{Reason: protocol.ReasonRestoring})
	x.fenced, x.settled = true, false
	for _, final := range []bool{false, true, true} {
		x.step(Settle{Gen: x.gen + 1, Final: final})
		if x.settled {
			return
		}
	}
	x.w.fail("I6", "it was asked twice for the last time, and did not settle")
}

func (x *world) reopen() {
	x.gen++
	x.step(Open{Gen: x.gen, Restarted: x.gen > 1})
	x.fenced, x.settled = false, false
}

// tick moves the clock: a little, to the next deadline, or far.
func (x *world) tick() {
	switch rapid.IntRange(0, 3).Draw(x.t, "how far") {
	case 0:
		x.now = x.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(x.t, "ms")) * time.Millisecond)
	case 1:
		x.now = x.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(x.t, "hours")) * time.Hour)
	default:
		if n := x.st.NextDeadline(); n.After(x.now) {
			x.now = n
		}
	}
	x.step(Tick{})
	if n := x.st.NextDeadline(); !n.IsZero() && !n.After(x.now) {
		x.w.fail("timers", "after a tick the next deadline lies %s back: the timer never rests", x.now.Sub(n))
	}
}

func (x *world) lease() {
	x.asks++
	o := x.owner()
	evs := []Event{Claim{Owner: o, Ask: x.asks}, Release{Owner: o, Ask: x.asks}, OwnerLost{Owner: o}, OwnerBack{Owner: o}}
	x.step(rapid.SampledFrom(evs).Draw(x.t, "lease"))
}

func (x *world) disturb() { x.step(Disturbed{Gen: x.gen}) }

// repeat lets something come a second time, late.
func (x *world) repeat() {
	if len(x.again) > 0 {
		x.step(rapid.SampledFrom(x.again).Draw(x.t, "late"))
	}
}

// stray is what nobody asked for.
func (x *world) stray() {
	k := Key{Owner: x.owner(), ID: "stray"}
	x.step(rapid.SampledFrom([]Event{Resolved{Key: k, Gen: x.gen}, AdmissionStored{Key: k}, Ran{Key: k, Gen: x.gen}, EndingStored{Key: k},
		Cancel{Key: k}, Open{Gen: x.gen}, Open{Gen: 1}, Disturbed{Gen: x.gen + 1}}).Draw(x.t, "stray"))
}

// drain lets everything come to its end: the store answers, time passes, the
// supervisor settles. Then everything that was submitted has one answer.
func (x *world) drain() {
	fence := rapid.Bool().Draw(x.t, "fence at the end")
	for range 20 {
		for len(x.pending) > 0 {
			p := x.pending[0]
			x.pending = x.pending[1:]
			switch p.(type) {
			case Resolve, Run: // what hangs never answers: time ends it
			default:
				x.reply(p, 9)
			}
		}
		x.now = x.now.Add(time.Hour)
		x.step(Tick{})
		if !x.closing && !x.settled && (fence || x.fenced) {
			x.step(Fence{Reason: protocol.ReasonRestoring})
			x.step(Settle{Gen: x.gen + 1, Final: true})
		}
	}
	for k, o := range x.w.ops {
		if !o.answered {
			x.w.fail("I4", "%s was never answered", k.ID)
		}
	}
	if x.w.settling {
		x.w.fail("I6", "the scope never settled")
	}
	if n := x.st.NextDeadline(); !n.IsZero() && !n.After(x.now) {
		x.w.fail("timers", "the next deadline lies %s back", x.now.Sub(n))
	}
}

// TestInvariants holds I1 to I10 of doc.go against random worlds.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if bad := drive(t, nil); bad != "" {
			t.Fatal(bad)
		}
	})
}

// TestInvariantsHaveTeeth plants the bugs that the invariants are there for.
func TestInvariantsHaveTeeth(t *testing.T) {
	for bug, want := range map[protocol.Bug]string{
		protocol.BugEffectBeforePersist: "I2",
		protocol.BugLateOverwrites:      "I8",
	} {
		t.Run(string(bug), func(t *testing.T) {
			found := rapid.Custom(func(t *rapid.T) string { return drive(t, map[protocol.Bug]bool{bug: true}) })
			for seed := range 2000 {
				if bad := found.Example(seed); len(bad) > len(want) && bad[:len(want)] == want {
					return
				}
			}
			t.Fatalf("%s was planted and no run broke %s", bug, want)
		})
	}
}
