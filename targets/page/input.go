package page

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/input"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// answerGrace is how long an answer is waited for after the operation's context
// ended, so that what was cut off can still be told apart from what was lost.
const answerGrace = 300 * time.Millisecond

// writer gives the input of one operation. Each command asks the permit right
// before its bytes leave. It knows what was written and what was answered.
type writer struct {
	p      *incarnation
	permit targets.Permit
	seam   func(protocol.Step)

	ctx  context.Context // of the operation: ends at its deadline, a cancel or a dialog
	late context.Context // ends answerGrace after ctx

	written  int  // input commands written
	lost     bool // an answer never came
	touched  bool // the page was changed without input: scrolled, focused
	complete bool // all input of the primitive was written

	began time.Time // of the first write
	ended time.Time // of the last answer
}

// granted is the context under which the permit is asked.
func (w *writer) granted(ctx context.Context) context.Context { return cdp.WithPermit(ctx, w.permit) }

// start writes one input command.
func (w *writer) start(method string, params any) (*cdp.Pending, error) {
	if err := context.Cause(w.ctx); err != nil {
		return nil, err
	}
	if w.began.IsZero() {
		w.began = time.Now()
	}
	// Under late: a command that is leaving when ctx ends is still waited for.
	pend, err := w.p.sess.Start(w.granted(w.late), method, params)
	if err != nil {
		if cdp.Unanswered(err) {
			w.written++
			w.lost = true
		}
		return nil, err
	}
	w.written++
	return pend, nil
}

// wait waits for the answer of a command that was written.
func (w *writer) wait(pend *cdp.Pending, result any) error {
	err := pend.Wait(w.late, result)
	w.ended = time.Now()
	if err == nil {
		return nil
	}
	if dialogCut(w.ctx, err) {
		// The dialog is the page's answer; the command's own comes when it is closed.
		return errDialog
	}
	if cdp.Unanswered(err) {
		w.lost = true
	}
	return err
}

// do writes one input command and waits for its answer.
func (w *writer) do(method string, params any) error {
	pend, err := w.start(method, params)
	if err != nil {
		return err
	}
	return w.wait(pend, nil)
}

// touch calls a function of the world that changes the page: it asks the permit as well.
func (w *writer) touch(f *frame, name string, out any, args ...any) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	err := f.world(w.granted(w.ctx), name, out, args...)
	switch {
	case err == nil:
		w.touched = true
	case dialogCut(w.ctx, err):
		w.touched = true
		return errDialog
	case cdp.Unanswered(err):
		w.touched, w.lost = true, true
	}
	return err
}

// The mouse.

func mouse(t input.DispatchMouseEventType, at protocol.Point, button string, count int, bits int64) *input.DispatchMouseEventParams {
	p := &input.DispatchMouseEventParams{Type: t, X: at.X, Y: at.Y, Modifiers: bits, Button: input.MouseButton(button), ClickCount: int64(count)}
	switch t {
	case input.DispatchMouseEventTypeMousePressed:
		p.Buttons = buttonBits[button]
	case input.DispatchMouseEventTypeMouseMoved:
		p.Buttons = buttonBits[button]
		if button == "" {
			p.Button = input.MouseButtonNone
		}
	}
	return p
}

var buttonBits = map[string]int64{"left": 1, "right": 2, "middle": 4}

// move moves the pointer, with a button held or none ("").
func (w *writer) move(at protocol.Point, held string, bits int64) error {
	return w.do(cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseMoved, at, held, 0, bits))
}

// startMove moves the pointer and returns before its answer.
func (w *writer) startMove(at protocol.Point) (*cdp.Pending, error) {
	return w.start(cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseMoved, at, "", 0, 0))
}

// press puts a button down. The seam is passed while the answer is still open.
func (w *writer) press(at protocol.Point, button string, count int, bits int64) error {
	w.p.held.press(button, at.X, at.Y)
	pend, err := w.start(cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMousePressed, at, button, count, bits))
	if err != nil {
		if !cdp.Unanswered(err) {
			w.p.held.release(button)
		}
		return err
	}
	w.firstWritten()
	return w.wait(pend, nil)
}

// firstWritten and lastWritten pass the steps between which the input of a
// primitive leaves.
func (w *writer) firstWritten() { w.seam(protocol.StepPressWritten) }

func (w *writer) lastWritten() {
	w.complete = true
	w.seam(protocol.StepReleaseWritten)
}

// release lets a button go. last says that no further input follows.
func (w *writer) release(at protocol.Point, button string, count int, bits int64, last bool) error {
	pend, err := w.start(cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseReleased, at, button, count, bits))
	if err != nil {
		return err
	}
	if last {
		w.lastWritten()
	}
	err = w.wait(pend, nil)
	if err == nil || errors.Is(err, errDialog) {
		// A dialog opens in a handler of the release or of the click after it.
		w.p.held.release(button)
	}
	return err
}

// letGo releases, without a permit, what this operation still holds: nothing is
// begun by it, and a button that stays down would be worse. The pointer is taken
// off the page first, so that nothing is dropped or clicked. Only the
// incarnation's own fence can forbid it, and then the next one releases.
func (w *writer) letGo() {
	still := w.p.held.snapshot()
	if len(still.buttons) == 0 && len(still.keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), answerGrace)
	defer cancel()
	off := protocol.Point{X: -1, Y: -1}
	for _, b := range still.buttons {
		_ = w.p.sess.Call(ctx, cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseMoved, off, b.button, 0, 0), nil)
		if w.p.sess.Call(ctx, cdproto.CommandInputDispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseReleased, off, b.button, 1, 0), nil) == nil {
			w.p.held.release(b.button)
		}
	}
	for i := len(still.keys) - 1; i >= 0; i-- {
		k := still.keys[i]
		up := keyStroke{key: k.key, code: k.code, windows: k.vk}.up(0)
		if w.p.sess.Call(ctx, cdproto.CommandInputDispatchKeyEvent, up, nil) == nil {
			w.p.held.keyUp(k)
		}
	}
}

// The keyboard.

func (k keyStroke) held() heldKey { return heldKey{key: k.key, code: k.code, vk: k.windows} }

// keyDown presses a key and returns before its answer.
func (w *writer) keyDown(k keyStroke, bits int64) (*cdp.Pending, error) {
	w.p.held.keyDown(k.held())
	pend, err := w.start(cdproto.CommandInputDispatchKeyEvent, k.down(bits))
	if err != nil && !cdp.Unanswered(err) {
		w.p.held.keyUp(k.held())
	}
	return pend, err
}

// keyUp lets a key go and returns before its answer.
func (w *writer) keyUp(k keyStroke, bits int64) (*cdp.Pending, error) {
	return w.start(cdproto.CommandInputDispatchKeyEvent, k.up(bits))
}

// stroke is one command that was written, and what to do when it was answered.
type stroke struct {
	pend *cdp.Pending
	up   *keyStroke
}

// finish waits for strokes in their order and says how many were answered.
func (w *writer) finish(strokes []stroke) (answered int, err error) {
	for i, s := range strokes {
		err := w.wait(s.pend, nil)
		if s.up != nil && (err == nil || errors.Is(err, errDialog)) {
			w.p.held.keyUp(s.up.held())
		}
		if err != nil {
			// What follows was written as well; a dialog ends the waiting for all of it.
			for _, rest := range strokes[i+1:] {
				if w.wait(rest.pend, nil) == nil || errors.Is(err, errDialog) {
					if rest.up != nil {
						w.p.held.keyUp(rest.up.held())
					}
				}
			}
			return i, err
		}
	}
	return len(strokes), nil
}
