package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// space watches how much of the disk is left, and keeps the ballast.
type space struct {
	fs      vfs.FS
	dir     string
	ballast string // the file
	free    func(dir string) (free, total uint64, err error)

	mu    sync.Mutex
	at    time.Time // of the last look; guarded by mu
	left  uint64    // guarded by mu
	total uint64    // 0: not known; guarded by mu
	low   bool      // guarded by mu
	busy  bool      // somebody is asking; guarded by mu
}

func newSpace(fs vfs.FS, dir string, free func(string) (uint64, uint64, error)) *space {
	if free == nil {
		free = func(dir string) (uint64, uint64, error) {
			u, err := fs.GetDiskUsage(dir)
			return u.AvailBytes, u.TotalBytes, err
		}
	}
	return &space{fs: fs, dir: dir, ballast: fs.PathJoin(dir, "ballast"), free: free}
}

// look asks for the free space unless that was done within the last while. A
// file system that does not tell is taken for one with room: its own errors
// freeze the store.
func (s *space) look(atMost time.Duration) {
	s.mu.Lock()
	now := time.Now()
	if s.busy || now.Sub(s.at) < atMost {
		s.mu.Unlock()
		return
	}
	s.at, s.busy = now, true
	s.mu.Unlock()
	free, total, err := s.free(s.dir) // not under the mutex: a file system that hangs must not hang Health
	if err != nil {
		free, total = 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.total, s.busy = free, total, false
	// A little more than the reserve is asked for to come back, so that the
	// answer does not flutter.
	back := s.reserve()
	if s.low {
		back += back / 8
	}
	s.low = total > 0 && free < back
}

// reserve is how much has to be free for an admission. mu is held.
func (s *space) reserve() uint64 { return min(reserveMax, s.total/reserveShare) }

// isLow says whether admissions are refused, and why.
func (s *space) isLow() (message string, low bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.low {
		return "", false
	}
	return fmt.Sprintf("%d KiB are free at %s, less than the reserve of %d KiB: free space, then writes are taken again", s.left>>10, s.dir, s.reserve()>>10), true
}

// ballastBytes is how large the ballast is to be; mu is held.
func (s *space) ballastBytes() uint64 { return min(ballastMax, s.total/ballastShare) }

// keepBallast writes the ballast if it is missing and there is ample room.
func (s *space) keepBallast() error {
	s.mu.Lock()
	size := s.ballastBytes()
	room := s.total > 0 && s.left > s.reserve()+2*size
	s.mu.Unlock()
	if !room || size == 0 {
		return nil
	}
	if info, err := s.fs.Stat(s.ballast); err == nil && uint64(info.Size()) >= size/2 {
		return nil
	}
	err := s.writeBallast(size)
	if err != nil {
		_ = s.fs.Remove(s.ballast)
		return fmt.Errorf("write the ballast: %w", err)
	}
	return nil
}

func (s *space) writeBallast(size uint64) error {
	f, err := s.fs.Create(s.ballast, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// Random, so that no file system stores it as a hole or squeezes it.
	chunk := make([]byte, 64<<10)
	rand.Read(chunk)
	for done := uint64(0); done < size; done += uint64(len(chunk)) {
		if _, err := f.Write(chunk); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// dropBallast gives the ballast up, and reports whether there was one.
func (s *space) dropBallast() bool {
	return s.fs.Remove(s.ballast) == nil
}

// canOpen says whether the database can be opened: it writes what its log holds
// into tables, and never ends when there is no room for them.
func (s *space) canOpen(db string) error {
	need := uint64(openSlack)
	names, err := s.fs.List(db)
	if err != nil {
		names = nil // not there yet
	}
	for _, name := range names {
		if info, err := s.fs.Stat(s.fs.PathJoin(db, name)); err == nil && strings.HasSuffix(name, ".log") {
			need += uint64(info.Size())
		}
	}
	for try := 0; ; try++ {
		s.look(0)
		s.mu.Lock()
		left, known := s.left, s.total > 0
		s.mu.Unlock()
		if !known || left >= need {
			return nil
		}
		if try > 0 || !s.dropBallast() {
			return fmt.Errorf("%d KiB are free at %s and opening the store needs %d KiB: %w", left>>10, s.dir, need>>10, ErrStorageUnavailable)
		}
	}
}
