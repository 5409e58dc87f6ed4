package page

import (
	"context"
	"fmt"
	"sync"

	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// incarnation is one life of a Page: one session on one target.
type incarnation struct {
	host   *Host
	b      *browserProcess
	slot   *slot
	spec   targets.Spec
	target target.ID
	tab    *pageTarget
	sess   *cdp.Session
	held   *held
	world  string // name of the isolated world, of this incarnation alone
	fresh  bool   // the target was made for this incarnation: nobody gave it input before

	ctx     context.Context // ends with the incarnation
	cancel  context.CancelFunc
	endedCh chan struct{}
	events  chan targets.Event
	ready   chan struct{} // closed when the session is set up, or cannot be
	casting chan struct{} // the turn to run a screencast

	// actOnce makes act: what looking and acting keep.
	actOnce sync.Once
	act     *acting

	revokeOnce sync.Once

	mu        sync.Mutex // guards what follows
	tree      tree
	kids      map[*cdp.Session]bool // sessions of frames in other processes; true: its frames are known
	changed   chan struct{}         // closed when tree or kids change
	navst     navState
	navs      uint64
	navCh     chan struct{}
	confirmed protocol.Page
	told      string // the document whose navigation was told
	dlg       *protocol.Dialog
	dlgCh     chan struct{}
	lastError loadError
	popups    uint64
	hint      string // the browser's word for the title, when it was last looked at
	learning  bool
	again     bool
	subs      map[chan bindingCall]bool
	cast      *screencast
	frameSeq  uint64
	done      bool
	setupErr  error
}

var _ targets.Incarnation = (*incarnation)(nil)

// navState is where the main frame is.
type navState struct {
	document string // loader id of the committed document
	url      string // of the committed document; where it failed, the one asked for
	title    string
	status   int    // HTTP status, 0 if unknown
	loading  bool   // a load or a navigation is under way
	failed   string // the browser's word for why the last load failed, as net::ERR_…
}

// bindingCall is one report of the isolated world's script.
type bindingCall struct {
	frame   cdprotocol.FrameID // empty if its document went away meanwhile
	payload string
}

// maxReports is how many reports wait for one subscriber; the oldest are dropped.
const maxReports = 1024

func newIncarnation(b *browserProcess, s *slot, spec targets.Spec, tab *pageTarget, sess *cdp.Session, fresh bool) *incarnation {
	p := &incarnation{
		host: b.host, b: b, slot: s, spec: spec, target: tab.id, tab: tab, sess: sess, held: s.held, fresh: fresh,
		world:   fmt.Sprintf("reins/%s", sess.ID()),
		endedCh: make(chan struct{}), events: make(chan targets.Event, maxEvents), ready: make(chan struct{}),
		casting: make(chan struct{}, 1), tree: newTree(), changed: make(chan struct{}),
		navCh: make(chan struct{}), dlgCh: make(chan struct{}), subs: map[chan bindingCall]bool{},
		kids: map[*cdp.Session]bool{},
	}
	p.ctx, p.cancel = context.WithCancel(b.ctx)
	return p
}

// spawn runs work that belongs to the incarnation. A panic ends the incarnation
// with an event, never the process.
func (p *incarnation) spawn(what string, work func()) {
	p.b.spawn(what, func() {
		defer func() {
			if r := recover(); r != nil {
				p.b.log.Error("panic in a page's work", "resource", p.spec.Resource, "in", what, "panic", r)
				p.crash(protocol.ReasonInternal, fmt.Sprintf("panic in %s: %v", what, r))
			}
		}()
		work()
	})
}

// frames lists the live frames: main first, in tree order.
func (p *incarnation) frames() []*frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.root.list(nil)
}

// worldIn returns the isolated world of a document, if it is there, and a
// channel that is closed when the frames change.
func (p *incarnation) worldIn(f *frame) (worldRef, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tree.live(f) {
		return worldRef{}, nil, errFrameGone
	}
	return p.tree.worlds[worldKey{f.sess, f.id}], p.changed, nil
}

// session is the main frame's session, for typed calls.
func (p *incarnation) session() cdprotocol.Session { return p.sess }

// dialog is the dialog that stands open, or nil.
func (p *incarnation) dialog() *protocol.Dialog {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dlg
}

// dialogSignal is closed when a dialog opens, or is closed already while one stands open.
func (p *incarnation) dialogSignal() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dlgCh
}

// navigations counts the main frame's documents.
func (p *incarnation) navigations() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.navs
}

// nav is the state of the main frame.
func (p *incarnation) nav() navState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.navst
}

// navSignal is closed at the next change of nav; ask again for the one after.
func (p *incarnation) navSignal() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.navCh
}

// popupCount counts the pages that this one opened.
func (p *incarnation) popupCount() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.popups
}

// ended is closed when the incarnation is over: crashed, gone, revoked or closed.
func (p *incarnation) ended() <-chan struct{} { return p.endedCh }

func (p *incarnation) isOver() bool {
	select {
	case <-p.endedCh:
		return true
	default:
		return false
	}
}

// subscribeBinding delivers the reports of the isolated worlds of all frames.
// Where nobody reads, the oldest are dropped. The channel is closed by cancel,
// or when the incarnation ends.
func (p *incarnation) subscribeBinding() (<-chan bindingCall, func()) {
	ch := make(chan bindingCall, maxReports)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		close(ch)
		return ch, func() {}
	}
	p.subs[ch] = true
	return ch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.subs[ch] {
			delete(p.subs, ch)
			close(ch)
		}
	}
}

// Snapshot is the last confirmed state of the Page: the browser's own error
// page is none.
func (p *incarnation) Snapshot() protocol.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot()
}

// snapshot is Snapshot with p.mu held.
func (p *incarnation) snapshot() protocol.Page {
	s := p.confirmed
	s.Loading, s.Dialog = p.navst.loading, p.dlg
	return s
}

// Events tells what happens without an operation of ours.
func (p *incarnation) Events() <-chan targets.Event { return p.events }
