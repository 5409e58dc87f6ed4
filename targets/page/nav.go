package page

import (
	"context"
	"time"

	"github.com/chromedp/cdproto"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// learnMost is how long the page is asked for its title and status; a busy page,
// or one that stands still behind a dialog, answers a later question.
const learnMost = 2 * time.Second

// learnGrace is how long a confirmed navigation waits to be told, so that its
// title and status go with it.
const learnGrace = 300 * time.Millisecond

// navChanged tells who waits for the main frame's state. p.mu is held.
func (p *incarnation) navChanged() {
	close(p.navCh)
	p.navCh = make(chan struct{})
}

// onNavigation handles the events that say how far the main frame has come.
func (p *incarnation) onNavigation(s *cdp.Session, ev cdp.Event) {
	if s != p.sess {
		return
	}
	log := p.b.log
	switch ev.Method {
	case cdproto.EventPageFrameStartedNavigating:
		handle(log, ev, func(e cdpage.EventFrameStartedNavigating) {
			if p.isMain(e.FrameID) && realNavigation(e.NavigationType) {
				p.setLoading(true)
			}
		})
	case cdproto.EventPageFrameStartedLoading:
		handle(log, ev, func(e cdpage.EventFrameStartedLoading) {
			if p.isMain(e.FrameID) {
				p.setLoading(true)
			}
		})
	case cdproto.EventPageFrameStoppedLoading:
		handle(log, ev, func(e cdpage.EventFrameStoppedLoading) {
			if p.isMain(e.FrameID) {
				p.setLoading(false)
				p.learn()
			}
		})
	case cdproto.EventPageNavigatedWithinDocument:
		handle(log, ev, func(e cdpage.EventNavigatedWithinDocument) {
			if p.isMain(e.FrameID) {
				p.urlChanged(e.URL)
			}
		})
	case cdproto.EventPageDomContentEventFired, cdproto.EventPageLoadEventFired:
		p.learn()
	}
}

// isMain reports whether a frame is the main one: it has the target's id.
func (p *incarnation) isMain(id interface{ String() string }) bool {
	return id.String() == string(p.target)
}

func (p *incarnation) setLoading(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.navst.loading != on {
		p.navst.loading = on
		p.navChanged()
	}
}

// frameNavigated: a frame has a new document.
func (p *incarnation) frameNavigated(s *cdp.Session, e cdpage.EventFrameNavigated) {
	if e.Frame == nil {
		return
	}
	var f *frame
	p.update(func() { f = p.tree.commit(p, s, e.Frame) })
	if f == nil || !f.main {
		return
	}
	clean := p.clean(f.url)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.navs++
	if p.dlg != nil { // it went with its document
		p.dlg, p.dlgCh = nil, make(chan struct{})
	}
	p.navst.document, p.navst.url, p.navst.title, p.navst.status = string(f.document), f.url, "", 0
	p.navst.failed = ""
	if f.failed {
		p.navst.failed = "net::ERR_FAILED" // until its page tells more
		if p.lastError.document == p.navst.document {
			p.navst.failed = p.lastError.code
		}
	} else {
		p.confirm(protocol.Page{URL: clean, Document: string(f.document)})
	}
	p.navChanged()
	p.spawn("commit", func() { p.committed(f) })
}

// clean is a URL without its secrets.
func (p *incarnation) clean(url string) string {
	url, _ = protocol.SanitiseURL(url)
	return p.secrets().scrub(url)
}

// confirm takes over a state as the last confirmed one. p.mu is held.
func (p *incarnation) confirm(s protocol.Page) {
	p.confirmed = s
	p.b.confirmed(p, s)
}

// amend changes the confirmed state within its document. It is told apart only
// after the document itself was. p.mu is held.
func (p *incarnation) amend(s protocol.Page) {
	if s == p.confirmed {
		return
	}
	p.confirm(s)
	if p.told == p.navst.document {
		p.emit(targets.EventTitle, "", "")
	}
}

// committed tells of a new document once its title and status are known, or
// after a short while without them.
func (p *incarnation) committed(f *frame) {
	known := make(chan struct{})
	p.spawn("learn", func() {
		defer close(known)
		p.ask(f)
	})
	timer := time.NewTimer(learnGrace)
	defer timer.Stop()
	select {
	case <-known:
	case <-timer.C:
	case <-p.endedCh:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.navst.document == string(f.document) && !f.failed {
		p.told = p.navst.document
		p.emit(targets.EventNavigated, "", "")
	}
}

// titleHint is told the browser's word for the title. Where that changed, the
// page is asked: the browser shows an address where there is no title.
func (p *incarnation) titleHint(title string) {
	p.mu.Lock()
	changed := p.hint != title
	p.hint = title
	p.mu.Unlock()
	if changed {
		p.learn()
	}
}

// learn asks the main document for its title and status, in the background. A
// question that comes meanwhile is asked once more after it.
func (p *incarnation) learn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.learning {
		p.again = true
		return
	}
	if p.done {
		return
	}
	p.learning = true
	p.spawn("learn", func() {
		for {
			if fs := p.frames(); len(fs) > 0 && fs[0].main {
				p.ask(fs[0])
			}
			p.mu.Lock()
			if !p.again || p.done {
				p.learning = false
				p.mu.Unlock()
				return
			}
			p.again = false
			p.mu.Unlock()
		}
	})
}

// learned is what a document says of itself.
type learned struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Error  string `json:"error"`
}

const askScript = `() => ({
	title: document.title,
	status: performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0,
	error: document.querySelector('.error-code')?.textContent.trim() ?? '',
})`

// ask asks one document and takes over what it says, if it is still the one.
func (p *incarnation) ask(f *frame) {
	ctx, cancel := context.WithTimeout(p.ctx, learnMost)
	defer cancel()
	var l learned
	if err := f.call(ctx, askScript, &l); err != nil {
		return
	}
	title := clip(p.secrets().scrub(l.Title), maxTitle)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.navst.document != string(f.document) {
		return
	}
	if f.failed {
		p.failedWith(l.Error)
		return
	}
	if p.navst.title == l.Title && p.navst.status == l.Status {
		return
	}
	p.navst.title, p.navst.status = l.Title, l.Status
	p.navChanged()
	s := p.confirmed
	s.Title, s.HTTPStatus = title, l.Status
	p.amend(s)
}

// failedWith takes over the browser's word for why a load failed. p.mu is held.
func (p *incarnation) failedWith(code string) {
	if code == "" {
		return
	}
	if len(code) > 4 && code[:4] == "ERR_" {
		code = "net::" + code
	}
	if len(code) < 9 || code[:9] != "net::ERR_" || p.navst.failed == code {
		return
	}
	p.navst.failed = code
	p.navChanged()
}

// urlChanged: the document changed its own address.
func (p *incarnation) urlChanged(url string) {
	clean := p.clean(url)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.navst.url == url {
		return
	}
	p.navst.url = url
	p.navChanged()
	s := p.confirmed
	s.URL = clean
	if p.navst.failed == "" {
		p.amend(s)
	}
}
