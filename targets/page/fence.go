package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

const (
	crashMost = 700 * time.Millisecond // for a crashed page to be gone
	closeMost = 5 * time.Second        // for a closed tab to be gone
	closeMore = 15 * time.Second       // for one whose renderer is dead, on a machine that is slow

	closeAgain = 500 * time.Millisecond // between two requests to close a tab
)

// Revoke ends this incarnation's right to write. When it returns no byte of its
// sessions will be written: that is decided at the link's writer, whatever the
// browser does. The detach that follows is a courtesy, so that the next session
// finds no settings of this one.
func (p *incarnation) Revoke(ctx context.Context) error {
	if p.host.opts.Seams.Planted[protocol.BugFenceWithoutRevoke] {
		return nil
	}
	p.revokeOnce.Do(func() {
		p.b.conn.Revoke(p.sess)
		p.leave(ctx)
	})
	return nil
}

// leave ends the incarnation without an event and detaches its session. The
// detach is only written here: what a later incarnation writes comes behind it.
// What the resource still holds stays noted in its slot for the next one.
func (p *incarnation) leave(ctx context.Context) {
	if p.dialog() != nil {
		// Its dialog belongs to this session: no other can answer it any more.
		p.b.mu.Lock()
		p.slot.unfit = true
		p.b.mu.Unlock()
	}
	p.finish(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callMost)
	pend, err := p.b.conn.Browser().Start(ctx, cdproto.CommandTargetDetachFromTarget, target.DetachFromTargetParams{SessionID: p.sess.ID()})
	if err != nil {
		cancel()
		return // the link is down, and the session with it
	}
	p.b.spawn("detach", func() {
		defer cancel()
		err := pend.Wait(ctx, nil)
		var answer *cdproto.Error
		if err != nil && !errors.As(err, &answer) && p.b.ctx.Err() == nil {
			p.b.log.Warn("the old session of a page is still attached; it takes no more commands", "resource", p.spec.Resource, "error", err)
		}
	})
}

// Barrier returns after all input that the tab was given earlier has had its
// effect: focus emulation on (a hidden page gives no frames), then in every
// process of the page two animation frames and a call behind them; then what is
// held is let go, and the same again behind that. A lone call was seen to let pointer moves of the old session through.
// Parents come before their frames in other processes, since input for a frame
// may wait for its parent to say what lies under the pointer.
//
// A tab made for this incarnation has no earlier input: its barrier passes once
// it is set up, also while a dialog of its load stands open. On any other tab an
// open dialog is a missed barrier, because what was given before waits behind it.
func (p *incarnation) Barrier(ctx context.Context) error {
	if p.host.opts.Seams.Planted[protocol.BugSkipBarrier] {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.BarrierDeadline)
	defer cancel()
	select {
	case <-p.ready:
	case <-p.endedCh:
		return missed(cdp.ErrDetached)
	case <-ctx.Done():
		return missed(ctx.Err())
	}
	if err := p.setupError(); err != nil {
		return missed(err)
	}
	if p.fresh {
		return nil
	}
	if _, err := cdprotocol.Call(ctx, p.sess, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return missed(err)
	}
	if err := p.drainFrames(ctx); err != nil {
		return missed(err)
	}
	released, err := p.releaseHeld(ctx)
	if err == nil && released {
		err = p.drainFrames(ctx)
	}
	if err != nil {
		return missed(err)
	}
	return nil
}

func missed(err error) error {
	return fmt.Errorf("%w: the page did not answer for what it was given before: %w",
		&protocol.Problem{Reason: protocol.ReasonPageUnresponsive, Message: "the barrier was missed"}, err)
}

// releaseHeld lets go what the incarnation before still held, and reports
// whether that was anything. The pointer is taken off the page first, so that a
// half-done click is none on its element. A drag is cancelled before that: a page
// that is left in one takes no pointer input any more. Where nothing is dragged,
// the page sees nothing of it.
func (p *incarnation) releaseHeld(ctx context.Context) (bool, error) {
	const off = -1
	still := p.held.snapshot()
	for _, h := range still.buttons {
		button := input.MouseButton(h.button)
		err := p.sess.Call(ctx, cdproto.CommandInputDispatchDragEvent, map[string]any{
			"type": input.DispatchDragEventTypeDragCancel, "x": off, "y": off,
			"data": map[string]any{"items": []any{}, "dragOperationsMask": 1},
		}, nil)
		if err == nil {
			_, err = cdprotocol.Call(ctx, p.sess, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: input.DispatchMouseEventTypeMouseMoved, X: off, Y: off, Button: button, Buttons: buttonMask(h.button),
			})
		}
		if err == nil {
			_, err = cdprotocol.Call(ctx, p.sess, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: input.DispatchMouseEventTypeMouseReleased, X: off, Y: off, Button: button, ClickCount: 1,
			})
		}
		if err != nil {
			return true, fmt.Errorf("letting a button go: %w", err)
		}
		p.held.release(h.button)
	}
	for _, k := range still.keys {
		_, err := cdprotocol.Call(ctx, p.sess, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyUp, Key: k.key, Code: k.code, WindowsVirtualKeyCode: k.vk,
		})
		if err != nil {
			return true, fmt.Errorf("letting a key go: %w", err)
		}
		p.held.keyUp(k)
	}
	return len(still.buttons)+len(still.keys) > 0, nil
}

func buttonMask(button string) int64 {
	switch button {
	case "left":
		return 1
	case "right":
		return 2
	case "middle":
		return 4
	}
	return 0
}

const twoFrames = `() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// drainFrames waits in every process of the page, parents first.
func (p *incarnation) drainFrames(ctx context.Context) error {
	passed := map[cdprotocol.FrameID]*cdp.Session{}
	for {
		level, more, changed := p.unpassed(passed)
		if len(level) == 0 && !more {
			return nil
		}
		if len(level) == 0 {
			select {
			case <-changed:
				continue
			case <-p.endedCh:
				return cdp.ErrDetached
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for i, err := range p.drainLevel(ctx, level) {
			switch {
			case err == nil:
				passed[level[i].id] = level[i].sess
			case errors.Is(err, errFrameGone) && ctx.Err() == nil && !p.isOver():
				// Another document, or none: asked again in the next round.
			default:
				return err
			}
		}
	}
}

func (p *incarnation) drainLevel(ctx context.Context, level []*frame) []error {
	errs := make([]error, len(level))
	var wg sync.WaitGroup
	for i, f := range level {
		wg.Add(1)
		p.spawn("barrier", func() {
			defer wg.Done()
			errs[i] = cdp.ErrDetached // stands if the work panics
			errs[i] = f.drain(ctx)
		})
	}
	wg.Wait()
	return errs
}

// unpassed lists the top documents of processes that have not passed, as far as
// those above them have. more: there are others that are not known yet.
func (p *incarnation) unpassed(passed map[cdprotocol.FrameID]*cdp.Session) (level []*frame, more bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := func(f *frame) bool { return !f.top() || passed[f.id] == f.sess }
	for _, f := range p.tree.root.list(nil) {
		if done(f) {
			continue
		}
		above := true
		for g := f.parent; g != nil; g = g.parent {
			above = above && done(g)
		}
		if above {
			level = append(level, f)
		}
	}
	more = p.tree.root == nil || p.tree.root.doc == nil
	for _, known := range p.kids {
		more = more || !known
	}
	return level, more, p.changed
}

// top reports whether the frame is the uppermost of the page in its process.
func (f *frame) top() bool { return f.main || f.parent.sess != f.sess }

func (f *frame) drain(ctx context.Context) error {
	if err := f.call(ctx, twoFrames, nil); err != nil {
		return err
	}
	return f.call(ctx, `() => true`, nil)
}

// Close closes the Page for good. No dialog of the page can hold that up.
func (p *incarnation) Close(ctx context.Context) error {
	sl, err := p.b.slot(ctx, p.spec.Resource)
	if err != nil {
		if p.b.ctx.Err() != nil {
			return nil // it went with the browser
		}
		return err
	}
	defer sl.done()
	p.b.conn.Revoke(p.sess)
	p.finish(nil)
	p.b.mu.Lock()
	delete(p.b.slots, p.spec.Resource)
	p.b.mu.Unlock()
	return p.b.close(ctx, p.tab, false)
}

// Destroy ends what is left of a resource's tab, so that no input it still holds
// can have an effect: its renderer is crashed, then the tab closed; where that
// does not end it, the browser is.
func (h *Host) Destroy(ctx context.Context, r protocol.ResourceID) error {
	b := h.browser()
	if b == nil {
		return nil
	}
	sl, err := b.slot(ctx, r)
	if err != nil {
		if b.ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer sl.done()
	b.mu.Lock()
	tab, p := sl.target, sl.inc
	b.mu.Unlock()
	if p != nil {
		b.conn.Revoke(p.sess)
		p.finish(nil)
	}
	if tab == nil {
		return nil
	}
	return b.destroy(ctx, tab)
}

func (b *browserProcess) destroy(ctx context.Context, tab *pageTarget) error {
	return b.close(ctx, tab, true)
}

// close ends a tab and the pages that it opened. crash ends its renderer before,
// so that nothing it still holds can have an effect. It is bounded by itself:
// what was begun is not left half done because a caller gave up.
func (b *browserProcess) close(ctx context.Context, tab *pageTarget, crash bool) error {
	ctx = context.WithoutCancel(ctx)
	if crash && tab.alive() {
		b.crashTab(ctx, tab)
	}
	b.mu.Lock()
	popups := make([]target.ID, 0, len(tab.popups))
	for id := range tab.popups {
		popups = append(popups, id)
	}
	b.mu.Unlock()
	for _, id := range popups {
		b.closeTarget(ctx, id)
	}
	b.closeTarget(ctx, tab.id)
	if b.gone(ctx, tab, closeMost) {
		return nil
	}
	switch {
	case !crash:
		return b.close(ctx, tab, true)
	case !tab.alive() && !b.gone(ctx, tab, closeMore):
		// Without a renderer it can have no effect any more; only the tab is left.
		b.log.Warn("a crashed tab does not close; it is left behind", "target", tab.id)
		return nil
	case !tab.alive():
		return nil
	}
	b.log.Warn("a page can neither be crashed nor closed: killing the browser", "target", tab.id)
	return b.end()
}

// gone waits for the end of a tab, or of the browser. It asks again for it: a tab
// whose renderer died while it was asked forgets what it was asked.
func (b *browserProcess) gone(ctx context.Context, tab *pageTarget, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	again := time.NewTicker(closeAgain)
	defer again.Stop()
	for {
		select {
		case <-tab.gone:
			return true
		case <-b.ctx.Done():
			return true
		case <-again.C:
			b.closeTarget(ctx, tab.id)
		case <-timer.C:
			return false
		}
	}
}

// closeTarget asks for the end of a tab. Only the event of its end counts.
func (b *browserProcess) closeTarget(ctx context.Context, id target.ID) {
	ctx, cancel := context.WithTimeout(ctx, callMost)
	defer cancel()
	if _, err := b.conn.Browser().Start(ctx, cdproto.CommandTargetCloseTarget, target.CloseTargetParams{TargetID: id}); err != nil && b.ctx.Err() == nil {
		b.log.Warn("a tab could not be asked to close", "target", id, "error", err)
	}
}

// crashTab crashes a tab's renderer through a session of its own, since those
// of incarnations are revoked. The command is never answered.
func (b *browserProcess) crashTab(ctx context.Context, tab *pageTarget) {
	ctx, cancel := context.WithTimeout(ctx, crashMost)
	defer cancel()
	got, err := cdprotocol.Call(ctx, b.conn.Browser(), target.AttachToTarget, target.AttachToTargetParams{TargetID: tab.id, Flatten: ptr(true)})
	if err != nil {
		return
	}
	s := b.conn.Session(got.SessionID)
	if s == nil {
		return
	}
	if _, err := s.Start(ctx, cdproto.CommandPageCrash, cdprotocol.Empty{}); err != nil {
		return
	}
	select {
	case <-tab.crashed:
	case <-tab.gone:
	case <-s.Done():
	case <-ctx.Done():
	}
}
