package persistence

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"reins/protocol"
)

// Store is an open store. All methods may be called concurrently, and none
// waits longer than 10 s for the disk.
type Store struct {
	opts      Options
	place     place
	space     *space
	marks     *marks
	hashKey   []byte
	recovered []protocol.Receipt

	stop chan struct{} // closed to end the keeper
	wake chan struct{} // has room for one: there is something to look at
	kept chan struct{} // closed when the keeper has ended
	warn rate

	closing sync.Once
	// nextOwner is where the next sweep goes on; only the writer uses it.
	nextOwner []byte

	mu      sync.Mutex
	handle  *handle                   // nil: being opened anew, or closed; guarded by mu
	changed chan struct{}             // closed and replaced when handle or closed changes; guarded by mu
	closed  bool                      // guarded by mu
	under   map[operationID]*underway // guarded by mu
	owed    map[operationID]debt      // guarded by mu
	damaged error                     // why it is not opened anew; guarded by mu
}

// Stored is what the store has of an operation.
type Stored struct {
	ContentHash [32]byte
	Receipt     *protocol.Receipt // nil while it is under way
	At          protocol.Time     // when it ended, or was admitted
}

// place is where a store lies.
type place struct {
	fs   vfs.FS
	dir  string
	lock *lock
}

func (p place) db() string { return p.fs.PathJoin(p.dir, "db") }

// HashKey is the key of the hash of arguments: 32 random bytes, made at the
// first opening of the store.
func (s *Store) HashKey() []byte { return append([]byte(nil), s.hashKey...) }

// Recovered is what Open settled: operations that were admitted and had no
// outcome when the last process ended, each with its final receipt.
func (s *Store) Recovered() []protocol.Receipt {
	return append([]protocol.Receipt(nil), s.recovered...)
}

// Operation looks an operation up; known is false for one that was never
// admitted, or longer ago than receipts are kept.
func (s *Store) Operation(o protocol.OwnerID, id protocol.OperationID) (st Stored, known bool, err error) {
	key := operationID{o, id}
	err = s.read(func(db pebble.Reader) error {
		r, err := readOperation(db, key)
		if err == nil && r != nil {
			st, known = r.stored(), true
		}
		return err
	})
	// What is being written can be read before it is safe: memory has the last
	// word, and it is asked last.
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.owed[key]; ok {
		if d.receipt == nil {
			return Stored{}, false, nil
		}
		return d.rec.stored(), true, nil
	}
	if u := s.under[key]; u != nil {
		return u.rec.stored(), true, nil
	}
	return st, known, err
}

// read lends the database to f. While it is being opened anew the caller waits.
func (s *Store) read(f func(pebble.Reader) error) error {
	h, err := s.borrow()
	if err != nil {
		return err
	}
	defer s.giveBack(h)
	if err := f(h.db); err != nil {
		if pebble.IsCorruptionError(err) {
			return fmt.Errorf("%w (%v)", ErrCorrupt, err)
		}
		return err
	}
	return nil
}

func (s *Store) borrow() (*handle, error) {
	timer := time.NewTimer(readDeadline)
	defer timer.Stop()
	for {
		s.mu.Lock()
		h, changed, closed := s.handle, s.changed, s.closed
		if h != nil {
			h.readers++
		}
		s.mu.Unlock()
		switch {
		case h != nil:
			return h, nil
		case closed:
			return nil, ErrClosed
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, unavailable(errReopening)
		}
	}
}

func (s *Store) giveBack(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.readers--; h.readers == 0 && h.retired {
		close(h.idle)
	}
}

// retire takes the handle away from everybody and ends it. nil: there is none.
func (s *Store) retire(closing bool) error {
	s.mu.Lock()
	h := s.handle
	s.handle = nil
	s.closed = s.closed || closing
	s.announce()
	if h != nil {
		if h.retired = true; h.readers == 0 {
			close(h.idle)
		}
	}
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	timer := time.NewTimer(closeDeadline)
	defer timer.Stop()
	select {
	case <-h.idle:
		return h.stop()
	case <-timer.C:
		h.fs.freeze(errDeaf)
		h.stopWriter(0, nil)
		return errors.New("somebody still reads the store; it was cut off from the disk and left behind")
	}
}

// publish lets everybody use a handle.
func (s *Store) publish(h *handle) {
	go h.write() // it recovers from panics itself, and h.stop waits for it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = h
	s.announce()
}

// announce wakes those who wait for a handle; mu is held.
func (s *Store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the store: what is being written is finished, what comes after is
// refused with ErrClosed. It may be called again.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.stop)
		<-s.kept
		err = s.retire(true)
		if err = errors.Join(err, s.place.lock.release()); err != nil {
			err = fmt.Errorf("close the store: %w", err)
		}
	})
	return err
}
