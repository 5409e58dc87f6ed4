package persistence

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"reins/protocol"
)

// schema is the version of what the keys and values mean.
const schema = 1

// operationID names an operation.
type operationID struct {
	Owner protocol.OwnerID
	ID    protocol.OperationID
}

// operation is what is stored of one: from its admission, and with its receipt
// from its end. Arguments are there only as a keyed hash.
type operation struct {
	Resource   protocol.ResourceID `json:"resource"`
	Generation protocol.Generation `json:"generation"`
	Epoch      protocol.Epoch      `json:"epoch,omitempty"`
	Method     protocol.Method     `json:"method,omitempty"`
	UserTurn   string              `json:"user_turn,omitempty"`
	Hash       []byte              `json:"hash"`
	Admitted   protocol.Time       `json:"admitted,omitempty"`
	Slot       *slotRef            `json:"slot,omitempty"`
	Finished   protocol.Time       `json:"finished,omitempty"`
	Receipt    *protocol.Receipt   `json:"receipt,omitempty"`
}

// slotRef says where the operation's mark is. Life tells one opening of the
// store from the next, Seq one user of a slot from the next.
type slotRef struct {
	Life  uint64 `json:"life"`
	Index int    `json:"index"`
	Seq   uint64 `json:"seq"`
}

func (r operation) stored() Stored {
	s := Stored{Receipt: r.Receipt, At: r.Admitted}
	copy(s.ContentHash[:], r.Hash)
	if r.Finished != 0 {
		s.At = r.Finished
	}
	return s
}

func decodeOperation(key operationID, b []byte) (operation, error) {
	r, err := decode[operation](b)
	switch {
	case err != nil:
	case len(r.Hash) != 32:
		err = fmt.Errorf("its hash has %d bytes: %w", len(r.Hash), ErrCorrupt)
	case r.Receipt != nil && !r.Receipt.Final():
		err = fmt.Errorf("its outcome is %q, which is none: %w", r.Receipt.State, ErrCorrupt)
	case r.Slot != nil && r.Slot.Index < 0:
		err = fmt.Errorf("its mark has no place: %w", ErrCorrupt)
	}
	if err != nil {
		return operation{}, fmt.Errorf("operation %q of %q: %w", key.ID, key.Owner, err)
	}
	return r, nil
}

// descriptor is what is stored of a resource beside its counters.
type descriptor struct {
	Record          protocol.Record `json:"record"`
	ObserveRequired bool            `json:"observe_required,omitempty"`
}

func decodeDescriptor(id protocol.ResourceID, b []byte) (descriptor, error) {
	d, err := decode[descriptor](b)
	if err == nil && d.Record.ID != id {
		err = fmt.Errorf("the record is that of %q: %w", d.Record.ID, ErrCorrupt)
	}
	if err != nil {
		return descriptor{}, fmt.Errorf("resource %q: %w", id, err)
	}
	return d, nil
}

func decodeHistory(b []byte) (protocol.HistoryEntry, error) {
	e, err := decode[protocol.HistoryEntry](b)
	if err != nil {
		return e, fmt.Errorf("history entry: %w", err)
	}
	return e, nil
}

func encodeCounter(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func decodeCounter(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a counter has %d bytes instead of 8: %w", len(b), ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), nil
}

// encode cannot fail for the types here; a failure is reported all the same.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the store cannot write %T: %w", v, err)
	}
	return b, nil
}

func decode[T any](b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		var none T
		return none, fmt.Errorf("%w (%v)", ErrCorrupt, err)
	}
	return v, nil
}
