package persistence

import (
	"errors"
	"runtime/debug"
	"time"

	"reins/protocol"
)

// keep is the keeper: it looks after the disk, opens the database anew after a
// freeze, and pays what is owed. It ends on stop.
func (s *Store) keep() {
	defer close(s.kept)
	tick := time.NewTicker(s.opts.poll)
	defer tick.Stop()
	k := keeper{s: s, ok: true}
	for {
		k.guard(k.round)
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// keeper is what the keeper remembers from one round to the next.
type keeper struct {
	s       *Store
	ok      bool      // what was told last
	notYet  time.Time // no try to open anew before
	backoff time.Duration
}

func (k *keeper) guard(f func()) {
	defer func() {
		if r := recover(); r != nil {
			k.s.opts.Logger.Error("the keeper of the store panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}

func (k *keeper) round() {
	s := k.s
	s.space.look(k.s.opts.poll / 2)
	k.report()
	if k.mustReopen() {
		k.reopen()
	}
	if s.frozen() == nil {
		if err := s.space.keepBallast(); err != nil {
			s.opts.Logger.Debug("no ballast", "error", err)
		}
		s.pay()
	}
	k.report()
}

// report tells of a change of the health.
func (k *keeper) report() {
	s := k.s
	reason, message := s.Health()
	if ok := reason == ""; ok != k.ok {
		k.ok = ok
		if ok {
			s.opts.Logger.Info("the store records again")
		} else {
			s.opts.Logger.Warn("the store records nothing", "why", message)
		}
		s.opts.OnHealth(ok, message)
	}
}

// frozen is why the store does not record; nil: it does.
func (s *Store) frozen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return ErrClosed
	}
	return s.handle.fs.cause()
}

var errReopening = errors.New("it is being opened anew")

// mustReopen says whether it is time to open the database anew.
func (k *keeper) mustReopen() bool {
	s := k.s
	cause := s.frozen()
	if cause == nil {
		k.backoff = 0
		return false
	}
	if errors.Is(cause, ErrCorrupt) || errors.Is(cause, ErrClosed) || time.Now().Before(k.notYet) {
		return false
	}
	// On a full disk the next write would only freeze it again.
	_, low := s.space.isLow()
	return !low || !full(cause)
}

// reopen opens the database anew beside the frozen one, which is read from until
// then. What it cannot open it opens again later, each time a little later.
func (k *keeper) reopen() {
	s := k.s
	k.backoff = min(max(2*k.backoff, s.opts.poll), reopenMost)
	k.notYet = time.Now().Add(k.backoff)
	s.mu.Lock()
	frozen := s.handle
	s.mu.Unlock()
	if frozen == nil {
		return // closed meanwhile
	}
	if !frozen.stopWriter(time.Second, s.stop) || !frozen.fs.still() {
		return // something hangs at the disk, and may still reach it
	}
	h, err := s.openAnew()
	if err != nil {
		s.opts.Logger.Warn("the store cannot be opened anew yet", "error", err, "next_try", k.backoff)
		return
	}
	if err := s.publish(h); err != nil {
		s.opts.Logger.Warn("the frozen store did not close in order", "error", err)
	}
}

// Health says why nothing can be recorded, in a reason and in words; the reason
// is empty when the store is well.
func (s *Store) Health() (protocol.Reason, string) {
	if err := s.frozen(); err != nil {
		return protocol.ReasonStorageUnavailable, protocol.ReasonStorageUnavailable.Sentence() + " (" + err.Error() + ")"
	}
	if message, low := s.space.isLow(); low {
		return protocol.ReasonStorageUnavailable, message
	}
	return "", ""
}
