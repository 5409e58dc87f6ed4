package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxKeyBytes = 64        // a key or combination
	maxSteps    = 100       // moves of a drag
	maxScroll   = 100_000   // CSS pixels each way
	maxPoint    = 1_000_000 // pixels each way; screens left of the main one are negative
	maxSide     = 16_384    // CSS pixels of a viewport
	minScale    = 0.25
	maxScale    = 8
	maxControls = 5_000
	maxOffset   = 1_000_000
	maxCount    = 1_000_000 // elements of a count assertion
)

// faults collects what is wrong with the arguments of one method: the first
// fault is the answer.
type faults struct {
	path  string
	first *Problem
	point bool // coordinates are used
}

func (f *faults) add(format string, a ...any) {
	if f.first == nil {
		f.first = problem(ReasonBadArguments, format, a...)
	}
}

// in returns a collector for a part of the arguments; take merges it back.
func (f *faults) in(part string) *faults { return &faults{path: join(f.path, part)} }

func (f *faults) take(inner *faults) {
	f.point = f.point || inner.point
	if f.first == nil {
		f.first = inner.first
	}
}

// between checks a number against its range, both ends taken.
func (f *faults) between(name string, n, low, high int, unit string) {
	inRange(f, name, n, low, high, unit)
}

func inRange[N cmp.Ordered](f *faults, name string, n, low, high N, unit string) {
	if n < low || n > high {
		f.add("%s must be %v to %v%s, not %v.", join(f.path, name), low, high, unitOf(unit), n)
	}
}

func unitOf(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// text checks a string's length in bytes.
func (f *faults) text(name, s string, low, high int) {
	f.between(name, len(s), low, high, "bytes long")
}

// oneOf checks a word against the ones there are; empty is the default.
func (f *faults) oneOf(name, s string, words ...string) {
	if s != "" && !slices.Contains(words, s) {
		f.add("%s must be %s, not %s.", join(f.path, name), strings.Join(words, ", "), quote(s))
	}
}

// exactlyOne checks that one of the named arguments is given. names has their
// names in the order of given.
func (f *faults) exactlyOne(names string, given ...bool) {
	n := 0
	for _, g := range given {
		if g {
			n++
		}
	}
	if n != 1 {
		f.add("%s: exactly one of %s must be given, not %d.", f.path, names, n)
	}
}

// unless refuses an argument that means nothing here.
func (f *faults) unless(ok bool, name, why string) {
	if !ok {
		f.add("%s %s.", join(f.path, name), why)
	}
}

func (f *faults) locator(name string, l *Locator) {
	if l == nil {
		return
	}
	in := f.in(name)
	in.exactlyOne("ref, role, label, text, test_id, placeholder, css",
		l.Ref != "", l.Role != "", l.Label != "", l.Text != "", l.TestID != "", l.Placeholder != "", l.CSS != "")
	in.text("ref", string(l.Ref), 0, MaxIDBytes)
	for _, part := range []struct{ name, value string }{
		{"role", l.Role}, {"name", l.Name}, {"label", l.Label}, {"text", l.Text}, {"test_id", l.TestID},
		{"placeholder", l.Placeholder}, {"css", l.CSS}, {"frame", l.Frame},
	} {
		in.text(part.name, part.value, 0, MaxNameBytes)
	}
	in.unless(l.Name == "" || l.Role != "", "name", "goes with role; for a label use label")
	in.unless(strings.Trim(l.Role, "abcdefghijklmnopqrstuvwxyz-") == "", "role", "must be an ARIA role in lower case, such as button")
	in.unless(!l.Contains || l.Name != "" || l.Label != "" || l.Text != "", "contains", "goes with name, label or text")
	f.take(in)
}

func (f *faults) place(name string, p *Point) {
	if p == nil {
		return
	}
	in := f.in(name)
	in.point = true
	inRange(in, "x", p.X, -maxPoint, maxPoint, "pixels")
	inRange(in, "y", p.Y, -maxPoint, maxPoint, "pixels")
	f.take(in)
}

// target checks the pair of arguments that say where.
func (f *faults) target(prefix string, l *Locator, p *Point) {
	f.exactlyOne(prefix+"locator, "+prefix+"point", l != nil, p != nil)
	f.locator(prefix+"locator", l)
	f.place(prefix+"point", p)
}

func (f *faults) need(name string, l *Locator) {
	f.unless(l != nil, name, "is missing; it must be an object that names one element")
	f.locator(name, l)
}

func (f *faults) url(name, s string) {
	if p := CheckURL(s); p != nil && f.first == nil {
		f.first = problem(p.Reason, "%s: %s", join(f.path, name), p.Message)
	}
}

func (f *faults) size(width, height int, scale float64) {
	f.between("width", width, 1, maxSide, "CSS pixels")
	f.between("height", height, 1, maxSide, "CSS pixels")
	if scale != 0 {
		inRange(f, "scale", scale, minScale, maxScale, "device pixels a CSS pixel")
	}
}

// checkID checks an identifier: it is a key of stores and a word of logs.
func checkID(name, id string) *Problem {
	if id == "" {
		return problem(ReasonBadRequest, "%s is missing.", name)
	}
	if len(id) > MaxIDBytes {
		return problem(ReasonBadRequest, "%s has %d bytes; it must be 1 to %d.", name, len(id), MaxIDBytes)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return problem(ReasonBadRequest, "%s must be printable ASCII without spaces.", name)
		}
	}
	return nil
}

func checkDeadline(ms int64) *Problem {
	if limit := MaxDeadline.Milliseconds(); ms < 0 || ms > limit {
		return problem(ReasonBadRequest, "deadline_ms must be 1 to %d, or 0 for the default, not %s.", limit, fmt.Sprint(ms))
	}
	return nil
}
