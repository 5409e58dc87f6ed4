package persistence

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// Check reads everything and writes to w what there is and what is wrong, one
// line each. If anything is wrong it returns ErrCorrupt. It changes nothing and
// may run while the store is in use.
func (s *Store) Check(w io.Writer) error {
	c := &check{w: w, counts: map[byte]int{}, generations: map[protocol.ResourceID]protocol.Generation{}, turns: map[operationID]bool{}}
	h, err := s.borrow()
	if err != nil {
		return err
	}
	defer s.giveBack(h)
	if err := h.db.CheckLevels(nil); err != nil {
		c.wrong("the files: %v", err)
	}
	snapshot := h.db.NewSnapshot()
	err = c.all(snapshot)
	if err := errors.Join(err, snapshot.Close()); err != nil {
		return fmt.Errorf("check the store: %w", err)
	}
	c.say("%d resources, %d operations, %d without an outcome, %d history entries, %d profiles with cookies",
		c.counts[keyRecord], c.counts[keyOperation], c.open, c.counts[keyHistory], c.counts[keyCookies])
	if c.err != nil {
		return fmt.Errorf("write the report: %w", c.err)
	}
	if c.problems > 0 {
		return fmt.Errorf("%s: %d problems: %w", s.place.dir, c.problems, ErrCorrupt)
	}
	c.say("nothing is wrong")
	return c.err
}

type check struct {
	w           io.Writer
	err         error // of writing
	counts      map[byte]int
	open        int
	problems    int
	generations map[protocol.ResourceID]protocol.Generation
	turns       map[operationID]bool
}

func (c *check) say(format string, args ...any) {
	if _, err := fmt.Fprintf(c.w, format+"\n", args...); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *check) wrong(format string, args ...any) {
	c.problems++
	c.say("wrong: "+format, args...)
}

// all looks at the kinds in an order in which each finds what it refers to.
func (c *check) all(db pebble.Reader) error {
	if err := scan(db, []byte{keyGeneration}, nil, func(k, v []byte) (bool, error) {
		if n, err := decodeCounter(v); err == nil {
			c.generations[protocol.ResourceID(k[1:])] = protocol.Generation(n)
		}
		return true, nil
	}); err != nil {
		return err
	}
	if err := scan(db, []byte{keyTurn}, nil, func(k, v []byte) (bool, error) {
		if o, _, _, err := splitTurn(k); err == nil {
			c.turns[operationID{o, protocol.OperationID(v)}] = true
		}
		return true, nil
	}); err != nil {
		return err
	}
	if err := scan(db, nil, nil, func(k, v []byte) (bool, error) {
		c.counts[k[0]]++
		if err := c.one(db, k, v); err != nil {
			c.wrong("%v", err)
		}
		return true, nil
	}); err != nil {
		return err
	}
	for id := range c.turns {
		c.wrong("the outcome of %q of %q has a place in the order and is not there", id.ID, id.Owner)
	}
	return nil
}

// one looks at one key and its value.
func (c *check) one(db pebble.Reader, k, v []byte) (err error) {
	switch k[0] {
	case keyMeta, keyCookies, keyClean:
	case keyGeneration, keyEpoch:
		_, err = decodeCounter(v)
	case keyTurn:
		_, _, _, err = splitTurn(k)
	case keyRecord:
		id := protocol.ResourceID(k[1:])
		d, err := decodeDescriptor(id, v)
		if err == nil && d.Record.Generation > c.generations[id] {
			err = fmt.Errorf("resource %q is at generation %d, and %d is the last one stored", id, d.Record.Generation, c.generations[id])
		}
		return err
	case keyPending:
		id, err := splitOperation(k)
		if err != nil {
			return err
		}
		_, err = readOperation(db, id)
		return err
	case keyOperation:
		id, err := splitOperation(k)
		if err != nil {
			return err
		}
		return c.operation(db, id, v)
	case keyHistory:
		if _, _, err = splitHistory(k); err == nil {
			_, err = decodeHistory(v)
		}
	default:
		err = fmt.Errorf("key %q is of no kind that is known", k)
	}
	return err
}

func (c *check) operation(db pebble.Reader, id operationID, v []byte) error {
	r, err := decodeOperation(id, v)
	ordered := c.turns[id]
	delete(c.turns, id)
	switch {
	case err != nil:
		return err
	case r.Receipt != nil && !ordered:
		return fmt.Errorf("operation %q of %q has an outcome and no place in the order", id.ID, id.Owner)
	case r.Receipt != nil:
		return nil
	case ordered:
		return fmt.Errorf("operation %q of %q has a place in the order and no outcome", id.ID, id.Owner)
	}
	c.open++
	_, pends, err := get(db, operationKey(keyPending, id.Owner, id.ID))
	if err == nil && !pends {
		err = fmt.Errorf("operation %q of %q has no outcome and would not be recovered", id.ID, id.Owner)
	}
	return err
}
