package cdp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
)

// The limits of a session's queue.
const (
	maxEvents     = 16384 // waiting events of one session; more end it with ErrOverrun
	maxScreencast = 4     // waiting screencast frames of one session; the oldest are dropped
	maxSubscribed = 1024  // waiting events of one subscription; the oldest are dropped
)

// Event is what the browser says of a session without being asked.
type Event struct {
	Method string
	Params jsonv2.Value
}

// Handler is called with the events of a session in their order, on the
// session's own goroutine. It may be slow; it stalls nobody else.
type Handler func(s *Session, ev Event)

// Session is one flat session. It implements the Session of cdproto.
type Session struct {
	conn   *Conn
	parent *Session
	id     target.SessionID
	info   *target.Info

	revoked atomic.Bool
	done    chan struct{}

	mu      sync.Mutex // guards what follows
	cause   error      // why no more commands are taken
	over    bool       // no more events will come
	queue   []Event
	casts   int
	handler Handler
	failed  func(any)
	wake    chan struct{} // capacity 1
	subs    map[string][]chan jsonv2.Value
	running bool
}

func newSession(c *Conn, parent *Session, id target.SessionID, info *target.Info) *Session {
	return &Session{
		conn: c, parent: parent, id: id, info: info,
		done: make(chan struct{}), wake: make(chan struct{}, 1), subs: map[string][]chan jsonv2.Value{},
	}
}

// ID is the session's id; empty for the browser's own.
func (s *Session) ID() target.SessionID { return s.id }

// Info is what the session was attached to, as it was then.
func (s *Session) Info() *target.Info { return s.info }

// Conn is the link of the session.
func (s *Session) Conn() *Conn { return s.conn }

// Done is closed when the session takes no more commands because it crashed,
// was detached or lost its link; [Session.Cause] says why.
func (s *Session) Done() <-chan struct{} { return s.done }

// Cause is why the session ended; nil while it lives.
func (s *Session) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// Revoked reports whether the session, or one above it, was revoked.
func (s *Session) Revoked() bool {
	for ; s != nil; s = s.parent {
		if s.revoked.Load() {
			return true
		}
	}
	return false
}

func (s *Session) below(id target.SessionID) bool {
	for p := s.parent; p != nil; p = p.parent {
		if p.id == id && id != "" {
			return true
		}
	}
	return false
}

// closedFor says why the session may not write; nil: it may.
func (s *Session) closedFor() error {
	if s.Revoked() {
		return ErrRevoked
	}
	return s.Cause()
}

// Handle sets who gets the events, those that already wait included. failed is
// called when h panics; the session then has no handler any more.
func (s *Session) Handle(h Handler, failed func(any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler, s.failed = h, failed
	if !s.running && !s.over {
		s.running = true
		s.conn.wg.Add(1)
		go s.loop()
	}
}

// Subscribe starts to buffer the events of a method. Where nobody reads, the
// oldest are dropped. The channel is closed by cancel or when the session ends.
func (s *Session) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	ch := make(chan jsonv2.Value, maxSubscribed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		close(ch)
		return ch, func() {}
	}
	s.subs[method] = append(s.subs[method], ch)
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, o := range s.subs[method] {
			if o == ch {
				s.subs[method] = append(s.subs[method][:i:i], s.subs[method][i+1:]...)
				close(ch)
				return
			}
		}
	}
}

// push queues an event. It never waits.
func (s *Session) push(ev Event) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	for _, ch := range s.subs[ev.Method] {
		offer(ch, ev.Params)
	}
	if ev.Method == cdproto.EventPageScreencastFrame {
		s.casts++
		if s.casts > maxScreencast {
			s.dropCast()
		}
	}
	s.queue = append(s.queue, ev)
	overrun := len(s.queue) > maxEvents
	if overrun {
		s.queue, s.casts = nil, 0
	}
	s.mu.Unlock()
	if overrun {
		s.end(ErrOverrun)
		s.finish(ErrOverrun)
		return
	}
	s.signal()
}

func offer(ch chan jsonv2.Value, v jsonv2.Value) {
	for {
		select {
		case ch <- v:
			return
		default:
		}
		select {
		case <-ch:
		default:
		}
	}
}

// dropCast drops the oldest waiting screencast frame. s.mu is held.
func (s *Session) dropCast() {
	for i, ev := range s.queue {
		if ev.Method == cdproto.EventPageScreencastFrame {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			s.casts--
			return
		}
	}
}

func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop hands the events to the handler until the session is over.
func (s *Session) loop() {
	defer s.conn.wg.Done()
	for {
		s.mu.Lock()
		batch, h, over := s.queue, s.handler, s.over
		s.queue, s.casts = nil, 0
		s.mu.Unlock()
		for _, ev := range batch {
			s.handle(h, ev)
		}
		if len(batch) > 0 {
			continue
		}
		if over {
			return
		}
		<-s.wake
	}
}

func (s *Session) handle(h Handler, ev Event) {
	if h == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			s.conn.opts.Logger.Error("panic in the handler of a session", "event", ev.Method, "panic", r)
			s.mu.Lock()
			failed := s.failed
			s.handler = nil
			s.mu.Unlock()
			if failed != nil {
				failed(fmt.Errorf("panic while handling %s: %v", ev.Method, r))
			}
		}
	}()
	h(s, ev)
}

// end makes the session take no more commands and ends its waiting calls.
func (s *Session) end(cause error) {
	s.mu.Lock()
	first := s.cause == nil
	if first {
		s.cause = cause
		close(s.done)
	}
	s.mu.Unlock()
	if !first {
		return
	}
	c := s.conn
	c.mu.Lock()
	var calls []*command
	for id, p := range c.pending {
		if p.s == s {
			calls = append(calls, p)
			delete(c.pending, id)
		}
	}
	c.mu.Unlock()
	for _, p := range calls {
		p.end(cause)
	}
}

// finish says that no more events come. Those that wait are still handled.
func (s *Session) finish(cause error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = cause
		close(s.done)
	}
	s.over = true
	for _, chs := range s.subs {
		for _, ch := range chs {
			close(ch)
		}
	}
	s.subs = map[string][]chan jsonv2.Value{}
	s.mu.Unlock()
	s.signal()
}
