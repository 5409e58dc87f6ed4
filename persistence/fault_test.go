package persistence

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reins/protocol"
)

// fault spoils what a file system is asked to do while it is on.
type fault struct {
	on   atomic.Bool
	hits atomic.Int64
	fs   hookFS
}

// newFault makes one that fails the operations that match.
func newFault(err error, matches func(op, name string) bool) *fault {
	f := &fault{}
	f.fs = hookFS{FS: newRealFS(), before: func(op, name string, _ int) error {
		if !f.on.Load() || !matches(op, name) {
			return nil
		}
		f.hits.Add(1)
		return err
	}}
	return f
}

// smallDisk makes the database rotate its log often.
func smallDisk(string) (free, total uint64, err error) { return 18 << 20, 20 << 20, nil }

// health notes what OnHealth was told.
type health struct {
	mu   sync.Mutex
	told []bool
}

func (h *health) tell(ok bool, _ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, ok)
}

func (h *health) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprint(h.told)
}

// TestFailingDisk holds I1, I3, I6 and I9 for a disk that fails at each of the
// places where a database writes, for a while.
func TestFailingDisk(t *testing.T) {
	is := func(op, part string) func(string, string) bool {
		return func(o, name string) bool { return o == op && strings.Contains(name, part) }
	}
	any := func(o, name string) bool { return o != "remove" && strings.Contains(name, "/db/") }
	for name, f := range map[string]func() *fault{
		"a write to the log":     func() *fault { return newFault(syscall.EIO, is("write", ".log")) },
		"a sync of the log":      func() *fault { return newFault(syscall.EIO, is("sync", ".log")) },
		"a new log":              func() *fault { return newFault(syscall.ENOSPC, is("create", ".log")) },
		"a new table":            func() *fault { return newFault(syscall.ENOSPC, is("create", ".sst")) },
		"a write to a table":     func() *fault { return newFault(syscall.ENOSPC, is("write", ".sst")) },
		"a sync of a table":      func() *fault { return newFault(syscall.EIO, is("sync", ".sst")) },
		"a write to the list":    func() *fault { return newFault(syscall.ENOSPC, is("write", "MANIFEST")) },
		"a sync of the list":     func() *fault { return newFault(syscall.EIO, is("sync", "MANIFEST")) },
		"everything, as if full": func() *fault { return newFault(syscall.ENOSPC, any) },
		"everything":             func() *fault { return newFault(syscall.EIO, any) },
	} {
		// What is written when the disk fails is an admission, or an outcome.
		t.Run(name+", at an admission", func(t *testing.T) {
			t.Parallel()
			failingDisk(t, f(), func(s *Store) (string, error) {
				_, err := s.Admit(admission("ann", "first"))
				return map[bool]string{true: "open", false: ""}[err == nil], err
			})
		})
		t.Run(name+", at an outcome", func(t *testing.T) {
			t.Parallel()
			failingDisk(t, f(), func(s *Store) (string, error) {
				err := s.Finish(ending("ann", "first", protocol.StateApplied))
				return map[bool]string{true: "applied/", false: "uncertain/outcome_not_stored"}[err == nil], err
			})
		})
	}
}

// failingDisk fails while first is written, whose state it returns.
func failingDisk(t *testing.T, f *fault, first func(*Store) (string, error)) {
	dir, told := t.TempDir(), &health{}
	o := Options{FS: &f.fs, Free: smallDisk, OnHealth: told.tell, poll: 10 * time.Millisecond}
	s := mustOpen(t, dir, o)
	acked := map[string]string{"old": "applied/", "under": "uncertain/outcome_not_stored"}
	ids := []string{"old", "under"}
	if strings.HasSuffix(t.Name(), "outcome") {
		ids = append(ids, "first")
	}
	for _, id := range ids {
		if _, err := s.Admit(admission("ann", id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(ending("ann", "old", protocol.StateApplied)); err != nil {
		t.Fatal(err)
	}
	f.on.Store(true)
	state, err := first(s)
	if acked["first"] = state; err != nil && !errors.Is(err, ErrStorageUnavailable) {
		t.Errorf("the first ended with %v", err)
	}
	refused := untilRefused(t, s, acked)
	if reason, message := s.Health(); reason != protocol.ReasonStorageUnavailable || message == "" {
		t.Errorf("health is %q %q", reason, message)
	}
	switch err := s.Finish(ending("ann", "under", protocol.StateApplied)); {
	case err == nil: // it was being opened anew, and that succeeded: this fault comes late
		acked["under"] = "applied/"
	case !errors.Is(err, ErrStorageUnavailable):
		t.Errorf("got %v", err)
	}
	for range 20 { // reads go on, also while it is tried to open it anew
		checkStates(t, s, acked, refused)
		if _, err := s.History(protocol.HistoryQuery{}); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the disk fails again", func() bool { return f.hits.Load() > 1 || told.String() != "[false]" })
	checkStates(t, s, acked, refused)
	f.on.Store(false)
	eventually(t, "the store records again", func() bool { reason, _ := s.Health(); return reason == "" })
	checkStates(t, s, acked, refused)
	eventually(t, "what was refused can be sent again", func() bool { _, err := s.Admit(admission("ann", refused)); return err == nil })
	if err := s.Finish(ending("ann", refused, protocol.StateFailed)); err != nil {
		t.Error(err)
	}
	acked[refused] = "failed/"
	eventually(t, "it was told", func() bool {
		h := told.String()
		return strings.HasPrefix(h, "[false true") && strings.HasSuffix(h, "true]")
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if acked["first"] == "open" {
		acked["first"] = "uncertain/recovered" // marks are not mapped here
	}
	s = mustOpen(t, dir, o)
	checkStates(t, s, acked, "never")
	if err := s.Check(io.Discard); err != nil {
		t.Error(err)
	}
}

// untilRefused works until an operation is refused, and returns its id.
func untilRefused(t *testing.T, s *Store, acked map[string]string) string {
	t.Helper()
	for i := range 5000 {
		id := fmt.Sprint("op", i)
		if _, err := s.Admit(admission("ann", id)); err != nil {
			if !errors.Is(err, ErrStorageUnavailable) {
				t.Errorf("refused with %v", err)
			}
			return id
		}
		acked[id] = "applied/"
		if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
			acked[id] = "uncertain/outcome_not_stored"
			if !errors.Is(err, ErrStorageUnavailable) {
				t.Errorf("not stored with %v", err)
			}
		}
		_ = s.PutCookies("default", make([]byte, 50<<10)) // so that it writes tables soon
	}
	t.Fatal("the fault had no effect")
	return ""
}

func checkStates(t *testing.T, s *Store, acked map[string]string, refused string) {
	t.Helper()
	if got := stateOf(t, s, "ann", refused); got != "" {
		t.Errorf("%s was refused and is %s", refused, got)
	}
	for id, want := range acked {
		if got := stateOf(t, s, "ann", id); got != want {
			t.Errorf("%s is %s, not %s", id, got, want)
		}
	}
}

// TestLyingDisk holds I3 and I9 where what failed had reached the disk all the
// same: what was told counts, after opening anew and after a restart.
func TestLyingDisk(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			dir := t.TempDir()
			var lie atomic.Bool
			fs := &hookFS{FS: newRealFS()}
			fs.before = func(op, name string, _ int) error {
				if op == "sync" && strings.HasSuffix(name, ".log") && lie.Load() {
					return syscall.EIO // everything before it was written
				}
				return nil
			}
			o := Options{FS: fs, mapped: true, poll: 10 * time.Millisecond}
			s := mustOpen(t, dir, o)
			m, err := s.Admit(admission("ann", "under"))
			if err != nil {
				t.Fatal(err)
			}
			m.Set()
			lie.Store(true)
			if err := s.Finish(ending("ann", "under", protocol.StateApplied)); !errors.Is(err, ErrStorageUnavailable) {
				t.Fatalf("got %v", err)
			}
			want := map[string]string{"under": "uncertain/outcome_not_stored"}
			checkStates(t, s, want, "never")
			if restart {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				lie.Store(false)
				s = mustOpen(t, dir, o)
			} else {
				lie.Store(false)
				eventually(t, "the store records again", func() bool { reason, _ := s.Health(); return reason == "" })
			}
			checkStates(t, s, want, "never")
			lie.Store(true)
			if _, err := s.Admit(admission("ann", "refused")); !errors.Is(err, ErrStorageUnavailable) {
				t.Fatalf("got %v", err)
			}
			lie.Store(false)
			if !restart {
				eventually(t, "the store records again", func() bool { _, err := s.Admit(admission("ann", "another")); return err == nil })
				want["another"] = "open"
				eventually(t, "what was owed is paid", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.owed) == 0 })
				checkStates(t, s, want, "refused")
				want["another"] = "cancelled/recovered"
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir, Options{})
			checkStates(t, s, want, "refused")
			if err := s.Check(io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHangingDisk holds I6 for a disk that does not answer at all.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var hang atomic.Bool
	release := make(chan struct{})
	fs := &hookFS{FS: newRealFS()}
	fs.before = func(op, name string, _ int) error {
		if op == "sync" && strings.HasSuffix(name, ".log") && hang.Load() {
			<-release
		}
		return nil
	}
	s := mustOpen(t, dir, Options{FS: fs, poll: 10 * time.Millisecond, deadline: 3 * time.Second})
	if _, err := s.Admit(admission("ann", "under")); err != nil {
		t.Fatal(err)
	}
	hang.Store(true)
	if _, err := s.Admit(admission("ann", "refused")); !errors.Is(err, ErrStorageUnavailable) {
		t.Errorf("got %v", err)
	}
	if reason, _ := s.Health(); reason != protocol.ReasonStorageUnavailable {
		t.Error("it is said to be well")
	}
	if err := s.Finish(ending("ann", "under", protocol.StateApplied)); !errors.Is(err, ErrStorageUnavailable) {
		t.Errorf("got %v", err)
	}
	want := map[string]string{"under": "uncertain/outcome_not_stored"}
	checkStates(t, s, want, "refused")
	hang.Store(false)
	close(release)
	eventually(t, "the store records again", func() bool { _, err := s.Admit(admission("ann", "another")); return err == nil })
	want["another"] = "open"
	checkStates(t, s, want, "refused")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want["another"] = "uncertain/recovered" // marks are not mapped here
	s = mustOpen(t, dir, Options{})
	checkStates(t, s, want, "refused")
}

// TestNothingUnsafeIsRead holds I3 for an outcome that is in memory and not yet
// on the disk: nobody is told of it.
func TestNothingUnsafeIsRead(t *testing.T) {
	var hold atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	fs := &hookFS{FS: newRealFS()}
	fs.before = func(op, name string, _ int) error {
		if op == "sync" && strings.HasSuffix(name, ".log") && hold.CompareAndSwap(true, false) {
			close(held)
			<-release
		}
		return nil
	}
	s := mustOpen(t, t.TempDir(), Options{FS: fs})
	if _, err := s.Admit(admission("ann", "op")); err != nil {
		t.Fatal(err)
	}
	hold.Store(true)
	done := make(chan error, 1)
	go func() { done <- s.Finish(ending("ann", "op", protocol.StateApplied)) }()
	<-held
	eventually(t, "the database shows it", func() bool {
		h, err := s.borrow()
		if err != nil {
			t.Fatal(err)
		}
		defer s.giveBack(h)
		r, err := readOperation(h.db, operationID{"ann", "op"})
		return err == nil && r != nil && r.Receipt != nil
	})
	if got := stateOf(t, s, "ann", "op"); got != "open" {
		t.Errorf("it is told as %s", got)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, s, "ann", "op"); got != "applied/" {
		t.Error(got)
	}
}
