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

// start begins. What an earlier supervisor of this target left alive is fenced
// first; that waits for no turn and no host.
func (s *targetStep) start() {
	if s.phase == PhaseWaiting && s.live {
		s.fence()
		return
	}
	s.want(false)
}

// enter goes into a phase whose work reports back, and does not wait for ever.
func (s *targetStep) enter(p Phase, c TargetCommand) {
	s.phase = p
	s.do(c)
	s.wake(patience[p], false)
}

// want asks for a turn to be made.
func (s *targetStep) want(wanted bool) {
	if s.phase != PhaseWaiting || s.slot {
		return
	}
	s.tell(s.making(), "", "")
	s.do(AskSlot{Wanted: wanted || s.wanted})
}

// looked: somebody waits for it, so it comes before others, and out of failed.
func (s *targetStep) looked() {
	s.wanted = s.phase != PhaseOpen
	switch {
	case s.phase == PhaseFailed:
		s.past.forget()
		s.revive()
	case s.phase == PhaseWaiting && !s.slot:
		s.do(AskSlot{Wanted: true})
	}
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
	s.do(NeedHost{Anew: s.anew})
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
	case PhaseSettling:
		s.do(SettleOld{Gen: s.gen}) // the scope that was asked may be the one that died
	}
}

func (s *targetStep) fence() {
	s.live, s.fell = true, false
	s.freeSlot()
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
	if !e.OK || e.Gen <= s.gen {
		if s.closing {
			s.shutNow()
			return
		}
		// Without a stored generation nothing may be reachable: try again later.
		s.phase = PhaseBackoff
		s.freeSlot()
		s.wake(s.policy.Last/4, true)
		s.tell(s.making(), protocol.ReasonStorageUnavailable, protocol.ReasonStorageUnavailable.Sentence())
		return
	}
	s.old = s.gen
	s.gen, s.stored = e.Gen, true
	switch {
	case s.live:
		s.enter(PhaseRevoking, RevokeOld{Gen: s.old})
	case s.closing:
		s.shutNow()
	default:
		s.attach()
	}
}

// settleOld has the old operations settled. It asks again until that is said,
// since the scope that was asked may have died.
func (s *targetStep) settleOld() {
	s.phase = PhaseSettling
	s.do(SettleOld{Gen: s.gen})
	s.wake(SettleWithin, false)
}

// afterSettle goes on to the new incarnation, after the backoff.
func (s *targetStep) afterSettle() {
	if s.closing {
		s.shutNow()
		return
	}
	if s.fell {
		// The host went down: that counts on the host, and the wait is the host's.
		s.fell = false
		s.await()
		return
	}
	s.backOff()
}

// goOn ends a backoff: with the fence that the store had stopped, or with a new
// incarnation.
func (s *targetStep) goOn() {
	if s.live {
		s.persist()
		return
	}
	s.await()
}

// await waits for a turn and for the host.
func (s *targetStep) await() {
	if s.closing {
		s.shutNow()
		return
	}
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
	s.freeSlot()
	s.wake(wait, true)
}

// hostFailed ends the wait for a host that gave up.
func (s *targetStep) hostFailed(e HostFailed) {
	s.hostUp = false
	switch s.phase {
	case PhaseWaiting, PhaseAttaching, PhaseBarrier, PhaseDestroying:
		s.fail(e.Reason, e.Message)
	case PhaseBackoff:
		if !s.live {
			s.fail(e.Reason, e.Message)
		}
	}
	// Elsewhere it is fenced first, and meets the host when it needs it again.
}

func (s *targetStep) fail(why protocol.Reason, message string) {
	if s.closing {
		s.shutNow()
		return
	}
	s.phase, s.anew, s.wanted = PhaseFailed, false, false
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
		s.goOn()
	case PhaseSettling:
		s.do(SettleOld{Gen: s.gen, Final: true})
		s.wake(SettleWithin, false)
	case PhaseRevoking:
		// It hangs, so its link may still be open: what it writes to is made away with.
		s.fresh = true
		s.settleOld()
	case PhaseAttaching:
		s.again(protocol.ReasonCouldNotRestore, "attaching did not end")
	case PhaseBarrier:
		s.destroy()
	case PhaseDestroying:
		s.destroyed()
	}
}

func (s *targetStep) attach() {
	s.stored = false
	s.enter(PhaseAttaching, AttachNew{Gen: s.gen, Fresh: s.fresh})
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
	switch {
	case s.closing:
		s.shutNow()
	case e.Loaded || s.planted[protocol.BugSkipBarrier]:
		s.open()
	default:
		s.enter(PhaseBarrier, PassBarrier{Gen: s.gen})
	}
}

func (s *targetStep) passed(e Passed) {
	if s.phase != PhaseBarrier || e.Gen != s.gen {
		return
	}
	switch {
	case s.closing:
		s.fresh = !e.OK
		s.shutNow()
	case e.OK:
		s.open()
	default:
		s.destroy()
	}
}

// destroy has what holds the input made away with: the barrier was missed.
func (s *targetStep) destroy() { s.enter(PhaseDestroying, Destroy{Gen: s.gen}) }

// destroyed goes on to a fresh target. Where destroying failed the next attach
// does it, or fails.
func (s *targetStep) destroyed() {
	s.fresh = true
	s.again(protocol.ReasonPageUnresponsive, "the page held input that it did not answer for")
}

// again: the new incarnation could not be made. There is nothing to settle.
func (s *targetStep) again(why protocol.Reason, message string) {
	s.reason, s.message = why, message
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
	s.phase, s.anew, s.wanted = PhaseOpen, false, false
	s.freeSlot()
	restarted := !s.first
	s.first = false
	s.do(OpenAdmission{Gen: s.gen, Restarted: restarted})
	s.tell(protocol.LifecycleReady, "", "")
}

// hostDown takes every phase back to waiting for the host; what was open is fenced.
func (s *targetStep) hostDown() {
	s.hostUp = false
	switch s.phase {
	case PhaseOpen, PhaseBarrier, PhaseDestroying:
		// What is attached is revoked, also where it has never been open.
		s.reason, s.message = protocol.ReasonBackendUnavailable, "the browser ended"
		s.fence()
		s.fell = true
	case PhasePersisting, PhaseRevoking, PhaseSettling:
		s.fell = s.live
	case PhaseAttaching:
		s.reason, s.message = protocol.ReasonBackendUnavailable, "the browser ended"
		s.await()
	case PhaseBackoff:
		// The end of the target was the host's: it does not count here, and the wait
		// is the host's.
		if s.live {
			s.fell = true
			return
		}
		s.past.undo()
		s.await()
	}
}

// restart begins anew on an explicit wish, also from failed.
func (s *targetStep) restart() {
	s.past.forget()
	switch s.phase {
	case PhaseFailed:
		s.revive()
	case PhaseBackoff:
		s.goOn()
	case PhaseOpen:
		s.reason, s.message = protocol.ReasonRestoring, "restarted on request"
		s.fence()
	}
}

func (s *targetStep) revive() {
	s.phase, s.anew = PhaseWaiting, true
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

// gone: the target closed itself. Where it is ours to end, it did not.
func (s *targetStep) gone() {
	switch s.phase {
	case PhaseOpen, PhasePersisting, PhaseAttaching, PhaseBarrier:
		s.shut()
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
		s.reason, s.message = protocol.ReasonStorageUnavailable, "closing could not be stored"
		s.fence()
		return
	}
	s.phase = PhaseClosed
	s.tell(protocol.LifecycleClosed, "", "")
}
