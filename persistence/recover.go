package persistence

import "reins/protocol"

// pendingOperation has no outcome, or had none a moment before the end.
type pendingOperation struct {
	id  operationID
	rec *operation // nil: it is not there
}

// pending are the operations that recovery has to look at, in the order of their keys.
func (s *Store) pending(h *handle) (found []pendingOperation, err error) {
	err = scan(h.db, []byte{keyPending}, nil, func(k, _ []byte) (bool, error) {
		id, err := splitOperation(k)
		if err != nil {
			return false, err
		}
		r, err := readOperation(h.db, id)
		found = append(found, pendingOperation{id, r})
		return true, err
	})
	return found, err
}

// recover settles what the last process left open, in one synced write.
func (s *Store) recover(h *handle, old oldMarks) error {
	pending, err := s.pending(h)
	if err != nil {
		return err
	}
	t := h.newTx()
	var settled []protocol.Receipt
	for _, p := range pending {
		receipt, err := s.recoverOne(t, p.id, p.rec, old)
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

// recoverOne settles one operation. It returns the receipt of one that had no
// outcome.
func (s *Store) recoverOne(t *tx, id operationID, r *operation, old oldMarks) (*protocol.Receipt, error) {
	if r == nil {
		t.dropped = append(t.dropped, operationKey(keyPending, id.Owner, id.ID))
		return nil, nil
	}
	state, known := old.of(r.Slot)
	disowned := known && state == slotDisowned
	switch {
	case r.Receipt != nil && !disowned:
		t.dropped = append(t.dropped, operationKey(keyPending, id.Owner, id.ID))
		return nil, nil // only the note that it pends was still there
	case r.Receipt != nil:
		told := *r
		told.Receipt = notStored(*r.Receipt)
		return nil, t.settle(id, r, debt{rec: told, receipt: told.Receipt})
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
