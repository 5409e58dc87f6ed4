package page

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cdproto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"

	"reins/protocol"
)

// errFrameHidden says that a frame takes up no room on the page.
var errFrameHidden = errors.New("the frame is not shown")

// frameMap maps a frame's viewport to that of a frame above it, in CSS pixels.
type frameMap struct{ sx, sy, dx, dy float64 }

var sameFrame = frameMap{1, 1, 0, 0}

func (m frameMap) point(x, y float64) protocol.Point {
	return protocol.Point{X: m.sx*x + m.dx, Y: m.sy*y + m.dy}
}

func (m frameMap) box(b [4]float64) [4]float64 {
	return [4]float64{m.sx*b[0] + m.dx, m.sy*b[1] + m.dy, m.sx * b[2], m.sy * b[3]}
}

// within is the map through m and then through outer.
func (m frameMap) within(outer frameMap) frameMap {
	return frameMap{m.sx * outer.sx, m.sy * outer.sy, outer.sx*m.dx + outer.dx, outer.sy*m.dy + outer.dy}
}

// owner finds the element of the parent's document that shows the frame.
func (f *frame) owner(ctx context.Context) (frameOwner, error) {
	a := f.p.acting()
	a.mu.Lock()
	o, ok := a.owners[f]
	a.mu.Unlock()
	if ok {
		return o, nil
	}
	own, err := cdproto.Call(ctx, f.parent.sess, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
	if err != nil {
		return o, fmt.Errorf("finding the element of a frame: %w", err)
	}
	world, err := f.parent.worldContext(ctx)
	if err != nil {
		return o, err
	}
	res, err := cdproto.Call(ctx, f.parent.sess, dom.ResolveNode, dom.ResolveNodeParams{
		BackendNodeID: own.BackendNodeID, ExecutionContextID: world, ObjectGroup: "reins",
	})
	if err != nil {
		return o, fmt.Errorf("resolving the element of a frame: %w", err)
	}
	o.handle = res.Object.ObjectID
	if err := f.parent.call(ctx, "(o) => typeof o.id === 'string' ? o.id : ''", &o.elemID, o.handle); err != nil {
		return o, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	live := f.p.frames()
	for old := range a.owners {
		if !slices.Contains(live, old) {
			delete(a.owners, old)
		}
	}
	a.owners[f] = o
	return o, nil
}

// toParent maps the frame's viewport to its parent's.
func (f *frame) toParent(ctx context.Context) (frameMap, error) {
	o, err := f.owner(ctx)
	if err != nil {
		return frameMap{}, err
	}
	var m struct {
		X, Y, SX, SY float64
		Shown        bool
	}
	if err := f.parent.world(ctx, "ownerBox", &m, o.handle); err != nil {
		return frameMap{}, err
	}
	if !m.Shown {
		return frameMap{}, errFrameHidden
	}
	return frameMap{m.SX, m.SY, m.X, m.Y}, nil
}

// toMain maps the frame's viewport to the main frame's.
func (f *frame) toMain(ctx context.Context) (frameMap, error) {
	m := sameFrame
	for g := f; !g.main; g = g.parent {
		up, err := g.toParent(ctx)
		if err != nil {
			return frameMap{}, err
		}
		m = m.within(up)
	}
	return m, nil
}

// words is how an observation names a frame; empty for the main one.
func (f *frame) words() string {
	if f.main {
		return ""
	}
	if f.name != "" {
		return f.name
	}
	return cleanURL(f.url)
}

// named reports whether a locator's frame is this one: by name, URL or the id
// of its element.
func (f *frame) named(ctx context.Context, want string) bool {
	if f.name == want || f.url == want || f.words() == want && !f.main {
		return true
	}
	if f.main {
		return false
	}
	o, err := f.owner(ctx)
	return err == nil && o.elemID == want
}
