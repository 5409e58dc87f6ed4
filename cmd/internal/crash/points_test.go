package crash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"reins/chaos"
	"reins/protocol"
)

// runWithin bounds one run.
const runWithin = 3 * time.Minute

// TestCrashPoints kills the daemon at every step of a write and of a fence.
func TestCrashPoints(t *testing.T) {
	seeds := number(t, "REINS_CHAOS_SEEDS", 2)
	l := newLedger(t)
	var sum chaos.Summary
	for _, step := range protocol.Steps {
		if only := os.Getenv("REINS_CHAOS_STEP"); only != "" && only != string(step) {
			continue
		}
		for seed := range seeds {
			if only := number(t, "REINS_CHAOS_SEED", -1); only >= 0 {
				if seed > 0 {
					break
				}
				seed = only
			}
			plan := chaos.PlanFor(step, uint64(seed))
			r := run(t, l, plan)
			sum.Add(string(step), r)
			if !r.OK() {
				explain(t, r, fmt.Sprintf("REINS_CHAOS_STEP=%s REINS_CHAOS_SEED=%d go test -race -count=1 -run '^TestCrashPoints$' -v ./cmd/internal/crash", step, seed))
			}
		}
	}
	var b strings.Builder
	if err := sum.Print(&b); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", b.String())
}

// run makes one run on a daemon of its own and prints its line.
func run(t *testing.T, l *chaos.Ledger, plan chaos.Plan) chaos.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	r := chaos.Run(ctx, process(t), l, plan)
	t.Logf("%s → %s, in %v", plan, r.Said, r.Took.Round(100*time.Millisecond))
	return r
}
