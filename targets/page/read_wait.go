package page

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"reins/protocol"
)

// recheckEvery is the longest time between two looks while waiting: what a field
// holds changes without a change of the DOM.
const recheckEvery = 100 * time.Millisecond

func (p *incarnation) readWait(ctx context.Context, raw json.RawMessage) protocol.ReadReply {
	var a protocol.WaitArguments
	if pr := decodeRead(raw, &a); pr != nil {
		return protocol.ReadReply{Problem: pr}
	}
	set := 0
	for _, is := range []bool{a.Text != "", a.Locator != nil, a.URL != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return protocol.ReadReply{Problem: problem(protocol.ReasonBadArguments, "exactly one of text, locator and url is needed")}
	}
	if s := p.secrets(); s.has(a.Text) || s.has(a.URL) {
		return protocol.ReadReply{Problem: problem(protocol.ReasonSensitive, "what is waited for contains a secret of the page and is not looked for")}
	}
	v, pr := p.wait(ctx, a)
	if pr != nil {
		return protocol.ReadReply{Problem: pr}
	}
	page := p.pageNow()
	page.Settled = !page.Loading && page.Dialog == nil
	v.Page = &page
	v.Message = p.secrets().scrub(v.Message)
	return protocol.ReadReply{Verdict: v}
}

// wait looks until it is so, the deadline passes or a dialog opens.
func (p *incarnation) wait(ctx context.Context, a protocol.WaitArguments) (*protocol.Verdict, *protocol.Problem) {
	scoped, end := p.untilDialog(ctx)
	defer end()
	for {
		changed := p.navSignal()
		there, err := p.there(scoped, a)
		if err != nil && a.Locator != nil {
			if pr, ok := err.(*protocol.Problem); ok && pr.Reason == protocol.ReasonBadArguments {
				return nil, pr
			}
		}
		if err == nil && there != a.Gone {
			return &protocol.Verdict{Holds: true}, nil
		}
		if v := p.waitOver(ctx, scoped, a); v != nil {
			return v, nil
		}
		p.nextChange(scoped, changed)
	}
}

// waitOver says why the waiting ended; nil while it goes on.
func (p *incarnation) waitOver(ctx, scoped context.Context, a protocol.WaitArguments) *protocol.Verdict {
	select {
	case <-p.ended():
		return &protocol.Verdict{Reason: protocol.ReasonRestoring, Message: "the page is coming back after a fault; observe, then wait again"}
	default:
	}
	switch {
	case p.dialog() != nil && (ctx.Err() != nil || a.URL == ""):
		return &protocol.Verdict{Reason: protocol.ReasonDialogOpen, Message: p.dialogProblem().Message}
	case scoped.Err() != nil && ctx.Err() == nil && a.URL == "":
		return &protocol.Verdict{Reason: protocol.ReasonDialogOpen, Message: "a dialog opened meanwhile; look and wait again"}
	case ctx.Err() != nil:
		what := "it did not appear within the deadline"
		if a.Gone {
			what = "it was still there at the deadline"
		}
		return &protocol.Verdict{Reason: protocol.ReasonWaitTimeout, Message: what}
	}
	return nil
}

// there reports whether what is waited for is there now.
func (p *incarnation) there(ctx context.Context, a protocol.WaitArguments) (bool, error) {
	switch {
	case a.URL != "":
		return strings.Contains(p.nav().url, a.URL), nil
	case a.Text != "":
		return p.shows(ctx, a.Text, false)
	}
	n, err := p.count(ctx, *a.Locator)
	return n > 0, err
}

// shows reports whether words are visible in any frame, as a part of what an
// element says or as the whole of it.
func (p *incarnation) shows(ctx context.Context, words string, whole bool) (bool, error) {
	var first error
	for _, f := range p.frames() {
		one, cancel := f.patience(ctx)
		var yes bool
		err := f.world(one, "shows", &yes, words, whole)
		cancel()
		if err == nil && yes && !f.main {
			_, err = f.toMain(ctx) // a frame that is not shown shows nothing
		}
		if err == nil && yes {
			return true, nil
		}
		if err != nil && f.main {
			first = err
		}
	}
	return false, first
}

// count is how many visible elements a locator matches.
func (p *incarnation) count(ctx context.Context, l protocol.Locator) (int, error) {
	answers, pr := p.search(ctx, l, "")
	if pr != nil {
		if pr.Reason == protocol.ReasonStaleRef || pr.Reason == protocol.ReasonNotFound {
			return 0, nil
		}
		return 0, pr
	}
	n := 0
	for _, a := range answers {
		if a.Bad != "" {
			return 0, problem(protocol.ReasonBadArguments, "css: %q: %s", l.CSS, a.Bad)
		}
		if a.err != nil || a.Visible == 0 {
			continue
		}
		if _, err := a.frame.toMain(ctx); err == nil {
			n += a.Visible
		}
	}
	return n, nil
}

// nextChange ends at the next change of any document, of the main frame's state,
// or soon.
func (p *incarnation) nextChange(ctx context.Context, nav <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, recheckEvery)
	defer cancel()
	var all sync.WaitGroup
	for _, f := range p.frames() {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if r := recover(); r != nil {
					p.host.opts.Logger.Error("panic while waiting for a frame to change", "panic", fmt.Sprint(r))
				}
			}()
			if f.world(ctx, "change", nil, recheckEvery.Milliseconds()) == nil {
				cancel()
			}
		}()
	}
	select {
	case <-nav:
		cancel()
	case <-ctx.Done():
	}
	all.Wait()
}
