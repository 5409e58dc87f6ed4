package persistence

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// line is one line of an export: what it is of, and that.
type line struct {
	What       string                 `json:"what"` // store, resource, operation or history
	Schema     int                    `json:"schema,omitempty"`
	Exported   protocol.Time          `json:"exported,omitempty"`
	Resource   *exportedResource      `json:"resource,omitempty"`
	Operation  *exportedOperation     `json:"operation,omitempty"`
	HistoryRow *protocol.HistoryEntry `json:"history,omitempty"`
}

type exportedResource struct {
	protocol.Record
	EpochReserve    protocol.Epoch `json:"epoch_reserve"`
	ObserveRequired bool           `json:"observe_required,omitempty"`
}

type exportedOperation struct {
	Owner    protocol.OwnerID     `json:"owner"`
	ID       protocol.OperationID `json:"operation_id"`
	Resource protocol.ResourceID  `json:"resource"`
	Method   protocol.Method      `json:"method,omitempty"`
	UserTurn string               `json:"user_turn,omitempty"`
	Epoch    protocol.Epoch       `json:"epoch,omitempty"`
	Admitted protocol.Time        `json:"admitted,omitempty"`
	Finished protocol.Time        `json:"finished,omitempty"`
	Receipt  *protocol.Receipt    `json:"receipt"`
}

// Export writes the store as lines of JSON: resources, operations with their
// receipts, history. Left out are the key and the hashes of arguments, the
// tokens of observations, and cookies. It may run while the store is in use.
func (s *Store) Export(w io.Writer) error {
	out := json.NewEncoder(w)
	h, err := s.borrow()
	if err != nil {
		return err
	}
	defer s.giveBack(h)
	snapshot := h.db.NewSnapshot()
	defer snapshot.Close()
	if err := out.Encode(line{What: "store", Schema: schema, Exported: s.opts.now()}); err != nil {
		return fmt.Errorf("export the store: %w", err)
	}
	if err := exportAll(snapshot, out); err != nil {
		return fmt.Errorf("export the store: %w", err)
	}
	return nil
}

func exportAll(db pebble.Reader, out *json.Encoder) error {
	resources, err := readDescriptors(db)
	if err != nil {
		return err
	}
	for _, d := range resources {
		if err := out.Encode(line{What: "resource", Resource: &exportedResource{d.Record, d.EpochReserve, d.ObserveRequired}}); err != nil {
			return err
		}
	}
	err = scan(db, []byte{keyOperation}, nil, func(k, v []byte) (bool, error) {
		id, err := splitOperation(k)
		if err != nil {
			return false, err
		}
		r, err := decodeOperation(id, v)
		if err != nil {
			return false, err
		}
		if r.Receipt != nil {
			r.Receipt.ObservationToken = ""
		}
		return true, out.Encode(line{What: "operation", Operation: &exportedOperation{Owner: id.Owner, ID: id.ID, Resource: r.Resource,
			Method: r.Method, UserTurn: r.UserTurn, Epoch: r.Epoch, Admitted: r.Admitted, Finished: r.Finished, Receipt: r.Receipt}})
	})
	if err != nil {
		return err
	}
	return scan(db, []byte{keyHistory}, nil, func(_, v []byte) (bool, error) {
		e, err := decodeHistory(v)
		if err != nil {
			return false, err
		}
		return true, out.Encode(line{What: "history", HistoryRow: &e})
	})
}
