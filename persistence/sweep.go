package persistence

import (
	"time"

	"reins/protocol"
)

// One sweep does at most so much, in steps between which other writes pass.
const (
	sweepSteps   = 16
	sweepReceipt = 128   // receipts a step
	sweepOwners  = 256   // owners a step
	sweepEntries = 10000 // history entries a step
)

// Sweep forgets what is kept longer than it has to be: receipts by age and
// number (I8), history by age and size. It does a bounded part of the work;
// called once in a while it keeps up. It is not synced: what a power cut brings
// back is swept again.
func (s *Store) Sweep(now time.Time) {
	at := protocol.Time(now.UnixMilli())
	for range sweepSteps {
		more := false
		r := s.do(&job{build: func(t *tx) error {
			owners, err := s.sweepReceipts(t, at)
			if err != nil {
				return err
			}
			entries, err := s.sweepHistory(t, at)
			more = owners || entries
			return err
		}})
		if r.err != nil {
			if left, ok := s.warn.allow(); ok {
				s.opts.Logger.Warn("the store was not swept", "error", r.err, "left_out_before", left)
			}
			return
		}
		if !more {
			return
		}
	}
}

// turn is one outcome in its owner's order.
type turn struct {
	owner    protocol.OwnerID
	ordinal  uint64
	finished protocol.Time
	id       protocol.OperationID
}

// sweepReceipts forgets the receipts of some owners, where the last step ended.
func (s *Store) sweepReceipts(t *tx, now protocol.Time) (more bool, err error) {
	from, budget := s.nextOwner, sweepReceipt
	s.nextOwner = nil
	for range sweepOwners {
		owner, found, err := nextOwner(t, from)
		if err != nil || !found {
			return false, err
		}
		prefix := ownerPrefix(keyTurn, owner)
		gone, err := t.expired(owner, now, budget)
		if err != nil {
			return false, err
		}
		for _, g := range gone {
			t.forget(g, now)
		}
		if budget -= len(gone); budget <= 0 {
			s.nextOwner = prefix // there may be more of this one
			return true, nil
		}
		from = after(prefix)
	}
	s.nextOwner = from
	return true, nil
}

// nextOwner finds the first owner with outcomes from a key on.
func nextOwner(t *tx, from []byte) (o protocol.OwnerID, found bool, err error) {
	err = scan(t.h.db, []byte{keyTurn}, from, func(k, _ []byte) (bool, error) {
		o, _, _, err = splitTurn(k)
		found = true
		return false, err
	})
	return o, found, err
}

// expired returns an owner's oldest outcomes that need not be kept, in their
// order and without gaps. The clock may have been wrong: an outcome of the
// future counts as one of now, and is noted as such.
func (t *tx) expired(o protocol.OwnerID, now protocol.Time, most int) (gone []turn, err error) {
	s, err := t.span(o)
	if err != nil || s.count() <= t.h.opts.kept {
		return nil, err
	}
	oldest := now - protocol.Time(protocol.ReceiptsAge.Milliseconds())
	prefix := ownerPrefix(keyTurn, o)
	err = scan(t.h.db, prefix, nil, func(k, v []byte) (bool, error) {
		_, ordinal, finished, err := splitTurn(k)
		future := finished > now
		switch {
		case err != nil || s.last-ordinal < t.h.opts.kept || len(gone) == most:
			return false, err
		case finished >= oldest && !future:
			return false, nil
		case len(gone) > 0 && gone[len(gone)-1].finished > now && !future:
			return false, nil // the ones before it stay
		}
		gone = append(gone, turn{o, ordinal, finished, protocol.OperationID(v)})
		return true, nil
	})
	return gone, err
}

// forget removes an outcome from the store.
func (t *tx) forget(g turn, now protocol.Time) {
	t.delete(turnKey(g.owner, g.ordinal, g.finished))
	if g.finished > now {
		t.set(turnKey(g.owner, g.ordinal, now), []byte(g.id))
		return
	}
	t.delete(operationKey(keyOperation, g.owner, g.id))
	s, _ := t.span(g.owner) // expired has read it
	s.first = g.ordinal + 1
	t.spans[g.owner] = s
}

// sweepHistory cuts the oldest part of the history off.
func (s *Store) sweepHistory(t *tx, now protocol.Time) (more bool, err error) {
	oldest := now - protocol.Time(s.opts.HistoryAge.Milliseconds())
	least := uint64(0) // the first position that the size allows
	if t.history.last-t.history.first > uint64(s.opts.HistoryBytes) {
		least = t.history.last - uint64(s.opts.HistoryBytes)
	}
	passed, keepFrom := 0, t.history.last
	err = scan(t.h.db, []byte{keyHistory}, nil, func(k, _ []byte) (bool, error) {
		position, at, err := splitHistory(k)
		if err != nil {
			return false, err
		}
		keepFrom = position
		if more = passed >= sweepEntries; more || position >= least && at >= oldest {
			return false, nil
		}
		passed++
		keepFrom = t.history.last
		return true, nil
	})
	if err != nil || passed == 0 {
		return false, err
	}
	t.cut([]byte{keyHistory}, historyKey(keepFrom, 0))
	t.history.first = keepFrom
	return more, nil
}
