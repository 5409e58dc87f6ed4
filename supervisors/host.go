package supervisors

import (
	"time"

	"reins/protocol"
)

// HostPhase is where a host's supervisor stands.
type HostPhase string

// The phases of a host. It is started when the first target needs it.
const (
	HostIdle     HostPhase = "down"
	HostStarting HostPhase = "starting"
	HostRunning  HostPhase = "up"
	HostWaiting  HostPhase = "backoff"
	HostBroken   HostPhase = "failed"
	HostStopped  HostPhase = "stopped"
)

// HostState is the state of a host's supervisor.
type HostState struct {
	phase   HostPhase
	policy  Policy
	past    restarts
	life    uint64 // counts the starts, so that news of an old life is known
	timer   uint64
	needed  bool
	reason  protocol.Reason
	message string
}

// NewHost makes the state of a host's supervisor.
func NewHost(p Policy) HostState { return HostState{phase: HostIdle, policy: p.withDefaults()} }

// Phase returns where the host's supervisor stands.
func (h *HostState) Phase() HostPhase { return h.phase }

// HostEvent is what happens to a host's supervisor.
type HostEvent interface{ hostEvent() }

// The events of a host's supervisor.
type (
	// Needed: a target wants the host. It leaves failed when Anew is set.
	Needed  struct{ Anew bool }
	Started struct {
		Life    uint64
		OK      bool
		Message string
	}
	Ended    struct{ Life uint64 }
	HostWoke struct{ Timer uint64 }
	StopHost struct{}
)

func (Needed) hostEvent()   {}
func (Started) hostEvent()  {}
func (Ended) hostEvent()    {}
func (HostWoke) hostEvent() {}
func (StopHost) hostEvent() {}

// HostCommand is what a host's supervisor wants done.
type HostCommand interface{ hostCommand() }

// The commands of a host's supervisor.
type (
	StartHost struct{ Life uint64 }
	// TellUp, TellDown, TellFailed go to every target of the host.
	TellUp     struct{}
	TellDown   struct{}
	TellFailed struct {
		Reason  protocol.Reason
		Message string
	}
	WakeHost struct {
		Timer uint64
		After time.Duration
	}
	HaltHost struct{}
)

func (StartHost) hostCommand()  {}
func (TellUp) hostCommand()     {}
func (TellDown) hostCommand()   {}
func (TellFailed) hostCommand() {}
func (WakeHost) hostCommand()   {}
func (HaltHost) hostCommand()   {}

// HostStep advances a host's supervisor by one event.
func HostStep(h *HostState, now time.Time, ev HostEvent) []HostCommand {
	if h.phase == HostStopped {
		return nil
	}
	switch e := ev.(type) {
	case Needed:
		h.needed = true
		switch h.phase {
		case HostIdle:
			return h.start()
		case HostRunning:
			return []HostCommand{TellUp{}}
		case HostBroken:
			if e.Anew {
				h.past.forget()
				return h.start()
			}
			return []HostCommand{TellFailed{Reason: h.reason, Message: h.message}}
		}
	case Started:
		if e.Life != h.life || h.phase != HostStarting {
			return nil
		}
		if e.OK {
			h.phase = HostRunning
			return []HostCommand{TellUp{}}
		}
		h.reason, h.message = protocol.ReasonBackendUnavailable, e.Message
		return h.again(now)
	case Ended:
		if e.Life != h.life || h.phase != HostRunning {
			return nil
		}
		h.reason, h.message = protocol.ReasonBackendUnavailable, "the browser keeps ending"
		return append([]HostCommand{TellDown{}}, h.again(now)...)
	case HostWoke:
		if h.phase == HostWaiting && e.Timer == h.timer {
			return h.start()
		}
	case StopHost:
		h.phase = HostStopped
		return []HostCommand{HaltHost{}}
	}
	return nil
}

func (h *HostState) start() []HostCommand {
	h.phase = HostStarting
	h.life++
	return []HostCommand{StartHost{Life: h.life}}
}

func (h *HostState) again(now time.Time) []HostCommand {
	wait, ok := h.past.next(h.policy, now)
	if !ok {
		h.phase = HostBroken
		return []HostCommand{TellFailed{Reason: h.reason, Message: h.message}}
	}
	h.phase = HostWaiting
	h.timer++
	return []HostCommand{WakeHost{Timer: h.timer, After: wait}}
}
