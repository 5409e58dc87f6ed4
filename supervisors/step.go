package supervisors

import (
	"time"

	"reins/protocol"
)

// Phase is where a target's supervisor stands.
type Phase string

// The phases of a target.
const (
	PhaseWaiting    Phase = "waiting" // for its turn, or for its host
	PhasePersisting Phase = "persisting"
	PhaseRevoking   Phase = "revoking"
	PhaseSettling   Phase = "settling"
	PhaseAttaching  Phase = "attaching"
	PhaseBarrier    Phase = "barrier"
	PhaseDestroying Phase = "destroying"
	PhaseBackoff    Phase = "backoff"
	PhaseOpen       Phase = "open"
	PhaseFailed     Phase = "failed"
	PhaseClosing    Phase = "closing"
	PhaseClosed     Phase = "closed"
)

// SettleWithin is how long a fenced operation may take to report before it is
// declared uncertain.
const SettleWithin = 1500 * time.Millisecond

// patience is how long a phase may take when whoever should report hangs: a
// little longer than the deadline that its work has.
var patience = map[Phase]time.Duration{
	PhaseRevoking:   revokeWithin + 2*time.Second,
	PhaseAttaching:  attachWithin + 5*time.Second,
	PhaseBarrier:    barrierWithin + 3*time.Second,
	PhaseDestroying: destroyWithin + 3*time.Second,
}

// Target is the state of one target's supervisor.
type Target struct {
	phase  Phase
	gen    protocol.Generation // stored
	policy Policy
	past   restarts
	hostUp bool
	fell   bool // the host went down while this target was being fenced
	anew   bool // somebody asked for it: that may start a host that gave up
	wanted bool // somebody waits for it
	// first: no incarnation of this target has been opened in this life of the resource
	first bool
	// live: an incarnation of gen−1 or gen may still hold input
	live    bool
	old     protocol.Generation // what is being revoked
	fresh   bool                // the next attach must not use what is alive
	stored  bool                // gen is stored for an incarnation that has not been attached yet
	closing bool                // the user wants it closed
	timer   uint64
	slot    bool // a place among those being restored is held
	reason  protocol.Reason
	message string
	planted map[protocol.Bug]bool
}

// NewTarget makes the state of a supervisor for a resource whose stored
// generation is gen; 0 for a new resource.
func NewTarget(gen protocol.Generation, p Policy, planted map[protocol.Bug]bool) Target {
	return Target{phase: PhaseWaiting, gen: gen, policy: p.withDefaults(), first: gen == 0, anew: gen == 0, planted: planted}
}

// Phase returns where the supervisor stands, Generation what is stored.
func (t *Target) Phase() Phase { return t.phase }

// Generation is the stored generation.
func (t *Target) Generation() protocol.Generation { return t.gen }

// TargetEvent is what happens to a target's supervisor.
type TargetEvent interface{ targetEvent() }

// The events of a target's supervisor.
type (
	// Start begins: the first incarnation, or the return after a restart.
	Start struct{}
	// HostUp and HostDown tell of the host's life; HostFailed that it gave up.
	HostUp     struct{}
	HostDown   struct{}
	HostFailed struct {
		Reason  protocol.Reason
		Message string
	}
	// SlotGranted is the coordinator's turn for this target.
	SlotGranted struct{}
	// Persisted answers PersistGeneration.
	Persisted struct {
		Gen protocol.Generation
		OK  bool
	}
	Revoked  struct{ Gen protocol.Generation }
	Settled  struct{ Gen protocol.Generation }
	Attached struct {
		Gen     protocol.Generation
		OK      bool
		Loaded  bool // made anew: it never had input of an older generation
		Reason  protocol.Reason
		Message string
	}
	Passed struct {
		Gen protocol.Generation
		OK  bool
	}
	Destroyed struct {
		Gen protocol.Generation
		OK  bool
	}
	// Crash ends the incarnation of a generation.
	Crash struct {
		Gen     protocol.Generation
		Reason  protocol.Reason
		Message string
	}
	// Gone: the target closed itself (window.close).
	Gone struct{ Gen protocol.Generation }
	// Restart is an explicit restart by a person or owner, Looked an observation
	// that wants the target: both leave failed.
	Restart  struct{}
	Looked   struct{}
	WantShut struct{} // close for good
	Shut     struct{ OK bool }
	Woke     struct{ Timer uint64 }
)

func (Start) targetEvent()       {}
func (HostUp) targetEvent()      {}
func (HostDown) targetEvent()    {}
func (HostFailed) targetEvent()  {}
func (SlotGranted) targetEvent() {}
func (Persisted) targetEvent()   {}
func (Revoked) targetEvent()     {}
func (Settled) targetEvent()     {}
func (Attached) targetEvent()    {}
func (Passed) targetEvent()      {}
func (Destroyed) targetEvent()   {}
func (Crash) targetEvent()       {}
func (Gone) targetEvent()        {}
func (Restart) targetEvent()     {}
func (Looked) targetEvent()      {}
func (WantShut) targetEvent()    {}
func (Shut) targetEvent()        {}
func (Woke) targetEvent()        {}

// TargetCommand is what a target's supervisor wants done.
type TargetCommand interface{ targetCommand() }

// The commands of a target's supervisor.
type (
	// CloseAdmission closes the scope's admission with these words.
	CloseAdmission struct {
		Reason  protocol.Reason
		Message string
	}
	PersistGeneration struct{}
	// RevokeOld revokes the incarnation of a generation at the target.
	RevokeOld struct{ Gen protocol.Generation }
	// SettleOld asks the scope to give every old operation its outcome.
	SettleOld struct {
		Gen   protocol.Generation // the one to come; Settled echoes it
		Final bool
	}
	// AskSlot asks the coordinator for a turn, FreeSlot gives it back.
	AskSlot  struct{ Wanted bool }
	FreeSlot struct{}
	// NeedHost asks that the host be brought up; Anew also when it gave up.
	NeedHost  struct{ Anew bool }
	AttachNew struct {
		Gen   protocol.Generation
		Fresh bool
	}
	PassBarrier struct{ Gen protocol.Generation }
	Destroy     struct{ Gen protocol.Generation }
	// OpenAdmission opens the scope for a generation.
	OpenAdmission struct {
		Gen       protocol.Generation
		Restarted bool
	}
	// ShutTarget closes the target for good: stored first, then done.
	ShutTarget struct{ Gen protocol.Generation }
	// Wake asks for Woke{Timer} after a time, plus jitter where Jitter is set.
	Wake struct {
		Timer  uint64
		After  time.Duration
		Jitter bool
	}
	// Tell changes what the record says.
	Tell struct {
		Lifecycle protocol.Lifecycle
		Gen       protocol.Generation
		Reason    protocol.Reason
		Message   string
	}
)

func (CloseAdmission) targetCommand()    {}
func (PersistGeneration) targetCommand() {}
func (RevokeOld) targetCommand()         {}
func (SettleOld) targetCommand()         {}
func (AskSlot) targetCommand()           {}
func (FreeSlot) targetCommand()          {}
func (NeedHost) targetCommand()          {}
func (AttachNew) targetCommand()         {}
func (PassBarrier) targetCommand()       {}
func (Destroy) targetCommand()           {}
func (OpenAdmission) targetCommand()     {}
func (ShutTarget) targetCommand()        {}
func (Wake) targetCommand()              {}
func (Tell) targetCommand()              {}

// Step advances a target's supervisor by one event.
func Step(t *Target, now time.Time, ev TargetEvent) []TargetCommand {
	s := &targetStep{Target: t, now: now}
	if t.phase == PhaseClosed {
		if _, turn := ev.(SlotGranted); turn {
			return []TargetCommand{FreeSlot{}} // it had asked before
		}
		return nil
	}
	switch e := ev.(type) {
	case Start:
		s.start()
	case Looked:
		s.looked()
	case Restart:
		s.restart()
	case HostUp:
		t.hostUp = true
		if t.phase == PhaseWaiting && t.slot {
			s.make()
		}
	case HostDown:
		s.hostDown()
	case HostFailed:
		s.hostFailed(e)
	case SlotGranted:
		s.granted()
	case Persisted:
		s.persisted(e)
	case Revoked:
		if t.phase == PhaseRevoking && e.Gen == t.old {
			s.settleOld()
		}
	case Settled:
		if t.phase == PhaseSettling && e.Gen == t.gen {
			s.live = false
			s.afterSettle()
		}
	case Attached:
		s.attached(e)
	case Passed:
		s.passed(e)
	case Destroyed:
		if t.phase == PhaseDestroying && e.Gen == t.gen {
			s.destroyed()
		}
	case Crash:
		if e.Gen == t.gen {
			s.crash(e.Reason, e.Message)
		}
	case Gone:
		if e.Gen == t.gen {
			s.gone()
		}
	case WantShut:
		s.shut()
	case Shut:
		s.shutDone(e.OK)
	case Woke:
		if e.Timer == t.timer {
			s.woke()
		}
	}
	return s.out
}
