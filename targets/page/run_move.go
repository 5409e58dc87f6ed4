package page

import (
	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"

	"reins/protocol"
)

// wheel is a turn of the wheel. The browser wants both deltas, also a 0, which
// the typed parameters leave out.
type wheel struct {
	Type input.DispatchMouseEventType `json:"type"`
	X    float64                      `json:"x"`
	Y    float64                      `json:"y"`
	DX   float64                      `json:"deltaX"`
	DY   float64                      `json:"deltaY"`
}

// scroll turns the wheel over an element, a point or the middle of the viewport.
func (r *run) scroll() (step, error) {
	at := r.pre.point
	if r.pre.found == nil && at == nil {
		g, err := r.p.measure(r.ctx)
		if err != nil {
			return step{}, r.seenTrouble(err)
		}
		at = &protocol.Point{X: g.W / 2, Y: g.H / 2}
	}
	a, err := r.aim(r.pre.found, at)
	if err != nil {
		return step{}, err
	}
	marked := []*frame{}
	for g := a.frame; g != nil; g = g.parent {
		h := 0
		if g == a.frame {
			h = a.h
		}
		if err := g.world(r.ctx, "scrollMark", nil, h, a.x, a.y); err != nil {
			return step{}, r.seenTrouble(err)
		}
		marked = append(marked, g)
	}
	w, err := r.watch(a.frame, a.h)
	if err != nil {
		return step{}, err
	}
	defer w.cancel()
	turn := wheel{Type: input.DispatchMouseEventTypeMouseWheel, X: a.at.X, Y: a.at.Y, DX: r.pre.scroll.DX, DY: r.pre.scroll.DY}
	pend, err := r.start(cdproto.CommandInputDispatchMouseEvent, turn)
	if err != nil {
		return step{}, err
	}
	r.firstWritten()
	r.lastWritten()
	if err := r.wait(pend, nil); err != nil {
		return step{}, err
	}
	moved := false
	for _, g := range marked {
		var one bool
		if err := g.world(r.late, "scrollMoved", &one, stepMost.Milliseconds()); err == nil && one {
			moved = true
		}
	}
	seen := w.end(r.late)
	r.rest()
	return scrolled(a, moved, seen), nil
}

func scrolled(a *aimed, moved bool, seen evidence) step {
	switch {
	case moved:
		return applied(protocol.EffectConfirmed)
	case seen.lost:
		return applied(protocol.EffectDispatched)
	case seen.Seen["wheel"].Stopped && seen.hit("wheel"):
		return applied(protocol.EffectDelivered) // the page uses the wheel for something of its own
	}
	why := "the wheel turned and nothing scrolled: %s is at its end in that direction, or does not scroll"
	if !seen.any("wheel") {
		why = "the wheel turned and nothing of it reached %s; observe"
	}
	s := failed(protocol.ReasonNoEffect, why, a.words)
	s.effect, s.observe = protocol.EffectNone, false
	return s
}

// resize sets the viewport.
func (r *run) resize() (step, error) {
	v := r.pre.viewport
	pend, err := r.start(cdproto.CommandEmulationSetDeviceMetricsOverride, &emulation.SetDeviceMetricsOverrideParams{
		Width: int64(v.Width), Height: int64(v.Height), DeviceScaleFactor: v.Scale, Mobile: false,
	})
	if err != nil {
		return step{}, err
	}
	r.firstWritten()
	r.lastWritten()
	if err := r.wait(pend, nil); err != nil {
		return step{}, err
	}
	r.rest()
	g, err := r.p.measure(r.ctx)
	if err != nil {
		return applied(protocol.EffectDispatched), nil
	}
	if int(g.W) == v.Width && int(g.H) == v.Height {
		return applied(protocol.EffectConfirmed), nil
	}
	return failed(protocol.ReasonNoEffect, "the viewport is %g × %g CSS pixels instead of %d × %d", g.W, g.H, v.Width, v.Height), nil
}
