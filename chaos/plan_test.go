package chaos

import (
	"strings"
	"testing"

	"reins/protocol"
)

// A plan follows from its step and seed, and the seeds reach every variation.
func TestPlans(t *testing.T) {
	var all []Plan
	for _, step := range protocol.Steps {
		for seed := range uint64(20) {
			p := PlanFor(step, seed)
			if again := PlanFor(step, seed); again.String() != p.String() || again.Queued != p.Queued || again.WarmUp != p.WarmUp {
				t.Errorf("%s seed %d: two plans: %v and %v", step, seed, p, again)
			}
			if seed == 0 && (p.After+p.Hold != 0 || p.Method != protocol.MethodClick || p.Nth != 1) {
				t.Errorf("%s seed 0 is not the plainest: %v", step, p)
			}
			if (p.Fence != "") != strings.HasPrefix(string(step), "fence_") {
				t.Errorf("%v: a fence for another step, or none", p)
			}
			if step == protocol.StepFenceBarrier && p.Fence != ByRestart {
				t.Errorf("%v: a page that is made anew passes no barrier", p)
			}
			if least, most := p.Happened(); least > most || most > len(p.parts()) {
				t.Errorf("%v: %d to %d of %d parts", p, least, most, len(p.parts()))
			}
			all = append(all, p)
		}
	}
	for what, is := range map[string]func(Plan) bool{
		"type":     func(p Plan) bool { return p.Method == protocol.MethodType },
		"batch":    func(p Plan) bool { return p.Method == protocol.MethodBatch },
		"navigate": func(p Plan) bool { return p.Method == protocol.MethodNavigate },
		"after":    func(p Plan) bool { return p.After > 0 },
		"hold":     func(p Plan) bool { return p.Hold > 0 },
		"twice":    func(p Plan) bool { return p.Twice },
		"queued":   func(p Plan) bool { return p.Queued },
		"politely": func(p Plan) bool { return p.Politely },
		"pass":     func(p Plan) bool { return p.Nth > 1 },
		"relapse":  func(p Plan) bool { return p.Relapse != "" },
		"renderer": func(p Plan) bool { return p.Fence == ByRenderer },
		"browser":  func(p Plan) bool { return p.Fence == ByBrowser },
	} {
		found := 0
		for _, p := range all {
			if is(p) {
				found++
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d of %d plans", what, found, len(all))
		}
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	s.Add("marked", Result{Said: "uncertain", Happened: 1})
	s.Add("marked", Result{Said: "applied", Duplicates: 1, Violations: []string{"a", "b"}, Orphans: 3, Err: protocolError{}})
	s.Add("dispatch", Result{Said: "cancelled"})
	var b strings.Builder
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range map[int]string{
		1: "marked 2 0 0 1 0 1 1 1 2 3 1 0",
		2: "dispatch 1 0 1 0 0 0 0 0 0 0 0 0",
		3: "all 3 0 1 1 0 1 1 1 2 3 1 0",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

type protocolError struct{}

func (protocolError) Error() string { return "broken" }
