package supervisors

import (
	"time"

	"reins/protocol"
)

type targetStep struct {
	*Target
	now time.Time
	out []TargetCommand
}

func (s *targetStep) do(c TargetCommand) { s.out = append(s.out, c) }

func (s *targetStep) wake(after time.Duration, jitter bool) {
	s.timer++
	s.do(Wake{Timer: s.timer, After: after, Jitter: jitter})
}

// want asks for a turn to be made.
func (s *targetStep) want(wanted bool) {
	if s.phase != PhaseWaiting || s.slot {
		return
	}
	s.tell(s.making(), "", "")
	s.do(AskSlot{Wanted: wanted})
}

func (s *targetStep) making() protocol.Lifecycle {
	if s.first {
		return protocol.LifecycleOpening
	}
	return protocol.LifecycleRestoring
}

func (s *targetStep) tell(l protocol.Lifecycle, why protocol.Reason, message string) {
	s.do(Tell{Lifecycle: l, Gen: s.gen, Reason: why, Message: message})
}

// granted goes on when the host is there, else asks for it.
func (s *targetStep) granted() {
	if s.phase != PhaseWaiting {
		s.do(FreeSlot{})
		return
	}
	s.slot = true
	if s.hostUp {
		s.make()
		return
	}
	s.do(NeedHost{})
}

func (s *targetStep) freeSlot() {
	if s.slot {
		s.slot = false
		s.do(FreeSlot{})
	}
}

// make goes on to the new incarnation; its generation is stored first, unless
// the fence has stored it already.
func (s *targetStep) make() {
	if s.stored {
		s.attach()
		return
	}
	s.persist()
}

func (s *targetStep) persist() {
	s.phase = PhasePersisting
	s.do(PersistGeneration{})
}

// crash begins the fence: admission is closed at once, then the new generation
// is stored, whatever else happens.
func (s *targetStep) crash(why protocol.Reason, message string) {
	s.reason, s.message = why, message
	switch s.phase {
	case PhaseOpen:
		s.fence()
	case PhaseAttaching, PhaseBarrier, PhaseDestroying:
		// The incarnation being made died: it has never been open. It may hold
		// releases of ours, but no operation; it goes the same way.
		s.fresh = true
		s.fence()
	}
}

func (s *targetStep) fence() {
	s.live = true
	if !s.planted[protocol.BugAdmissionLeftOpen] {
		s.do(CloseAdmission{Reason: protocol.ReasonRestoring, Message: protocol.ReasonRestoring.Sentence()})
	}
	s.persist()
	s.tell(s.making(), s.reason, s.message)
}

func (s *targetStep) persisted(e Persisted) {
	if s.phase != PhasePersisting {
		return
	}
	if !e.OK {
		// Without a stored generation nothing may be reachable: try again later.
		s.phase = PhaseBackoff
		s.freeSlot()
		s.wake(s.policy.Last/4, true)
		s.tell(s.making(), protocol.ReasonStorageUnavailable, protocol.ReasonStorageUnavailable.Sentence())
		return
	}
	old := s.gen
	s.gen, s.stored = e.Gen, true
	if s.live {
		s.phase = PhaseRevoking
		s.do(RevokeOld{Gen: old})
		return
	}
	s.attach()
}

// afterSettle goes on to the new incarnation, after the backoff.
func (s *targetStep) afterSettle() {
	if s.closing {
		s.shutNow()
		return
	}
	if s.reason == protocol.ReasonBackendUnavailable {
		// The host went down: that counts on the host, and the wait is the host's.
		s.await()
		return
	}
	s.backOff()
}

// await waits for a turn and for the host.
func (s *targetStep) await() {
	s.phase = PhaseWaiting
	s.freeSlot()
	s.want(false)
}

func (s *targetStep) backOff() {
	wait, ok := s.past.next(s.policy, s.now)
	if !ok {
		s.fail(s.reason, s.message)
		return
	}
	s.phase = PhaseBackoff
	s.wake(wait, true)
}

func (s *targetStep) fail(why protocol.Reason, message string) {
	switch s.phase {
	case PhaseClosing, PhaseClosed:
		return
	case PhaseRevoking, PhaseSettling, PhasePersisting, PhaseOpen:
		if why == protocol.ReasonBackendUnavailable {
			return // a host that failed while it is still being fenced is met again in await
		}
	}
	s.phase = PhaseFailed
	s.freeSlot()
	s.reason, s.message = why, message
	if why == protocol.ReasonBackendUnavailable {
		s.do(CloseAdmission{Reason: why, Message: message})
	} else {
		s.do(CloseAdmission{Reason: protocol.ReasonCouldNotRestore, Message: protocol.ReasonCouldNotRestore.Sentence() + " (" + message + ")"})
	}
	s.tell(protocol.LifecycleFailed, why, message)
}

func (s *targetStep) woke() {
	switch s.phase {
	case PhaseBackoff:
		s.await()
	case PhaseSettling:
		s.do(SettleOld{Final: true})
	}
}

func (s *targetStep) attach() {
	s.phase, s.stored = PhaseAttaching, false
	s.do(AttachNew{Gen: s.gen, Fresh: s.fresh})
}

func (s *targetStep) attached(e Attached) {
	if s.phase != PhaseAttaching || e.Gen != s.gen {
		return
	}
	if !e.OK {
		s.again(e.Reason, e.Message)
		return
	}
	s.fresh = false
	if e.Loaded || s.planted[protocol.BugSkipBarrier] {
		s.open()
		return
	}
	s.phase = PhaseBarrier
	s.do(PassBarrier{Gen: s.gen})
}

func (s *targetStep) passed(e Passed) {
	if s.phase != PhaseBarrier || e.Gen != s.gen {
		return
	}
	if e.OK {
		s.open()
		return
	}
	s.phase = PhaseDestroying
	s.do(Destroy{Gen: s.gen})
}

// again: the new incarnation could not be made. There is nothing to settle.
func (s *targetStep) again(why protocol.Reason, message string) {
	s.reason, s.message = why, message
	s.freeSlot()
	if s.closing {
		s.shutNow()
		return
	}
	if !s.hostUp {
		s.reason = protocol.ReasonBackendUnavailable
		s.await()
		return
	}
	s.backOff()
}

func (s *targetStep) open() {
	s.phase = PhaseOpen
	s.freeSlot()
	restarted := !s.first
	s.first = false
	s.do(OpenAdmission{Gen: s.gen, Restarted: restarted})
	s.tell(protocol.LifecycleReady, "", "")
	if s.closing {
		s.shutNow()
	}
}

// hostDown takes every phase back to waiting for the host; what was open is fenced.
func (s *targetStep) hostDown() {
	s.hostUp = false
	switch s.phase {
	case PhaseOpen:
		s.reason, s.message = protocol.ReasonBackendUnavailable, "the browser ended"
		s.fence()
	case PhaseAttaching, PhaseBarrier, PhaseDestroying:
		s.reason, s.message = protocol.ReasonBackendUnavailable, "the browser ended"
		s.await()
	}
}

// restart begins anew on an explicit wish, also from failed.
func (s *targetStep) restart() {
	s.past.forget()
	switch s.phase {
	case PhaseFailed:
		s.revive()
	case PhaseOpen:
		s.reason, s.message = protocol.ReasonRestoring, "restarted on request"
		s.fence()
	}
}

func (s *targetStep) revive() {
	s.phase = PhaseWaiting
	s.do(CloseAdmission{Reason: protocol.ReasonRestoring, Message: protocol.ReasonRestoring.Sentence()})
	s.want(true)
}

// shut closes for good, at once where nothing is in the way, else when the
// phase that is under way has ended.
func (s *targetStep) shut() {
	s.closing = true
	switch s.phase {
	case PhaseOpen, PhaseWaiting, PhaseBackoff, PhaseFailed:
		s.shutNow()
	}
}

func (s *targetStep) shutNow() {
	s.freeSlot()
	s.phase = PhaseClosing
	s.do(CloseAdmission{Reason: protocol.ReasonResourceClosed, Message: protocol.ReasonResourceClosed.Sentence()})
	s.do(ShutTarget{Gen: s.gen})
}

func (s *targetStep) shutDone(ok bool) {
	if s.phase != PhaseClosing {
		return
	}
	if !ok {
		// Closed could not be stored, so it is not closed: it comes back as it was.
		s.closing = false
		s.live = true
		s.reason, s.message = protocol.ReasonStorageUnavailable, "closing could not be stored"
		s.do(CloseAdmission{Reason: protocol.ReasonRestoring, Message: protocol.ReasonRestoring.Sentence()})
		s.persist()
		return
	}
	s.phase = PhaseClosed
	s.tell(protocol.LifecycleClosed, "", "")
}
