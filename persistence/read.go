package persistence

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// counters are what the writer has to know to count on.
type counters struct {
	generations map[protocol.ResourceID]protocol.Generation
	epochs      map[protocol.ResourceID]protocol.Epoch
	spans       map[protocol.OwnerID]span // of the owners used lately
	history     span                      // in bytes
	dropped     [][]byte                  // pending keys that the next batch deletes
}

// span is a row of numbers without gaps: first to last, or none if last is less.
type span struct{ first, last uint64 }

func (s span) count() uint64 { return s.last + 1 - s.first }

func (h *handle) loadCounters() error {
	h.counters = counters{generations: map[protocol.ResourceID]protocol.Generation{},
		epochs: map[protocol.ResourceID]protocol.Epoch{}, spans: map[protocol.OwnerID]span{}}
	err := scanCounters(h.db, keyGeneration, func(r protocol.ResourceID, n uint64) { h.counters.generations[r] = protocol.Generation(n) })
	if err != nil {
		return err
	}
	err = scanCounters(h.db, keyEpoch, func(r protocol.ResourceID, n uint64) { h.counters.epochs[r] = protocol.Epoch(n) })
	if err != nil {
		return err
	}
	h.counters.history, err = historySpan(h.db)
	return err
}

// scanCounters reads all counters of one kind.
func scanCounters(db pebble.Reader, kind byte, each func(protocol.ResourceID, uint64)) error {
	return scan(db, []byte{kind}, nil, func(k, v []byte) (bool, error) {
		n, err := decodeCounter(v)
		if err != nil {
			return false, fmt.Errorf("counter of %q: %w", k[1:], err)
		}
		each(protocol.ResourceID(k[1:]), n)
		return true, nil
	})
}

// scan calls each for the keys that begin with prefix, from the key from on (nil:
// the first), until it returns false or an error.
func scan(db pebble.Reader, prefix, from []byte, each func(k, v []byte) (bool, error)) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return readError(err)
	}
	if from == nil {
		from = prefix
	}
	for ok := it.SeekGE(from); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			break // the iterator has the error
		}
		more, err := each(it.Key(), v)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return readError(err)
	}
	return nil
}

// get reads one value; found is false where there is none.
func get(db pebble.Reader, key []byte) (v []byte, found bool, err error) {
	b, c, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, readError(err)
	}
	v = append([]byte{}, b...)
	return v, true, c.Close()
}

// readError says of an error of reading whether the store is damaged.
func readError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("read the store: %w (%v)", ErrCorrupt, err)
	}
	return fmt.Errorf("read the store: %w", err)
}
