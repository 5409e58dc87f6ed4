package persistence

import (
	"errors"
	"fmt"

	"reins/protocol"
)

// Admission is an operation that is about to be dispatched.
type Admission struct {
	Owner       protocol.OwnerID
	Operation   protocol.OperationID
	Resource    protocol.ResourceID
	Generation  protocol.Generation
	Method      protocol.Method
	ContentHash [32]byte
	At          protocol.Time // 0: now
	Epoch       protocol.Epoch
	// EpochReserve, if not 0, is reserved for the resource in the same write.
	EpochReserve protocol.Epoch
	UserTurn     string
}

// Ending is how an admitted operation ended.
type Ending struct {
	Owner       protocol.OwnerID
	Receipt     protocol.Receipt
	ContentHash [32]byte
	At          protocol.Time // 0: now
}

// underway is an operation between its admission and its end.
type underway struct {
	rec operation
	// ended: Finish has been called, so that a failed admission changes nothing more.
	ended bool
}

// Admit records, synced, that an operation is about to be dispatched. Its mark
// has to be set before the first byte leaves. After an error nothing is
// recorded, also later: ErrStorageUnavailable, ErrRecorded, ErrClosed.
func (s *Store) Admit(a Admission) (Mark, error) {
	if a.At == 0 {
		a.At = s.opts.now()
	}
	id := operationID{a.Owner, a.Operation}
	rec := operation{Resource: a.Resource, Generation: a.Generation, Epoch: a.Epoch, Method: a.Method, UserTurn: a.UserTurn,
		Hash: a.ContentHash[:], Admitted: a.At}
	u, err := s.begin(id, rec)
	if err != nil {
		return nil, err
	}
	again := s.opts.planted(protocol.BugRetryUncertain)
	r := s.do(&job{synced: true, optional: true, build: func(t *tx) error {
		known, err := t.operation(id)
		if err != nil {
			return err
		}
		if known != nil && !(again && known.Receipt != nil) {
			return fmt.Errorf("%q of %q: %w", id.ID, id.Owner, ErrRecorded)
		}
		if err := t.putOperation(id, u.rec); err != nil {
			return err
		}
		t.set(operationKey(keyPending, id.Owner, id.ID), nil)
		t.reserveEpoch(a.Resource, a.EpochReserve)
		return nil
	}})
	if r.err != nil {
		s.withdraw(id, u, r.tried)
		return nil, r.err
	}
	return mark{s.marks, *u.rec.Slot}, nil
}

// begin takes a slot for an operation.
func (s *Store) begin(id operationID, rec operation) (*underway, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under[id] != nil {
		return nil, fmt.Errorf("%q of %q is under way: %w", id.ID, id.Owner, ErrRecorded)
	}
	if debt, ok := s.owed[id]; ok {
		if debt.receipt != nil {
			return nil, fmt.Errorf("%q of %q: %w", id.ID, id.Owner, ErrRecorded)
		}
		return nil, fmt.Errorf("%w (an earlier try of %q is still being taken back)", ErrStorageUnavailable, id.ID)
	}
	slot, ok := s.marks.take()
	if !ok {
		return nil, fmt.Errorf("%w (%d operations are under way, which is the most)", ErrStorageUnavailable, slots)
	}
	rec.Slot = &slot
	u := &underway{rec: rec}
	s.under[id] = u
	return u, nil
}

// withdraw takes back an admission that failed. If it was tried it may be on the
// disk: then it is erased as soon as that can be done.
func (s *Store) withdraw(id operationID, u *underway, tried bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ended || s.under[id] != u {
		return
	}
	delete(s.under, id)
	if !tried {
		s.marks.release(*u.rec.Slot)
		return
	}
	s.marks.state(*u.rec.Slot, slotWithdrawn)
	s.owe(id, debt{slot: u.rec.Slot})
}

// Finish records, synced, how an operation ended, together with its entry in the
// history. After an error the outcome is not stored, and never will be: what
// is told of it from then on, also after a restart, is uncertain/outcome_not_stored.
// ErrRecorded: it has another outcome already, which stays.
func (s *Store) Finish(e Ending) error {
	if !e.Receipt.Final() {
		return fmt.Errorf("operation %q: the state %q is no outcome and is not stored", e.Receipt.OperationID, e.Receipt.State)
	}
	if e.At == 0 {
		e.At = s.opts.now()
	}
	id := operationID{e.Owner, e.Receipt.OperationID}
	u, first := s.ending(id)
	rec := operation{Resource: e.Receipt.Resource, Generation: e.Receipt.Generation, Method: e.Receipt.Method, Hash: e.ContentHash[:]}
	if u != nil {
		rec = u.rec
	}
	rec.Finished, rec.Receipt = e.At, &e.Receipt
	_, unfit := encode(rec)
	if unfit != nil {
		rec.Receipt = notStored(e.Receipt)
	}
	r := s.do(&job{synced: true, build: func(t *tx) error {
		if !first { // else it is known to have none
			if err := s.checkOpen(t, id); err != nil {
				return err
			}
		}
		return t.finish(id, rec, "receipt")
	}})
	if errors.Is(r.err, ErrRecorded) {
		s.release(id, u)
		return r.err
	}
	if r.err != nil {
		s.disown(id, u, rec)
		return r.err
	}
	s.release(id, u)
	return unfit
}

// checkOpen refuses an operation that has an outcome (I3).
func (s *Store) checkOpen(t *tx, id operationID) error {
	known, err := t.operation(id)
	if err != nil {
		return err
	}
	if known != nil && known.Receipt != nil && !s.mayReplace(*known.Receipt) {
		return fmt.Errorf("%q of %q: %w", id.ID, id.Owner, ErrRecorded)
	}
	return nil
}

// mayReplace is false but for faults that are planted above the store, which
// would not show if the store held them up (I3).
func (s *Store) mayReplace(known protocol.Receipt) bool {
	return s.opts.planted(protocol.BugLateOverwrites) || known.State == protocol.StateUncertain && s.opts.planted(protocol.BugRetryUncertain)
}

// ending finds the operation under way whose end is being stored. first: this
// is the only end of it so far.
func (s *Store) ending(id operationID) (u *underway, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u = s.under[id]; u != nil {
		first, u.ended = !u.ended, true
	}
	return u, first
}

// release frees the slot of an operation that has its outcome.
func (s *Store) release(id operationID, u *underway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u == nil || s.under[id] != u {
		return
	}
	delete(s.under, id)
	s.marks.release(*u.rec.Slot)
}

// disown remembers that an outcome is not stored. Whatever of it reached the
// disk is replaced as soon as that can be done.
func (s *Store) disown(id operationID, u *underway, rec operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.Receipt = notStored(*rec.Receipt)
	if u != nil && s.under[id] == u {
		delete(s.under, id)
		s.marks.state(*u.rec.Slot, slotDisowned)
	} else {
		rec.Slot = nil
	}
	s.owe(id, debt{slot: rec.Slot, rec: rec, receipt: rec.Receipt})
}

// notStored is what is told of an operation whose outcome could not be stored.
func notStored(r protocol.Receipt) *protocol.Receipt {
	return &protocol.Receipt{OperationID: r.OperationID, Resource: r.Resource, Generation: r.Generation, Method: r.Method,
		State: protocol.StateUncertain, Reason: protocol.ReasonOutcomeNotStored, Message: protocol.ReasonOutcomeNotStored.Sentence(),
		LastAppliedIndex: r.LastAppliedIndex, ObserveRequired: true, Timing: r.Timing}
}
