package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"reins/protocol"
)

// held is how long a page is held up while it is fenced: longer than an answer is
// waited for then, so that the outcome is decided without it.
const held = 1200 * time.Millisecond

// Run breaks the system as planned and checks what it says of that:
//
//  1. warm up;
//  2. send the operation under test, and for a step of a fence have the page
//     fenced in the middle of it; the daemon dies;
//  3. see that nothing of it is left, and start it again; in some plans it dies
//     once more while it comes back;
//  4. ask for the receipts, send the same again, see that the page works, ask again;
//  5. end the daemon once more, and compare everything with the ledger.
func Run(ctx context.Context, sys System, l *Ledger, p Plan) (r Result) {
	began := time.Now()
	calls := []Call{{Operation: "t", Method: p.Method, Parts: p.parts(), Batch: p.Method == protocol.MethodBatch}, click("q"), click("probe")}
	for i := range p.WarmUp {
		calls = append(calls, click(fmt.Sprint("w", i)))
	}
	for i := range calls {
		calls[i].Operation = protocol.OperationID(p.Name() + "-" + string(calls[i].Operation))
	}
	w := newWorld(sys, l, p.Name(), typed, calls...)
	url := l.Page(p.Name(), calls...)
	defer func() {
		w.disconnect()
		sys.Kill()
		w.finish(&r, w.id("t"), p.WarmUp+2)
		if want := p.Expected(); r.Err == nil && want != nil && !slices.Contains(want, r.Said) {
			r.Violations = append(r.Violations, fmt.Sprintf("%s: killed at %s it is said to be %s, and should be one of %v", w.id("t"), p.Step, r.Said, want))
		}
		r.Took = time.Since(began)
	}()
	r.Err = p.run(ctx, w, url, &r)
	return r
}

func click(role string) Call {
	return Call{Operation: protocol.OperationID(role), Method: protocol.MethodClick, Parts: []string{""}}
}

func (p Plan) run(ctx context.Context, w *world, url string, r *Result) error {
	f := Faults{Crash: p.Step, Nth: p.Nth, After: p.After, Hold: p.Hold, Bugs: p.Bugs}
	if p.Fence == "" {
		f.Operation = w.id("t")
	}
	if err := p.begin(ctx, w, url, f); err != nil {
		return err
	}
	if err := p.die(ctx, w); err != nil {
		return err
	}
	var err error
	if r.Orphans, err = w.ended(ctx); err != nil {
		return err
	}
	r.Happened = w.happened(w.id("t"))
	if least, most := p.Happened(); r.Happened < least || r.Happened > most {
		r.Violations = append(r.Violations, fmt.Sprintf("%s: killed at %s the ledger has %d parts of it, and should have %d to %d", w.id("t"), p.Step, r.Happened, least, most))
	}
	if p.Relapse != "" {
		if err := p.relapse(ctx, w, r); err != nil {
			return err
		}
	}
	if err := p.resume(ctx, w, r); err != nil {
		return err
	}
	if p.Politely {
		if err := w.sys.Stop(ctx); err != nil {
			return fmt.Errorf("stopping the daemon: %w", err)
		}
	} else {
		w.sys.Kill()
	}
	r.Orphans, err = w.ended(ctx)
	return err
}

// begin warms up.
func (p Plan) begin(ctx context.Context, w *world, url string, f Faults) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.start(ctx, f); err != nil {
		return err
	}
	if err := w.open(ctx, url); err != nil {
		return err
	}
	for i := range p.WarmUp {
		if err := w.must(ctx, w.id(fmt.Sprint("w", i))); err != nil {
			return err
		}
	}
	return nil
}

// die sends the operation under test and waits for the daemon's death.
func (p Plan) die(ctx context.Context, w *world) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := w.token(ctx)
	if err != nil {
		return err
	}
	var stop *Held
	if p.Fence != "" {
		stop = w.ledger.Hold(string(w.id("t")), p.parts()[p.HoldPart], held)
		defer stop.Release()
	} else if err := w.sys.Arm(); err != nil {
		return err
	}
	broken := func() {}
	if p.Fence == "" {
		broken = w.h.Break("the daemon is about to be killed at " + string(p.Step))
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	send := func(id protocol.OperationID) {
		r := w.request(id, t)
		waiting.Go(func() { w.do(ctx, r) })
	}
	send(w.id("t"))
	if p.Twice {
		send(w.id("t"))
	}
	if p.Queued {
		send(w.id("q"))
	}
	if p.Fence != "" {
		if broken, err = p.fence(ctx, w, stop); err != nil {
			return err
		}
	}
	select {
	case <-w.sys.Died():
	case <-ctx.Done():
		return fmt.Errorf("the daemon did not die at %s: the step was not passed", p.Step)
	}
	w.h.Note("the daemon is dead")
	broken()
	waiting.Wait()
	w.disconnect()
	return nil
}

// fence waits until the operation under test holds the page up, and has it fenced.
func (p Plan) fence(ctx context.Context, w *world, stop *Held) (func(), error) {
	select {
	case <-stop.Reached:
	case <-ctx.Done():
		return nil, errors.New("the operation under test did not reach the page")
	}
	if err := w.sys.Arm(); err != nil {
		return nil, err
	}
	broken := w.h.Break("the page is fenced by " + string(p.Fence) + ", and the daemon killed at " + string(p.Step))
	var err error
	switch p.Fence {
	case ByRenderer:
		err = w.sys.KillRenderers()
	case ByBrowser:
		err = w.sys.KillBrowser()
	default:
		// The daemon may die before it has answered.
		if err = w.client.Restart(ctx, w.page); err != nil {
			w.h.Note("restart: %v", err)
			err = nil
		}
	}
	return broken, err
}

// relapse has the daemon die once more while the page comes back, perhaps before
// it serves.
func (p Plan) relapse(ctx context.Context, w *world, r *Result) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.sys.Start(ctx, Faults{Crash: p.Relapse, Armed: true, Bugs: p.Bugs}); err != nil {
		w.h.Note("again: %v", err)
	}
	select {
	case <-w.sys.Died():
	case <-ctx.Done():
		return fmt.Errorf("the daemon did not die again at %s", p.Relapse)
	}
	w.h.Note("the daemon is dead again, killed at %s", p.Relapse)
	var err error
	r.Orphans, err = w.ended(ctx)
	return err
}

// resume starts the daemon again and asks it about everything.
func (p Plan) resume(ctx context.Context, w *world, r *Result) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.start(ctx, Faults{Bugs: p.Bugs}); err != nil {
		return err
	}
	if err := w.askAll(ctx); err != nil { // also while the page is still coming back
		return err
	}
	r.Said = w.said(w.id("t"))
	if err := w.back(ctx); err != nil {
		return err
	}
	if err := w.again(ctx, w.id("t")); err != nil {
		return err
	}
	if err := w.must(ctx, w.id("probe")); err != nil {
		return err
	}
	return w.askAll(ctx)
}

// again sends the same once more, as a caller does who got no answer. What is
// known is answered by its receipt. What is unknown is refused for its
// generation, and runs when it is sent for the one there is now.
func (w *world) again(ctx context.Context, id protocol.OperationID) error {
	w.mu.Lock()
	same := w.sent[id]
	w.mu.Unlock()
	rc, ok := w.do(ctx, same)
	if !ok {
		return fmt.Errorf("sending %s again: no answer", id)
	}
	if rc.State != protocol.StateRefused {
		return nil
	}
	if _, known := w.h.Final(id); known {
		return nil // the checker says what is wrong with that
	}
	w.h.Note("%s is not known, and sent anew", id)
	if err := w.must(ctx, id); err != nil {
		return fmt.Errorf("unknown before: %w", err)
	}
	return nil
}
