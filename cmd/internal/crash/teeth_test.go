package crash

import (
	"context"
	"strings"
	"testing"
	"time"

	"reins/chaos"
	"reins/protocol"
)

// Each planted bug must make its tier fail: a checker that never complains
// proves nothing. The bug no_sync needs a power cut, which package persistence
// simulates.

// bitten fails the test unless the run found a violation with these words.
func bitten(t *testing.T, r chaos.Result, words string) {
	t.Helper()
	if r.Err != nil {
		explain(t, r, "go test -run '^"+t.Name()+"$' -v ./cmd/internal/crash")
	}
	for _, v := range r.Violations {
		t.Logf("found: %s", v)
		if strings.Contains(v, words) {
			return
		}
	}
	explain(t, r, "go test -run '^"+t.Name()+"$' -v ./cmd/internal/crash")
	t.Errorf("%s: the planted bug was not found: no violation says %q", r.Name, words)
}

func TestTeethEffectBeforePersist(t *testing.T) {
	plan := chaos.Plan{Step: protocol.StepAdmitBefore, Seed: 9000, Method: protocol.MethodClick, Nth: 1, WarmUp: 1, Hold: 500 * time.Millisecond}
	l := newLedger(t)
	if r := run(t, l, plan); !r.OK() {
		explain(t, r, t.Name())
	}
	plan.Seed++
	plan.Bugs = []protocol.Bug{protocol.BugEffectBeforePersist}
	bitten(t, run(t, l, plan), "and the ledger has")
}

func TestTeethRetryUncertain(t *testing.T) {
	plan := chaos.Plan{Step: protocol.StepAcknowledged, Seed: 9000, Method: protocol.MethodClick, Nth: 1, WarmUp: 1, Bugs: []protocol.Bug{protocol.BugRetryUncertain}}
	bitten(t, run(t, newLedger(t), plan), "it happened twice")
}

// stray makes one run with something that hangs or goes on over a fence.
func stray(t *testing.T, l *chaos.Ledger, what string, bugs ...protocol.Bug) chaos.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	s := chaos.Strays[what]
	s.Bugs = bugs
	r := s.Run(ctx, process(t), l)
	t.Logf("%s → %s, in %v", r.Name, r.Said, r.Took.Round(100*time.Millisecond))
	return r
}

// TestStrays has operations hang or go on while their page is fenced, or they are
// cancelled.
func TestStrays(t *testing.T) {
	l := newLedger(t)
	for what := range chaos.Strays {
		if r := stray(t, l, what); !r.OK() {
			explain(t, r, t.Name())
		}
	}
}

func TestTeethPermitOnce(t *testing.T) {
	bitten(t, stray(t, newLedger(t), "cancel", protocol.BugPermitOnce), "it ran to its end")
}

// TestTeethFenceWithoutRevoke plants, besides, that the permit is asked only
// once: that alone must do no harm, since a fence revokes at the target, too.
func TestTeethFenceWithoutRevoke(t *testing.T) {
	l := newLedger(t)
	if r := stray(t, l, "revoke", protocol.BugPermitOnce); !r.OK() {
		explain(t, r, t.Name())
	}
	bitten(t, stray(t, l, "revoke", protocol.BugPermitOnce, protocol.BugFenceWithoutRevoke), "had opened")
}

func TestTeethLateOverwrites(t *testing.T) {
	bitten(t, stray(t, newLedger(t), "late", protocol.BugLateOverwrites), "its final receipt changed")
}

func TestTeethAdmissionLeftOpen(t *testing.T) {
	bitten(t, stray(t, newLedger(t), "admission", protocol.BugAdmissionLeftOpen), "had opened")
}
