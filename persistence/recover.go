package persistence

import (
	"errors"

	"reins/protocol"
)

// recover settles what the last process left open, in one synced write.
func (s *Store) recover(h *handle, old oldMarks) error {
	var pending []operationID
	err := scan(h.db, []byte{keyPending}, nil, func(k, _ []byte) (bool, error) {
		id, err := splitOperation(k)
		pending = append(pending, id)
		return true, err
	})
	if err != nil {
		return err
	}
	t := h.newTx()
	var settled []protocol.Receipt
	for _, id := range pending {
		r, err := t.operation(id)
		if err != nil {
			return err
		}
		state, known := slotAdmitted, false
		if r != nil {
			state, known = asInt(old.of(r.Slot))
		}
		receipt, err := s.recoverOne(t, id, r, state, known)
		if err != nil {
			return err
		}
		if receipt != nil {
			settled = append(settled, *receipt)
		}
	}
	if err := t.store(true); err != nil {
		return err
	}
	s.recovered = settled
	return nil
}

func asInt(state uint64, known bool) (int, bool) { return int(state), known }

// recoverOne settles one operation; state is its mark, if known. It returns the
// receipt of one that had no outcome.
func (s *Store) recoverOne(t *tx, id operationID, r *operation, state int, known bool) (*protocol.Receipt, error) {
	done := func() { t.dropped = append(t.dropped, operationKey(keyPending, id.Owner, id.ID)) }
	disowned := known && state == slotDisowned
	switch {
	case r == nil:
		done()
		return nil, nil
	case r.Receipt != nil && !disowned:
		done() // only the note that it pends was still there
		return nil, nil
	case r.Receipt != nil:
		r.Receipt = notStored(*r.Receipt)
		return nil, errors.Join(t.settle(id, r, debt{rec: *r, receipt: r.Receipt}))
	case known && state == slotWithdrawn:
		t.dropOperation(id)
		return nil, nil
	}
	receipt := &protocol.Receipt{OperationID: id.ID, Resource: r.Resource, Generation: r.Generation, Method: r.Method}
	switch {
	case disowned:
		receipt = notStored(*receipt)
	case known && state == slotAdmitted:
		receipt.State, receipt.Reason, receipt.LastAppliedIndex = protocol.StateCancelled, protocol.ReasonRecovered, protocol.Index(-1)
		receipt.Message = "The daemon died before anything was sent; nothing happened."
	default:
		receipt.State, receipt.Reason, receipt.ObserveRequired = protocol.StateUncertain, protocol.ReasonRecovered, true
		receipt.Message = protocol.ReasonRecovered.Sentence()
	}
	r.Receipt, r.Finished = receipt, s.opts.now()
	return receipt, t.finish(id, *r, "recovered")
}
