package page

import (
	"context"
	"strings"

	"reins/protocol"
	"reins/targets"
)

// prepareText checks fill and type.
func (p *incarnation) prepareText(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.TypeArguments // those of fill look the same
	pr := decode(c, &a)
	if pr != nil {
		return pr
	}
	pre.text = strings.ReplaceAll(strings.ReplaceAll(a.Text, "\r\n", "\n"), "\r", "\n")
	if a.Locator == nil {
		if c.Method == protocol.MethodFill {
			return problem(protocol.ReasonBadArguments, "locator: fill needs one")
		}
		if pre.found, pr = p.focus(ctx); pr != nil {
			return pr
		}
		if pre.found == nil {
			return problem(protocol.ReasonNotEditable, "nothing on the page has the focus; name the field with a locator")
		}
	} else if pre.found, pr = p.locate(ctx, *a.Locator, "edit"); pr != nil {
		return pr
	}
	ck := pre.found.Check
	switch {
	case ck.Disabled:
		return problem(protocol.ReasonDisabled, "%s is disabled", pre.found.words())
	case ck.Behind:
		return problem(protocol.ReasonObscured, "%s is behind a modal dialog; close that first", pre.found.words())
	case ck.Kind == "":
		return problem(protocol.ReasonNotEditable, "%s takes no text; name a field", pre.found.words())
	case ck.ReadOnly:
		return problem(protocol.ReasonReadOnly, "%s is read-only", pre.found.words())
	}
	if ck.Secret {
		// Known before it is entered, so that no echo of it can be faster.
		p.secrets().add(pre.text)
	}
	if c.Method == protocol.MethodFill {
		return checkFill(pre)
	}
	return checkType(pre)
}

// checkFill refuses what the field cannot hold.
func checkFill(pre *prepared) *protocol.Problem {
	ck := pre.found.Check
	switch ck.Kind {
	case "text":
		if ck.Tag != "textarea" && strings.Contains(pre.text, "\n") {
			return problem(protocol.ReasonTextNotTypable, "%s takes a single line and the text has line breaks", pre.found.words())
		}
	case "select":
		return checkOption(pre)
	}
	return nil
}

func checkOption(pre *prepared) *protocol.Problem {
	var there []string
	for _, o := range pre.found.Check.Options {
		value, _ := o[0].(string)
		label, _ := o[1].(string)
		off, _ := o[2].(bool)
		if value == pre.text || label == squeeze(pre.text) {
			if off {
				return problem(protocol.ReasonDisabled, "the option %q is disabled", label)
			}
			return nil
		}
		if len(there) < 20 {
			there = append(there, label)
		}
	}
	return problem(protocol.ReasonNotFound, "%s has no option of that value or label; it has: %s", pre.found.words(), strings.Join(there, " | "))
}

// checkType refuses, before the first character, text that keys cannot enter:
// what would leave the field or send it.
func checkType(pre *prepared) *protocol.Problem {
	ck := pre.found.Check
	if ck.Kind == "set" || ck.Kind == "select" {
		return problem(protocol.ReasonNotEditable, "%s takes no keys one by one; use fill", pre.found.words())
	}
	lines := ck.Kind == "rich" || ck.Tag == "textarea"
	for _, r := range pre.text {
		if r == '\n' && !lines {
			return problem(protocol.ReasonTextNotTypable, "%s takes a single line: a line break would be the Enter key, which may send; leave it out, or use press", pre.found.words())
		}
		if (r < ' ' && r != '\n') || r == 0x7f {
			return problem(protocol.ReasonTextNotTypable, "the text has the control character U+%04X, which no key enters as text; use fill", r)
		}
	}
	return nil
}

// preparePress checks a key and what is to get it.
func (p *incarnation) preparePress(ctx context.Context, c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.PressArguments
	if pr := decode(c, &a); pr != nil {
		return pr
	}
	ch, err := parseChord(a.Key)
	if err != nil {
		return problem(protocol.ReasonUnknownKey, "%v", err)
	}
	pre.chord = ch
	var pr *protocol.Problem
	if a.Locator == nil {
		pre.found, pr = p.focus(ctx)
		return pr
	}
	if pre.found, pr = p.locate(ctx, *a.Locator, "edit"); pr != nil {
		return pr
	}
	if pre.found.Check.Disabled {
		return problem(protocol.ReasonDisabled, "%s is disabled", pre.found.words())
	}
	if pre.found.Check.Behind {
		return problem(protocol.ReasonObscured, "%s is behind a modal dialog; close that first", pre.found.words())
	}
	return nil
}

// focus is the element that has the keyboard's focus, in whatever frame; nil
// where that is the page itself.
func (p *incarnation) focus(ctx context.Context) (*found, *protocol.Problem) {
	var best *found
	for _, f := range p.frames() {
		one, cancel := f.patience(ctx)
		var it *item
		err := f.world(one, "focused", &it)
		cancel()
		if f.main {
			if err != nil {
				return nil, p.lookFailed(ctx, err)
			}
			if it == nil {
				return nil, nil
			}
			if !it.Frame {
				return &found{f, *it, sameFrame}, nil
			}
			continue // the focus is inside of a frame
		}
		if err != nil || it == nil || it.Frame || !it.Has {
			continue
		}
		m, err := f.toMain(ctx)
		if err != nil {
			continue
		}
		best = &found{f, *it, m}
	}
	return best, nil
}
