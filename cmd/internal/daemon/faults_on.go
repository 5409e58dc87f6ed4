//go:build reinsfaults

package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"reins/protocol"
)

// faults reads the faults of a test build from the environment:
//
//	REINS_CRASH=step[:n]     SIGKILL this process when the step is passed for the n-th time (default 1)
//	REINS_CRASH_OP=id        count only passes of this operation
//	REINS_CRASH_ARMED=file   count only passes while this file exists
//	REINS_CRASH_AFTER=time   kill it that long after the pass, while all goes on
//	REINS_CRASH_HOLD=time    kill it that long after the pass, while what passed stands still
//	REINS_HANG=step[:id]=time,…  let the first pass of a step stand still for that long, and say so on stdout
//	REINS_BUGS=bug,…         plant these bugs
func faults() protocol.Seams {
	s := protocol.Seams{Planted: map[protocol.Bug]bool{}}
	for _, b := range list("REINS_BUGS") {
		s.Planted[protocol.Bug(b)] = true
	}
	var at []func(protocol.Step, protocol.OperationID)
	if os.Getenv("REINS_CRASH") != "" {
		at = append(at, crash().pass)
	}
	for _, h := range list("REINS_HANG") {
		at = append(at, hang(h))
	}
	if len(at) > 0 {
		s.At = func(step protocol.Step, _ protocol.ResourceID, op protocol.OperationID) {
			for _, f := range at {
				f(step, op)
			}
		}
	}
	return s
}

func list(name string) []string {
	return strings.FieldsFunc(os.Getenv(name), func(c rune) bool { return c == ',' })
}

// crasher kills this process at a step.
type crasher struct {
	step        protocol.Step
	only        protocol.OperationID
	armed       string
	after, hold time.Duration

	mu   sync.Mutex
	left int // passes until the one that counts
}

func crash() *crasher {
	step, count, _ := strings.Cut(os.Getenv("REINS_CRASH"), ":")
	c := &crasher{step: protocol.Step(step), left: 1, only: protocol.OperationID(os.Getenv("REINS_CRASH_OP")), armed: os.Getenv("REINS_CRASH_ARMED"),
		after: duration("REINS_CRASH_AFTER"), hold: duration("REINS_CRASH_HOLD")}
	if count != "" {
		c.left, _ = strconv.Atoi(count)
	}
	return c
}

func duration(name string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(name))
	return d
}

func (c *crasher) pass(at protocol.Step, op protocol.OperationID) {
	if at != c.step || (c.only != "" && op != c.only) || !exists(c.armed) {
		return
	}
	c.mu.Lock()
	c.left--
	now := c.left == 0
	c.mu.Unlock()
	if !now {
		return
	}
	if c.after == 0 && c.hold == 0 {
		die()
	}
	time.AfterFunc(max(c.after, c.hold), die)
	if c.hold > 0 {
		select {} // nothing more of this goroutine may happen
	}
}

// exists reports whether a file is there; no file named counts as there.
func exists(file string) bool {
	if file == "" {
		return true
	}
	_, err := os.Stat(file)
	return err == nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // nothing more of this goroutine may happen
}

// hang holds up the first pass of a step.
func hang(what string) func(protocol.Step, protocol.OperationID) {
	where, how, _ := strings.Cut(what, "=")
	step, only, _ := strings.Cut(where, ":")
	long, _ := time.ParseDuration(how)
	var passed atomic.Bool
	return func(at protocol.Step, op protocol.OperationID) {
		if at != protocol.Step(step) || (only != "" && op != protocol.OperationID(only)) {
			return
		}
		if passed.CompareAndSwap(false, true) {
			fmt.Fprintln(os.Stdout, "hanging", step)
			<-time.After(long)
		}
	}
}
