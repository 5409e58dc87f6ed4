package page

import (
	"context"

	"reins/protocol"
	"reins/targets"
)

// preparePointer checks click, hover, drag and download.
func (p *incarnation) preparePointer(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	if c.Method == protocol.MethodDrag {
		return p.prepareDrag(ctx, c, pre)
	}
	// The arguments of hover and download are a part of those of click.
	if pr := decode(c, &pre.click); pr != nil {
		return pr
	}
	if pre.click.Button == "" {
		pre.click.Button = "left"
	}
	if pre.click.Count == 0 {
		pre.click.Count = 1
	}
	for _, m := range pre.click.Modifiers {
		if _, ok := modifierKeys[m]; !ok {
			return problem(protocol.ReasonBadArguments, "modifiers: %q is none; use Alt, Control, Meta or Shift", m)
		}
	}
	var pr *protocol.Problem
	pre.found, pre.point, pr = p.prepareEnd(ctx, c, pre.click.Locator, pre.click.Point)
	if pr == nil && pre.found != nil && c.Method != protocol.MethodHover && pre.found.Check.Disabled {
		return problem(protocol.ReasonDisabled, "%s is disabled", pre.found.words())
	}
	return pr
}

func (p *incarnation) prepareDrag(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.DragArguments
	pr := decode(c, &a)
	if pr != nil {
		return pr
	}
	if pre.steps = a.Steps; pre.steps == 0 {
		pre.steps = 10
	}
	if pre.steps < 1 || pre.steps > 100 {
		return problem(protocol.ReasonBadArguments, "steps: 1–100")
	}
	if pre.found, pre.point, pr = p.prepareEnd(ctx, c, a.Locator, a.Point); pr != nil {
		return pr
	}
	if pre.found != nil && pre.found.Check.Disabled {
		return problem(protocol.ReasonDisabled, "%s is disabled", pre.found.words())
	}
	pre.to, pre.toAt, pr = p.prepareEnd(ctx, c, a.ToLocator, a.ToPoint)
	return pr
}

// prepareEnd resolves a locator or checks a point.
func (p *incarnation) prepareEnd(ctx context.Context, c targets.Call, l *protocol.Locator, at *protocol.Point) (*found, *protocol.Point, *protocol.Problem) {
	if (l == nil) == (at == nil) {
		return nil, nil, problem(protocol.ReasonBadArguments, "exactly one of locator and point is needed for each end")
	}
	if at != nil {
		return nil, at, p.checkPoint(ctx, c, *at)
	}
	f, pr := p.locate(ctx, *l, "point")
	if pr != nil {
		return nil, nil, pr
	}
	return f, nil, f.obscured()
}

// obscured refuses an element that is in view and covered, where no scrolling
// can help. What could be scrolled clear is found out after admission.
func (f *found) obscured() *protocol.Problem {
	ck := f.Check
	if ck == nil || !ck.InView || ck.X != nil || ck.Aside {
		return nil
	}
	return problem(protocol.ReasonObscured, "%s is covered by %s; move or close that first", f.words(), ck.By.words())
}

// words says what an element is: button "Save".
func (f *found) words() string {
	name, _ := capRunes(f.Name, 80)
	if name == "" {
		return "the " + f.Role
	}
	return f.Role + " \"" + name + "\""
}

// checkPoint refuses coordinates that were read from another picture of the page.
func (p *incarnation) checkPoint(ctx context.Context, c targets.Call, at protocol.Point) *protocol.Problem {
	if c.Geometry == "" {
		return problem(protocol.ReasonTokenRequired, "coordinates need the token of the observation they were read from")
	}
	g, err := p.measure(ctx)
	if err != nil {
		return p.lookFailed(ctx, err)
	}
	if g.String() != c.Geometry {
		return problem(protocol.ReasonStaleGeometry, "the page scrolled, changed size or navigated since the coordinates were read; observe and read them again")
	}
	if at.X < 0 || at.Y < 0 || at.X >= g.W || at.Y >= g.H {
		return problem(protocol.ReasonOutside, "the point (%g, %g) is outside of the viewport of %g × %g CSS pixels", at.X, at.Y, g.W, g.H)
	}
	return nil
}

// prepareScroll checks where the wheel will turn.
func (p *incarnation) prepareScroll(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	a := &pre.scroll
	if pr := decode(c, a); pr != nil {
		return pr
	}
	const most = 100000
	if a.DX < -most || a.DX > most || a.DY < -most || a.DY > most || (a.DX == 0 && a.DY == 0) {
		return problem(protocol.ReasonBadArguments, "dx and dy are −100000 to 100000 CSS pixels, not both 0")
	}
	if a.Locator == nil && a.Point == nil {
		return nil
	}
	var pr *protocol.Problem
	pre.found, pre.point, pr = p.prepareEnd(ctx, c, a.Locator, a.Point)
	return pr
}
