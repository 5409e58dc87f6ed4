package persistence

import (
	"fmt"

	"reins/protocol"
)

// debt is what has to be written about an operation once the disk allows it.
type debt struct {
	slot    *slotRef          // free again when the debt is paid; nil: has none
	rec     operation         // with the receipt
	receipt *protocol.Receipt // nil: the admission is to be erased
}

// owe remembers a debt; mu is held. A receipt is never replaced by an erasure.
// There are at most as many debts as slots, and as many again of operations
// without one.
func (s *Store) owe(id operationID, d debt) {
	had, ok := s.owed[id]
	switch {
	case ok && (had.receipt != nil || d.receipt == nil):
		return
	case ok && had.slot != nil:
		d.slot, d.rec.Slot = had.slot, had.slot
		s.marks.state(*had.slot, slotDisowned)
	case d.slot == nil && len(s.owed) >= 2*slots:
		return // the record in the store has no outcome, which says the same
	}
	s.owed[id] = d
	s.wakeUp()
}

// payMost is how many debts are paid with one write.
const payMost = 256

// pay writes what is owed. The keeper calls it when the store is well.
func (s *Store) pay() {
	for {
		s.mu.Lock()
		due := make(map[operationID]debt, min(len(s.owed), payMost))
		for id, d := range s.owed {
			if due[id] = d; len(due) == payMost {
				break
			}
		}
		s.mu.Unlock()
		if len(due) == 0 {
			return
		}
		r := s.do(&job{synced: true, build: func(t *tx) error { return t.pay(due) }})
		if r.err != nil {
			if left, ok := s.warn.allow(); ok {
				s.opts.Logger.Warn("outcomes that could not be stored are still open", "operations", len(due), "error", r.err, "left_out_before", left)
			}
			return
		}
		s.paid(due)
	}
}

func (s *Store) paid(due map[operationID]debt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range due {
		if s.owed[id].receipt == d.receipt { // else it became another one meanwhile
			delete(s.owed, id)
			if d.slot != nil {
				s.marks.release(*d.slot)
			}
		}
	}
}

// pay adds the debts to the batch.
func (t *tx) pay(due map[operationID]debt) error {
	known := make(map[operationID]*operation, len(due))
	for id := range due {
		r, err := t.operation(id)
		if err != nil {
			return fmt.Errorf("settle %q of %q: %w", id.ID, id.Owner, err)
		}
		if _, err := t.span(id.Owner); err != nil {
			return err
		}
		known[id] = r
	}
	for id, d := range due {
		if err := t.settle(id, known[id], d); err != nil {
			return err
		}
	}
	return nil
}

// settle makes of an operation what was told of it, whatever is stored.
func (t *tx) settle(id operationID, known *operation, d debt) error {
	switch {
	case d.receipt == nil && known != nil && known.Receipt == nil:
		t.dropOperation(id)
		return nil
	case d.receipt == nil:
		return nil
	case known != nil && known.Receipt != nil:
		// The outcome did reach the disk, with its place in the order; what was
		// told of it counts.
		t.dropped = append(t.dropped, operationKey(keyPending, id.Owner, id.ID))
		if err := t.putOperation(id, d.rec); err != nil {
			return err
		}
		return t.addHistory(historyOf(id, d.rec, "receipt"))
	}
	return t.finish(id, d.rec, "receipt")
}
