package page

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

const (
	// bindingName is how the isolated world's script reports. The page cannot see it.
	bindingName = "__reins_report"

	makeMost   = 10 * time.Second // a new tab, ready to be loaded
	adoptMost  = time.Second      // what is waited for a living tab to be set up; a busy one goes on by itself
	answerMost = 10 * time.Second // what is waited for the server's first answer; the load goes on
	commitMost = 2 * time.Second  // from the answer to the new document
)

var defaultViewport = protocol.Viewport{Width: 1920, Height: 1080, Scale: 1}

// Attach makes an incarnation: on the living tab of the resource, or on a new
// one that loads s.URL with exactly one request. A load that the server delays,
// that fails, or that a dialog holds up is an incarnation all the same: Snapshot
// and nav say so. The one before it is revoked first, if its supervisor has not.
func (h *Host) Attach(ctx context.Context, s targets.Spec) (targets.Incarnation, bool, error) {
	p, loaded, err := h.attach(ctx, s)
	if err != nil {
		return nil, false, err
	}
	return p, loaded, nil
}

func (h *Host) attach(ctx context.Context, s targets.Spec) (*incarnation, bool, error) {
	b := h.browser()
	if b == nil {
		return nil, false, errDown()
	}
	sl, err := b.slot(ctx, s.Resource)
	if err != nil {
		return nil, false, err
	}
	defer sl.done()
	b.mu.Lock()
	old, tab, unfit := sl.inc, sl.target, sl.unfit
	b.mu.Unlock()
	if old != nil {
		if err := old.Revoke(ctx); err != nil {
			return nil, false, err
		}
		b.mu.Lock()
		unfit = unfit || sl.unfit
		b.mu.Unlock()
	}
	if tab != nil && tab.alive() && !s.Fresh && !unfit {
		if p, err := b.adopt(ctx, sl, s, tab); err == nil {
			return p, false, nil
		} else if b.ctx.Err() != nil || ctx.Err() != nil {
			return nil, false, err
		}
	}
	if tab != nil {
		if err := b.destroy(ctx, tab); err != nil {
			return nil, false, err
		}
	}
	p, err := b.create(ctx, sl, s)
	b.born(err)
	if err != nil {
		return nil, false, err
	}
	return p, true, nil
}

// mostStillborn is how many new tabs in a row may die empty.
const mostStillborn = 3

// born ends a browser that cannot make processes for pages any more, as when its
// zygote was killed: it never recovers by itself, a new one does.
func (b *browserProcess) born(err error) {
	b.mu.Lock()
	switch {
	case err == nil:
		b.stillborn = 0
	case errors.Is(err, cdp.ErrCrashed):
		b.stillborn++
	}
	sick := b.stillborn == mostStillborn
	b.mu.Unlock()
	if sick {
		b.log.Warn("new pages die at once: the browser is killed, and comes back with all its pages", "tabs", mostStillborn)
		b.proc.kill()
	}
}

// adopt makes an incarnation on a living tab. A busy page does not hold it up:
// the barrier waits for the rest of the set-up.
func (b *browserProcess) adopt(ctx context.Context, sl *slot, s targets.Spec, tab *pageTarget) (*incarnation, error) {
	p, err := b.connect(ctx, sl, s, tab, false)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(adoptMost)
	defer timer.Stop()
	select {
	case <-p.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p, nil
}

// create makes a new tab in the background and loads the URL in it.
func (b *browserProcess) create(ctx context.Context, sl *slot, s targets.Spec) (*incarnation, error) {
	b.mu.Lock()
	n := len(b.targets)
	b.mu.Unlock()
	if n >= b.opts.MaxPages {
		return nil, &protocol.Problem{Reason: protocol.ReasonTooMany, Message: fmt.Sprintf("%d pages are open, which is the ceiling: close one, or raise it", n)}
	}
	making, cancel := context.WithTimeout(ctx, makeMost)
	defer cancel()
	params := target.CreateTargetParams{URL: "about:blank"}
	if !b.shell {
		// A window of its own: a tab behind another was seen to get one frame a
		// second as soon as it had a cross-site frame.
		v := viewportOf(s)
		params.NewWindow, params.Background = ptr(true), ptr(true)
		params.Width, params.Height = int64(v.Width), int64(v.Height)
	}
	tab, err := b.makeTab(making, params)
	if err != nil {
		return nil, fmt.Errorf("making a tab: %w", err)
	}
	b.mu.Lock()
	sl.target, sl.unfit, sl.held, sl.last = tab, true, &held{}, protocol.Page{}
	b.mu.Unlock()
	p, err := b.connect(making, sl, s, tab, true)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ready:
	case <-making.Done():
		return nil, fmt.Errorf("setting up a tab: %w", making.Err())
	}
	if err := p.setupError(); err != nil {
		return nil, fmt.Errorf("setting up a tab: %w", err)
	}
	p.load(ctx)
	b.mu.Lock()
	sl.unfit = false
	b.mu.Unlock()
	return p, nil
}

// makeTab makes a tab. One whose making takes longer than ctx is closed when it
// comes, so that none is left that nobody knows.
func (b *browserProcess) makeTab(ctx context.Context, params target.CreateTargetParams) (*pageTarget, error) {
	made := make(chan *pageTarget)
	failed := make(chan error, 1)
	b.spawn("make a tab", func() {
		most, cancel := context.WithTimeout(b.ctx, readyMost)
		defer cancel()
		res, err := cdprotocol.Call(most, b.conn.Browser(), target.CreateTarget, params)
		if err != nil {
			failed <- err
			return
		}
		tab := newPageTarget(res.TargetID)
		b.mu.Lock()
		b.targets[tab.id] = tab
		b.mu.Unlock()
		select {
		case made <- tab:
		case <-ctx.Done():
			b.closeTarget(b.ctx, tab.id)
		}
	})
	select {
	case tab := <-made:
		return tab, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func viewportOf(s targets.Spec) protocol.Viewport {
	v := s.Viewport
	if v.Width <= 0 || v.Height <= 0 {
		v.Width, v.Height = defaultViewport.Width, defaultViewport.Height
	}
	if v.Scale <= 0 {
		v.Scale = defaultViewport.Scale
	}
	return v
}

// connect opens a session on a tab and begins to set it up.
func (b *browserProcess) connect(ctx context.Context, sl *slot, s targets.Spec, tab *pageTarget, fresh bool) (*incarnation, error) {
	ctx, cancel := context.WithTimeout(ctx, makeMost)
	defer cancel()
	got, err := cdprotocol.Call(ctx, b.conn.Browser(), target.AttachToTarget, target.AttachToTargetParams{TargetID: tab.id, Flatten: ptr(true)})
	if err != nil {
		return nil, fmt.Errorf("attaching to the page: %w", err)
	}
	sess := b.conn.Session(got.SessionID)
	if sess == nil {
		return nil, fmt.Errorf("attaching to the page: %w", cdp.ErrDetached)
	}
	p := newIncarnation(b, sl, s, tab, sess, fresh)
	p.confirmed = protocol.Page{URL: s.URL}
	if s.URL == "" {
		p.confirmed.URL = "about:blank"
	}
	b.mu.Lock()
	if !fresh && sl.last.URL != "" {
		p.confirmed = sl.last
	}
	sl.inc = p
	b.mu.Unlock()
	if !tab.alive() {
		return nil, fmt.Errorf("attaching to the page: %w", cdp.ErrCrashed)
	}
	sess.Handle(p.onEvent, p.handlerFailed)
	p.spawn("set-up", func() { p.setUp() })
	return p, nil
}

// confirmed notes the last confirmed state for the next incarnation.
func (b *browserProcess) confirmed(p *incarnation, s protocol.Page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.slot.inc == p {
		p.slot.last = s
	}
}

func (p *incarnation) setupError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setupErr
}

// setUp sets the page's session up; ready is closed at its end.
func (p *incarnation) setUp() {
	defer close(p.ready)
	v := viewportOf(p.spec)
	// Without a deadline of its own: a busy page answers when it can, and whoever
	// needs the set-up (the barrier, a new tab) has a deadline.
	sent, err := p.send(p.ctx, p.sess, append(p.common(), command{
		cdproto.CommandEmulationSetDeviceMetricsOverride, metrics(v),
	}))
	if err == nil {
		err = await(p.ctx, sent)
	}
	if err == nil && !p.awaitFrame(p.sess, cdprotocol.FrameID(p.target)) {
		err = cdp.ErrDetached
	}
	p.mu.Lock()
	p.setupErr = err
	p.mu.Unlock()
	if err != nil && !p.isOver() {
		p.b.log.Warn("a page could not be set up", "resource", p.spec.Resource, "error", err)
	}
}

// setUpChild sets up the session of a frame in another process, lets it run, and
// hears its events as soon as the frame above it is known.
func (p *incarnation) setUpChild(child *cdp.Session, parent cdprotocol.FrameID) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	sent, err := p.send(ctx, child, append(p.common(), command{cdproto.CommandRuntimeRunIfWaitingForDebugger, cdprotocol.Empty{}}))
	if err == nil && p.awaitFrame(child, parent) {
		child.Handle(p.onEvent, p.handlerFailed)
		err = await(ctx, sent)
	}
	if err != nil && !errors.Is(err, cdp.ErrDetached) && !p.isOver() {
		p.b.log.Warn("a frame could not be set up", "resource", p.spec.Resource, "error", err)
	}
}

// awaitFrame waits until the document of a frame is known. False: whoever waits
// for it is over.
func (p *incarnation) awaitFrame(waiter *cdp.Session, id cdprotocol.FrameID) bool {
	for {
		p.mu.Lock()
		n, changed := p.tree.nodes[id], p.changed
		known := n != nil && n.doc != nil
		p.mu.Unlock()
		if known {
			return true
		}
		select {
		case <-changed:
		case <-waiter.Done():
			return false
		case <-p.endedCh:
			return false
		}
	}
}

type command struct {
	method string
	params any
}

// common are the commands that every session of a page is set up with. All of
// them are on their way before the first answer: a frame that waits for its
// debugger answers some only when it runs.
func (p *incarnation) common() []command {
	onlyFrames := target.Filter{{Type: "iframe"}, {Exclude: true}}
	return []command{
		{cdproto.CommandPageEnable, cdpage.EnableParams{}},
		{cdproto.CommandRuntimeEnable, cdprotocol.Empty{}},
		{cdproto.CommandTargetSetAutoAttach, target.SetAutoAttachParams{
			AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: ptr(true), Filter: onlyFrames,
		}},
		{cdproto.CommandRuntimeAddBinding, runtime.AddBindingParams{Name: bindingName, ExecutionContextName: p.world}},
		{cdproto.CommandPageAddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{
			Source: worldScript, WorldName: p.world, RunImmediately: ptr(true),
		}},
		{cdproto.CommandEmulationSetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}},
		{cdproto.CommandPageGetFrameTree, cdprotocol.Empty{}},
	}
}

// send writes commands in their order without waiting for answers.
func (p *incarnation) send(ctx context.Context, s *cdp.Session, all []command) ([]*cdp.Pending, error) {
	var sent []*cdp.Pending
	for _, c := range all {
		start := s.Start
		if c.method == cdproto.CommandPageGetFrameTree {
			start = s.StartInline // its answer is only true between the events before and after it
		}
		pend, err := start(ctx, c.method, c.params)
		if err != nil {
			return sent, err
		}
		sent = append(sent, pend)
	}
	return sent, nil
}

// await waits for the answers of commands and returns the first error.
func await(ctx context.Context, sent []*cdp.Pending) error {
	var first error
	for _, pend := range sent {
		if err := pend.Wait(ctx, nil); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// metrics are the commands' words for a viewport.
func metrics(v protocol.Viewport) emulation.SetDeviceMetricsOverrideParams {
	return emulation.SetDeviceMetricsOverrideParams{
		Width: int64(v.Width), Height: int64(v.Height), DeviceScaleFactor: v.Scale,
		ScreenWidth: int64(v.Width), ScreenHeight: int64(v.Height),
	}
}

// load asks for the document once and returns when it is committed, has failed,
// is held up by a dialog, or the server takes too long; the load then goes on.
func (p *incarnation) load(ctx context.Context) {
	url := p.spec.URL
	if url == "" || url == "about:blank" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	p.setLoading(true)
	pend, err := p.sess.Start(ctx, cdproto.CommandPageNavigate, cdpage.NavigateParams{URL: url})
	if err != nil {
		p.b.log.Warn("a page could not be asked to load", "resource", p.spec.Resource, "error", err)
		return
	}
	answer := make(chan cdpage.NavigateResult, 1)
	p.spawn("load", func() {
		var res cdpage.NavigateResult
		if pend.Wait(ctx, &res) == nil {
			answer <- res
		}
	})
	select {
	case res := <-answer:
		if res.ErrorText != "" {
			p.loadFailed(res)
		}
		// A failed load ends in the browser's error page; what is aborted (a
		// download, an empty answer) leaves the page as it was.
		if res.ErrorText != "net::ERR_ABORTED" {
			p.awaitDocument(ctx, string(res.LoaderID))
		}
	case <-p.dialogSignal():
	case <-p.endedCh:
	case <-ctx.Done():
	}
}

// awaitDocument waits, within bounds, until a document is the main frame's.
func (p *incarnation) awaitDocument(ctx context.Context, document string) {
	ctx, cancel := context.WithTimeout(ctx, commitMost)
	defer cancel()
	for {
		changed := p.navSignal()
		if p.nav().document == document || p.dialog() != nil {
			return
		}
		select {
		case <-changed:
		case <-p.dialogSignal():
		case <-p.endedCh:
			return
		case <-ctx.Done():
			return
		}
	}
}

// loadFailed takes over why a load failed; its error page comes a moment later.
func (p *incarnation) loadFailed(res cdpage.NavigateResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastError = loadError{document: string(res.LoaderID), code: res.ErrorText}
	if p.navst.document == p.lastError.document {
		p.failedWith(res.ErrorText)
	}
}

// loadError is why the load of a document failed.
type loadError struct{ document, code string }
