package cdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// The limits of a link.
const (
	// DefaultDeadline ends a call whose context has none.
	DefaultDeadline = 6 * time.Second
	// RevokeWait is how long [Conn.Revoke] waits out a write in progress.
	RevokeWait = 100 * time.Millisecond

	maxID          = 1<<31 - 1
	maxUndecodable = 16 // messages in a row
)

// Options are the settings of a [Conn]. The zero value works.
type Options struct {
	Logger *slog.Logger
	// Discard names events that nobody wants; the reader drops them at once, so
	// that a page that floods them costs no queue. nil keeps all.
	Discard func(method string) bool
}

// Conn is the link to one browser. Its methods may be called concurrently.
type Conn struct {
	opts  Options
	pipe  chromedp.Transport
	out   *countingWriter
	token chan struct{} // the write token: who holds it may write
	queue chan *command // to the writer
	done  chan struct{} // closed when the link is down
	cut   sync.Once
	wg    sync.WaitGroup

	browser *Session

	mu       sync.Mutex // guards what follows
	down     error
	lastID   int64
	pending  map[int64]*command
	sessions map[target.SessionID]*Session
}

// New makes a link of the two pipe ends that the browser reads its commands
// from (w) and writes its answers to (r). [Conn.Close] closes both.
func New(r io.ReadCloser, w io.WriteCloser, opts Options) *Conn {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Discard == nil {
		opts.Discard = func(string) bool { return false }
	}
	out := &countingWriter{w: w}
	c := &Conn{
		opts:     opts,
		pipe:     chromedp.NewPipeConn(r, out),
		out:      out,
		token:    make(chan struct{}, 1),
		queue:    make(chan *command),
		done:     make(chan struct{}),
		pending:  map[int64]*command{},
		sessions: map[target.SessionID]*Session{},
	}
	c.token <- struct{}{}
	c.browser = newSession(c, nil, "", nil)
	c.wg.Add(2)
	go c.read()
	go c.write()
	return c
}

// Browser is the session of the browser itself.
func (c *Conn) Browser() *Session { return c.browser }

// Done is closed when the link is down.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close cuts the link, which ends the browser, and waits for the link's goroutines.
func (c *Conn) Close() {
	c.lose(ErrDown)
	c.wg.Wait()
}

// Revoke ends the right of s and of every session below it to write. When it
// returns no byte of theirs will be written: it waits out a write in progress
// for [RevokeWait] and cuts the link if that does not end. Idempotent.
func (c *Conn) Revoke(s *Session) {
	s.revoked.Store(true)
	select {
	case <-c.token:
		c.token <- struct{}{}
		return
	case <-c.done:
	case <-time.After(RevokeWait):
		c.opts.Logger.Warn("a write did not end in time for a revocation: cutting the link to the browser")
		c.lose(fmt.Errorf("%w: cut, because a write in progress did not end", ErrDown))
	}
	// The pipe is closed, so that the write in progress, if any, cannot add a byte.
}

// lose marks the link down and ends everything that waits on it.
func (c *Conn) lose(cause error) {
	c.cut.Do(func() {
		c.mu.Lock()
		c.down = cause
		ended := make([]*Session, 0, len(c.sessions)+1)
		for _, s := range c.sessions {
			ended = append(ended, s)
		}
		ended = append(ended, c.browser)
		c.sessions = map[target.SessionID]*Session{}
		calls := c.pending
		c.pending = map[int64]*command{}
		c.mu.Unlock()

		close(c.done)
		if err := c.pipe.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			c.opts.Logger.Debug("closing the pipes of the browser", "error", err)
		}
		for _, p := range calls {
			p.end(cause)
		}
		for _, s := range ended {
			s.finish(cause)
		}
	})
}

// read routes what the browser sends until the link is down.
func (c *Conn) read() {
	defer c.wg.Done()
	defer func() {
		if r := recover(); r != nil {
			c.opts.Logger.Error("panic in the reader of the browser's link", "panic", r)
			c.lose(fmt.Errorf("%w: %v", ErrDown, r))
		}
	}()
	for bad := 0; ; {
		var m cdproto.Message
		err := c.pipe.Read(context.Background(), &m)
		if err != nil {
			if bad++; bad > maxUndecodable || lost(err) {
				c.lose(fmt.Errorf("%w: %w", ErrDown, err))
				return
			}
			// One message that does not decode. A call that waits for it ends by its deadline.
			c.opts.Logger.Warn("a message of the browser does not decode", "error", err)
			continue
		}
		bad = 0
		if m.ID != 0 {
			c.answer(&m)
			continue
		}
		c.event(string(m.Method), m.SessionID, m.Params)
	}
}

// lost tells an error of the pipe from a message that does not decode. The ends
// of the input are compared as they are: a cut message wraps the same ones.
func lost(err error) bool {
	var pe *fs.PathError
	return err == io.EOF || err == io.ErrUnexpectedEOF || errors.Is(err, fs.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe) || errors.As(err, &pe)
}

func (c *Conn) answer(m *cdproto.Message) {
	c.mu.Lock()
	p := c.pending[m.ID]
	delete(c.pending, m.ID)
	c.mu.Unlock()
	if p == nil {
		return // its caller has given up
	}
	if p.inline && m.Error == nil {
		p.s.push(Event{Method: p.method, Params: m.Result})
	}
	p.answer(m)
}

// event keeps the tree of sessions and hands the event to its session's queue.
func (c *Conn) event(method string, id target.SessionID, params jsonv2.Value) {
	if c.opts.Discard(method) {
		return
	}
	s := c.session(id)
	if s == nil {
		return
	}
	switch method {
	case cdproto.EventTargetAttachedToTarget:
		c.attached(s, params)
	case cdproto.EventTargetDetachedFromTarget:
		var ev target.EventDetachedFromTarget
		if jsonv2.Unmarshal(params, &ev) == nil {
			// Queued first, so that the parent hears of it after all earlier events.
			s.push(Event{Method: method, Params: params})
			c.detach(ev.SessionID, ErrDetached)
			return
		}
	case cdproto.EventInspectorTargetCrashed:
		s.push(Event{Method: method, Params: params})
		s.end(ErrCrashed)
		return
	}
	s.push(Event{Method: method, Params: params})
}

func (c *Conn) session(id target.SessionID) *Session {
	if id == "" {
		return c.browser
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// Session returns the session with that id, or nil.
func (c *Conn) Session(id target.SessionID) *Session {
	if id == "" {
		return nil
	}
	return c.session(id)
}

func (c *Conn) attached(parent *Session, params jsonv2.Value) {
	var ev target.EventAttachedToTarget
	if err := jsonv2.Unmarshal(params, &ev); err != nil {
		c.opts.Logger.Warn("Target.attachedToTarget does not decode", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil || c.sessions[ev.SessionID] != nil {
		return
	}
	c.sessions[ev.SessionID] = newSession(c, parent, ev.SessionID, ev.TargetInfo)
}

// detach ends a session and those below it.
func (c *Conn) detach(id target.SessionID, cause error) {
	c.mu.Lock()
	var gone []*Session
	for sid, s := range c.sessions {
		if sid == id || s.below(id) {
			gone = append(gone, s)
			delete(c.sessions, sid)
		}
	}
	c.mu.Unlock()
	for _, s := range gone {
		s.end(cause)
		s.finish(cause)
	}
}
