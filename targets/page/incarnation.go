package page

import (
	"sync"

	cdproto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// incarnation is one life of a Page: one session on one target.
type incarnation struct {
	host   *Host
	spec   targets.Spec
	target target.ID
	sess   *cdp.Session
	held   *held

	mu sync.Mutex
}

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
	frame   cdproto.FrameID
	payload string
}

// frames lists the live frames: main first, in tree order.
func (p *incarnation) frames() []*frame { return nil }

// session is the main frame's session, for typed calls.
func (p *incarnation) session() cdproto.Session { return p.sess }

// dialog is the dialog that stands open, or nil.
func (p *incarnation) dialog() *protocol.Dialog { return nil }

// dialogSignal is closed when a dialog opens, or is closed already while one stands open.
func (p *incarnation) dialogSignal() <-chan struct{} { return nil }

// navigations counts the main frame's documents.
func (p *incarnation) navigations() uint64 { return 0 }

// nav is the state of the main frame.
func (p *incarnation) nav() navState { return navState{} }

// navSignal is closed at the next change of nav; ask again for the one after.
func (p *incarnation) navSignal() <-chan struct{} { return nil }

// popupCount counts the pages that this one opened.
func (p *incarnation) popupCount() uint64 { return 0 }

// subscribeBinding delivers the reports of the isolated worlds of all frames.
// Where nobody reads, the oldest are dropped. cancel closes the channel.
func (p *incarnation) subscribeBinding() (<-chan bindingCall, func()) { return nil, func() {} }

// ended is closed when the incarnation is over: crashed, gone, revoked or closed.
func (p *incarnation) ended() <-chan struct{} { return nil }
