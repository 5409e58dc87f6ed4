package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reins/protocol"
)

// withStdin gives a child something to wait on, so that it lives until it is killed.
func withStdin(t *testing.T) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
	}
}

// TestKilled holds I4: what SIGKILL leaves is cancelled where the mark proves
// that nothing was sent, else uncertain, and it is settled once.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "settle", dir, withStdin(t))
	c.expect("ready")
	c.kill()
	for round := range 2 {
		s := mustOpen(t, dir, Options{})
		for id, want := range map[string]string{"unset": "cancelled/recovered", "set": "uncertain/recovered", "done": "applied/"} {
			if got := stateOf(t, s, "ann", id); got != want {
				t.Errorf("%s is %s, not %s", id, got, want)
			}
		}
		if got, want := len(s.Recovered()), 2-2*round; got != want {
			t.Errorf("round %d recovered %d, not %d", round, got, want)
		}
		checkRecovered(t, s)
		for _, r := range s.Recovered() {
			sent := r.State == protocol.StateUncertain
			if r.ObserveRequired != sent || (r.LastAppliedIndex == nil) != sent || r.Message == "" || r.Resource != "pg_1" || r.Generation != 3 || r.Method != protocol.MethodClick {
				t.Errorf("the receipt is %+v", r)
			}
		}
		h, err := s.History(protocol.HistoryQuery{})
		if err != nil || len(h) != 3 || h[2].Event != "recovered" {
			t.Errorf("history %+v %v", h, err)
		}
		if err := errors.Join(s.Check(t.Output()), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledWithoutProof holds I4 where the marks prove nothing.
func TestKilledWithoutProof(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"another boot": func(file string) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			at := bytes.Index(b, []byte(bootID()))
			b[at] ^= 1
			return os.WriteFile(file, b, 0o600)
		},
		"no marks":    os.Remove,
		"cut short":   func(file string) error { return os.Truncate(file, marksBytes-8) },
		"of nonsense": func(file string) error { return os.WriteFile(file, bytes.Repeat([]byte{'x'}, marksBytes), 0o600) },
		"another life": func(file string) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			b[len(marksMagic)] ^= 1
			return os.WriteFile(file, b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := startChild(t, "settle", dir, withStdin(t))
			c.expect("ready")
			c.kill()
			if err := spoil(filepath.Join(dir, "marks")); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, dir, Options{})
			if got := stateOf(t, s, "ann", "unset") + " " + stateOf(t, s, "ann", "set"); got != "uncertain/recovered uncertain/recovered" {
				t.Error(got)
			}
		})
	}
}

// TestKilledAtAnyMoment holds I1 and I4 for a process that is killed in the
// middle of its work, again and again on one store.
func TestKilledAtAnyMoment(t *testing.T) {
	count := map[string]int{}
	for seed := range 4 {
		dir := t.TempDir()
		c := startChild(t, "hammer", dir, nil)
		said := make([]string, 0, 1000)
		for len(said) < 20+150*seed {
			line, ok := <-c.lines
			if !ok {
				t.Fatal("the child ended: ", c.err)
			}
			said = append(said, line)
		}
		said = append(said, c.kill()...)
		s := mustOpen(t, dir, Options{})
		checkSaid(t, s, said, count)
		if err := errors.Join(s.Check(io.Discard), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if count["finished → applied/"] == 0 || count["admitted → cancelled/recovered"] == 0 || count["sending → uncertain/recovered"] == 0 {
		t.Errorf("the runs show too little: %v", count)
	}
}

// checkSaid compares the store with what a killed process had acknowledged.
func checkSaid(t *testing.T, s *Store, said []string, count map[string]int) {
	t.Helper()
	last := map[string]string{}
	for _, line := range said {
		what, id, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(id, "op-") {
			t.Fatalf("the child said %q", line)
		}
		last[id] = what
	}
	for id, what := range last {
		got := stateOf(t, s, "ann", id)
		count[what+" → "+got]++
		// What it did after its last line is open: the line before decides what is possible.
		possible := map[string][]string{
			"admitted": {"cancelled/recovered"},
			"sending":  {"cancelled/recovered", "uncertain/recovered", "applied/"},
			"finished": {"applied/"},
		}[what]
		if !strings.Contains(fmt.Sprint(possible), got) || got == "" {
			t.Errorf("%s was %s and is %q", id, what, got)
		}
	}
}

// TestSecondProcess holds that a second process is told who has the store.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "hold", dir, withStdin(t))
	c.expect("ready")
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", c.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	c.kill()
	s := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("in one process: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("by another name: %v", err)
	}
	if _, err := s.Admit(admission("ann", "op")); err != nil {
		t.Errorf("the first was disturbed: %v", err)
	}
}

// TestMarkOnLostFile holds that a mapping without its file ends nothing, and
// that nothing false follows from it.
func TestMarkOnLostFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	m, err := s.Admit(admission("ann", "op"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "marks"), 0); err != nil {
		t.Fatal(err)
	}
	m.Set()
	if _, err := os.Stat(filepath.Join(dir, "marks")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m.Set() // after the end
	s = mustOpen(t, dir, Options{})
	if got := stateOf(t, s, "ann", "op"); got != "uncertain/recovered" {
		t.Error(got)
	}
}

// TestClosedWithWorkLeft holds I4 for a store that is closed in order while
// operations are under way.
func TestClosedWithWorkLeft(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	for _, id := range []string{"unset", "set", "ending"} {
		m, err := s.Admit(admission("ann", id))
		if err != nil {
			t.Fatal(err)
		}
		if id == "set" {
			m.Set()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The caller answers uncertain/outcome_not_stored, although nothing was sent.
	if err := s.Finish(ending("ann", "ending", protocol.StateCancelled)); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	s = mustOpen(t, dir, Options{})
	for id, want := range map[string]string{"unset": "cancelled/recovered", "set": "uncertain/recovered", "ending": "uncertain/outcome_not_stored"} {
		if got := stateOf(t, s, "ann", id); got != want {
			t.Errorf("%s is %s, not %s", id, got, want)
		}
	}
}
