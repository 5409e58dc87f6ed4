package page

import (
	"context"
	"errors"

	"reins/protocol"
)

// aimed is a place to press: the element (unless coordinates were given), its
// point in its own frame and in the main viewport.
type aimed struct {
	frame *frame
	h     int // 0: coordinates
	words string
	x, y  float64 // in the frame
	at    protocol.Point
}

// aim is the world's answer to where an element can be pressed.
type aim struct {
	X        *float64 `json:"x"`
	Y        *float64 `json:"y"`
	By       *sketch  `json:"by"`
	Gone     bool     `json:"gone"`
	Hidden   bool     `json:"hidden"`
	Far      bool     `json:"far"`
	Unstable bool     `json:"unstable"`
	OK       bool     `json:"ok"`
	Again    bool     `json:"again"`
}

// problemOf says why there is no place to press.
func (a aim) problemOf(words string) *protocol.Problem {
	switch {
	case a.Gone:
		return problem(protocol.ReasonStaleRef, "%s went away; observe again", words)
	case a.Hidden:
		return problem(protocol.ReasonNotVisible, "%s is not visible any more", words)
	case a.Unstable:
		return problem(protocol.ReasonUnstable, "%s keeps moving; wait until it rests", words)
	case a.X == nil || a.Y == nil:
		return problem(protocol.ReasonObscured, "%s is covered by %s; move or close that first", words, a.By.words())
	}
	return nil
}

// aim brings what was found into view and picks a free point, at rest.
func (r *run) aim(f *found, at *protocol.Point) (*aimed, error) {
	if f == nil {
		main := r.p.mainFrame()
		if main == nil {
			return nil, errNoDocument
		}
		return &aimed{frame: main, words: "the point", x: at.X, y: at.Y, at: *at}, nil
	}
	var a aim
	if err := f.frame.world(r.ctx, "aim", &a, f.H, stepMost.Milliseconds(), false); err != nil {
		return nil, r.seenTrouble(err)
	}
	if a.Far {
		a = aim{}
		if err := r.touch(f.frame, "aim", &a, f.H, stepMost.Milliseconds(), true); err != nil {
			return nil, err
		}
	}
	if pr := a.problemOf(f.words()); pr != nil {
		return nil, pr
	}
	out := &aimed{frame: f.frame, h: f.H, words: f.words(), x: *a.X, y: *a.Y}
	return out, r.surface(out)
}

// surface brings a point of a frame up through the frames around it and finds
// it in the main viewport.
func (r *run) surface(a *aimed) error {
	x, y := a.x, a.y
	for g := a.frame; !g.main; g = g.parent {
		o, err := g.owner(r.ctx)
		if err != nil {
			return r.seenTrouble(err)
		}
		var took struct {
			OK bool    `json:"ok"`
			By *sketch `json:"by"`
		}
		if err := g.parent.world(r.ctx, "ownerTakes", &took, o.handle, x, y); err != nil {
			return r.seenTrouble(err)
		}
		if !took.OK {
			if err := r.touch(g.parent, "revealOwner", &took, o.handle, x, y); err != nil {
				return err
			}
		}
		if !took.OK {
			return problem(protocol.ReasonObscured, "the frame of %s is covered by %s; move or close that first", a.words, took.By.words())
		}
		m, err := g.toParent(r.ctx)
		if err != nil {
			return r.seenTrouble(err)
		}
		p := m.point(x, y)
		x, y = p.X, p.Y
	}
	a.at = protocol.Point{X: x, Y: y}
	return nil
}

// recheck asks, after the pointer has moved and before anything is pressed,
// whether the place still belongs to the element; if the element is elsewhere
// now, the pointer follows once.
func (r *run) recheck(a *aimed, held string, bits int64) error {
	if a.h == 0 {
		return nil
	}
	for try := 0; ; try++ {
		var s aim
		if err := a.frame.world(r.ctx, "still", &s, a.h, a.x, a.y); err != nil {
			return r.seenTrouble(err)
		}
		if s.Gone {
			return s.problemOf(a.words)
		}
		if s.OK && r.surface(a) == nil {
			return nil
		}
		if try > 0 || !s.Again || s.X == nil || s.Y == nil {
			return problem(protocol.ReasonMoved, "%s moved away when the pointer came, and %s is there now; nothing was pressed; observe and try again", a.words, s.By.words())
		}
		a.x, a.y = *s.X, *s.Y
		if err := r.surface(a); err != nil {
			return err
		}
		if err := r.move(a.at, held, bits); err != nil {
			return err
		}
	}
}

func modifierBits(names []string) int64 {
	var bits int64
	for _, n := range names {
		bits |= modifierKeys[n].bit.Int64()
	}
	return bits
}

// click presses and releases a button on an element or at a point.
func (r *run) click() (step, error) {
	a, err := r.aim(r.pre.found, r.pre.point)
	if err != nil {
		return step{}, err
	}
	w, err := r.watch(a.frame, a.h)
	if err != nil {
		return step{}, err
	}
	if err := r.pressAt(a); err != nil {
		defer w.cancel()
		if errors.Is(err, errDialog) {
			return r.clickDialog(w.told(lastEvent[r.pre.click.Button])), nil
		}
		return step{}, err
	}
	seen := w.end(r.late, lastEvent[r.pre.click.Button])
	s := r.clicked(a, seen)
	r.rest()
	return s, nil
}

// pressAt moves the pointer there, looks again, and presses as often as asked.
func (r *run) pressAt(a *aimed) error {
	c := r.pre.click
	bits := modifierBits(c.Modifiers)
	if err := r.move(a.at, "", bits); err != nil {
		return err
	}
	if err := r.recheck(a, "", bits); err != nil {
		return err
	}
	for n := 1; n <= c.Count; n++ {
		if err := r.press(a.at, c.Button, n, bits); err != nil {
			return err
		}
		if err := r.release(a.at, c.Button, n, bits, n == c.Count); err != nil {
			return err
		}
	}
	return nil
}

// clickDialog says what is known of a click that opened a dialog before its last
// answer came. What the world reported before the page stood still tells how far
// the input had come.
func (r *run) clickDialog(seen evidence) step {
	s := step{reason: protocol.ReasonDialogOpen, message: r.p.dialogProblem().Message}
	if !r.complete {
		s.state, s.observe = protocol.StateFailed, true
		s.message += "; it opened before the release, and the button was let go beside the page"
		return s
	}
	s.state, s.effect = protocol.StateApplied, protocol.EffectDispatched
	if seen.hit("mousedown") && (seen.hit("mouseup") || seen.hit("click")) {
		s.effect = protocol.EffectDelivered
	}
	return s
}

// lastEvent is what a click of a button leads to.
var lastEvent = map[string]string{"left": "click", "middle": "auxclick", "right": "contextmenu"}

// clicked weighs what was seen of a click.
func (r *run) clicked(a *aimed, seen evidence) step {
	last := lastEvent[r.pre.click.Button]
	down, up, done := seen.hit("mousedown"), seen.hit("mouseup"), seen.hit(last)
	switch {
	case a.h == 0:
		return clickedPoint(seen, last)
	case down && up && done, down && done && r.pre.click.Button == "right", down && done && seen.lost:
		return applied(protocol.EffectDelivered)
	case down && up:
		s := applied(protocol.EffectDispatched)
		s.message = "the press and the release reached it, and no " + last + " came of them"
		return s
	case down && seen.lost:
		s := applied(protocol.EffectDispatched)
		s.message = "the press reached it and the document went away before the release was seen"
		return s
	case down && !seen.There:
		s := applied(protocol.EffectDispatched)
		s.message = "the press reached it and it went away before the release"
		return s
	case down:
		return failed(protocol.ReasonMoved, "the press reached %s and the release met %s, so that it was not activated; observe and try again", a.words, seen.met("mouseup", last))
	case seen.any("mousedown", "mouseup", last) || seen.elsewhere != nil:
		return failed(protocol.ReasonMoved, "the press met %s instead of %s; observe", seen.met("mousedown", "mouseup", last), a.words)
	case seen.lost:
		s := applied(protocol.EffectDispatched)
		s.message = "the document went away before anything could be seen"
		return s
	}
	s := failed(protocol.ReasonNoEffect, "input was given and did not reach %s; observe", a.words)
	s.effect = protocol.EffectNone
	return s
}

// clickedPoint weighs a click at coordinates, whose element nobody named.
func clickedPoint(seen evidence, last string) step {
	switch {
	case seen.Seen["mousedown"].N > 0 && seen.Seen[last].N > 0:
		return applied(protocol.EffectDelivered)
	default:
		// It may have gone into a frame, whose document was not watched.
		return applied(protocol.EffectDispatched)
	}
}

// hover moves the pointer over an element or to a point.
func (r *run) hover() (step, error) {
	a, err := r.aim(r.pre.found, r.pre.point)
	if err != nil {
		return step{}, err
	}
	w, err := r.watch(a.frame, a.h)
	if err != nil {
		return step{}, err
	}
	defer w.cancel()
	if err := r.moveSeam(a.at); err != nil {
		return step{}, err
	}
	if err := r.recheck(a, "", 0); err != nil {
		return step{}, err
	}
	seen := w.end(r.late)
	r.rest()
	switch {
	case a.h == 0 || seen.lost:
		return applied(protocol.EffectDispatched), nil
	case seen.Over:
		return applied(protocol.EffectConfirmed), nil
	case seen.hit("mousemove"):
		return applied(protocol.EffectDelivered), nil
	}
	s := failed(protocol.ReasonNoEffect, "the pointer moved and did not reach %s; observe", a.words)
	s.effect = protocol.EffectNone
	return s, nil
}

// moveSeam is a move that is all of an operation's input.
func (r *run) moveSeam(at protocol.Point) error {
	pend, err := r.startMove(at)
	if err != nil {
		return err
	}
	r.firstWritten()
	r.lastWritten()
	return r.wait(pend, nil)
}

// download clicks and waits for the file.
func (r *run) download() (step, error) {
	begun, cancel := r.p.host.downloads(r.p)
	defer cancel()
	s, err := r.click()
	if err != nil || s.state != protocol.StateApplied {
		return s, err
	}
	one, stop := context.WithTimeout(r.ctx, downloadBegins)
	defer stop()
	select {
	case d, ok := <-begun:
		if !ok {
			return failed(protocol.ReasonDownloadFailed, "the page went away before the file began"), nil
		}
		got, err := d.wait(r.ctx)
		got.Name = r.p.secrets().scrub(got.Name)
		r.out.Download = &got
		if err != nil {
			return failed(protocol.ReasonDownloadFailed, "the file did not arrive whole: %v", err), nil
		}
		return applied(protocol.EffectConfirmed), nil
	case <-one.Done():
	}
	if r.ctx.Err() != nil {
		return step{}, context.Cause(r.ctx)
	}
	return failed(protocol.ReasonDownloadFailed, "the click was given and no download began within %s; observe", downloadBegins), nil
}
