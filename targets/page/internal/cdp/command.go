package cdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"
)

// permit is the part of targets.Permit that the writer asks.
type permit interface{ Use() error }

type permitKey struct{}

// WithPermit returns a context whose commands ask p while they hold the write
// token, right before their bytes leave. Where p answers an error nothing is
// written, and the call returns that error, wrapped.
func WithPermit(ctx context.Context, p interface{ Use() error }) context.Context {
	return context.WithValue(ctx, permitKey{}, permit(p))
}

// command is one message on its way out, and the wait for its answer.
type command struct {
	s      *Session
	method string
	params jsonv2.Value
	permit permit
	inline bool // its answer goes through the session's queue as well

	id      int64
	phase   atomic.Int32  // phaseQueued, then phaseLeaving or phaseAbandoned
	written atomic.Bool   // a byte may have left
	sent    chan error    // the writer's word: nil, or why nothing was written; capacity 1
	ended   chan struct{} // closed when reply or cause is set
	once    atomic.Bool
	reply   *cdproto.Message
	cause   error
}

// The phases of a command. Who takes it out of phaseQueued decides whether its
// bytes leave.
const (
	phaseQueued int32 = iota
	phaseLeaving
	phaseAbandoned
)

var errAbandoned = errors.New("its caller gave up before it was written")

func (p *command) answer(m *cdproto.Message) {
	if p.once.CompareAndSwap(false, true) {
		p.reply = m
		close(p.ended)
	}
}

func (p *command) end(cause error) {
	if p.once.CompareAndSwap(false, true) {
		p.cause = cause
		close(p.ended)
	}
}

func (p *command) fail(cause error) error {
	return &callError{method: p.method, written: p.written.Load(), cause: cause}
}

// Pending is a command that was written and waits for its answer.
type Pending struct{ p *command }

// Start writes a command and returns without waiting for its answer, so that
// several can be on their way in a fixed order. An error is always [NotWritten],
// unless ctx ended while the bytes were leaving.
func (s *Session) Start(ctx context.Context, method string, params any) (*Pending, error) {
	return s.start(ctx, method, params, false)
}

// StartInline is Start for a command whose result the session's handler gets as
// an event of the command's name, in order with the events round it.
func (s *Session) StartInline(ctx context.Context, method string, params any) (*Pending, error) {
	return s.start(ctx, method, params, true)
}

func (s *Session) start(ctx context.Context, method string, params any, inline bool) (*Pending, error) {
	p := &command{s: s, method: method, inline: inline, sent: make(chan error, 1), ended: make(chan struct{})}
	p.permit, _ = ctx.Value(permitKey{}).(permit)
	if params != nil {
		b, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
		if err != nil {
			return nil, p.fail(fmt.Errorf("encoding its parameters: %w", err))
		}
		p.params = b
	}
	c := s.conn
	select {
	case <-ctx.Done():
		return nil, p.fail(ctx.Err())
	default:
	}
	select {
	case c.queue <- p:
	case <-ctx.Done():
		return nil, p.fail(ctx.Err())
	case <-c.done:
		return nil, p.fail(c.lostCause())
	}
	select {
	case err := <-p.sent:
		if err != nil {
			return nil, p.fail(err)
		}
		return &Pending{p}, nil
	case <-ctx.Done():
		return nil, p.abandon(ctx)
	}
}

// abandon gives up on a command whose write is under way.
func (p *command) abandon(ctx context.Context) error {
	written := !p.phase.CompareAndSwap(phaseQueued, phaseAbandoned)
	if written {
		// The bytes are leaving now, or have left, or failed to.
		select {
		case err := <-p.sent:
			if err != nil {
				return p.fail(err)
			}
		default:
		}
	}
	p.s.conn.forget(p)
	return &callError{method: p.method, written: written, cause: ctx.Err()}
}

// Wait waits for the answer and decodes it into result, unless that is nil.
func (w *Pending) Wait(ctx context.Context, result any) error {
	p := w.p
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.end(ctx.Err()) // loses against an answer that is just there
		<-p.ended
		p.s.conn.forget(p)
	}
	if p.cause != nil {
		return p.fail(p.cause)
	}
	if p.reply.Error != nil {
		return fmt.Errorf("%s: %w", p.method, p.reply.Error)
	}
	if result == nil || len(p.reply.Result) == 0 {
		return nil
	}
	if err := jsonv2.Unmarshal(p.reply.Result, result, chromedp.DefaultUnmarshalOptions); err != nil {
		return fmt.Errorf("%s: decoding its answer: %w", p.method, err)
	}
	return nil
}

// Call writes a command and waits for its answer. It implements the Session of
// cdproto, so that cdp.Call is typed.
func (s *Session) Call(ctx context.Context, method string, params, result any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultDeadline)
		defer cancel()
	}
	p, err := s.Start(ctx, method, params)
	if err != nil {
		return err
	}
	return p.Wait(ctx, result)
}

func (c *Conn) forget(p *command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, p.id)
}

func (c *Conn) lostCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return c.down
	}
	return ErrDown
}

// write is the writer: the only goroutine that puts bytes on the pipe.
func (c *Conn) write() {
	defer c.wg.Done()
	for {
		select {
		case <-c.done:
			return
		case p := <-c.queue:
			p.sent <- c.put(p)
		}
	}
}

// put writes one command while it holds the write token. An error means that
// nothing was written, unless p.written says otherwise.
func (c *Conn) put(p *command) (err error) {
	select {
	case <-c.token:
	case <-c.done:
		return c.lostCause()
	}
	defer func() { c.token <- struct{}{} }()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic while writing %s: %v", p.method, r)
			if p.written.Load() {
				c.lose(fmt.Errorf("%w: %w", ErrDown, err))
			}
		}
	}()
	if err := c.register(p); err != nil {
		return err
	}
	// Asked after it was registered: a session that ends from here on finds it.
	if cause := p.s.closedFor(); cause != nil {
		c.forget(p)
		return cause
	}
	if p.permit != nil {
		if err := p.permit.Use(); err != nil {
			c.forget(p)
			return err
		}
	}
	if !p.phase.CompareAndSwap(phaseQueued, phaseLeaving) {
		c.forget(p)
		return errAbandoned
	}
	p.written.Store(true)
	before := c.out.total.Load()
	m := &cdproto.Message{ID: p.id, SessionID: p.s.id, Method: cdproto.MethodType(p.method), Params: p.params}
	if err := c.pipe.Write(context.Background(), m); err != nil {
		c.forget(p)
		p.written.Store(c.out.total.Load() != before)
		// Whatever the reason, the next message could not be told from the rest of this one.
		c.lose(fmt.Errorf("%w: %w", ErrDown, err))
		return c.lostCause()
	}
	return nil
}

func (c *Conn) register(p *command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return c.down
	}
	for {
		c.lastID = c.lastID%maxID + 1
		if c.pending[c.lastID] == nil {
			break
		}
	}
	p.id = c.lastID
	c.pending[p.id] = p
	return nil
}

// countingWriter knows how many bytes went out, so that a failed write that
// wrote nothing can be told from one that was cut in the middle.
type countingWriter struct {
	w     io.WriteCloser
	total atomic.Int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.total.Add(int64(n))
	return n, err
}

func (w *countingWriter) Close() error { return w.w.Close() }
