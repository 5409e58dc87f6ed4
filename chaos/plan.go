package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"reins/protocol"
)

// Trigger is what makes a supervisor fence a target.
type Trigger string

// The triggers of a fence. The barrier is passed only where the target lives on.
const (
	ByRestart  Trigger = "restart"  // by request: the page lives on
	ByRenderer Trigger = "renderer" // its process is killed
	ByBrowser  Trigger = "browser"  // the browser is killed
)

// Plan is one run: the step at which the daemon is killed, and what it does then.
type Plan struct {
	Step protocol.Step
	Seed uint64
	// Method is what the operation under test does: click, type, batch, navigate.
	Method protocol.Method
	Nth    int
	// After and Hold: see [Faults]. With neither it dies at the very step.
	After, Hold time.Duration
	Fence       Trigger // for the steps of a fence
	// HoldPart is which part of the operation holds the page up while it is fenced.
	HoldPart int
	Queued   bool // another operation waits behind it
	Twice    bool // it is sent twice at once
	WarmUp   int  // operations before it
	Politely bool // the last daemon is stopped, not killed
	// Relapse is a step at which the daemon dies once more, when it comes back.
	Relapse protocol.Step
	Bugs    []protocol.Bug
}

// typed is what an operation under test types.
const typed = "halter"

// lateMost bounds the random time between a step and the kill.
const lateMost = 40 * time.Millisecond

// PlanFor makes the plan of a step and seed. Seed 0 is the plainest: a click,
// killed at the very step.
func PlanFor(step protocol.Step, seed uint64) Plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(step))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	p := Plan{Step: step, Seed: seed, Method: protocol.MethodClick, Nth: 1, WarmUp: 1 + rng.IntN(3), Queued: rng.IntN(2) == 0}
	if strings.HasPrefix(string(step), "fence_") {
		p.Fence = ByRestart
	}
	if seed == 0 {
		return p
	}
	p.Twice, p.Politely = rng.IntN(2) == 0, rng.IntN(2) == 0
	// Each method comes in four seeds, and the first of them differs from step to step.
	methods := []protocol.Method{protocol.MethodType, protocol.MethodBatch, protocol.MethodNavigate, protocol.MethodClick}
	p.Method = methods[(seed-1+h.Sum64()%3)%4]
	p.HoldPart = rng.IntN(len(p.parts()))
	switch rng.IntN(4) {
	case 0:
		p.After = time.Duration(1 + rng.Int64N(int64(lateMost)))
	case 1:
		p.Hold = time.Duration(1 + rng.Int64N(int64(lateMost)))
	}
	if p.Method == protocol.MethodBatch && (step == protocol.StepPressWritten || step == protocol.StepReleaseWritten || step == protocol.StepAcknowledged) {
		p.Nth = 1 + rng.IntN(len(p.parts())) // each primitive passes these
	}
	if p.Fence != "" && step != protocol.StepFenceBarrier {
		p.Fence = []Trigger{ByRenderer, ByBrowser, ByRestart}[rng.IntN(3)]
	}
	if rng.IntN(4) == 0 {
		p.Relapse = []protocol.Step{protocol.StepFencePersisted, protocol.StepFenceAttached}[rng.IntN(2)]
	}
	return p
}

// Name is what the run's page and operations are called by.
func (p Plan) Name() string { return fmt.Sprintf("%s-%d", p.Step, p.Seed) }

func (p Plan) String() string {
	s := fmt.Sprintf("%s seed %d: %s", p.Step, p.Seed, p.Method)
	if p.Nth > 1 {
		s += fmt.Sprintf(", pass %d", p.Nth)
	}
	if p.After > 0 {
		s += fmt.Sprintf(", killed %v after", p.After.Round(time.Millisecond))
	}
	if p.Hold > 0 {
		s += fmt.Sprintf(", held for %v and killed", p.Hold.Round(time.Millisecond))
	}
	if p.Fence != "" {
		s += ", fence by " + string(p.Fence)
	}
	if p.Relapse != "" {
		s += ", again at " + string(p.Relapse)
	}
	return s
}

// parts is what the ledger has of the operation when all of it happened.
func (p Plan) parts() []string { return partsFor(p.Method, typed) }

func partsFor(m protocol.Method, text string) []string {
	switch m {
	case protocol.MethodType:
		parts := make([]string, 0, len(text))
		for i, c := range text {
			parts = append(parts, fmt.Sprintf("%d%c", i+1, c))
		}
		return parts
	case protocol.MethodBatch:
		return []string{"a", "b", "c"}
	}
	return []string{""}
}

// Expected is what may be said of the operation under test in the end; nil: any
// answer that agrees with the ledger. "unknown" is no answer at all.
func (p Plan) Expected() []string {
	if p.After > 0 {
		return nil
	}
	switch p.Step {
	case protocol.StepAdmitBefore:
		return []string{"unknown"}
	case protocol.StepAdmitAfter, protocol.StepDispatch:
		return []string{string(protocol.StateCancelled)}
	case protocol.StepOutcomeAfter:
		return []string{string(protocol.StateApplied)}
	}
	if p.Fence != "" && p.Method != protocol.MethodClick {
		return []string{string(protocol.StateUncertain), string(protocol.StateFailed)}
	}
	return []string{string(protocol.StateUncertain)}
}

// Happened is how many parts of the operation under test the ledger has before it
// may be sent again. It holds the daemon to what
// each step means: a mark is set before the first byte, an acknowledgement comes
// after the last effect.
func (p Plan) Happened() (least, most int) {
	whole := len(p.parts())
	if p.After > 0 {
		return 0, whole
	}
	switch p.Step {
	case protocol.StepAdmitBefore, protocol.StepAdmitAfter, protocol.StepDispatch, protocol.StepMarked:
		return 0, 0
	case protocol.StepPressWritten:
		if p.Method == protocol.MethodClick {
			return 0, 0 // it takes a release
		}
	case protocol.StepAcknowledged:
		if p.Method == protocol.MethodBatch {
			return p.Nth, whole
		}
		return whole, whole
	case protocol.StepOutcomeBefore, protocol.StepOutcomeAfter:
		return whole, whole
	}
	if p.Fence != "" {
		return p.HoldPart + 1, whole
	}
	return 0, whole
}

// target is a locator for the button or field of a part of an operation.
func target(m protocol.Method, id protocol.OperationID, part string) protocol.Locator {
	if m == protocol.MethodType {
		return protocol.Locator{Label: string(id)}
	}
	return protocol.Locator{Role: "button", Name: Label(id, part)}
}

// arguments are those of an operation on a page of the ledger.
func (l *Ledger) arguments(c Call, page, text string) json.RawMessage {
	var a any
	at := func(part string) *protocol.Locator { w := target(c.Method, c.Operation, part); return &w }
	switch c.Method {
	case protocol.MethodType:
		a = protocol.TypeArguments{Locator: at(""), Text: text}
	case protocol.MethodNavigate:
		a = protocol.NavigateArguments{URL: l.Destination(page, string(c.Operation))}
	case protocol.MethodBatch:
		var list []protocol.Primitive
		for _, part := range c.Parts {
			one, _ := json.Marshal(protocol.ClickArguments{Locator: at(part)})
			list = append(list, protocol.Primitive{Method: protocol.MethodClick, Arguments: one})
		}
		a = protocol.BatchArguments{Primitives: list}
	case protocol.MethodClose:
		a = protocol.EmptyArguments{}
	default:
		a = protocol.ClickArguments{Locator: at("")}
	}
	raw, _ := json.Marshal(a) // of plain structs: it cannot fail
	return raw
}
