package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"time"

	"github.com/chromedp/cdproto"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

const (
	castQuality  = 60
	castEvery    = 66 * time.Millisecond // least time between two frames: the answer to one asks for the next
	castInFlight = 1
	castTries    = 50 // to begin a capture, castEvery apart
)

// screencast hands the newest frame to whoever sends it on.
type screencast struct {
	frames chan cdpage.EventScreencastFrame // capacity 1
}

// Frames sends preview frames no wider than width to sink until ctx ends: at
// once the page as it is, then one for each change. It captures nothing while
// nobody calls it. A second call waits for the first to end.
func (p *incarnation) Frames(ctx context.Context, width int, sink func(protocol.FrameHeader, []byte)) error {
	select {
	case p.casting <- struct{}{}:
		defer func() { <-p.casting }()
	case <-ctx.Done():
		return nil
	case <-p.endedCh:
		return fmt.Errorf("the page's preview ended: %w", cdp.ErrDetached)
	}
	c := &screencast{frames: make(chan cdpage.EventScreencastFrame, 1)}
	p.setCast(c)
	defer p.setCast(nil)
	if err := p.startCast(ctx, width); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("starting the page's preview: %w", err)
	}
	defer p.stopCast(ctx)
	return p.sendFrames(ctx, c, sink)
}

// startCast begins the capture. A page that is just between two documents
// refuses that for a moment.
func (p *incarnation) startCast(ctx context.Context, width int) error {
	pause := time.NewTicker(castEvery)
	defer pause.Stop()
	for try := 1; ; try++ {
		_, err := cdprotocol.Call(ctx, p.sess, cdpage.StartScreencast, cdpage.StartScreencastParams{
			Format: cdpage.StartScreencastFormatJpeg, Quality: ptr(int64(castQuality)),
			MaxWidth: int64(width), MaxFramesInFlight: castInFlight,
		})
		var answer *cdproto.Error
		if err == nil || !errors.As(err, &answer) || try == castTries {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.endedCh:
			return cdp.ErrDetached
		}
	}
}

func (p *incarnation) setCast(c *screencast) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cast = c
}

// stopCast ends the capture, so that an unwatched page costs nothing.
func (p *incarnation) stopCast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callMost)
	defer cancel()
	if _, err := cdprotocol.Call(ctx, p.sess, cdpage.StopScreencast, cdprotocol.Empty{}); err != nil && !p.isOver() {
		p.b.log.Debug("ending a preview", "resource", p.spec.Resource, "error", err)
	}
}

// castFrame takes a frame from the browser.
func (p *incarnation) castFrame(e cdpage.EventScreencastFrame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cast == nil {
		return
	}
	select {
	case p.cast.frames <- e:
	default: // more than asked for: the older one goes
		select {
		case <-p.cast.frames:
		default:
		}
		p.cast.frames <- e
	}
}

func (p *incarnation) sendFrames(ctx context.Context, c *screencast, sink func(protocol.FrameHeader, []byte)) error {
	pause := time.NewTimer(0)
	<-pause.C
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.endedCh:
			return fmt.Errorf("the page's preview ended: %w", cdp.ErrDetached)
		case e := <-c.frames:
			if h, ok := p.frameHeader(e); ok {
				sink(h, e.Data)
			}
			// The next frame is asked for only now, and not before its time.
			pause.Reset(castEvery)
			select {
			case <-pause.C:
			case <-ctx.Done():
				return nil
			case <-p.endedCh:
				return fmt.Errorf("the page's preview ended: %w", cdp.ErrDetached)
			}
			ack, cancel := context.WithTimeout(ctx, callMost)
			_, err := cdprotocol.Call(ack, p.sess, cdpage.ScreencastFrameAck, cdpage.ScreencastFrameAckParams{SessionID: e.SessionID})
			cancel()
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("asking for the next frame of the page: %w", err)
			}
		}
	}
}

// frameHeader says what a frame shows: its size, and the map from its pixels to
// CSS pixels of the viewport.
func (p *incarnation) frameHeader(e cdpage.EventScreencastFrame) (protocol.FrameHeader, bool) {
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(e.Data))
	if err != nil || e.Metadata == nil || cfg.Width == 0 || cfg.Height == 0 {
		p.b.log.Warn("a preview frame is not a picture", "resource", p.spec.Resource, "error", err)
		return protocol.FrameHeader{}, false
	}
	m := e.Metadata
	captured := time.Now()
	if m.Timestamp > 0 {
		captured = time.UnixMicro(int64(float64(m.Timestamp) * 1e6))
	}
	zoom := m.PageScaleFactor
	if zoom <= 0 {
		zoom = 1
	}
	p.mu.Lock()
	p.frameSeq++
	seq := p.frameSeq
	p.mu.Unlock()
	return protocol.FrameHeader{
		Resource: p.spec.Resource, Generation: p.spec.Generation, Sequence: seq,
		Captured: protocol.Time(captured.UnixMilli()), Width: cfg.Width, Height: cfg.Height,
		Transform: protocol.Transform{
			A: m.DeviceWidth / float64(cfg.Width) / zoom,
			D: m.DeviceHeight / float64(cfg.Height) / zoom,
		},
		MediaType: "image/jpeg",
	}, true
}
