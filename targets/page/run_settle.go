package page

import (
	"context"
	"errors"
	"time"

	"reins/protocol"
)

// The bounds of settling.
const (
	quietDOM   = 60 * time.Millisecond  // without a change of the DOM
	settleMost = 500 * time.Millisecond // for one document
	loadBound  = 4 * time.Second        // for a document to load
	// downloadBegins is how long after a click a download may begin.
	downloadBegins = 10 * time.Second
	stepMost       = 2 * time.Second // for an element to rest, a value to be read
)

// rest is what every method does after its input was answered.
func (r *run) rest() {
	r.seam(protocol.StepAcknowledged)
	r.atRest = r.settled()
}

// settled waits until the page is at rest, within bounds, and says whether it is.
// A dialog ends it: the page then stands still for another reason.
func (r *run) settled() bool {
	t0 := time.Now()
	defer func() { r.out.SettleUS += time.Since(t0).Microseconds() }()
	// At most twice: a click can lead to a new document, which settles as well.
	for range 2 {
		f := r.p.mainFrame()
		if f == nil || r.p.dialog() != nil {
			return false
		}
		var quiet bool
		one, cancel := context.WithTimeout(r.ctx, settleMost+stepMost)
		err := f.world(one, "settle", &quiet, quietDOM.Milliseconds(), settleMost.Milliseconds())
		cancel()
		if r.ctx.Err() != nil {
			return false
		}
		n := r.p.nav()
		moved := n.document != r.navAt.document || r.p.navigations() != r.navs
		if !moved && (!n.loading || r.navAt.loading) {
			return err == nil && quiet && !n.loading
		}
		if !n.loading && err == nil {
			return quiet
		}
		if !r.p.loaded(r.ctx, loadBound) {
			return false
		}
		r.navAt.loading = r.p.nav().loading
	}
	return true
}

// loaded waits, at most that long, until the main frame has loaded. False: it
// goes on loading, or a dialog opened.
func (p *incarnation) loaded(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		changed := p.navSignal()
		if p.dialog() != nil {
			return false
		}
		if !p.nav().loading {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-p.ended():
			return false
		case <-timer.C:
			return false
		}
	}
}

// conclude adds what the page is like now. ctx is the operation's own context.
func (r *run) conclude(ctx context.Context) {
	p := r.p
	if !r.began.IsZero() && r.ended.After(r.began) {
		r.out.InputUS = r.ended.Sub(r.began).Microseconds()
	}
	r.out.Unanswered = r.lost
	if r.lost {
		r.out.State, r.out.ObserveRequired = protocol.StateUncertain, true
		if r.out.Reason == "" {
			r.out.Reason, r.out.Message = protocol.ReasonAnswerLost, "input was given and its answer never came; observe"
		}
		r.out.Effect = ""
	}
	page := p.pageNow()
	page.Settled = r.atRest && page.Dialog == nil
	r.out.Page = &page
	r.out.Navigated = p.navigations() != r.navs
	r.out.Geometry = p.knownGeometry()
	if page.Dialog == nil && !r.lost && ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, stepMost)
		defer cancel()
		if g, err := p.measure(one); err == nil {
			r.out.Geometry = g.String()
			g.onto(r.out.Page, p.secrets(), p.mainFrame())
		} else if errors.Is(err, errFrameGone) || errors.Is(err, errNoDocument) {
			r.out.Geometry = "" // the next token carries no coordinates
		}
	}
	r.out.Message = p.secrets().scrub(r.out.Message)
	if r.out.ActualValue != nil && p.secrets().has(*r.out.ActualValue) {
		r.out.ActualValue = nil
	}
}

// pageNow is the state of the page without its secrets.
func (p *incarnation) pageNow() protocol.Page {
	n := p.nav()
	s := p.secrets()
	return protocol.Page{
		URL: s.scrub(cleanURL(n.url)), Title: clip(s.scrub(n.title), maxTitle), HTTPStatus: n.status, Loading: n.loading,
		Document: n.document, Dialog: p.openDialog(),
	}
}
