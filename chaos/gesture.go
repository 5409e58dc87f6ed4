package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"reins/protocol"
)

// Crossing is one gesture on a busy page that is fenced in the middle of it.
type Crossing struct {
	Busy
	Name   string
	Hidden bool // another tab of its window is in front
	// Wait is how long the page has stood still when it is fenced.
	Wait time.Duration
}

// Crossed is what came of a crossing.
type Crossed struct {
	Result
	// Late is how many events of the gesture came after the fence had begun, but for
	// those by which the fence lets go what is held.
	Late int
	// Generation is the one that it ended in: 2, or more where the barrier was missed.
	Generation protocol.Generation
}

// typedLong is what is typed on a busy page.
const typedLong = "overlong text"

// Run opens the page in a system that runs, crosses it and checks what was said.
func (c Crossing) Run(ctx context.Context, client Client, l *Ledger) (r Crossed) {
	began := time.Now()
	role := func(s string) protocol.OperationID { return protocol.OperationID(c.Name + "-" + s) }
	c.Operation, c.Probe = role("t"), role("probe")
	w := newWorld(nil, l, c.Name, typedLong, Call{Operation: c.Operation, Method: c.Method}, click(string(c.Probe)),
		click(string(role("hide"))), Call{Operation: role("close"), Method: protocol.MethodClose})
	w.client = client
	var fenced time.Time
	defer func() {
		w.finish(&r.Result, c.Operation, 1)
		for _, e := range r.Entries {
			letGo := strings.HasPrefix(e.Part, "off ")
			if !fenced.IsZero() && e.Operation == string(c.Operation) && e.At.After(fenced) && !letGo {
				r.Late++
			}
		}
		if r.Late > 0 && r.Said != string(protocol.StateUncertain) {
			r.Violations = append(r.Violations, fmt.Sprintf("%s: %d of its events came after its fence had begun, and it is said to be %s", c.Operation, r.Late, r.Said))
		}
		r.Took, r.Generation = time.Since(began), w.gen
	}()
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	fenced, r.Err = c.cross(ctx, w)
	return r
}

func (c Crossing) cross(ctx context.Context, w *world) (fenced time.Time, err error) {
	if err := w.open(ctx, w.ledger.BusyPage(c.Name, c.Busy, c.Hidden)); err != nil {
		return fenced, err
	}
	if c.Hidden {
		if err := w.must(ctx, w.id("hide")); err != nil {
			return fenced, err
		}
		if err := w.ledger.await(ctx, func() bool { return w.ledger.hits["front "+c.Name] > 0 }); err != nil {
			return fenced, fmt.Errorf("no other tab came in front of the page: %w", err)
		}
	}
	t, err := w.token(ctx)
	if err != nil {
		return fenced, err
	}
	whole := w.h.Break("the page is fenced while it stands still")
	var waiting sync.WaitGroup
	defer waiting.Wait()
	r := w.request(c.Operation, t)
	r.Arguments = c.arguments()
	waiting.Go(func() { w.do(ctx, r) })
	if err := w.ledger.Still(ctx, c.Name); err != nil {
		return fenced, err
	}
	if err := pause(ctx, c.Wait); err != nil {
		return fenced, err
	}
	fenced = time.Now()
	if err := w.client.Restart(ctx, w.page); err != nil {
		return fenced, fmt.Errorf("restarting the page: %w", err)
	}
	if err := w.back(ctx); err != nil {
		return fenced, err
	}
	whole()
	waiting.Wait()
	if err := w.must(ctx, c.Probe); err != nil {
		return fenced, err
	}
	if err := w.askAll(ctx); err != nil {
		return fenced, err
	}
	return fenced, w.must(ctx, w.id("close"))
}

// arguments are those of the gesture.
func (c Crossing) arguments() json.RawMessage {
	at := func(role, name string) *protocol.Locator {
		return &protocol.Locator{Role: role, Name: name, Frame: c.Frame()}
	}
	var a any
	switch c.Method {
	case protocol.MethodDrag:
		a = protocol.DragArguments{Locator: at("img", c.From()), ToLocator: at("img", c.To())}
	case protocol.MethodType:
		a = protocol.TypeArguments{Locator: at("textbox", string(c.Operation)), Text: typedLong}
	default:
		a = protocol.ClickArguments{Locator: at("button", string(c.Operation))}
	}
	raw, _ := json.Marshal(a) // of plain structs: it cannot fail
	return raw
}
