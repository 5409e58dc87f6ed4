package page

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// run is one operation under way.
type run struct {
	writer
	call targets.Call
	now  targets.Call // the primitive of it that is under way
	pre  *prepared
	out  targets.Outcome

	navAt  navState // where the main frame was when the operation began
	navs   uint64   // documents of the main frame until then
	popups uint64
	atRest bool // the page came to rest within the bound
}

// step is how one primitive ended.
type step struct {
	state   protocol.State
	effect  protocol.Effect
	reason  protocol.Reason
	message string
	observe bool // the next write needs a newer observation
}

func applied(e protocol.Effect) step { return step{state: protocol.StateApplied, effect: e} }

func failed(r protocol.Reason, format string, args ...any) step {
	return step{state: protocol.StateFailed, reason: r, message: fmt.Sprintf(format, args...), observe: true}
}

// Run gives the input of a prepared operation and says what is known of it.
func (p *incarnation) Run(ctx context.Context, c targets.Call, pr targets.Prepared, permit targets.Permit) targets.Outcome {
	pre, ok := pr.State.(*prepared)
	if !ok {
		return targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonInternal, LastDone: -1,
			Message: "the operation was not prepared by this target; nothing happened"}
	}
	began := time.Now()
	scoped, end := p.untilDialog(ctx)
	if c.Method == protocol.MethodDialog {
		end()
		scoped, end = context.WithCancel(ctx)
	}
	late, endLate := graceAfter(scoped)
	r := &run{call: c, now: c, pre: pre, navAt: p.nav(), navs: p.navigations(), popups: p.popupCount()}
	r.writer = writer{p: p, permit: permit, ctx: scoped, late: late, seam: func(s protocol.Step) {
		p.host.opts.Seams.Pass(s, p.spec.Resource, c.Operation)
	}}
	r.out.LastDone = -1
	r.all()
	r.letGo()
	endLate()
	end()
	r.conclude(ctx)
	r.out.AimUS = max(0, time.Since(began).Microseconds()-r.out.InputUS-r.out.SettleUS)
	return r.out
}

// graceAfter returns a context that ends a little after ctx does.
func graceAfter(ctx context.Context) (late context.Context, end func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var timer *time.Timer
	armed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer = time.AfterFunc(answerGrace, cancel)
		close(armed)
	})
	return late, func() {
		if !stop() {
			<-armed
			timer.Stop()
		}
		cancel()
	}
}

// all runs the primitives in their order, until one fails or the page became another.
func (r *run) all() {
	n := max(1, len(r.pre.list))
	list := r.pre.list
	if len(list) > 0 {
		r.now.Method, r.now.Arguments = list[0].Method, list[0].Arguments
	}
	for i := range n {
		if i > 0 && !r.next(list[i], i) {
			return
		}
		if err := r.permit.Begin(i); err != nil {
			r.settleOn(r.cut(err))
			return
		}
		r.out.Begun = i + 1
		s := r.primitive()
		r.settleOn(s)
		if s.state != protocol.StateApplied {
			return
		}
		r.out.LastDone = i
		reason, why := r.interrupted(len(list) > 0)
		if reason == "" {
			continue
		}
		r.out.Reason, r.out.Message = reason, why
		if i < n-1 {
			r.out.State = protocol.StateFailed
			return
		}
	}
}

// next resolves primitive i of a list afresh.
func (r *run) next(one protocol.Primitive, i int) bool {
	c := targets.Call{Operation: r.call.Operation, Method: one.Method, Arguments: one.Arguments, Geometry: r.p.knownGeometry()}
	pre, pr := r.p.prepare(r.ctx, c)
	r.now = c
	if pr != nil {
		r.out.State, r.out.Effect, r.out.Reason, r.out.Candidates = protocol.StateFailed, "", pr.Reason, pr.Candidates
		r.out.Message = fmt.Sprintf("primitives[%d]: %s", i, pr.Message)
		return false
	}
	r.pre = pre
	return true
}

// settleOn takes over how a primitive ended.
func (r *run) settleOn(s step) {
	r.out.State, r.out.Effect, r.out.Reason, r.out.Message = s.state, s.effect, s.reason, s.message
	if s.state != protocol.StateApplied {
		r.out.ObserveRequired = r.out.ObserveRequired || s.observe
	}
}

// interrupted says whether the page became another since the operation began.
func (r *run) interrupted(list bool) (protocol.Reason, string) {
	switch {
	case r.p.dialog() != nil:
		return protocol.ReasonDialogOpen, r.p.dialogProblem().Message
	case list && r.p.navigations() != r.navs:
		return protocol.ReasonNavigated, "the page navigated; what followed in the list was not done"
	case list && r.p.popupCount() != r.popups:
		return protocol.ReasonPopup, "the page opened another page; what followed in the list was not done"
	}
	return "", ""
}

// primitive runs one method; it returns when the page has settled.
func (r *run) primitive() step {
	before := r.written
	r.complete = false
	s, err := r.method()
	if err != nil && r.replaced(err) {
		s, err = r.method()
	}
	if err != nil {
		return r.cutAt(err, before)
	}
	return s
}

// replaced reports whether the element that was prepared went away before
// anything was done, and another one stands in its place: pages draw their parts
// anew at any moment. A ref never finds another element.
func (r *run) replaced(err error) bool {
	var pr *protocol.Problem
	gone := errors.Is(err, errFrameGone) || (errors.As(err, &pr) && pr.Reason == protocol.ReasonStaleRef)
	if !gone || r.written > 0 || r.touched || r.lost || r.ctx.Err() != nil {
		return false
	}
	pre, pr := r.p.prepare(r.ctx, r.now)
	if pr != nil {
		return false
	}
	pre.list = r.pre.list
	r.pre = pre
	return true
}

func (r *run) method() (step, error) {
	if r.pre.method != protocol.MethodDialog && r.p.dialog() != nil {
		return step{}, errDialog
	}
	switch r.pre.method {
	case protocol.MethodClick:
		return r.click()
	case protocol.MethodHover:
		return r.hover()
	case protocol.MethodDrag:
		return r.drag()
	case protocol.MethodDownload:
		return r.download()
	case protocol.MethodFill:
		return r.fill()
	case protocol.MethodType:
		return r.typeText()
	case protocol.MethodPress:
		return r.pressKey()
	case protocol.MethodScroll:
		return r.scroll()
	case protocol.MethodOpen, protocol.MethodNavigate:
		return r.navigate()
	case protocol.MethodBack, protocol.MethodForward:
		return r.traverse()
	case protocol.MethodReload:
		return r.reload()
	case protocol.MethodViewport:
		return r.resize()
	case protocol.MethodDialog:
		return r.answer()
	}
	return step{state: protocol.StateRefused, reason: protocol.ReasonUnknownMethod,
		message: fmt.Sprintf("a page has no method %q", r.pre.method)}, nil
}

// cut turns the end of an operation before its first primitive into words.
func (r *run) cut(err error) step { return r.cutAt(err, r.written) }

// cutAt says what is known when err ended a primitive that began when before
// input commands had been written.
func (r *run) cutAt(err error, before int) step {
	s := step{state: protocol.StateFailed, observe: true}
	s.reason, s.message = r.why(err)
	switch {
	case r.lost:
		s.state, s.effect = protocol.StateUncertain, ""
		if s.reason == protocol.ReasonCancelled || s.reason == protocol.ReasonDeadline || s.reason == protocol.ReasonPageUnresponsive {
			s.reason, s.message = protocol.ReasonAnswerLost, "input was given and its answer never came ("+s.message+"); observe"
		}
	case errors.Is(err, errDialog) && r.complete:
		// The dialog proves that the input arrived; its own answer comes when the
		// dialog is closed.
		s.state, s.effect, s.observe = protocol.StateApplied, protocol.EffectDispatched, false
	case errors.Is(err, errDialog) && r.written > before:
		s.message += "; not all of the input had been given"
	case r.written == 0 && !r.touched && r.out.LastDone < 0:
		s.state, s.observe = protocol.StateRefused, false
	}
	return s
}

// why names the reason behind an error of an operation.
func (r *run) why(err error) (protocol.Reason, string) {
	var pr *protocol.Problem
	switch {
	case errors.As(err, &pr):
		return pr.Reason, pr.Message
	case errors.Is(err, errDialog):
		return protocol.ReasonDialogOpen, r.p.dialogProblem().Message
	case errors.Is(err, targets.ErrRevoked):
		return protocol.ReasonCancelled, "cancelled: no further input was given"
	case errors.Is(err, cdp.ErrRevoked), errors.Is(err, cdp.ErrDetached):
		return protocol.ReasonFenced, "this incarnation of the page ended in the middle of it; observe"
	case errors.Is(err, cdp.ErrCrashed):
		return protocol.ReasonRendererCrashed, "the page's process crashed; it comes back as a new generation"
	case errors.Is(err, cdp.ErrDown), errors.Is(err, cdp.ErrOverrun):
		return protocol.ReasonFenced, "the browser ended in the middle of it; observe when the page is back"
	case errors.Is(r.ctx.Err(), context.Canceled) && !errors.Is(context.Cause(r.ctx), errDialog):
		return protocol.ReasonCancelled, "cancelled: no further input was given"
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return protocol.ReasonDeadline, "the deadline passed in the middle of it"
	case errors.Is(err, context.DeadlineExceeded), cdp.Unanswered(err):
		return protocol.ReasonPageUnresponsive, "the page does not answer"
	case errors.Is(err, errFrameGone):
		return protocol.ReasonStaleRef, "the document of the element went away; observe"
	}
	return protocol.ReasonInternal, fmt.Sprintf("a fault while acting on the page: %v", err)
}
