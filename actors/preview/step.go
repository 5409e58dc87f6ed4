package preview

import (
	"time"

	"reins/protocol"
)

// State is what is demanded of one target, and what is captured.
type State struct {
	demands map[string]demand // by viewer
	gen     protocol.Generation
	alive   bool // there is an incarnation to capture
	width   int  // of the running capture; 0: none runs
}

type demand struct {
	width int
	until time.Time
}

// Event is what happens to a target's preview.
type Event interface{ previewEvent() }

type (
	// Demanded renews a viewer's demand.
	Demanded struct {
		Viewer string
		Width  int
		TTL    time.Duration
	}
	// Incarnation tells of the current one; Alive false: there is none now.
	Incarnation struct {
		Gen   protocol.Generation
		Alive bool
	}
	// Ended: the capture ended by itself.
	Ended struct{ Gen protocol.Generation }
	// Tick lets demands run out.
	Tick struct{}
)

func (Demanded) previewEvent()    {}
func (Incarnation) previewEvent() {}
func (Ended) previewEvent()       {}
func (Tick) previewEvent()        {}

// Change is what has to be done to the capture: start it with Width under Gen
// (ending the one that runs), or, with Width 0, end it.
type Change struct {
	Gen   protocol.Generation
	Width int
}

// Step advances a target's preview. changed is false when the capture stays as it is.
func Step(s *State, now time.Time, ev Event) (c Change, changed bool) {
	switch e := ev.(type) {
	case Demanded:
		if s.demands == nil {
			s.demands = map[string]demand{}
		}
		s.demands[e.Viewer] = demand{width: e.Width, until: now.Add(e.TTL)}
	case Incarnation:
		if e.Gen != s.gen || !e.Alive {
			if s.width != 0 {
				c, changed = Change{Gen: s.gen}, true
			}
			s.width = 0
		}
		s.gen, s.alive = e.Gen, e.Alive
	case Ended:
		if e.Gen == s.gen {
			s.width = 0
			return c, false // tried again at the next demand or tick
		}
	}
	want := 0
	for v, d := range s.demands {
		if now.Before(d.until) {
			want = max(want, d.width)
		} else {
			delete(s.demands, v)
		}
	}
	if !s.alive {
		want = 0
	}
	if want == s.width {
		return c, changed
	}
	s.width = want
	return Change{Gen: s.gen, Width: want}, true
}

// Next is when the next demand runs out; zero when there is none.
func (s *State) Next() time.Time {
	var t time.Time
	for _, d := range s.demands {
		if t.IsZero() || d.until.Before(t) {
			t = d.until
		}
	}
	return t
}
