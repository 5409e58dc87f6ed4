package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

const (
	readyMost = 30 * time.Second // from the start of the process to its first answer
	callMost  = 3 * time.Second  // a command that the browser's own process answers
)

// browserProcess is one life of the browser: process, link, and what lives in it.
type browserProcess struct {
	host  *Host
	log   *slog.Logger
	opts  Options // with absolute paths
	shell bool    // the old headless mode, which has no windows
	proc  *process
	conn  *cdp.Conn
	down  chan struct{} // closed when it is gone and waited for

	ctx    context.Context // ends with it
	cancel context.CancelFunc
	work   group // everything that works for it

	forgotten bool // by the host, whose mu guards it

	stopPoll chan struct{} // closed when nothing is to be polled any more
	pollOnce sync.Once

	saving sync.Mutex // guards saved
	saved  [32]byte   // hash of the cookies saved last

	mu        sync.Mutex // guards what follows
	slots     map[protocol.ResourceID]*slot
	targets   map[target.ID]*pageTarget
	stillborn int // new tabs in a row whose process died before they had loaded anything
	downloads map[string]*download
	waiting   map[*downloadWait]bool
}

// slot is what the host remembers of a resource while the browser lives.
type slot struct {
	turn chan struct{} // who holds it may make, adopt or destroy the target
	held *held

	// Guarded by the browser's mu.
	target *pageTarget
	inc    *incarnation
	last   protocol.Page // last confirmed, for an incarnation that adopts the target
	unfit  bool          // the tab is never adopted: half made, or standing behind a dialog that no later session can answer
}

// pageTarget is one tab that this host made.
type pageTarget struct {
	id      target.ID
	gone    chan struct{} // closed when the browser says that it is destroyed
	crashed chan struct{} // closed when its renderer crashed
	popups  map[target.ID]bool

	goneOnce, crashOnce sync.Once
}

func newPageTarget(id target.ID) *pageTarget {
	return &pageTarget{id: id, gone: make(chan struct{}), crashed: make(chan struct{}), popups: map[target.ID]bool{}}
}

func (t *pageTarget) alive() bool {
	select {
	case <-t.gone:
		return false
	case <-t.crashed:
		return false
	default:
		return true
	}
}

// group counts work under way. Unlike a sync.WaitGroup it takes more work while
// somebody waits: what comes after the browser's end still runs, and ends at once.
type group struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil while nobody waits
}

func (g *group) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n += n
	if g.n == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

func (g *group) wait() {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.none == nil {
		g.none = make(chan struct{})
	}
	none := g.none
	g.mu.Unlock()
	<-none
}

// spawn runs work that belongs to the browser. A panic ends the browser, which
// ends every incarnation with an event: none is left in an unknown state.
func (b *browserProcess) spawn(what string, work func()) {
	b.work.add(1)
	go func() {
		defer b.work.add(-1)
		defer func() {
			if r := recover(); r != nil {
				b.log.Error("panic in the page host", "in", what, "panic", r)
				b.proc.kill()
			}
		}()
		work()
	}()
}

// begin brings a launched browser to where Pages can be made.
func (b *browserProcess) begin(ctx context.Context) error {
	s := b.conn.Browser()
	s.Handle(b.onEvent, func(cause any) {
		b.log.Error("the browser's events can no longer be handled", "cause", cause)
		b.proc.kill()
	})
	ready, cancel := context.WithTimeout(ctx, readyMost)
	defer cancel()
	v, err := cdprotocol.Call(ready, s, browser.GetVersion, cdprotocol.Empty{})
	if err != nil {
		return err
	}
	b.log.Info("the browser is up", "product", v.Product, "process", b.proc.pid)
	onlyPages := target.Filter{{Type: "page"}, {Exclude: true}}
	if _, err := cdprotocol.Call(ready, s, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true, Filter: onlyPages}); err != nil {
		return err
	}
	return b.allowDownloads(ready)
}

// explain says why the browser did not come up, in its own words too.
func (b *browserProcess) explain(err error) error {
	said := b.proc.stderr.last(4)
	if said != "" {
		said = "; it said: " + said
	}
	return unavailable("the browser does not come up: %v%s. Try it by hand, or name another with the option for the browser's path", err, said)
}

// watch waits for the end of the process or of its link, whichever is first,
// and makes sure of the other.
func (b *browserProcess) watch() {
	select {
	case <-b.proc.exited:
	case <-b.conn.Done():
	}
	b.cancel()
	b.proc.kill()
	b.conn.Close()
	<-b.proc.exited
	b.log.Info("the browser is down", "process", b.proc.pid, "exit", errText(b.proc.err), "link", b.conn.Browser().Cause())

	b.mu.Lock()
	var ended []*incarnation
	for _, s := range b.slots {
		if s.inc != nil {
			ended = append(ended, s.inc)
		}
	}
	b.mu.Unlock()
	b.endDownloads()
	b.host.forget(b)
	close(b.down)
	for _, p := range ended {
		p.crash(protocol.ReasonBackendUnavailable, "the browser ended")
	}
	b.work.wait()
}

// end kills the browser and waits until nothing of it is left.
func (b *browserProcess) end() error {
	b.proc.kill()
	timer := time.NewTimer(reapWait)
	defer timer.Stop()
	select {
	case <-b.down:
		return nil
	case <-timer.C:
		return unavailable("the browser (process %d) does not end although it was killed: end it by hand", b.proc.pid)
	}
}

func errText(err error) string {
	if err == nil {
		return "0"
	}
	return err.Error()
}

// onEvent handles the events of the browser's own session.
func (b *browserProcess) onEvent(_ *cdp.Session, ev cdp.Event) {
	switch ev.Method {
	case cdproto.EventTargetTargetCreated:
		handle(b.log, ev, b.targetCreated)
	case cdproto.EventTargetTargetInfoChanged:
		handle(b.log, ev, func(e target.EventTargetInfoChanged) {
			if p := b.incarnationOf(e.TargetInfo.TargetID); p != nil {
				p.titleHint(e.TargetInfo.Title)
			}
		})
	case cdproto.EventTargetTargetDestroyed:
		handle(b.log, ev, b.targetDestroyed)
	case cdproto.EventTargetTargetCrashed:
		handle(b.log, ev, func(e target.EventTargetCrashed) {
			b.targetCrashed(e.TargetID, fmt.Sprintf("the page's process ended (%s, %d)", e.Status, e.ErrorCode))
		})
	case cdproto.EventTargetDetachedFromTarget:
		handle(b.log, ev, b.sessionDetached)
	case cdproto.EventBrowserDownloadWillBegin:
		handle(b.log, ev, b.downloadBegins)
	case cdproto.EventBrowserDownloadProgress:
		handle(b.log, ev, b.downloadProgress)
	}
}

// handle decodes an event and calls do with it.
func handle[E any](log *slog.Logger, ev cdp.Event, do func(E)) {
	var e E
	if err := jsonv2.Unmarshal(ev.Params, &e); err != nil {
		log.Warn("an event does not decode", "event", ev.Method, "error", err)
		return
	}
	do(e)
}

// targetCreated notes pages that our Pages opened. They are not managed: they
// live in the browser until their opener is closed, and only their number is told.
func (b *browserProcess) targetCreated(e target.EventTargetCreated) {
	if e.TargetInfo.OpenerID == "" {
		return
	}
	b.mu.Lock()
	opener := b.openerOf(e.TargetInfo.OpenerID)
	if opener != nil {
		opener.popups[e.TargetInfo.TargetID] = true
	}
	b.mu.Unlock()
	if opener == nil {
		return
	}
	if p := b.incarnationOf(opener.id); p != nil {
		p.popupOpened()
	}
}

// openerOf finds the target of ours that opened something, also through popups
// of popups. b.mu is held.
func (b *browserProcess) openerOf(id target.ID) *pageTarget {
	if t := b.targets[id]; t != nil {
		return t
	}
	for _, t := range b.targets {
		if t.popups[id] {
			return t
		}
	}
	return nil
}

func (b *browserProcess) targetDestroyed(e target.EventTargetDestroyed) {
	b.mu.Lock()
	t := b.targets[e.TargetID]
	delete(b.targets, e.TargetID)
	for _, o := range b.targets {
		delete(o.popups, e.TargetID)
	}
	p := b.newest(e.TargetID)
	b.mu.Unlock()
	if t != nil {
		t.goneOnce.Do(func() { close(t.gone) })
	}
	if p != nil {
		p.over(protocol.Reason(""), "the page closed itself")
	}
}

func (b *browserProcess) targetCrashed(id target.ID, why string) {
	b.mu.Lock()
	t, p := b.targets[id], b.newest(id)
	b.mu.Unlock()
	if t != nil {
		t.crashOnce.Do(func() { close(t.crashed) })
	}
	if p != nil {
		p.crash(protocol.ReasonRendererCrashed, why)
	}
}

// sessionDetached is told of sessions that ended. Where that was not our doing,
// either the target is gone (its own event says so next) or the session is lost.
func (b *browserProcess) sessionDetached(e target.EventDetachedFromTarget) {
	b.mu.Lock()
	var p *incarnation
	for _, s := range b.slots {
		if s.inc != nil && s.inc.sess.ID() == e.SessionID {
			p = s.inc
		}
	}
	b.mu.Unlock()
	if p == nil || p.isOver() {
		return
	}
	b.spawn("detached", func() {
		ctx, cancel := context.WithTimeout(b.ctx, callMost)
		defer cancel()
		_, err := cdprotocol.Call(ctx, b.conn.Browser(), target.GetTargetInfo, target.GetTargetInfoParams{TargetID: p.target})
		var answer *cdproto.Error
		if errors.As(err, &answer) {
			return // no such target: its end is told by targetDestroyed
		}
		p.crash(protocol.ReasonRendererCrashed, "the session with the page was lost")
	})
}

// newest is the newest incarnation on a target. b.mu is held.
func (b *browserProcess) newest(id target.ID) *incarnation {
	for _, s := range b.slots {
		if s.inc != nil && s.inc.target == id {
			return s.inc
		}
	}
	return nil
}

func (b *browserProcess) incarnationOf(id target.ID) *incarnation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest(id)
}

// slot returns the slot of a resource, made at the first use, after taking its turn.
func (b *browserProcess) slot(ctx context.Context, r protocol.ResourceID) (*slot, error) {
	b.mu.Lock()
	s := b.slots[r]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1), held: &held{}}
		b.slots[r] = s
	}
	b.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return s, nil
	case <-b.ctx.Done():
		return nil, errDown()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *slot) done() { <-s.turn }

func errDown() error {
	return unavailable("the browser is down: start it again")
}
