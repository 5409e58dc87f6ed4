package page

import (
	"github.com/chromedp/cdproto"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// maxEvents is how many events wait for the owner of an incarnation. Each
// carries the whole state, so that the oldest can be dropped.
const maxEvents = 64

// emit queues an event. It never waits. p.mu is held.
func (p *incarnation) emit(kind targets.EventKind, reason protocol.Reason, message string) {
	if p.done {
		return
	}
	ev := targets.Event{Kind: kind, Page: p.snapshot(), Reason: reason, Message: message}
	for {
		select {
		case p.events <- ev:
			return
		default:
		}
		select {
		case <-p.events:
		default:
		}
	}
}

// crash ends the incarnation with an event, unless it is over already.
func (p *incarnation) crash(reason protocol.Reason, why string) {
	p.finish(func() { p.emit(targets.EventCrashed, reason, why) })
}

// over ends the incarnation of a target that went away by itself.
func (p *incarnation) over(reason protocol.Reason, why string) {
	p.finish(func() { p.emit(targets.EventGone, reason, why) })
}

// finish ends the incarnation: last words first, then everything that waits on it.
func (p *incarnation) finish(last func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	if last != nil {
		last()
	}
	p.done = true
	close(p.events)
	close(p.endedCh)
	for ch := range p.subs {
		close(ch)
	}
	p.subs = nil
	p.cancel()
}

// onEvent handles the events of the page's sessions: its own and those of its
// frames in other processes.
func (p *incarnation) onEvent(s *cdp.Session, ev cdp.Event) {
	log := p.b.log
	switch ev.Method {
	case cdproto.EventPageFrameAttached:
		handle(log, ev, func(e cdpage.EventFrameAttached) {
			p.update(func() { p.tree.attach(e.FrameID, e.ParentFrameID, s) })
		})
	case cdproto.EventPageFrameDetached:
		handle(log, ev, func(e cdpage.EventFrameDetached) { p.frameDetached(s, e) })
	case cdproto.EventPageFrameNavigated:
		handle(log, ev, func(e cdpage.EventFrameNavigated) { p.frameNavigated(s, e) })
	case cdproto.CommandPageGetFrameTree: // the answer, in order with the events
		handle(log, ev, func(e cdpage.GetFrameTreeResult) { p.adoptFrames(s, e) })
	case cdproto.EventRuntimeExecutionContextCreated:
		handle(log, ev, func(e runtime.EventExecutionContextCreated) {
			p.update(func() { p.tree.created(s, p.world, e.Context) })
		})
	case cdproto.EventRuntimeExecutionContextDestroyed:
		handle(log, ev, func(e runtime.EventExecutionContextDestroyed) {
			p.update(func() { p.tree.destroyed(e.ExecutionContextUniqueID) })
		})
	case cdproto.EventRuntimeExecutionContextsCleared:
		p.update(func() { p.tree.clear(s) })
	case cdproto.EventRuntimeBindingCalled:
		handle(log, ev, func(e runtime.EventBindingCalled) { p.reported(s, e) })
	case cdproto.EventTargetAttachedToTarget:
		handle(log, ev, p.childAttached)
	case cdproto.EventTargetDetachedFromTarget:
		handle(log, ev, func(e target.EventDetachedFromTarget) { p.childDetached(e.SessionID) })
	case cdproto.EventInspectorTargetCrashed:
		p.processCrashed(s)
	case cdproto.EventPageJavascriptDialogOpening:
		handle(log, ev, p.dialogOpening)
	case cdproto.EventPageJavascriptDialogClosed:
		p.dialogClosed()
	case cdproto.EventPageScreencastFrame:
		handle(log, ev, p.castFrame)
	default:
		p.onNavigation(s, ev)
	}
}

// update changes the tree of frames and tells who waits for that.
func (p *incarnation) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *incarnation) frameDetached(s *cdp.Session, e cdpage.EventFrameDetached) {
	p.update(func() {
		n := p.tree.nodes[e.FrameID]
		switch {
		case n == nil:
		case e.Reason == cdpage.FrameDetachedReasonSwap:
			// It goes on in another process; its document here is over.
			if n.sess == s {
				n.doc = nil
			}
		default:
			p.tree.remove(n)
		}
	})
}

func (p *incarnation) adoptFrames(s *cdp.Session, e cdpage.GetFrameTreeResult) {
	if e.FrameTree == nil || e.FrameTree.Frame == nil {
		return
	}
	p.update(func() {
		p.tree.adopt(p, s, e.FrameTree)
		if _, kid := p.kids[s]; kid {
			p.kids[s] = true
		}
		if d := e.FrameTree.Frame; s == p.sess && p.navst.document == "" {
			p.navst.document, p.navst.url = string(d.LoaderID), d.URL+d.URLFragment
			p.told = p.navst.document
			p.navChanged()
		}
	})
	if s == p.sess {
		p.learn()
	}
}

func (p *incarnation) reported(s *cdp.Session, e runtime.EventBindingCalled) {
	if e.Name != bindingName {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := bindingCall{frame: p.tree.contexts[contextKey{s, e.ExecutionContextID}], payload: e.Payload}
	for ch := range p.subs {
		for sent := false; !sent; {
			select {
			case ch <- r:
				sent = true
			default:
				select {
				case <-ch:
				default:
				}
			}
		}
	}
}

// childAttached takes in a frame that lives in another process. It waits there
// until its session is set up, so that its first script finds our world.
func (p *incarnation) childAttached(e target.EventAttachedToTarget) {
	child := p.b.conn.Session(e.SessionID)
	if child == nil || e.TargetInfo == nil {
		return
	}
	p.update(func() { p.kids[child] = false })
	p.spawn("frame", func() { p.setUpChild(child, e.TargetInfo.ParentFrameID) })
}

func (p *incarnation) childDetached(id target.SessionID) {
	p.update(func() {
		for kid := range p.kids {
			if kid.ID() == id {
				p.tree.drop(kid)
				delete(p.kids, kid)
			}
		}
	})
}

// processCrashed: that of the page ends the incarnation, that of a frame only
// empties the frame.
func (p *incarnation) processCrashed(s *cdp.Session) {
	if s == p.sess {
		p.b.targetCrashed(p.target, "the page's process crashed")
		return
	}
	p.update(func() {
		p.tree.drop(s)
		delete(p.kids, s)
	})
}

func (p *incarnation) handlerFailed(cause any) {
	p.crash(protocol.ReasonInternal, "the page's events can no longer be handled")
	p.b.log.Error("the page's events can no longer be handled", "resource", p.spec.Resource, "cause", cause)
}

func (p *incarnation) dialogOpening(e cdpage.EventJavascriptDialogOpening) {
	// Its words go into the record, so they leave their secrets here.
	s := p.secrets()
	d := &protocol.Dialog{Type: string(e.Type), Message: clip(s.scrub(e.Message), maxDialog), Default: clip(s.scrub(e.DefaultPrompt), maxDialog)}
	p.mu.Lock()
	defer p.mu.Unlock()
	opened := p.dlg == nil
	p.dlg = d
	if opened {
		close(p.dlgCh)
	}
	p.emit(targets.EventDialog, "", "")
}

func (p *incarnation) dialogClosed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dlg == nil {
		return
	}
	p.dlg = nil
	p.dlgCh = make(chan struct{})
	p.emit(targets.EventDialog, "", "")
}

func (p *incarnation) popupOpened() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.popups++
	p.navChanged()
}
