package supervisors

import (
	"fmt"
	"time"

	"reins/protocol"
)

// watch holds a target supervisor's events and commands to the invariants of
// doc.go, by what went in and what came out alone.
type watch struct {
	bad string

	gen      protocol.Generation // stored
	attached protocol.Generation // asked for
	opened   protocol.Generation
	dead     protocol.Generation // went with its host
	ready    protocol.Generation // attached, and made anew or past its barrier
	fence    fenceStage          // how far the fence of what was open has come
	old      protocol.Generation // whose incarnation is to be revoked
	unclean  bool                // it could not be revoked, or its barrier was missed: the next must be fresh
	missed   bool                // a barrier was missed, and nothing was destroyed yet
	asked    bool
	slots    int
	closed   bool
	attempts []time.Time // of attaching, since the last wish or fault of the host
}

// fenceStage is how far a fence has come.
type fenceStage int

const (
	unfenced fenceStage = iota // nothing was open
	live                       // something is, or was
	shutOff                    // admission is closed
	storing
	stored
	revoking
	revoked
	settling
	settled
)

func (w *watch) fail(invariant, format string, args ...any) {
	if w.bad == "" {
		w.bad = invariant + ": " + fmt.Sprintf(format, args...)
	}
}

// event notes what went in, before the step. phase is where the supervisor stands.
func (w *watch) event(phase Phase, ev TargetEvent, timer uint64) {
	switch e := ev.(type) {
	case Persisted:
		if phase == PhasePersisting && e.OK && e.Gen > w.gen {
			w.gen = e.Gen
			if w.fence == storing {
				w.fence = stored
			}
		}
	case Revoked:
		if w.fence == revoking && e.Gen == w.old {
			w.fence = revoked
		}
	case Settled:
		if w.fence == settling && e.Gen == w.gen {
			w.fence = settled
		}
	case Attached:
		if phase == PhaseAttaching && e.Gen == w.attached && e.OK {
			w.unclean = false
			if e.Loaded {
				w.ready = e.Gen
			}
		}
	case Passed:
		if phase == PhaseBarrier && e.Gen == w.attached {
			if e.OK {
				w.ready = e.Gen
			} else {
				w.missed, w.unclean = true, true
			}
		}
	case Woke:
		if e.Timer == timer && phase == PhaseRevoking {
			w.fence, w.unclean = revoked, true
		}
		if e.Timer == timer && phase == PhaseBarrier {
			w.missed, w.unclean = true, true
		}
	case Shut:
		w.closed = w.closed || (phase == PhaseClosing && e.OK)
	case SlotGranted:
		w.slots, w.asked = w.slots+1, false
	case Looked, Restart:
		w.attempts = nil
	case HostDown:
		// With the host went whatever held input.
		w.attempts, w.unclean, w.missed, w.dead = nil, false, false, w.attached
	case HostFailed:
		w.attempts = nil
	}
}

// command notes what came out.
func (w *watch) command(now time.Time, c TargetCommand) {
	if _, free := c.(FreeSlot); w.closed && !free {
		if t, ok := c.(Tell); !ok || t.Lifecycle != protocol.LifecycleClosed {
			w.fail("I6", "%s after it was closed", show(c))
		}
	}
	switch c := c.(type) {
	case CloseAdmission:
		w.ready = 0
		if w.fence == live {
			w.fence = shutOff
		}
	case PersistGeneration:
		if w.fence == live {
			w.fail("I3", "the generation is stored while admission is open")
		}
		if w.fence >= shutOff && w.fence < storing {
			w.fence = storing
		}
	case RevokeOld:
		if w.fence == unfenced {
			w.fence = stored // what was being made is revoked as well
		}
		w.next(stored, revoking, c)
		w.old = c.Gen
	case SettleOld:
		if w.fence != settling {
			w.next(revoked, settling, c)
		}
	case AttachNew:
		w.attach(now, c)
	case PassBarrier:
		if c.Gen != w.attached {
			w.fail("I2", "the barrier of g%d, g%d is attached", c.Gen, w.attached)
		}
	case Destroy:
		w.missed = false
	case OpenAdmission:
		if c.Gen != w.gen || c.Gen != w.ready || c.Gen != w.attached {
			w.fail("I2", "g%d is opened: g%d is stored, g%d attached, g%d ready", c.Gen, w.gen, w.attached, w.ready)
		}
		if c.Gen == w.dead {
			w.fail("I2", "g%d is opened, and its host is gone", c.Gen)
		}
		if c.Gen <= w.opened {
			w.fail("I1", "g%d is opened after g%d", c.Gen, w.opened)
		}
		w.opened, w.fence = c.Gen, live
	case ShutTarget:
		w.fence, w.ready, w.missed = unfenced, 0, false
	case AskSlot:
		w.asked = true
	case FreeSlot:
		w.slots--
		if w.slots < 0 {
			w.fail("I7", "a turn was given back that nobody had")
		}
	}
}

func (w *watch) next(from, to fenceStage, c TargetCommand) {
	if w.fence != from {
		w.fail("I3", "%s when the fence stands at %d", show(c), w.fence)
	}
	w.fence = to
}

func (w *watch) attach(now time.Time, c AttachNew) {
	switch w.fence {
	case unfenced, settled:
	default:
		w.fail("I3", "g%d is attached when the fence of the one before stands at %d", c.Gen, w.fence)
	}
	w.fence = unfenced
	if c.Gen != w.gen {
		w.fail("I1", "g%d is attached, g%d is stored", c.Gen, w.gen)
	}
	if c.Gen <= w.attached {
		w.fail("I1", "g%d is attached after g%d", c.Gen, w.attached)
	}
	if w.missed {
		w.fail("I8", "g%d is attached after a barrier was missed, and nothing was destroyed", c.Gen)
	}
	if w.unclean && !c.Fresh {
		w.fail("I8", "g%d is attached to what could not be fenced", c.Gen)
	}
	w.attached, w.ready = c.Gen, 0
	w.attempts = append(w.attempts, now)
	young := 0
	for _, at := range w.attempts {
		if now.Sub(at) < 60*time.Second {
			young++
		}
	}
	if young > 6 { // the first, and five restarts
		w.fail("I5", "%d attempts in 60 s", young)
	}
}

// rests checks what must hold between events.
func (w *watch) rests(phase Phase) {
	switch phase {
	case PhaseOpen, PhaseFailed, PhaseClosing, PhaseClosed, PhaseBackoff, PhaseRevoking, PhaseSettling:
		if w.slots != 0 {
			w.fail("I7", "%s, and a turn is held that others wait for", phase)
		}
	}
	if w.slots > 1 {
		w.fail("I7", "%d turns are held", w.slots)
	}
	if phase != PhaseOpen && w.fence == live {
		w.fail("I3", "%s, and admission is open", phase)
	}
}
