package supervisors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reins/protocol"
)

// world is everything around a target's supervisor: a host that comes and goes,
// a store, an adapter and a coordinator that answer late, twice, with bad news,
// or not at all.
type world struct {
	t       *rapid.T
	st      Target
	now     time.Time
	w       *watch
	stored  protocol.Generation
	pending []TargetCommand
	old     []TargetEvent // what came once, to come again
	need    bool
	anew    bool
	up      bool
	timer   Wake
}

// drive runs a supervisor in a random world and returns the first invariant that
// did not hold, or "".
func drive(t *rapid.T, planted map[protocol.Bug]bool) string {
	gen := protocol.Generation(rapid.IntRange(0, 2).Draw(t, "gen"))
	x := &world{t: t, now: began, stored: gen, w: &watch{gen: gen}, st: NewTarget(gen, Policy{}, planted)}
	x.step(Start{})
	for n := rapid.IntRange(1, 120).Draw(t, "events"); n > 0 && x.w.bad == ""; n-- {
		rapid.SampledFrom(actions).Draw(t, "action")(x)
	}
	if x.w.bad == "" {
		x.drain()
	}
	return x.w.bad
}

var actions = []func(*world){
	(*world).answer, (*world).answer, (*world).answer, (*world).answer, (*world).answer, (*world).answer, (*world).answer,
	(*world).turn, (*world).turn, (*world).turn, (*world).host, (*world).host, (*world).wake, (*world).wake, (*world).fault, (*world).fault, (*world).hang,
	(*world).wish, (*world).repeat, (*world).repeat, (*world).repeat,
}

func (x *world) step(ev TargetEvent) []TargetCommand {
	if x.w.bad != "" {
		return nil
	}
	x.t.Logf("%8s %-10s %T%+v", x.now.Sub(began), x.st.Phase(), ev, ev)
	x.w.event(x.st.Phase(), ev, x.st.timer)
	before := x.st.Generation()
	out := Step(&x.st, x.now, ev)
	for _, c := range out {
		x.t.Logf("           %s", show(c))
		x.w.command(x.now, c)
		switch c := c.(type) {
		case PersistGeneration, RevokeOld, SettleOld, AttachNew, PassBarrier, Destroy, ShutTarget:
			x.pending = append(x.pending, c)
		case NeedHost:
			x.need, x.anew = true, c.Anew
		case Wake:
			x.timer = c
		}
	}
	if x.st.Generation() < before {
		x.w.fail("I1", "the generation went from %d to %d", before, x.st.Generation())
	}
	x.w.rests(x.st.Phase())
	return out
}

// answer lets one pending command come back.
func (x *world) answer() {
	if len(x.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(x.pending)-1).Draw(x.t, "which")
	c := x.pending[i]
	x.pending = slices.Delete(x.pending, i, i+1)
	x.reply(c, rapid.IntRange(0, 3).Draw(x.t, "trouble") == 0, rapid.Bool().Draw(x.t, "loaded"))
}

func (x *world) reply(c TargetCommand, trouble, loaded bool) {
	switch c := c.(type) {
	case PersistGeneration:
		switch {
		case !trouble:
			x.stored++
			x.step(Persisted{Gen: x.stored, OK: true})
		case loaded:
			x.step(Persisted{Gen: x.stored, OK: true}) // a store that counts backwards
		default:
			x.step(Persisted{Gen: x.stored + 1})
		}
	case RevokeOld:
		x.once(Revoked(c))
	case SettleOld:
		x.once(Settled{Gen: c.Gen})
	case AttachNew:
		x.once(Attached{Gen: c.Gen, OK: !trouble, Loaded: loaded || c.Fresh, Reason: protocol.ReasonCouldNotRestore})
	case PassBarrier:
		x.once(Passed{Gen: c.Gen, OK: !trouble})
	case Destroy:
		x.once(Destroyed{Gen: c.Gen, OK: !trouble})
	case ShutTarget:
		x.step(Shut{OK: !trouble})
	}
}

func (x *world) once(ev TargetEvent) {
	x.old = append(x.old, ev)
	x.step(ev)
}

// turn is the coordinator's.
func (x *world) turn() {
	if x.w.asked && x.w.slots == 0 {
		x.step(SlotGranted{})
	}
}

func (x *world) host() {
	switch {
	case x.up && rapid.IntRange(0, 2).Draw(x.t, "down") == 0:
		x.up = false
		x.step(HostDown{})
		if rapid.IntRange(0, 3).Draw(x.t, "broken") == 0 {
			x.step(HostFailed{Reason: protocol.ReasonBackendUnavailable})
		}
	case x.need || x.up:
		x.up, x.need = true, false
		x.step(HostUp{})
	}
}

// wake moves the clock to the timer, or lets an old timer come.
func (x *world) wake() {
	if x.timer.Timer == 0 {
		return
	}
	if rapid.IntRange(0, 4).Draw(x.t, "stale") == 0 {
		x.step(Woke{Timer: x.timer.Timer - 1})
		return
	}
	x.now = x.now.Add(x.timer.After)
	x.step(Woke{Timer: x.timer.Timer})
}

func (x *world) fault() {
	g := x.st.Generation()
	if rapid.IntRange(0, 4).Draw(x.t, "old") == 0 {
		g--
	}
	reasons := []protocol.Reason{protocol.ReasonRendererCrashed, protocol.ReasonBackendUnavailable, protocol.ReasonScopeRestarted}
	x.check(Crash{Gen: g, Reason: rapid.SampledFrom(reasons).Draw(x.t, "reason")}, g != x.st.Generation())
}

// check steps; news of an old generation must change nothing.
func (x *world) check(ev TargetEvent, stale bool) {
	before := x.st.Phase()
	out := x.step(ev)
	if stale && (len(out) > 0 || x.st.Phase() != before) {
		x.w.fail("I4", "%T%+v of an old generation led from %s to %s", ev, ev, before, x.st.Phase())
	}
}

// hang: one pending command never comes back.
func (x *world) hang() {
	if len(x.pending) > 0 {
		i := rapid.IntRange(0, len(x.pending)-1).Draw(x.t, "which")
		switch x.pending[i].(type) {
		case PersistGeneration, ShutTarget: // the store answers in the end
		default:
			x.pending = slices.Delete(x.pending, i, i+1)
		}
	}
}

func (x *world) wish() {
	wishes := []TargetEvent{Looked{}, Looked{}, Restart{}, Gone{Gen: x.st.Generation()}, WantShut{}, Start{}}
	if rapid.IntRange(0, 3).Draw(x.t, "old") == 0 {
		x.check(Gone{Gen: x.st.Generation() - 1}, true)
		return
	}
	x.step(rapid.SampledFrom(wishes).Draw(x.t, "wish"))
}

// repeat lets something come a second time. What belongs to another generation
// than the one that is waited for changes nothing.
func (x *world) repeat() {
	if len(x.old) == 0 {
		return
	}
	ev := rapid.SampledFrom(x.old).Draw(x.t, "late")
	stale := false
	switch e := ev.(type) {
	case Revoked:
		stale = e.Gen != x.st.old
	case Settled:
		stale = e.Gen != x.st.Generation()
	case Attached:
		stale = e.Gen != x.st.Generation()
	case Passed:
		stale = e.Gen != x.st.Generation()
	case Destroyed:
		stale = e.Gen != x.st.Generation()
	}
	x.check(ev, stale)
}

// drain lets everything answer well: the target opens, unless it has failed or closed.
func (x *world) drain() {
	for range 400 {
		switch x.st.Phase() {
		case PhaseOpen, PhaseFailed, PhaseClosed:
			return
		}
		switch {
		case len(x.pending) > 0:
			c := x.pending[0]
			x.pending = x.pending[1:]
			x.reply(c, false, true)
		case x.w.asked && x.w.slots == 0:
			x.step(SlotGranted{})
		case x.need:
			x.up, x.need = true, false
			x.step(HostUp{})
		case x.timer.Timer != 0:
			x.now = x.now.Add(x.timer.After)
			x.step(Woke{Timer: x.timer.Timer})
		}
		if x.w.bad != "" {
			return
		}
	}
	x.w.fail("I7", "it never got past %s", x.st.Phase())
}

// TestInvariants holds I1 to I8 of doc.go against random worlds.
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
		protocol.BugAdmissionLeftOpen: "I3",
		protocol.BugSkipBarrier:       "I2",
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

// TestInvariantsHost holds I5 for a host: at most Policy.Max restarts in
// Policy.Period, and only somebody who asks starts it again after that. News of
// an old life changes nothing.
func TestInvariantsHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, now := NewHost(Policy{}), began
		var starts []time.Time
		var timer, life uint64
		told := "" // what the targets were told last
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			evs := []HostEvent{Needed{}, Needed{Anew: true}, Started{Life: life, OK: true}, Started{Life: life}, Ended{Life: life}, Ended{Life: life - 1},
				Started{Life: life - 1, OK: true}, HostWoke{Timer: timer}, HostWoke{Timer: timer}, HostWoke{Timer: timer - 1}}
			ev := rapid.SampledFrom(evs).Draw(t, "event")
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			before := h.Phase()
			stale := false
			switch e := ev.(type) {
			case Started:
				stale = e.Life != life
			case Ended:
				stale = e.Life != life
			case HostWoke:
				stale = e.Timer != timer
			}
			for _, c := range HostStep(&h, now, ev) {
				if stale {
					t.Fatalf("I4: %T%+v is old and led to %T", ev, ev, c)
				}
				switch c := c.(type) {
				case StartHost:
					if c.Life <= life {
						t.Fatalf("I4: life %d after %d", c.Life, life)
					}
					if before == HostBroken {
						if n, ok := ev.(Needed); !ok || !n.Anew {
							t.Fatalf("I5: started after it gave up, by %T%+v", ev, ev)
						}
						starts = nil
					}
					life, starts = c.Life, append(starts, now)
				case WakeHost:
					timer = c.Timer
					if c.After < 100*time.Millisecond || c.After > 10*time.Second {
						t.Fatalf("I5: a wait of %s", c.After)
					}
				case TellUp:
					told = "up"
				case TellDown:
					if told != "up" {
						t.Fatalf("told down after %q", told)
					}
					told = "down"
				case TellFailed:
					told = "failed"
				}
			}
			young := 0
			for _, at := range starts {
				if now.Sub(at) < 60*time.Second {
					young++
				}
			}
			if young > 6 {
				t.Fatalf("I5: %d starts in 60 s", young)
			}
			if (h.Phase() == HostRunning) != (told == "up") {
				t.Fatalf("it is %s and the targets were told %q", h.Phase(), told)
			}
		}
	})
}

// TestInvariantsRestore holds I9: never more than the width at a time, wanted
// ones first, one more turn for a wish that came meanwhile, nobody forgotten.
func TestInvariantsRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRestore(0)
		making, waiting, again := map[protocol.ResourceID]bool{}, map[protocol.ResourceID]wish{}, map[protocol.ResourceID]wish{}
		order := uint64(0)
		step := func(ev RestoreEvent) {
			for _, id := range RestoreStep(&r, ev) {
				w, ok := waiting[id]
				if !ok {
					t.Fatalf("I9: a turn for %s, who did not ask", id)
				}
				delete(waiting, id)
				making[id] = true
				for _, o := range waiting {
					if before(o, w) {
						t.Fatalf("I9: a turn for %+v before %+v", w, o)
					}
				}
			}
			if len(making) > RestoreWidth {
				t.Fatalf("I9: %d are made at a time", len(making))
			}
			if len(waiting) > 0 && len(making) < RestoreWidth {
				t.Fatalf("I9: %d wait, %d are made", len(waiting), len(making))
			}
		}
		put := func(w wish) {
			if old, ok := waiting[w.resource]; ok {
				old.wanted = old.wanted || w.wanted
				w = old
			}
			waiting[w.resource] = w
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			id := protocol.ResourceID(fmt.Sprintf("pg_%d", rapid.IntRange(1, 6).Draw(t, "resource")))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				order++
				w := wish{resource: id, wanted: rapid.Bool().Draw(t, "wanted"), recent: protocol.Time(rapid.IntRange(0, 3).Draw(t, "recent")), order: order}
				ev := Wish{Resource: id, Wanted: w.wanted, Recent: w.recent}
				if making[id] {
					w.wanted = w.wanted || again[id].wanted
					again[id] = w
				} else {
					put(w)
				}
				step(ev)
			case 3, 4:
				if !making[id] {
					continue
				}
				delete(making, id)
				if w, ok := again[id]; ok {
					delete(again, id)
					put(w)
				}
				step(Made{Resource: id})
			default:
				delete(making, id)
				delete(waiting, id)
				delete(again, id)
				step(Forget{Resource: id})
			}
		}
	})
}

// before says whose turn comes first, as SPEC §8 has it.
func before(a, b wish) bool {
	if a.wanted != b.wanted {
		return a.wanted
	}
	if a.recent != b.recent {
		return a.recent > b.recent
	}
	return a.order < b.order
}
