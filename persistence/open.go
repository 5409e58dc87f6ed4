package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Open opens the store in dir, or makes one where there is none. It settles
// what the last process left open (see [Store.Recovered]) before it returns.
// Errors: ErrLocked, ErrCorrupt, ErrNewerSchema, ErrStorageUnavailable.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{opts: o, stop: make(chan struct{}), wake: make(chan struct{}, 1), kept: make(chan struct{}),
		under: map[operationID]*underway{}, owed: map[operationID]debt{}}
	h, err := s.open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	_ = s.publish(h) // none was in use
	go s.keep()      // it recovers from panics itself, and Close waits for it
	return s, nil
}

func (s *Store) open(dir string) (h *handle, err error) {
	s.place, err = makePlace(s.opts.FS, dir)
	if err != nil {
		return nil, err
	}
	if s.place.lock, err = takeLock(s.place.fs, s.place.dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			if h != nil {
				err = errors.Join(err, closeWithin(h))
			}
			err = errors.Join(err, s.place.lock.release())
		}
	}()
	s.space = newSpace(s.place.fs, s.place.dir, s.opts.Free)
	if err := s.inspect(); err != nil {
		return nil, err
	}
	if h, err = s.openAnew(); err != nil {
		return nil, err
	}
	found, err := s.readSchema(h)
	if err == nil && !found {
		err = s.beginEmpty(h)
	}
	if err != nil {
		return h, err
	}
	if !found {
		// The database writes its very first log in an old form, in which damage
		// looks like an end.
		if err := closeWithin(h); err != nil {
			return nil, err
		}
		if h, err = s.openAnew(); err != nil {
			return nil, err
		}
	}
	old, keep, err := s.takeMarks()
	if err != nil {
		return h, err
	}
	if err := s.recover(h, old); err != nil {
		return h, err
	}
	if err := keep(); err != nil {
		return h, fmt.Errorf("put the marks in their place: %w", err)
	}
	s.space.look(0)
	if err := s.space.keepBallast(); err != nil {
		s.opts.Logger.Warn("the store has no ballast: on a full disk outcomes may stay uncertain", "error", err)
	}
	return h, nil
}

// openAnew opens the database, if there is room for it.
func (s *Store) openAnew() (*handle, error) {
	if err := s.space.canOpen(s.place.db()); err != nil {
		return nil, err
	}
	return openHandle(s.where())
}

func (s *Store) where() where {
	// At the first write that finds the disk full the ballast goes, and the
	// write is tried once more.
	behind := vfs.OnDiskFull(s.place.fs, func() {
		if s.space.dropBallast() {
			s.wakeUp()
		}
	})
	return where{opts: s.opts, fs: behind, dir: s.place.db(), space: s.space, freeze: s.wakeUp}
}

// takeMarks maps the marks. Without a mapping the store works, and recovery
// takes every death for a power cut.
func (s *Store) takeMarks() (old oldMarks, keep func() error, err error) {
	nothing := func() error { return nil }
	if s.opts.FS != nil && !s.opts.mapped {
		s.marks = newMarks(nil, "", 0)
		return oldMarks{}, nothing, nil
	}
	m, old, keep, err := openMarks(s.place.dir)
	if err != nil {
		s.opts.Logger.Warn("no marks: after a crash every operation without an outcome will be uncertain", "error", err)
		removeMarks(filepath.Join(s.place.dir, "marks"))
		s.marks = newMarks(nil, "", 0)
		return old, nothing, nil
	}
	s.marks = m
	return old, keep, nil
}

// makePlace makes the folder, closed to others, so that it survives a power cut.
func makePlace(fs vfs.FS, dir string) (place, error) {
	if fs == nil {
		fs = vfs.Default
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real // the lock knows files of this process by name
		}
	}
	err := fs.MkdirAll(dir, 0o700)
	if err == nil && fs == vfs.Default {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		if full(err) {
			err = unavailable(err)
		}
		return place{}, fmt.Errorf("the folder of the store cannot be made; name another state directory: %w", err)
	}
	for d, last := dir, ""; d != last; d, last = fs.PathDir(d), d {
		if f, err := fs.OpenDir(d); err == nil { // a folder above may be closed to us: then it is not ours to make
			_ = f.Sync()
			_ = f.Close()
		}
	}
	return place{fs: fs, dir: dir}, nil
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// inspect reads a store that is there without writing a byte: one that is
// damaged, or of a newer version, has to stay as it is (I7).
func (s *Store) inspect() error {
	present, err := isPresent(s.place.fs, s.place.db())
	if err != nil || !present {
		return err
	}
	w := s.where()
	w.frozen = errors.New("it is only looked at")
	h, err := openHandle(w)
	if err != nil {
		return err
	}
	if _, err = s.readSchema(h); err == nil {
		_, err = s.pending(h)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.place.dir, err)
	}
	return errors.Join(err, closeWithin(h))
}

// isPresent reports whether there is a database. A folder that has data of one
// but not the file that names it is damaged: the database would take it for
// empty and begin anew.
func isPresent(fs vfs.FS, db string) (bool, error) {
	names, err := fs.List(db)
	if err != nil {
		return false, nil // not there: it is made
	}
	data := ""
	for _, name := range names {
		if strings.HasPrefix(name, "marker.manifest.") {
			return true, nil
		}
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			data = name
		}
	}
	if data != "" {
		return false, fmt.Errorf("%s has data (%s) and no list of it: %w", db, data, ErrCorrupt)
	}
	return false, nil
}

// readSchema reads the version and the key of the store; found is false in an
// empty one.
func (s *Store) readSchema(h *handle) (found bool, err error) {
	v, found, err := get(h.db, named(keyMeta, metaSchema))
	if err != nil {
		return false, err
	}
	if !found {
		return false, s.mustBeEmpty(h)
	}
	n, err := strconv.Atoi(string(v))
	switch {
	case err != nil || n < 1:
		return false, fmt.Errorf("the version is %q, which is none: %w", v, ErrCorrupt)
	case n > schema:
		return false, fmt.Errorf("its version is %d, and this one knows %d: %w", n, schema, ErrNewerSchema)
	}
	key, there, err := get(h.db, named(keyMeta, metaHashKey))
	if err != nil {
		return false, err
	}
	if !there || len(key) != 32 {
		return false, fmt.Errorf("there is no key for hashes: %w", ErrCorrupt)
	}
	s.hashKey = key
	return true, nil
}

func (s *Store) mustBeEmpty(h *handle) error {
	empty := true
	err := scan(h.db, nil, nil, func(_, _ []byte) (bool, error) { empty = false; return false, nil })
	if err == nil && !empty {
		err = fmt.Errorf("there is data and no version: %w", ErrCorrupt)
	}
	return err
}

// beginEmpty writes what an empty store begins with.
func (s *Store) beginEmpty(h *handle) error {
	s.hashKey = make([]byte, 32)
	rand.Read(s.hashKey)
	t := h.newTx()
	t.set(named(keyMeta, metaSchema), []byte(strconv.Itoa(schema)))
	t.set(named(keyMeta, metaHashKey), s.hashKey)
	return t.store(true)
}
