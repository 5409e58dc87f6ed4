package persistence

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reins/protocol"
)

// childMode names what a re-executed test binary does instead of tests.
const childMode, childDir = "REINS_STORE_CHILD", "REINS_STORE_DIR"

var childModes = map[string]func(dir string) error{
	"hold":   childHold,
	"settle": childSettle,
	"hammer": childHammer,
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := childModes[mode](os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := flag.Set("rapid.checks", "25"); err != nil { // each opens stores; -rapid.checks asks for more
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// child is a re-executed test binary.
type child struct {
	*exec.Cmd
	t     *testing.T
	lines chan string // what it prints; closed at its end
	err   *lockedBuffer
}

// startChild starts the test binary in a mode. It is killed at the end of the test.
func startChild(t *testing.T, mode, dir string, prepare func(*exec.Cmd)) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c := &child{Cmd: exec.CommandContext(ctx, os.Args[0]), t: t, lines: make(chan string, 10000), err: &lockedBuffer{}}
	c.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	c.Stderr = c.err
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(c.Cmd)
	}
	if err := c.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			c.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		_ = c.Wait()
	})
	return c
}

// expect waits for a line.
func (c *child) expect(want string) {
	c.t.Helper()
	select {
	case got, ok := <-c.lines:
		if !ok || got != want {
			c.t.Fatalf("the child said %q, not %q; %s", got, want, c.err)
		}
	case <-time.After(30 * time.Second):
		c.t.Fatalf("the child did not say %q; %s", want, c.err)
	}
}

// kill ends it with SIGKILL and returns what it had said.
func (c *child) kill() (said []string) {
	c.t.Helper()
	if err := c.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	for line := range c.lines {
		said = append(said, line)
	}
	return said
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// mustOpen opens a store and closes it at the end of the test.
func mustOpen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// eventually asks again until it holds, or fails the test.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it did not come to: %s", what)
		}
	}
}

func admission(owner, id string) Admission {
	return Admission{Owner: protocol.OwnerID(owner), Operation: protocol.OperationID(id), Resource: "pg_1", Generation: 3, Method: protocol.MethodClick,
		ContentHash: hashOf(id), Epoch: 7, EpochReserve: 1000, UserTurn: "turn"}
}

func hashOf(id string) (h [32]byte) {
	copy(h[:], id)
	return h
}

func ending(owner, id string, state protocol.State) Ending {
	return Ending{Owner: protocol.OwnerID(owner), ContentHash: hashOf(id), Receipt: protocol.Receipt{OperationID: protocol.OperationID(id), Resource: "pg_1",
		Generation: 3, Method: protocol.MethodClick, State: state, LastAppliedIndex: protocol.Index(0)}}
}

// stateOf is the state of an operation as the store tells it: "" unknown, "open" without an outcome.
func stateOf(t testing.TB, s *Store, owner, id string) string {
	t.Helper()
	st, known, err := s.Operation(protocol.OwnerID(owner), protocol.OperationID(id))
	switch {
	case err != nil:
		t.Fatalf("look up %s: %v", id, err)
	case !known:
		return ""
	case st.ContentHash != hashOf(id):
		t.Errorf("%s has another hash", id)
	case st.Receipt == nil:
		return "open"
	}
	return string(st.Receipt.State) + "/" + string(st.Receipt.Reason)
}
