package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child of the job. Its output goes to a log; the first line of
// its standard output is kept.
type process struct {
	cmd   *exec.Cmd
	first chan string
	ended chan struct{} // closed after the process ended and its output was read
	err   error         // how it ended; read it after ended
	log   string
}

func startProcess(program string, args []string, log string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), first: make(chan string, 1), ended: make(chan struct{}), log: log}
	p.cmd.Stderr = f
	// A job that is killed takes its children with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	started := make(chan error, 1)
	go p.follow(out, f, started)
	if err := <-started; err != nil {
		<-p.ended
		return nil, err
	}
	return p, nil
}

// follow starts the process and reads its output until it ends, on one thread:
// the kernel takes the end of the thread that forked for the death of the parent.
func (p *process) follow(out io.Reader, log io.WriteCloser, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	defer log.Close()
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("reading its output broke: %v", r)
			p.cmd.Process.Kill()
		}
	}()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	p.first <- line
	if err == nil {
		io.WriteString(log, line)
		io.Copy(log, lines) // the log is for people; a gap in it changes nothing
	}
	p.err = p.cmd.Wait()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// address reads the URL that `demo serve --json` prints first.
func (p *process) address(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	select {
	case line := <-p.first:
		var said struct{ URL string }
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.URL == "" {
			return "", fmt.Errorf("it printed no address but %q; %s says more", line, p.log)
		}
		return said.URL, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stop asks the process to end and insists when ctx or its patience is over.
func (p *process) stop(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-p.ended:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("process %d did not end on SIGTERM and was killed; %s says more", p.pid(), p.log)
}

// descendants lists the processes below one, as /proc has them now.
func descendants(pid int) []int {
	children := map[int][]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, stat := range dirs {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it ended meanwhile
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		// The name stands in parentheses and may hold anything: the parent follows the last one.
		rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if err != nil || len(rest) < 2 || rest[0] == "Z" {
			continue
		}
		if parent, err := strconv.Atoi(rest[1]); err == nil {
			children[parent] = append(children[parent], id)
		}
	}
	var all []int
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		all = append(all, children[todo[0]]...)
		todo = append(todo, children[todo[0]]...)
	}
	return all
}

// browserOf finds the main process of the browser below a daemon: a Chromium
// that is of no type, as the children of a Chromium are.
func browserOf(daemon int) (int, error) {
	for _, pid := range descendants(daemon) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		name := filepath.Base(args[0])
		if (strings.Contains(name, "chrom") || strings.Contains(name, "headless")) && !strings.Contains(string(b), "--type=") {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("process %d has no browser below it", daemon)
}

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// gone waits until none of these processes is left.
func gone(ctx context.Context, pids []int) error {
	return until(ctx, 10*time.Second, "the end of the browser's processes", func(context.Context) (bool, error) {
		for _, pid := range pids {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !bytes.Contains(b, []byte(") Z ")) {
				return false, fmt.Errorf("process %d is left: %s", pid, b)
			}
		}
		return true, nil
	})
}
