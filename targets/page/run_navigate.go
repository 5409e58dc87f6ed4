package page

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

const (
	// commitLag is how long after the browser's answer its own events may still come.
	commitLag = time.Second
	// errorPage is how long the browser's error page may take to stand there and say why.
	errorPage = time.Second
	// unnamedFailure is the browser's word until its error page has a better one.
	unnamedFailure = "net::ERR_FAILED"
	// stopWait is kept of the deadline, to stop a navigation that nobody answers.
	stopWait = 700 * time.Millisecond
)

// navigate loads a URL and waits, within bounds, until it is there.
func (r *run) navigate() (step, error) {
	downloads, cancel := r.p.host.downloads(r.p)
	defer cancel()
	pend, err := r.start(cdproto.CommandPageNavigate, &cdpage.NavigateParams{URL: r.pre.url})
	if err != nil {
		return step{}, err
	}
	r.firstWritten()
	r.lastWritten()
	var res cdpage.NavigateResult
	answered, stop := r.beforeDeadline()
	err = pend.Wait(answered, &res)
	stop()
	r.ended = time.Now()
	committed := func() bool { return r.p.nav().document == string(res.LoaderID) }
	switch {
	case err == nil && res.ErrorText == "":
		return r.arrived(func() bool { return res.LoaderID == "" || committed() })
	case err == nil:
		s := r.refusedBy(res.ErrorText, res.IsDownload, downloads)
		if s.state == protocol.StateFailed && res.LoaderID != "" {
			// The browser's error page takes the document's place a little later.
			err = r.until(errorPage, func() bool { return committed() && !r.p.nav().loading })
		}
		return s, err
	case dialogCut(r.ctx, err):
		// The page asks whether it may be left, or already speaks while it loads.
		s := applied(protocol.EffectDispatched)
		s.reason, s.message = protocol.ReasonDialogOpen, r.p.dialogProblem().Message
		return s, nil
	case cdp.Unanswered(err) && answered.Err() != nil:
		return r.stopLoading(err)
	}
	if cdp.Unanswered(err) {
		r.lost = true
	}
	return step{}, err
}

// beforeDeadline is a context that ends early enough to stop what is under way.
func (r *run) beforeDeadline() (context.Context, context.CancelFunc) {
	if d, ok := r.ctx.Deadline(); ok {
		return context.WithDeadline(r.ctx, d.Add(-stopWait))
	}
	return context.WithTimeout(r.ctx, protocol.NavigateDeadline-stopWait)
}

// stopLoading ends a navigation that no server answers. Where the browser
// confirms that it stopped, nothing more can come of it.
func (r *run) stopLoading(cause error) (step, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), stopWait)
	defer cancel()
	if err := r.p.sess.Call(ctx, cdproto.CommandPageStopLoading, nil, nil); err != nil {
		r.lost = r.lost || cdp.Unanswered(err) || cdp.NotWritten(err)
		return step{}, cause
	}
	if r.ctx.Err() == context.Canceled {
		return step{}, context.Cause(r.ctx)
	}
	s := failed(protocol.ReasonNavigationSlow, "the server did not answer within the deadline; the attempt was stopped")
	s.effect = protocol.EffectNone
	return s, nil
}

// arrived waits for the document that a navigation leads to, then until it has
// loaded and rests. A page that goes on loading says so.
func (r *run) arrived(there func() bool) (step, error) {
	if err := r.until(commitLag, there); err != nil {
		return step{}, err
	}
	r.seam(protocol.StepAcknowledged)
	t0 := time.Now()
	loaded := r.p.loaded(r.ctx, loadBound)
	r.out.SettleUS += time.Since(t0).Microseconds()
	if there() && r.p.nav().failed != "" {
		// What stands there is the browser's error page, which tells why.
		told := func() bool { return r.p.nav().failed != unnamedFailure }
		if err := r.until(errorPage, told); err != nil {
			return step{}, err
		}
		return r.refusedBy(r.p.nav().failed, false, nil), nil
	}
	if loaded {
		r.atRest = r.settled()
	}
	return applied(protocol.EffectConfirmed), nil
}

// until waits until the state of the main frame is as wanted, a dialog opens or
// the time is over; all three are no error.
func (r *run) until(most time.Duration, ok func() bool) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		changed := r.p.navSignal()
		if ok() || r.p.dialog() != nil {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-r.p.ended():
			return cdp.ErrDetached
		case <-r.ctx.Done():
			if r.p.dialog() != nil {
				return nil
			}
			return context.Cause(r.ctx)
		}
	}
}

// refusedBy turns the browser's word for a failed navigation into an outcome.
func (r *run) refusedBy(word string, download bool, downloads <-chan *download) step {
	if strings.Contains(word, "ERR_ABORTED") && (download || began(downloads)) {
		s := applied(protocol.EffectConfirmed)
		s.reason, s.message = protocol.ReasonDownloadStarted, "the address delivered a file instead of a page; the page stays as it was"
		return s
	}
	reason := navigationReason(word)
	s := failed(reason, "%s (%s)", reason.Sentence(), word)
	s.effect, s.observe = protocol.EffectNone, false
	return s
}

func began(downloads <-chan *download) bool {
	select {
	case _, ok := <-downloads:
		return ok
	default:
		return false
	}
}

func navigationReason(word string) protocol.Reason {
	switch {
	case strings.Contains(word, "ERR_NAME_NOT_RESOLVED"), strings.Contains(word, "ERR_NAME_RESOLUTION_FAILED"):
		return protocol.ReasonNameNotResolved
	case strings.Contains(word, "ERR_CONNECTION_REFUSED"):
		return protocol.ReasonConnRefused
	case strings.Contains(word, "ERR_CERT_"), strings.Contains(word, "ERR_SSL_"):
		return protocol.ReasonCertificate
	case strings.Contains(word, "ERR_CONNECTION"), strings.Contains(word, "ERR_TIMED_OUT"), strings.Contains(word, "ERR_EMPTY_RESPONSE"),
		strings.Contains(word, "ERR_ADDRESS_UNREACHABLE"), strings.Contains(word, "ERR_INTERNET_DISCONNECTED"), strings.Contains(word, "ERR_NETWORK_CHANGED"):
		return protocol.ReasonConnection
	}
	return protocol.ReasonNavigation
}

// traverse goes to an entry of the history.
func (r *run) traverse() (step, error) {
	pend, err := r.start(cdproto.CommandPageNavigateToHistoryEntry, &cdpage.NavigateToHistoryEntryParams{EntryID: r.pre.history})
	if err != nil {
		return step{}, err
	}
	return r.leave(pend, func() bool { return r.atEntry(r.pre.history) })
}

// reload loads the document again.
func (r *run) reload() (step, error) {
	pend, err := r.start(cdproto.CommandPageReload, &cdpage.ReloadParams{})
	if err != nil {
		return step{}, err
	}
	return r.leave(pend, func() bool { return r.p.navigations() != r.navs })
}

// leave waits for the answer to a command that begins a navigation, and then for
// the navigation, which the answer does not wait for.
func (r *run) leave(pend *cdp.Pending, there func() bool) (step, error) {
	navs := r.p.navigations()
	r.firstWritten()
	r.lastWritten()
	if err := r.wait(pend, nil); err != nil {
		return step{}, err
	}
	most := protocol.NavigateDeadline
	if d, ok := r.ctx.Deadline(); ok {
		most = max(time.Until(d)-stopWait, stopWait)
	}
	url, arrived := r.p.nav().url, false
	moved := func() bool {
		// Once there it stays so: in the middle of a change the browser has no answer.
		arrived = arrived || r.p.navigations() != navs || there()
		return arrived
	}
	if err := r.until(most, moved); err != nil {
		return step{}, err
	}
	if d := r.p.openDialog(); d != nil && !moved() {
		s := applied(protocol.EffectDispatched)
		s.reason, s.message = protocol.ReasonDialogOpen, r.p.dialogProblem().Message
		return s, nil
	}
	if !moved() {
		return r.stopLoading(context.DeadlineExceeded)
	}
	return r.arrived(func() bool { return r.p.navigations() != navs || r.p.nav().url != url })
}

// atEntry reports whether the history stands at an entry. It is only asked when
// something changed, so that a same-document step is seen as well.
func (r *run) atEntry(id int64) bool {
	ctx, cancel := context.WithTimeout(r.ctx, stepMost)
	defer cancel()
	var h cdpage.GetNavigationHistoryResult
	if err := r.p.sess.Call(ctx, cdproto.CommandPageGetNavigationHistory, nil, &h); err != nil {
		return false
	}
	return h.CurrentIndex >= 0 && h.CurrentIndex < int64(len(h.Entries)) && h.Entries[h.CurrentIndex].ID == id
}
