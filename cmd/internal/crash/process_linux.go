package crash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"reins/chaos"
	"reins/protocol/nats"
)

// Process is a daemon in a process of its own. It implements [chaos.System].
type Process struct {
	program string
	dir     string // of everything of it, with the state directory below

	mu      sync.Mutex
	child   *child
	before  []relative // what descended from daemons that have ended
	written bytes.Buffer
}

// child is one life of it.
type child struct {
	pid     int
	died    chan struct{}
	ready   chan struct{}
	hanging chan struct{}
	err     error // how it ended; read after died
}

var _ chaos.System = (*Process)(nil)

// NewProcess makes a system of a built crashd in an empty directory, which
// everybody may pass through.
func NewProcess(program, dir string) *Process {
	return &Process{program: program, dir: dir}
}

func (p *Process) state() string { return filepath.Join(p.dir, "state") }
func (p *Process) armed() string { return filepath.Join(p.dir, "armed") }

// Start implements chaos.System.
func (p *Process) Start(ctx context.Context, f chaos.Faults) error {
	if err := os.Remove(p.armed()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := exec.Command(p.program, "-state", p.state())
	cmd.Env = append(os.Environ(), environment(f, p.armed())...)
	cmd.Stderr = &locked{p: p}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c := &child{died: make(chan struct{}), ready: make(chan struct{}), hanging: make(chan struct{})}
	started := make(chan error, 1)
	go c.live(cmd, out, started)
	if err := <-started; err != nil {
		return err
	}
	p.mu.Lock()
	p.child = c
	p.mu.Unlock()
	select {
	case <-c.ready:
		return nil
	case <-c.died:
		return fmt.Errorf("the daemon ended before it served: %w", errors.Join(c.err, errors.New(p.Log())))
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("the daemon did not come to serve: %w", ctx.Err())
	}
}

// live starts the process and waits for its end on one thread: the kernel takes
// the end of the thread that forked for the death of the parent.
func (c *child) live(cmd *exec.Cmd, out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.died)
	err := cmd.Start()
	if err == nil {
		c.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	c.listen(out)
	c.err = cmd.Wait()
	fmt.Fprintf(cmd.Stderr, "process %d ended: %v\n", c.pid, c.err)
}

// listen reads what the daemon says until it has ended.
func (c *child) listen(out io.Reader) {
	var ready, hanging sync.Once
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, _, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "ready":
			ready.Do(func() { close(c.ready) })
		case "hanging":
			hanging.Do(func() { close(c.hanging) })
		}
	}
}

func environment(f chaos.Faults, armed string) []string {
	if f.Armed {
		armed = ""
	}
	env := []string{"REINS_CRASH_ARMED=" + armed}
	if f.Crash != "" {
		env = append(env, fmt.Sprintf("REINS_CRASH=%s:%d", f.Crash, max(1, f.Nth)), "REINS_CRASH_OP="+string(f.Operation),
			"REINS_CRASH_AFTER="+f.After.String(), "REINS_CRASH_HOLD="+f.Hold.String())
	}
	var hangs, bugs []string
	for _, h := range f.Hangs {
		hangs = append(hangs, fmt.Sprintf("%s:%s=%s", h.Step, h.Operation, h.For))
	}
	for _, b := range f.Bugs {
		bugs = append(bugs, string(b))
	}
	return append(env, "REINS_HANG="+strings.Join(hangs, ","), "REINS_BUGS="+strings.Join(bugs, ","))
}

// Arm implements chaos.System.
func (p *Process) Arm() error {
	p.remember() // it dies by itself
	return os.WriteFile(p.armed(), nil, 0o600)
}

func (p *Process) current() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// Died implements chaos.System.
func (p *Process) Died() <-chan struct{} { return p.current().died }

// Hanging implements chaos.System.
func (p *Process) Hanging(ctx context.Context) error {
	c := p.current()
	select {
	case <-c.hanging:
		return nil
	case <-c.died:
		return errors.New("the daemon died before anything hung")
	case <-ctx.Done():
		return fmt.Errorf("nothing came to hang: %w", ctx.Err())
	}
}

// Kill implements chaos.System.
func (p *Process) Kill() {
	c := p.current()
	if c == nil {
		return
	}
	select {
	case <-c.died:
		return
	default:
	}
	p.remember()
	_ = syscall.Kill(c.pid, syscall.SIGKILL)
	<-c.died
}

// Stop implements chaos.System.
func (p *Process) Stop(ctx context.Context) error {
	c := p.current()
	p.remember()
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.died:
		return c.err
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("it did not stop: %w", ctx.Err())
	}
}

// Client implements chaos.System.
func (p *Process) Client(ctx context.Context) (chaos.Client, error) {
	c, err := nats.Dial(ctx, nats.ClientOptions{StateDir: p.state(), Name: "chaos"})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Log implements chaos.System.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// locked writes into the log of a process.
type locked struct{ p *Process }

func (l *locked) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.written.Write(b)
}
