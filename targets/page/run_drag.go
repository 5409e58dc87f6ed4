package page

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto"
	cdpcore "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/input"

	"reins/protocol"
)

// drag presses at one place, moves in steps and lets go at another.
func (r *run) drag() (step, error) {
	from, err := r.aim(r.pre.found, r.pre.point)
	if err != nil {
		return step{}, err
	}
	to, err := r.dragEnd(from)
	if err != nil {
		return step{}, err
	}
	w, err := r.watch(from.frame, from.h)
	if err != nil {
		return step{}, err
	}
	defer w.cancel()
	native, err := r.interceptDrags(w)
	if err != nil {
		return step{}, err
	}
	defer native.end()
	r.out.Progress = &protocol.Progress{Unit: "points"}
	if err := r.move(from.at, "", 0); err != nil {
		return step{}, err
	}
	if err := r.recheck(from, "", 0); err != nil {
		return step{}, err
	}
	if err := r.press(from.at, "left", 1, 0); err != nil {
		return step{}, err
	}
	for i := 1; i <= r.pre.steps; i++ {
		t := float64(i) / float64(r.pre.steps)
		at := protocol.Point{X: from.at.X + (to.at.X-from.at.X)*t, Y: from.at.Y + (to.at.Y-from.at.Y)*t}
		if err := native.move(at); err != nil {
			return r.dragCut(err)
		}
		r.out.Progress.Done = i
	}
	if err := native.drop(to.at); err != nil {
		return r.dragCut(err)
	}
	seen := w.end(r.late)
	r.rest()
	return dragged(from, seen), nil
}

// dragEnd finds where a drag ends. Bringing the end into view may move the start:
// then both cannot be reached at once.
func (r *run) dragEnd(from *aimed) (*aimed, error) {
	to, err := r.aim(r.pre.to, r.pre.toAt)
	if err != nil {
		return nil, err
	}
	if from.h == 0 || r.pre.to == nil {
		return to, nil
	}
	again, err := r.aimStill(from)
	if err != nil {
		return nil, err
	}
	if !again {
		return nil, problem(protocol.ReasonOutside, "both ends of the drag do not fit into the viewport at once; make it larger, or scroll and drag by steps")
	}
	return to, nil
}

// aimStill finds the start of a drag again, without scrolling.
func (r *run) aimStill(a *aimed) (bool, error) {
	var s aim
	if err := a.frame.world(r.ctx, "aim", &s, a.h, stepMost.Milliseconds(), false); err != nil {
		return false, r.seenTrouble(err)
	}
	if s.X == nil || s.Y == nil {
		return false, nil
	}
	a.x, a.y = *s.X, *s.Y
	return true, r.surface(a)
}

// dragCut says that a drag was stopped in the middle: [writer.letGo] then takes
// the pointer off the page and releases the button, so that nothing is dropped.
func (r *run) dragCut(err error) (step, error) {
	s := r.cutAt(err, r.written-1)
	s.message += fmt.Sprintf("; the drag was stopped after %d of %d points and the button let go beside the page, so that nothing was dropped",
		r.out.Progress.Done, r.pre.steps)
	return s, nil
}

func dragged(from *aimed, seen evidence) step {
	switch {
	case seen.lost:
		return applied(protocol.EffectDispatched)
	case seen.hit("mousedown") || (from.h == 0 && seen.any("mousedown")):
		return applied(protocol.EffectDelivered)
	case seen.any("mousedown") || seen.elsewhere != nil:
		return failed(protocol.ReasonMoved, "the press met %s instead of %s; observe", seen.met("mousedown"), from.words)
	}
	s := failed(protocol.ReasonNoEffect, "input was given and did not reach %s; observe", from.words)
	s.effect = protocol.EffectNone
	return s
}

// nativeDrag is the page's own drag-and-drop. The browser hands such a drag to us
// instead of to the desktop, where it would hang.
type nativeDrag struct {
	r      *run
	w      *watch
	begun  <-chan jsonv2.Value
	cancel func()
	data   *input.DragData // once a native drag is under way
	waited bool            // the browser was given its time to hand it over
}

// nativeBegins is how long after the page's dragstart the browser may take to hand it over.
const nativeBegins = time.Second

// interceptDrags arms the interception before the button goes down.
func (r *run) interceptDrags(w *watch) (*nativeDrag, error) {
	d := &nativeDrag{r: r, w: w}
	d.begun, d.cancel = r.p.sess.Subscribe(cdproto.EventInputDragIntercepted)
	_, err := cdpcore.Call(r.ctx, r.p.session(), input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: true})
	if err != nil {
		d.cancel()
		return nil, r.seenTrouble(err)
	}
	return d, nil
}

// end disarms it; a drag that is still under way is called off, so that nothing is dropped.
func (d *nativeDrag) end() {
	d.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.r.ctx), answerGrace)
	defer cancel()
	if d.data != nil {
		off := &input.DispatchDragEventParams{Type: input.DispatchDragEventTypeDragCancel, X: -1, Y: -1, Data: d.data}
		if d.r.p.sess.Call(ctx, cdproto.CommandInputDispatchDragEvent, off, nil) == nil {
			d.r.p.held.release("left")
		}
	}
	_, _ = cdpcore.Call(ctx, d.r.p.session(), input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: false})
}

// move takes the drag to a point.
func (d *nativeDrag) move(at protocol.Point) error {
	if d.data != nil {
		return d.send(input.DispatchDragEventTypeDragOver, at)
	}
	if err := d.r.move(at, "left", 0); err != nil {
		return err
	}
	select {
	case v, ok := <-d.begun:
		return d.take(v, ok, at)
	default:
	}
	if d.waited {
		return nil
	}
	var e *evidence
	if err := d.w.frame.world(d.r.ctx, "seenBy", &e, d.w.id, true); err != nil || e == nil {
		return d.r.seenTrouble(err)
	}
	if s := e.Seen["dragstart"]; s.N == 0 || s.Stopped {
		return nil
	}
	d.waited = true
	timer := time.NewTimer(nativeBegins)
	defer timer.Stop()
	select {
	case v, ok := <-d.begun:
		return d.take(v, ok, at)
	case <-timer.C:
		return nil // the page called it off in a later handler
	case <-d.r.ctx.Done():
		return context.Cause(d.r.ctx)
	}
}

// take takes over a drag that the browser hands to us.
func (d *nativeDrag) take(v jsonv2.Value, ok bool, at protocol.Point) error {
	if !ok {
		return errFrameGone
	}
	var ev input.EventDragIntercepted
	if err := jsonv2.Unmarshal(v, &ev); err != nil {
		return fmt.Errorf("what is dragged cannot be read: %w", err)
	}
	d.data = ev.Data
	if err := d.send(input.DispatchDragEventTypeDragEnter, at); err != nil {
		return err
	}
	return d.send(input.DispatchDragEventTypeDragOver, at)
}

func (d *nativeDrag) send(t input.DispatchDragEventType, at protocol.Point) error {
	return d.r.do(cdproto.CommandInputDispatchDragEvent, &input.DispatchDragEventParams{Type: t, X: at.X, Y: at.Y, Data: d.data})
}

// drop ends the drag where it is wanted.
func (d *nativeDrag) drop(at protocol.Point) error {
	if d.data == nil {
		return d.r.release(at, "left", 1, 0, true)
	}
	pend, err := d.r.start(cdproto.CommandInputDispatchDragEvent,
		&input.DispatchDragEventParams{Type: input.DispatchDragEventTypeDrop, X: at.X, Y: at.Y, Data: d.data})
	if err != nil {
		return err
	}
	d.r.lastWritten()
	d.data = nil
	err = d.r.wait(pend, nil)
	d.r.p.held.release("left")
	return err
}
