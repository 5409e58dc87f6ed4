package page

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reins/protocol"
)

func (p *incarnation) readVerify(ctx context.Context, raw json.RawMessage) protocol.ReadReply {
	var a protocol.VerifyArguments
	if pr := decodeRead(raw, &a); pr != nil {
		return protocol.ReadReply{Problem: pr}
	}
	if pr := checkAssertion(a); pr != nil {
		return protocol.ReadReply{Problem: pr}
	}
	scoped, end := p.untilDialog(ctx)
	defer end()
	if p.dialog() != nil && a.Assert != "url" {
		return protocol.ReadReply{Problem: p.dialogProblem()}
	}
	// The page's secrets as they are now decide what may be asked.
	if _, err := retry(scoped, p, func() ([]look, error) { return p.lookAll(scoped) }); err != nil && a.Assert != "url" {
		return protocol.ReadReply{Problem: p.lookFailed(scoped, err)}
	}
	if p.sensitive(a) {
		return protocol.ReadReply{Problem: problem(protocol.ReasonSensitive, "the assertion contains a secret of the page and is not evaluated")}
	}
	v, pr := p.judgeTwice(scoped, a)
	if pr != nil {
		return protocol.ReadReply{Problem: pr}
	}
	page := p.pageNow()
	page.Settled = !page.Loading && page.Dialog == nil
	v.Page = &page
	v.Message = p.secrets().scrub(v.Message)
	return protocol.ReadReply{Verdict: v}
}

// checkAssertion refuses what cannot be evaluated.
func checkAssertion(a protocol.VerifyArguments) *protocol.Problem {
	bad := func(why string) *protocol.Problem {
		return problem(protocol.ReasonBadArguments, "verify %q: %s", a.Assert, why)
	}
	switch a.Assert {
	case "text", "value":
		if a.Text == "" && a.Equals == nil {
			return bad("text (a part) or equals (the whole) is needed")
		}
		if a.Assert == "value" && a.Locator == nil {
			return bad("locator is needed; a value is that of one element")
		}
	case "url":
		if a.Equals == nil && a.Text == "" {
			return bad("equals or text (a part of it) is needed")
		}
	case "present", "absent":
		if a.Locator == nil && a.Text == "" {
			return bad("locator or text is needed")
		}
	case "count":
		if a.Locator == nil || a.Count == nil || *a.Count < 0 {
			return bad("locator and count, from 0, are needed")
		}
	default:
		return bad("there is no such assertion; use text, value, url, present, absent or count")
	}
	return nil
}

// sensitive reports whether evaluating the assertion could tell a secret.
func (p *incarnation) sensitive(a protocol.VerifyArguments) bool {
	s := p.secrets()
	if s.has(a.Text) || (a.Equals != nil && s.has(*a.Equals)) {
		return true
	}
	l := a.Locator
	return l != nil && (s.has(l.Name) || s.has(l.Text) || s.has(l.Label) || s.has(l.CSS) || s.has(l.Placeholder))
}

// judgeTwice evaluates an assertion, and once more at the end, since the page may
// be about to change: what holds last counts.
func (p *incarnation) judgeTwice(ctx context.Context, a protocol.VerifyArguments) (*protocol.Verdict, *protocol.Problem) {
	var v *protocol.Verdict
	for range 2 {
		judged, err := retry(ctx, p, func() (*protocol.Verdict, error) { return p.judge(ctx, a) })
		if err != nil {
			if pr, ok := err.(*protocol.Problem); ok {
				return nil, pr
			}
			return nil, p.lookFailed(ctx, err)
		}
		v = judged
		if f := p.mainFrame(); f != nil && p.dialog() == nil {
			one, cancel := f.patience(ctx)
			_ = f.world(one, "twoFrames", nil)
			cancel()
		}
	}
	if !v.Holds && v.Reason == "" {
		v.Reason = protocol.ReasonAssertionFailed
	}
	return v, nil
}

// judge evaluates an assertion once against the real page.
func (p *incarnation) judge(ctx context.Context, a protocol.VerifyArguments) (*protocol.Verdict, error) {
	switch a.Assert {
	case "url":
		return p.judgeURL(a), nil
	case "text", "value":
		if a.Locator != nil {
			return p.judgeElement(ctx, a)
		}
		if a.Equals != nil {
			yes, err := p.shows(ctx, *a.Equals, true)
			return verdict(yes, "no visible element has exactly that text"), err
		}
		yes, err := p.shows(ctx, a.Text, false)
		return verdict(yes, "the text is not visible on the page"), err
	}
	if a.Locator == nil {
		yes, err := p.shows(ctx, a.Text, false)
		if a.Assert == "absent" {
			return verdict(!yes, "the text is visible on the page"), err
		}
		return verdict(yes, "the text is not visible on the page"), err
	}
	n, err := p.count(ctx, *a.Locator)
	if err != nil {
		return nil, err
	}
	v := verdict(n > 0, "no visible element matches")
	switch a.Assert {
	case "absent":
		v = verdict(n == 0, fmt.Sprintf("%d visible elements match", n))
	case "count":
		v = verdict(n == *a.Count, fmt.Sprintf("%d visible elements match instead of %d", n, *a.Count))
	}
	v.Count = &n
	return v, nil
}

func verdict(holds bool, why string) *protocol.Verdict {
	if holds {
		return &protocol.Verdict{Holds: true}
	}
	return &protocol.Verdict{Message: why}
}

func (p *incarnation) judgeURL(a protocol.VerifyArguments) *protocol.Verdict {
	actual := p.pageNow().URL
	n := p.nav().url
	holds := strings.Contains(n, a.Text)
	if a.Equals != nil {
		holds = n == *a.Equals
	}
	v := verdict(holds, "the page is at another URL")
	if !holds {
		v.Actual = &actual
	}
	return v
}

// judgeElement compares the text or the value of one element.
func (p *incarnation) judgeElement(ctx context.Context, a protocol.VerifyArguments) (*protocol.Verdict, error) {
	f, pr := p.locate(ctx, *a.Locator, "edit")
	if pr != nil {
		switch pr.Reason {
		case protocol.ReasonNotFound, protocol.ReasonNotVisible, protocol.ReasonAmbiguous, protocol.ReasonStaleRef:
			return &protocol.Verdict{Reason: pr.Reason, Message: pr.Message}, nil
		}
		return nil, pr
	}
	if a.Assert == "value" {
		return p.judgeValue(ctx, f, a)
	}
	var text *string
	if err := f.frame.world(ctx, "textOf", &text, f.H); err != nil {
		return nil, err
	}
	if text == nil {
		return &protocol.Verdict{Reason: protocol.ReasonNotFound, Message: "the element went away"}, nil
	}
	holds := strings.Contains(*text, squeeze(a.Text))
	if a.Equals != nil {
		holds = *text == squeeze(*a.Equals)
	}
	v := verdict(holds, "the element has other text")
	if !holds {
		actual, _ := capRunes(p.secrets().scrub(*text), lineRunes)
		v.Actual = &actual
	}
	return v, nil
}

func (p *incarnation) judgeValue(ctx context.Context, f *found, a protocol.VerifyArguments) (*protocol.Verdict, error) {
	var v field
	if err := f.frame.world(ctx, "field", &v, f.H); err != nil {
		return nil, err
	}
	switch {
	case v.Gone:
		return &protocol.Verdict{Reason: protocol.ReasonNotFound, Message: "the element went away"}, nil
	case v.Kind == "":
		return &protocol.Verdict{Reason: protocol.ReasonNotEditable, Message: "the element has no value to compare"}, nil
	case v.Secret:
		return nil, problem(protocol.ReasonSensitive, "the field is secret and its value is not compared")
	}
	if shown := p.secrets().scrub(v.Value); shown != v.Value {
		return nil, problem(protocol.ReasonSensitive, "the field holds a secret of the page and its value is not compared")
	}
	if _, cut := capRunes(v.Value, protocol.ValueCodePoints); cut {
		return &protocol.Verdict{Message: fmt.Sprintf("the value is longer than the %d code points that can be compared", protocol.ValueCodePoints)}, nil
	}
	same := strings.Contains(v.Value, a.Text)
	if a.Equals != nil {
		same = holds(v, *a.Equals)
	}
	out := verdict(same, "the field holds another value")
	if !out.Holds {
		out.Actual = &v.Value
	}
	return out, nil
}
