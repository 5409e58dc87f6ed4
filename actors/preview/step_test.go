package preview

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reins/protocol"
)

var began = time.Unix(1_700_000_000, 0)

// capture is what runs, as the changes have it; width 0: nothing.
type capture struct {
	gen   protocol.Generation
	width int
}

// TestDemands goes through the life of a preview by a table.
func TestDemands(t *testing.T) {
	var s State
	now := began
	running := capture{}
	for i, row := range []struct {
		after time.Duration
		ev    Event
		want  capture
	}{
		{0, Tick{}, capture{}},
		{0, Demanded{Viewer: "v1", Width: 640, TTL: 5 * time.Second}, capture{}}, // there is nothing to capture
		{0, Incarnation{Gen: 1, Alive: true}, capture{1, 640}},
		{0, Incarnation{Gen: 1, Alive: true}, capture{1, 640}},
		{0, Demanded{Viewer: "v2", Width: 320, TTL: 9 * time.Second}, capture{1, 640}}, // the widest wins
		{0, Demanded{Viewer: "v3", Width: 1280, TTL: time.Second}, capture{1, 1280}},
		{time.Second, Tick{}, capture{1, 640}},
		{4 * time.Second, Tick{}, capture{1, 320}},
		{0, Incarnation{Gen: 1}, capture{}},                    // it is over
		{0, Incarnation{Gen: 2, Alive: true}, capture{2, 320}}, // the next
		{0, Incarnation{Gen: 3, Alive: true}, capture{3, 320}}, // at once
		{0, Ended{Gen: 2}, capture{3, 320}},                    // an old one
		{0, Ended{Gen: 3}, capture{}},
		{0, Tick{}, capture{3, 320}}, // tried again
		{0, Demanded{Viewer: "v2", Width: 320, TTL: 5 * time.Second}, capture{3, 320}},
		{4 * time.Second, Tick{}, capture{3, 320}},
		{time.Second, Tick{}, capture{}},
	} {
		now = now.Add(row.after)
		if c, changed := Step(&s, now, row.ev); changed {
			running = capture{c.Gen, c.Width}
		} else if _, ended := row.ev.(Ended); ended && row.want.width == 0 {
			running = capture{}
		}
		if running.width == 0 {
			running.gen = 0
		}
		if running != row.want {
			t.Fatalf("row %d, %T%+v: %+v runs, not %+v", i, row.ev, row.ev, running, row.want)
		}
	}
	if !s.Next().IsZero() {
		t.Fatal("a demand that ran out is remembered")
	}
}

// TestInvariants holds I1 (nothing is captured without a live demand), I2 (one
// capture a target) and I3 (only of the current generation) against random
// viewers and incarnations.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		now := began
		type wanted struct {
			width int
			until time.Time
		}
		demands := map[string]wanted{}
		gen, alive, running, failed := protocol.Generation(0), false, capture{}, false
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			var ev Event
			failed = false
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				d := Demanded{Viewer: fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "viewer")), Width: 64 * rapid.IntRange(1, 4).Draw(t, "width"),
					TTL: time.Duration(rapid.IntRange(1, 5).Draw(t, "ttl")) * time.Second}
				demands[d.Viewer] = wanted{d.Width, now.Add(d.TTL)}
				ev = d
			case 2:
				if rapid.Bool().Draw(t, "new") {
					gen++
				}
				alive = rapid.Bool().Draw(t, "alive")
				ev = Incarnation{Gen: gen, Alive: alive}
			case 3:
				e := Ended{Gen: gen}
				if rapid.Bool().Draw(t, "old") {
					e.Gen--
				}
				failed = e.Gen == gen
				ev = e
			default:
				ev = Tick{}
			}
			c, changed := Step(&s, now, ev)
			if failed {
				running = capture{}
			}
			if changed {
				running = capture{c.Gen, c.Width}
			}
			want := 0
			for _, d := range demands {
				if now.Before(d.until) {
					want = max(want, d.width)
				}
			}
			switch {
			case running.width != 0 && want == 0:
				t.Fatal("I1: it is captured and nobody demands it")
			case running.width != 0 && (running.gen != gen || !alive):
				t.Fatalf("I3: g%d is captured, g%d is there (%v)", running.gen, gen, alive)
			case running.width != 0 && running.width != want:
				t.Fatalf("I2: it is captured at %d, %d is the widest demand", running.width, want)
			case running.width == 0 && alive && want != 0 && !failed:
				t.Fatalf("it is demanded and not captured")
			}
			if n := s.Next(); want == 0 && !failed && !n.IsZero() {
				t.Fatal("a demand that ran out is remembered")
			}
		}
	})
}
