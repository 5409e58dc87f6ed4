package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// relative is a process as /proc has it. Its start tells it from another that
// got its id.
type relative struct {
	pid, parent int
	start       string // clock ticks since boot
	zombie      bool
	args        string
}

func (r relative) String() string {
	return fmt.Sprintf("%d %.100s", r.pid, r.args)
}

// processes lists what runs.
func processes() []relative {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []relative
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if r, ok := look(pid); ok {
			all = append(all, r)
		}
	}
	return all
}

// look reads one process; false when it is gone.
func look(pid int) (relative, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return relative{}, false
	}
	// The command's name, in parentheses, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return relative{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return relative{}, false
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return relative{}, false
	}
	return relative{pid: pid, parent: parent, start: fields[19], zombie: fields[0] == "Z" || fields[0] == "X",
		args: strings.TrimSpace(string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))}, true
}

// descendants are the processes below one, and that one.
func descendants(all []relative, of int) []relative {
	in := map[int]bool{of: true}
	var out []relative
	for grew := true; grew; {
		grew = false
		for _, r := range all {
			if !in[r.pid] && in[r.parent] {
				in[r.pid], grew = true, true
			}
		}
	}
	for _, r := range all {
		if in[r.pid] {
			out = append(out, r)
		}
	}
	return out
}

// remember notes what descends from the daemon now, so that it is found when the
// daemon is dead and its children have another parent.
func (p *Process) remember() {
	c := p.current()
	family := descendants(processes(), c.pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = append(p.before, family...)
}

// Orphans implements chaos.System.
func (p *Process) Orphans() []string {
	p.mu.Lock()
	before := append([]relative(nil), p.before...)
	p.mu.Unlock()
	born := map[string]bool{}
	for _, r := range before {
		born[fmt.Sprint(r.pid, r.start)] = true
	}
	var left []string
	for _, r := range processes() {
		ours := born[fmt.Sprint(r.pid, r.start)] || strings.Contains(r.args, p.state())
		if ours && !r.zombie {
			left = append(left, r.String())
		}
	}
	return left
}

// KillRenderers implements chaos.System.
func (p *Process) KillRenderers() error {
	return p.killChildren("renderer", func(args string) bool { return strings.Contains(args, "--type=renderer") })
}

// KillBrowser implements chaos.System.
func (p *Process) KillBrowser() error {
	return p.killChildren("browser", func(args string) bool {
		return strings.Contains(args, "--user-data-dir=") && !strings.Contains(args, "--type=")
	})
}

func (p *Process) killChildren(what string, is func(args string) bool) error {
	c := p.current()
	p.remember()
	killed := 0
	for _, r := range descendants(processes(), c.pid) {
		if r.pid != c.pid && !r.zombie && is(r.args) {
			if err := syscall.Kill(r.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("no %s process of the daemon was found", what)
	}
	return nil
}
