package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// headerRoom is kept free of the largest payload for headers and the protocol's own words.
const headerRoom = 4 << 10

// Publisher tells everybody on the bus what happens. It implements
// [protocol.Publisher] and never blocks.
type Publisher struct {
	nc    *gonats.Conn
	log   *slog.Logger
	box   *box
	limit int64 // bytes of a picture; kept, since asking the connection can wait for a write

	stop  chan struct{} // closed by Close: tell what waits, then end
	ended chan struct{} // closed when the goroutine has ended
	once  sync.Once
}

var _ protocol.Publisher = (*Publisher)(nil)

// NewPublisher makes a publisher on a connection of the daemon. It ends by Close,
// or when the connection is closed for good.
func NewPublisher(nc *gonats.Conn, log *slog.Logger) *Publisher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Publisher{nc: nc, log: log, box: newBox(), limit: nc.MaxPayload() - headerRoom,
		stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run(nc.StatusChanged(gonats.CLOSED))
	return p
}

// Cue implements [protocol.Publisher].
func (p *Publisher) Cue(c protocol.Cue) { p.box.putCue(c) }

// Record implements [protocol.Publisher].
func (p *Publisher) Record(r protocol.Record) { p.box.putRecord(r) }

// Frame implements [protocol.Publisher]. The image is not copied.
func (p *Publisher) Frame(h protocol.FrameHeader, image []byte) {
	if int64(len(image)) > p.limit {
		p.log.Warn("a preview frame is over the message limit and is not sent", "resource", h.Resource, "bytes", len(image), "limit", p.limit)
		p.box.drop(item{frame: &frame{}})
		return
	}
	p.box.putFrame(h, image)
}

// Dropped counts what was not told: it came faster than the bus took it, or was over its limit.
func (p *Publisher) Dropped() Dropped { return p.box.counts() }

// Close tells what waits, until ctx ends, and ends the publisher.
func (p *Publisher) Close(ctx context.Context) error {
	p.once.Do(func() {
		p.box.close()
		close(p.stop)
	})
	select {
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("not everything could be told to the viewers: %w", ctx.Err())
	}
	if p.nc.IsClosed() {
		return nil
	}
	if err := p.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("the last words to the viewers were not taken: %w", err)
	}
	return nil
}

func (p *Publisher) run(closed chan gonats.Status) {
	defer close(p.ended)
	defer p.nc.RemoveStatusListener(closed)
	for {
		p.tell()
		select {
		case <-p.box.ready:
		case <-closed:
			return
		case <-p.stop:
			p.tell()
			return
		}
	}
}

// tell publishes everything that waits.
func (p *Publisher) tell() {
	for {
		i, ok := p.box.take()
		if !ok {
			return
		}
		if err := p.publish(i); err != nil {
			p.box.drop(i)
			p.log.Debug("something could not be published", "error", err)
		}
	}
}

func (p *Publisher) publish(i item) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("publishing panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	switch {
	case i.cue != nil:
		return p.send(SubjectCue, i.cue.Resource, i.cue)
	case i.record != nil:
		return p.send(SubjectRecord, i.record.ID, i.record)
	}
	header, err := json.Marshal(i.frame.header)
	if err != nil {
		return err
	}
	if !isToken(i.frame.header.Resource) {
		return fmt.Errorf("%.40q can be no part of a subject", i.frame.header.Resource)
	}
	return p.nc.PublishMsg(&gonats.Msg{
		Subject: withResource(SubjectFrame, i.frame.header.Resource),
		Header:  gonats.Header{HeaderFrame: {string(header)}},
		Data:    i.frame.image,
	})
}

func (p *Publisher) send(pattern string, id protocol.ResourceID, v any) error {
	if !isToken(id) {
		return fmt.Errorf("%.40q can be no part of a subject", id)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.nc.Publish(withResource(pattern, id), body)
}
