package crash

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reins/chaos"
)

func TestMain(m *testing.M) {
	leaks := goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1") // it has no end; it is one a system
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(leaks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if program.dir != "" {
		_ = os.RemoveAll(program.dir)
	}
	os.Exit(code)
}

// program is crashd, built once with its faults.
var program struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// crashd builds the daemon that is killed.
func crashd(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		program.dir, program.err = os.MkdirTemp("", "reins-crashd-")
		if program.err != nil {
			return
		}
		program.path = filepath.Join(program.dir, "crashd")
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "go", "build", "-tags", "reinsfaults", "-o", program.path, "./crashd").CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("building crashd: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// process makes a daemon to be killed on a state directory of its own.
func process(t *testing.T) *Process {
	t.Helper()
	dir, err := os.MkdirTemp("", "reins-crash-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // the browser's user passes through
		t.Fatal(err)
	}
	p := NewProcess(crashd(t), dir)
	t.Cleanup(p.Kill)
	return p
}

func newLedger(t *testing.T) *chaos.Ledger {
	t.Helper()
	l, err := chaos.NewLedger()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// number reads a count from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no count", name, s)
	}
	return n
}

// explain prints all there is of a run that failed.
func explain(t *testing.T, r chaos.Result, repeat string) {
	t.Helper()
	var b strings.Builder
	r.History.Print(&b, r.Entries)
	for _, v := range r.Violations {
		t.Errorf("%s: %s", r.Name, v)
	}
	if r.Err != nil {
		t.Errorf("%s: %v", r.Name, r.Err)
	}
	t.Logf("repeat it with: %s\nhistory:\n%s\nlog of the daemons:\n%s", repeat, b.String(), r.Log)
}
