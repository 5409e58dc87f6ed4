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

	mu     sync.Mutex
	handle *handle                   // nil: closed, or not open yet; guarded by mu
	closed bool                      // for good; guarded by mu
	under  map[operationID]*underway // guarded by mu
	owed   map[operationID]debt      // guarded by mu
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

// read lends the database to f. A frozen one whose files are gone, because
// another has taken its place meanwhile, is left for that one.
func (s *Store) read(f func(pebble.Reader) error) error {
	for try := 0; ; try++ {
		h, err := s.borrow()
		if err != nil {
			return err
		}
		err = f(h.db)
		gone := s.giveBack(h)
		if err == nil || !gone || try > 0 {
			return err
		}
	}
}

// borrow keeps the handle open until it is given back.
func (s *Store) borrow() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil, ErrClosed
	}
	s.handle.readers++
	return s.handle, nil
}

// giveBack reports whether the handle is no longer the one in use.
func (s *Store) giveBack(h *handle) (gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.readers--; h.readers == 0 && h.retired {
		close(h.idle)
	}
	return h != s.handle
}

// publish puts a handle into use, and ends the one that was; nil closes the store.
func (s *Store) publish(h *handle) error {
	s.mu.Lock()
	if s.closed && h != nil {
		s.mu.Unlock()
		return closeWithin(h)
	}
	old := s.handle
	s.handle, s.closed = h, h == nil
	if old != nil {
		if old.retired = true; old.readers == 0 {
			close(old.idle)
		}
	}
	s.mu.Unlock()
	if h != nil {
		go h.write() // it recovers from panics itself, and h.stop waits for it
	}
	if old == nil {
		return nil
	}
	timer := time.NewTimer(closeDeadline)
	defer timer.Stop()
	select {
	case <-old.idle:
		return old.stop()
	case <-timer.C:
		old.fs.freeze(errDeaf)
		old.stopWriter(0, nil)
		return errors.New("somebody still reads the store; it was cut off from the disk and left behind")
	}
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
		timer := time.NewTimer(closeDeadline)
		defer timer.Stop()
		select {
		case <-s.kept:
		case <-timer.C: // it opens the database at a disk that hangs; what it opens later it closes
		}
		err = s.publish(nil)
		if err = errors.Join(err, s.place.lock.release()); err != nil {
			err = fmt.Errorf("close the store: %w", err)
		}
	})
	return err
}
