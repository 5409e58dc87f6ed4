package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"reins/protocol"
)

// Stray is a run in which something of an old generation hangs or goes on while
// the page is fenced, and acts when the next generation is open; or something goes
// on that was cancelled. In the end the daemon is killed, so that what it had
// stored is compared, too.
type Stray struct {
	Title  string
	Method protocol.Method
	Text   string // what it types
	// Slow is how long each report of the operation takes, so that it lasts.
	Slow time.Duration
	// Reports is how many reports there are before the page is fenced. With 0 it
	// is fenced when the first hang holds.
	Reports int
	Hangs   []Hang // of the operation under test
	// Linger is how long after the operation's answer something of it still hangs.
	Linger time.Duration
	// Cancel: it is cancelled, and nothing is fenced.
	Cancel bool
	// Blind: it is sent without an observation, which the fence would outdate.
	Blind bool
	Bugs  []protocol.Bug
}

// Strays are the runs of this kind, by what each would show: that the permit is
// asked again and again, that the target is revoked, that a late result changes
// nothing, and that admission is closed.
var Strays = map[string]Stray{
	"cancel": {Title: "cancel", Method: protocol.MethodType, Text: strings.Repeat("overlong", 12), Slow: 25 * time.Millisecond, Reports: 8, Cancel: true},
	"revoke": {Title: "revoke", Method: protocol.MethodType, Text: strings.Repeat("overlong", 24), Slow: 25 * time.Millisecond, Reports: 8},
	"late": {Title: "late", Method: protocol.MethodClick, Linger: 2500 * time.Millisecond, Hangs: []Hang{
		{Step: protocol.StepAcknowledged, For: 2500 * time.Millisecond},
		{Step: protocol.StepOutcomeBefore, For: 2500 * time.Millisecond},
	}},
	"admission": {Title: "admission", Method: protocol.MethodNavigate, Blind: true, Hangs: []Hang{{Step: protocol.StepAdmitAfter, For: 4 * time.Second}}},
}

// Run makes the run.
func (s Stray) Run(ctx context.Context, sys System, l *Ledger) (r Result) {
	began := time.Now()
	name := "stray-" + s.Title
	for _, b := range s.Bugs {
		name += "-" + string(b)
	}
	calls := []Call{{Operation: protocol.OperationID(name + "-t"), Method: s.Method, Parts: partsFor(s.Method, s.Text)}, click(name + "-w"), click(name + "-probe")}
	w := newWorld(sys, l, name, s.Text, calls...)
	url := l.Page(name, calls...)
	defer func() {
		w.disconnect()
		sys.Kill()
		w.finish(&r, w.id("t"), 2)
		r.Took = time.Since(began)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	r.Err = s.run(ctx, w, url)
	return r
}

func (s Stray) run(ctx context.Context, w *world, url string) error {
	f := Faults{Bugs: s.Bugs, Hangs: append([]Hang(nil), s.Hangs...)}
	for i := range f.Hangs {
		f.Hangs[i].Operation = w.id("t")
	}
	if err := w.start(ctx, f); err != nil {
		return err
	}
	if err := w.open(ctx, url); err != nil {
		return err
	}
	if err := w.must(ctx, w.id("w")); err != nil {
		return err
	}
	if err := s.act(ctx, w); err != nil {
		return err
	}
	whole := w.h.Break("the daemon is killed")
	w.disconnect()
	w.sys.Kill()
	if _, err := w.ended(ctx); err != nil {
		return err
	}
	whole()
	if err := w.start(ctx, Faults{Bugs: s.Bugs}); err != nil {
		return err
	}
	if err := w.askAll(ctx); err != nil {
		return err
	}
	if err := w.back(ctx); err != nil {
		return err
	}
	w.disconnect()
	w.sys.Kill()
	_, err := w.ended(ctx)
	return err
}

// act has the page fenced, or the operation cancelled, in the middle of it, and
// waits until everything that hung is over.
func (s Stray) act(ctx context.Context, w *world) error {
	t, err := w.token(ctx)
	if err != nil {
		return err
	}
	if s.Blind {
		t = ""
	}
	w.ledger.Slow(string(w.id("t")), s.Slow)
	whole := w.h.Break("the operation is cut in the middle")
	var waiting sync.WaitGroup
	defer waiting.Wait()
	r := w.request(w.id("t"), t)
	waiting.Go(func() { w.do(ctx, r) })
	if err := s.inTheMiddle(ctx, w); err != nil {
		return err
	}
	if err := s.cut(ctx, w); err != nil {
		return err
	}
	whole()
	if err := w.must(ctx, w.id("probe")); err != nil {
		w.h.Note("%v", err) // what strays may be in its way; the checker says so
	}
	waiting.Wait()
	if err := pause(ctx, s.Linger); err != nil {
		return err
	}
	return w.askAll(ctx)
}

func (s Stray) cut(ctx context.Context, w *world) error {
	if s.Cancel {
		w.h.Cancelling(w.id("t"))
		rc, err := w.client.Cancel(ctx, w.id("t"))
		if err != nil {
			return fmt.Errorf("cancelling: %w", err)
		}
		w.h.Tell(w.id("t"), true, rc)
		return nil
	}
	if err := w.client.Restart(ctx, w.page); err != nil {
		return fmt.Errorf("restarting the page: %w", err)
	}
	w.h.Note("asked for a restart")
	return w.back(ctx)
}

// inTheMiddle waits until the operation is where it is to be fenced.
func (s Stray) inTheMiddle(ctx context.Context, w *world) error {
	if s.Reports > 0 {
		if err := w.ledger.Until(ctx, string(w.id("t")), s.Reports); err != nil {
			return fmt.Errorf("%s did not get under way: %w", w.id("t"), err)
		}
		return nil
	}
	return w.sys.Hanging(ctx)
}
