package persistence

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// Descriptor is what a restart needs to bring a resource back.
type Descriptor struct {
	Record protocol.Record
	// EpochReserve is the epoch up to which epochs may have been used.
	EpochReserve    protocol.Epoch
	ObserveRequired bool
}

// PutDescriptor stores a descriptor, synced. The stored generation and reserve
// only grow: where the descriptor has less they stay.
func (s *Store) PutDescriptor(d Descriptor) error {
	if d.Record.ID == "" {
		return fmt.Errorf("a record without an id cannot be stored")
	}
	v, err := encode(descriptor{Record: d.Record, ObserveRequired: d.ObserveRequired})
	if err != nil {
		return err
	}
	return s.do(&job{synced: true, build: func(t *tx) error {
		t.set(named(keyRecord, string(d.Record.ID)), v)
		t.setGeneration(d.Record.ID, d.Record.Generation)
		t.reserveEpoch(d.Record.ID, d.EpochReserve)
		return nil
	}}).err
}

// Descriptors returns all descriptors, closed resources too, in the order of their ids.
func (s *Store) Descriptors() ([]Descriptor, error) {
	var all []Descriptor
	err := s.read(func(db pebble.Reader) error {
		var err error
		all, err = readDescriptors(db)
		return err
	})
	return all, err
}

func readDescriptors(db pebble.Reader) ([]Descriptor, error) {
	generations, epochs := map[protocol.ResourceID]uint64{}, map[protocol.ResourceID]uint64{}
	if err := scanCounters(db, keyGeneration, func(r protocol.ResourceID, n uint64) { generations[r] = n }); err != nil {
		return nil, err
	}
	if err := scanCounters(db, keyEpoch, func(r protocol.ResourceID, n uint64) { epochs[r] = n }); err != nil {
		return nil, err
	}
	var all []Descriptor
	err := scan(db, []byte{keyRecord}, nil, func(k, v []byte) (bool, error) {
		id := protocol.ResourceID(k[1:])
		d, err := decodeDescriptor(id, v)
		if err != nil {
			return false, err
		}
		d.Record.Generation = max(d.Record.Generation, protocol.Generation(generations[id]))
		all = append(all, Descriptor{Record: d.Record, EpochReserve: protocol.Epoch(epochs[id]), ObserveRequired: d.ObserveRequired})
		return true, nil
	})
	return all, err
}

// RaiseGeneration adds one to a resource's generation and returns it when it is
// synced. The first is 1. After an error it was not raised, or it was and the
// next call skips it.
func (s *Store) RaiseGeneration(r protocol.ResourceID) (protocol.Generation, error) {
	var raised protocol.Generation
	err := s.do(&job{synced: true, build: func(t *tx) error {
		raised = t.generation(r) + 1
		t.setGeneration(r, raised)
		return nil
	}}).err
	if err != nil {
		return 0, err
	}
	return raised, nil
}

// ReserveEpoch makes sure, synced, that a restart begins above an epoch. A lower
// one than is reserved changes nothing.
func (s *Store) ReserveEpoch(r protocol.ResourceID, upTo protocol.Epoch) error {
	return s.do(&job{synced: true, build: func(t *tx) error {
		t.reserveEpoch(r, upTo)
		return nil
	}}).err
}
