package page

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

// Read looks at the page. It changes nothing, so what a navigation or a new
// frame interrupts is simply looked at again.
func (p *incarnation) Read(ctx context.Context, req protocol.ReadRequest) (protocol.ReadReply, string) {
	ctx, cancel := readDeadline(ctx, req)
	defer cancel()
	var reply protocol.ReadReply
	var geometry string
	switch req.Method {
	case protocol.MethodObserve:
		reply, geometry = p.readObserve(ctx, req.Arguments)
	case protocol.MethodScreenshot:
		reply, geometry = p.readScreenshot(ctx, req.Arguments)
	case protocol.MethodWait:
		reply = p.readWait(ctx, req.Arguments)
		geometry = p.knownGeometry()
	case protocol.MethodVerify:
		reply = p.readVerify(ctx, req.Arguments)
		geometry = p.knownGeometry()
	default:
		reply.Problem = problem(protocol.ReasonUnknownMethod, "a page cannot be read by %q", req.Method)
	}
	if reply.Problem != nil {
		return protocol.ReadReply{Problem: p.cleanProblem(reply.Problem)}, ""
	}
	return reply, geometry
}

// readDeadline bounds a read by what it asks for, or by the default.
func readDeadline(ctx context.Context, req protocol.ReadRequest) (context.Context, context.CancelFunc) {
	most := protocol.ReadDeadline
	if req.Method == protocol.MethodWait {
		most = protocol.WaitDeadline
	}
	if req.DeadlineMS > 0 {
		most = min(time.Duration(req.DeadlineMS)*time.Millisecond, protocol.MaxDeadline)
	}
	return context.WithTimeout(ctx, most)
}

func decodeRead(raw json.RawMessage, into any) *protocol.Problem {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return problem(protocol.ReasonBadArguments, "the arguments cannot be read: %v", err)
	}
	return nil
}

func (p *incarnation) readObserve(ctx context.Context, raw json.RawMessage) (protocol.ReadReply, string) {
	var a protocol.ObserveArguments
	if pr := decodeRead(raw, &a); pr != nil {
		return protocol.ReadReply{Problem: pr}, ""
	}
	o, g, pr := p.observe(ctx, a)
	if pr != nil {
		return protocol.ReadReply{Problem: pr}, ""
	}
	reply := protocol.ReadReply{Observation: o}
	if a.Image && o.Page.Dialog == nil {
		bytes, pr := p.capture(ctx, o, protocol.ScreenshotArguments{})
		if pr != nil {
			return protocol.ReadReply{Problem: pr}, ""
		}
		reply.ImageBytes = bytes
	}
	return reply, g
}

// rereads is how often a read is done again whose script failed: the world of a
// new document may not be there yet.
const rereads = 5

// rereadMost is the longest pause before a read is done again.
const rereadMost = 80 * time.Millisecond

// retry does a read again when a navigation took its document away meanwhile, as
// long as ctx lasts.
func retry[T any](ctx context.Context, p *incarnation, read func() (T, error)) (T, error) {
	pause := 10 * time.Millisecond
	for failed := 0; ; {
		changed := p.navSignal()
		out, err := read()
		if err == nil || ctx.Err() != nil || p.isOver() || !interrupted(err) {
			return out, err
		}
		var thrown *scriptError
		if errors.As(err, &thrown) {
			if failed++; failed > rereads {
				return out, err
			}
		}
		wait := time.NewTimer(pause)
		pause = min(2*pause, rereadMost)
		select {
		case <-changed:
		case <-wait.C:
		case <-ctx.Done():
		case <-p.ended():
		}
		wait.Stop()
	}
}

// interrupted: the document went away, or its world is not there yet.
func interrupted(err error) bool {
	var thrown *scriptError
	return errors.Is(err, errFrameGone) || errors.Is(err, errNoDocument) || errors.Is(err, cdp.ErrDetached) || errors.As(err, &thrown)
}
