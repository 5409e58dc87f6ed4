//go:build reinsfaults

package daemon

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"reins/protocol"
)

// faults reads the faults of a test build from the environment:
//
//	REINS_CRASH=step[:n]  SIGKILL this process when the step is passed for the n-th time (default 1)
//	REINS_CRASH_OP=id     count only passes of this operation
//	REINS_BUGS=bug,…      plant these bugs
func faults() protocol.Seams {
	s := protocol.Seams{Planted: map[protocol.Bug]bool{}}
	for b := range strings.SplitSeq(os.Getenv("REINS_BUGS"), ",") {
		if b != "" {
			s.Planted[protocol.Bug(b)] = true
		}
	}
	step, count, _ := strings.Cut(os.Getenv("REINS_CRASH"), ":")
	if step == "" {
		return s
	}
	n := int64(1)
	if count != "" {
		n, _ = strconv.ParseInt(count, 10, 64)
	}
	only := protocol.OperationID(os.Getenv("REINS_CRASH_OP"))
	var passed atomic.Int64
	s.At = func(at protocol.Step, _ protocol.ResourceID, op protocol.OperationID) {
		if at != protocol.Step(step) || (only != "" && op != only) {
			return
		}
		if passed.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more of this goroutine may happen
		}
	}
	return s
}
