package page

import (
	"context"
	"encoding/json"
	"fmt"

	cdproto "github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
	"reins/targets"
)

// prepared is what Prepare hands to Run: decoded arguments and what was found.
type prepared struct {
	method protocol.Method
	found  *found // nil: a point, the focus, or nothing
	to     *found // where a drag ends
	point  *protocol.Point
	toAt   *protocol.Point

	click    protocol.ClickArguments
	text     string // to fill or type, with \n for line breaks
	chord    chord
	scroll   protocol.ScrollArguments
	steps    int
	url      string
	viewport protocol.Viewport
	dialog   protocol.DialogArguments
	history  int64 // id of the history entry to go to
	list     []protocol.Primitive
}

// Prepare finds what an operation will act on and checks that it can be acted
// on. It gives no input and changes nothing.
func (p *incarnation) Prepare(ctx context.Context, c targets.Call) (targets.Prepared, *protocol.Problem) {
	scoped, end := p.untilDialog(ctx)
	if c.Method == protocol.MethodDialog {
		end() // a dialog stands open: that is the point
		scoped, end = context.WithCancel(ctx)
	}
	defer end()
	pre, pr := p.prepare(scoped, c)
	if pr != nil {
		return targets.Prepared{}, p.cleanProblem(pr)
	}
	out := targets.Prepared{State: pre, Point: pre.point}
	if pre.found != nil {
		el := p.control(*pre.found)
		out.Element = &el
		if ck := pre.found.Check; ck != nil && ck.X != nil && ck.Y != nil && out.Point == nil {
			at := pre.found.toMain.point(*ck.X, *ck.Y)
			out.Point = &at
		}
	}
	return out, nil
}

// cleanProblem removes the page's secrets from what a problem says.
func (p *incarnation) cleanProblem(pr *protocol.Problem) *protocol.Problem {
	pr.Message = p.secrets().scrub(pr.Message)
	return pr
}

// prepare decodes and checks one operation.
func (p *incarnation) prepare(ctx context.Context, c targets.Call) (*prepared, *protocol.Problem) {
	if c.Method != protocol.MethodDialog && c.Method != protocol.MethodClose && p.dialog() != nil {
		return nil, p.dialogProblem()
	}
	pre := &prepared{method: c.Method}
	switch c.Method {
	case protocol.MethodClick, protocol.MethodHover, protocol.MethodDrag, protocol.MethodDownload:
		return pre, p.preparePointer(ctx, c, pre)
	case protocol.MethodFill, protocol.MethodType:
		return pre, p.prepareText(ctx, c, pre)
	case protocol.MethodPress:
		return pre, p.preparePress(ctx, c, pre)
	case protocol.MethodScroll:
		return pre, p.prepareScroll(ctx, c, pre)
	case protocol.MethodOpen, protocol.MethodNavigate:
		return pre, prepareNavigate(c, pre)
	case protocol.MethodBack, protocol.MethodForward:
		return pre, p.prepareHistory(ctx, c.Method, pre)
	case protocol.MethodReload, protocol.MethodClose:
		return pre, nil
	case protocol.MethodViewport:
		return pre, prepareViewport(c, pre)
	case protocol.MethodDialog:
		return pre, p.prepareDialog(c, pre)
	case protocol.MethodBatch:
		return pre, p.prepareBatch(ctx, c, pre)
	}
	return nil, problem(protocol.ReasonUnknownMethod, "a page has no method %q", c.Method)
}

// decode reads arguments that the protocol has validated already.
func decode(c targets.Call, into any) *protocol.Problem {
	if len(c.Arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Arguments, into); err != nil {
		return problem(protocol.ReasonBadArguments, "the arguments of %s cannot be read: %v", c.Method, err)
	}
	return nil
}

func prepareViewport(c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.ViewportArguments
	if pr := decode(c, &a); pr != nil {
		return pr
	}
	if a.Scale == 0 {
		a.Scale = 1
	}
	if a.Width < 1 || a.Width > 16384 || a.Height < 1 || a.Height > 16384 || a.Scale < 0.25 || a.Scale > 8 {
		return problem(protocol.ReasonBadArguments, "width and height are 1–16384 CSS pixels, scale is 0.25–8")
	}
	pre.viewport = protocol.Viewport(a)
	return nil
}

func (p *incarnation) prepareDialog(c targets.Call, pre *prepared) *protocol.Problem {
	if pr := decode(c, &pre.dialog); pr != nil {
		return pr
	}
	d := p.dialog()
	if d == nil {
		return problem(protocol.ReasonNoDialog, "no dialog is open; there is nothing to answer")
	}
	if pre.dialog.Text != nil && d.Type != "prompt" {
		return problem(protocol.ReasonBadArguments, "text: only a prompt takes one, and a dialog of type %s is open", d.Type)
	}
	return nil
}

func (p *incarnation) prepareHistory(ctx context.Context, m protocol.Method, pre *prepared) *protocol.Problem {
	h, err := cdproto.Call(ctx, p.session(), cdpage.GetNavigationHistory, cdproto.Empty{})
	if err != nil {
		return p.lookFailed(ctx, err)
	}
	to := h.CurrentIndex - 1
	if m == protocol.MethodForward {
		to = h.CurrentIndex + 1
	}
	if to < 0 || to >= int64(len(h.Entries)) {
		return problem(protocol.ReasonNoHistory, "there is no page to go %s to", m)
	}
	pre.history = h.Entries[to].ID
	return nil
}

// prepareBatch checks the first primitive; each of the others is resolved when
// its turn comes.
func (p *incarnation) prepareBatch(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.BatchArguments
	if pr := decode(c, &a); pr != nil {
		return pr
	}
	if len(a.Primitives) == 0 || len(a.Primitives) > protocol.MaxPrimitives {
		return problem(protocol.ReasonBadArguments, "primitives: a list has 1–%d of them", protocol.MaxPrimitives)
	}
	for i, one := range a.Primitives {
		if one.Method == protocol.MethodBatch || one.Method == protocol.MethodOpen || one.Method == protocol.MethodClose {
			return problem(protocol.ReasonBadArguments, "primitives[%d]: %s cannot be part of a list", i, one.Method)
		}
	}
	first, pr := p.prepare(ctx, targets.Call{Operation: c.Operation, Method: a.Primitives[0].Method, Arguments: a.Primitives[0].Arguments, Geometry: c.Geometry})
	if pr != nil {
		pr.Message = fmt.Sprintf("primitives[0]: %s", pr.Message)
		return pr
	}
	list := a.Primitives
	*pre = *first
	pre.list = list
	return nil
}
