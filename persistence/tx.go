package persistence

import (
	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// tx is one batch in the making: what it writes, and what it counts on. Its
// counts become the handle's only when it is stored.
type tx struct {
	h     *handle
	batch *pebble.Batch

	generations map[protocol.ResourceID]protocol.Generation
	epochs      map[protocol.ResourceID]protocol.Epoch
	spans       map[protocol.OwnerID]span
	history     span
	operations  map[operationID]*operation // written by this batch, not yet to be read
	dropped     [][]byte                   // pending keys that the next batch deletes
}

func (h *handle) newTx() *tx {
	t := &tx{h: h, batch: h.db.NewBatch(), generations: map[protocol.ResourceID]protocol.Generation{},
		epochs: map[protocol.ResourceID]protocol.Epoch{}, spans: map[protocol.OwnerID]span{},
		history: h.counters.history, operations: map[operationID]*operation{}}
	for _, k := range h.counters.dropped {
		t.delete(k)
	}
	return t
}

// set and delete cannot fail: the batch is a buffer in memory.
func (t *tx) set(k, v []byte)     { _ = t.batch.Set(k, v, nil) }
func (t *tx) delete(k []byte)     { _ = t.batch.Delete(k, nil) }
func (t *tx) cut(from, to []byte) { _ = t.batch.DeleteRange(from, to, nil) }

// store writes the batch. Only a nil answer means that it is stored.
func (t *tx) store(synced bool) error {
	defer t.batch.Close()
	if cause := t.h.fs.cause(); cause != nil {
		return unavailable(cause)
	}
	if t.batch.Empty() {
		return nil
	}
	how := pebble.NoSync
	if synced && !t.h.opts.planted(protocol.BugNoSync) {
		how = pebble.Sync
	}
	if err := t.h.db.Apply(t.batch, how); err != nil {
		t.h.fs.freeze(err)
	}
	// The file system says that all went well also after it froze.
	if cause := t.h.fs.cause(); cause != nil {
		return unavailable(cause)
	}
	t.keep()
	return nil
}

// keep makes the counts of the batch those of the handle.
func (t *tx) keep() {
	c := &t.h.counters
	for r, n := range t.generations {
		c.generations[r] = n
	}
	for r, n := range t.epochs {
		c.epochs[r] = n
	}
	if len(c.spans) > maxSpans {
		clear(c.spans) // they are read again when they are needed
	}
	for o, s := range t.spans {
		c.spans[o] = s
	}
	c.history, c.dropped = t.history, t.dropped
}

const maxSpans = 4096

func (t *tx) generation(r protocol.ResourceID) protocol.Generation {
	if n, ok := t.generations[r]; ok {
		return n
	}
	return t.h.counters.generations[r]
}

// setGeneration raises the generation; it never lowers it (I5).
func (t *tx) setGeneration(r protocol.ResourceID, n protocol.Generation) {
	if n > t.generation(r) {
		t.generations[r] = n
		t.set(named(keyGeneration, string(r)), encodeCounter(uint64(n)))
	}
}

// reserveEpoch raises the reserve; it never lowers it (I5).
func (t *tx) reserveEpoch(r protocol.ResourceID, upTo protocol.Epoch) {
	now, ok := t.epochs[r]
	if !ok {
		now = t.h.counters.epochs[r]
	}
	if upTo > now {
		t.epochs[r] = upTo
		t.set(named(keyEpoch, string(r)), encodeCounter(uint64(upTo)))
	}
}

// operation is what is stored of an operation, this batch included; nil: nothing.
func (t *tx) operation(id operationID) (*operation, error) {
	if r, ok := t.operations[id]; ok {
		return r, nil
	}
	return readOperation(t.h.db, id)
}

func readOperation(db pebble.Reader, id operationID) (*operation, error) {
	v, found, err := get(db, operationKey(keyOperation, id.Owner, id.ID))
	if err != nil || !found {
		return nil, err
	}
	r, err := decodeOperation(id, v)
	return &r, err
}

// putOperation writes what is stored of an operation.
func (t *tx) putOperation(id operationID, r operation) error {
	v, err := encode(r)
	if err != nil {
		return err
	}
	t.operations[id] = &r
	t.set(operationKey(keyOperation, id.Owner, id.ID), v)
	return nil
}

// dropOperation removes an operation that has no outcome.
func (t *tx) dropOperation(id operationID) {
	t.operations[id] = nil
	t.delete(operationKey(keyOperation, id.Owner, id.ID))
	t.delete(operationKey(keyPending, id.Owner, id.ID))
}

// finish writes an outcome, gives it its place in its owner's order, and adds
// the history entry. That it pends is taken back by the next batch: until then
// recovery can see that its outcome was disowned.
func (t *tx) finish(id operationID, r operation, event string) error {
	s, err := t.span(id.Owner)
	if err != nil {
		return err
	}
	if err := t.putOperation(id, r); err != nil {
		return err
	}
	if err := t.addHistory(historyOf(id, r, event)); err != nil {
		return err
	}
	s.last++
	t.spans[id.Owner] = s
	t.set(turnKey(id.Owner, s.last, r.Finished), []byte(id.ID))
	t.dropped = append(t.dropped, operationKey(keyPending, id.Owner, id.ID))
	return nil
}

func historyOf(id operationID, r operation, event string) protocol.HistoryEntry {
	return protocol.HistoryEntry{At: r.Finished, Event: event, Resource: r.Resource, Generation: r.Generation, Owner: id.Owner,
		OperationID: id.ID, Method: r.Method, State: r.Receipt.State, Effect: r.Receipt.Effect, Reason: r.Receipt.Reason, Message: r.Receipt.Message}
}

// span is the row of an owner's outcomes.
func (t *tx) span(o protocol.OwnerID) (span, error) {
	if s, ok := t.spans[o]; ok {
		return s, nil
	}
	if s, ok := t.h.counters.spans[o]; ok {
		return s, nil
	}
	prefix := ownerPrefix(keyTurn, o)
	first, last, found, err := ends(t.h.db, prefix)
	if err != nil || !found {
		return span{first: 1}, err
	}
	_, from, _, err := splitTurn(first)
	if err != nil {
		return span{}, err
	}
	_, to, _, err := splitTurn(last)
	return span{first: from, last: to}, err
}

// ends returns the first and the last key that begin with prefix.
func ends(db pebble.Reader, prefix []byte) (first, last []byte, found bool, err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, nil, false, readError(err)
	}
	if it.First() {
		first, found = append([]byte{}, it.Key()...), true
	}
	if it.Last() {
		last = append([]byte{}, it.Key()...)
	}
	if err := it.Close(); err != nil {
		return nil, nil, false, readError(err)
	}
	return first, last, found, nil
}
