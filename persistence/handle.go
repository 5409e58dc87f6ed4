package persistence

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// handle is one opening of the database. After its file system froze nothing
// it wrote since counts; it is read from until another takes its place.
type handle struct {
	db       *pebble.DB
	fs       *freezer
	opts     Options
	space    *space
	counters counters // the writer's own
	queue    chan *job
	quit     chan struct{}
	stopping sync.Once     // closes quit
	done     chan struct{} // closed when the writer has ended

	// Guarded by Store.mu.
	readers int
	retired bool
	idle    chan struct{} // closed when it is retired and nobody reads
}

// where is what openHandle needs to know of the store's place.
type where struct {
	opts   Options
	fs     vfs.FS // with the ballast behind it
	dir    string // of the database
	space  *space
	freeze func() // told of the freeze; does not block
	frozen error  // not nil: it is frozen from the start, so that it can only be read
}

// openHandle opens the database. The writer does not run yet.
func openHandle(w where) (*handle, error) {
	h := &handle{opts: w.opts, space: w.space, queue: make(chan *job, queueLength),
		quit: make(chan struct{}), done: make(chan struct{}), idle: make(chan struct{})}
	h.fs = newFreezer(w.fs, restrictTo(w.opts.FS), w.freeze)
	if w.frozen != nil {
		h.fs.freeze(w.frozen)
	}
	log := &dbLog{log: w.opts.Logger, fatal: func(message string) { h.fs.freeze(errors.New(message)) }}
	db, err := pebble.Open(w.dir, &pebble.Options{
		FS: h.fs, Logger: log,
		FormatMajorVersion: pebble.FormatValueSeparation,
		MemTableSize:       memTableBytes(w.space),
		CacheSize:          8 << 20,
		MaxOpenFiles:       256,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { log.Errorf("background work failed: %v", err) },
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				h.fs.freeze(damageError{fmt.Errorf("%s: %w", info.Path, info.Details)})
			},
		},
	})
	h.db = db
	if cause := h.fs.cause(); cause != nil && w.frozen == nil {
		if !errors.Is(cause, ErrCorrupt) {
			cause = unavailable(cause)
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", w.dir, cause), h.abandon(err))
	}
	if err != nil {
		return nil, classify(w.dir, err)
	}
	if err := h.loadCounters(); err != nil {
		err = fmt.Errorf("%s: %w", w.dir, err)
		return nil, errors.Join(err, closeWithin(h))
	}
	return h, nil
}

// abandon closes what did open, where opening ended with err.
func (h *handle) abandon(err error) error {
	if err != nil {
		return err
	}
	return closeWithin(h)
}

// memTableBytes is small on small disks, since the log is laid out ahead by as much.
func memTableBytes(s *space) uint64 {
	s.look(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total == 0 {
		return 4 << 20
	}
	return max(256<<10, min(4<<20, s.total/64))
}

// restrictTo makes files readable by nobody else; a file system of a test has no modes.
func restrictTo(fs vfs.FS) func(string) {
	if fs != nil {
		return func(string) {}
	}
	return func(name string) { _ = os.Chmod(name, 0o600) }
}

// damageError is the cause of a freeze by a file that is not what was written.
// Such a handle is not opened anew: that would only read the same file again.
type damageError struct{ what error }

func (e damageError) Error() string { return fmt.Sprintf("%v (%v)", ErrCorrupt, e.what) }

func (e damageError) Unwrap() error { return ErrCorrupt }

// classify says of an error of opening which one of ours it is.
func classify(dir string, err error) error {
	switch {
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("%s: %w (%v)", dir, ErrNewerSchema, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s cannot be opened; give its owner the right to read and write it: %w", dir, err)
	default:
		return fmt.Errorf("%s: %w (%v)", dir, ErrCorrupt, err)
	}
}

// closeWithin closes a database and does not wait for ever: where it hangs, its
// file system is frozen, so that it can do no harm. What is in the log goes into
// tables first, whose damage shows later; at the end of a log it does not.
func closeWithin(h *handle) error {
	closed := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				closed <- fmt.Errorf("closing the database panicked: %v", r)
			}
		}()
		var err error
		if h.fs.cause() == nil {
			err = h.db.Flush()
		}
		closed <- errors.Join(err, h.db.Close())
	}()
	timer := time.NewTimer(closeDeadline)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		h.fs.freeze(errDeaf)
		h.opts.Logger.Error("the database does not close; it is left behind, cut off from the disk")
		return errors.New("the database did not close in time")
	}
}

// stopWriter ends the writer; what still waits is refused. It reports whether
// the writer has ended; one that hangs on the disk has not. until, if not nil,
// cuts the waiting short.
func (h *handle) stopWriter(wait time.Duration, until <-chan struct{}) bool {
	h.stopping.Do(func() { close(h.quit) })
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-h.done:
		return true
	case <-until:
	case <-timer.C:
	}
	return false
}

// stop ends the writer, and then the database.
func (h *handle) stop() error {
	if !h.stopWriter(closeDeadline, nil) {
		h.fs.freeze(errDeaf)
		return errors.New("a write to the store does not end; the store was cut off from the disk")
	}
	return closeWithin(h)
}

// errDeaf is why a handle is frozen that has to be left behind.
var errDeaf = errors.New("the disk does not answer")
