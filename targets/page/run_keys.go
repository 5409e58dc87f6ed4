package page

import (
	"errors"
	"unicode/utf16"

	"reins/protocol"
)

func utf16Units(s string) []uint16    { return utf16.Encode([]rune(s)) }
func fromUnits(units []uint16) string { return string(utf16.Decode(units)) }

// pressKey presses a key with its modifiers and lets all of them go.
func (r *run) pressKey() (step, error) {
	f := r.pre.found
	frame := r.p.mainFrame()
	h := 0
	if f != nil {
		if err := r.focusOn(f, "keep"); err != nil {
			return step{}, err
		}
		frame, h = f.frame, f.H
	}
	if frame == nil {
		return step{}, errNoDocument
	}
	w, err := r.watch(frame, h)
	if err != nil {
		return step{}, err
	}
	defer w.cancel()
	if err := r.strike(r.pre.chord); err != nil {
		if errors.Is(err, errDialog) && r.complete && w.told("keydown").hit("keydown") {
			return applied(protocol.EffectDelivered), nil // the key opened it
		}
		return step{}, err
	}
	seen := w.end(r.late, "keydown")
	r.rest()
	switch {
	case seen.hit("keydown"):
		return applied(protocol.EffectDelivered), nil
	case seen.lost:
		return applied(protocol.EffectDispatched), nil
	case seen.any("keydown") || seen.elsewhere != nil:
		return failed(protocol.ReasonMoved, "the key went to %s; observe", seen.met("keydown")), nil
	}
	s := failed(protocol.ReasonNoEffect, "the key was given and did not reach the page; observe")
	s.effect = protocol.EffectNone
	return s, nil
}

// strike presses the modifiers, then the key, and lets them go in reverse. The
// order is that of the link, so that nothing has to be awaited in between; only
// then is all input given when the key opens a dialog.
func (r *run) strike(c chord) error {
	if len(c.modifiers) == 0 {
		return r.tap(c.key, 0, true)
	}
	var strokes []stroke
	var bits int64
	err := func() error {
		for i, m := range c.modifiers {
			bits |= modifierKeys[m].bit.Int64()
			if err := r.strokeDown(&strokes, modifierStroke(m), bits); err != nil {
				return err
			}
			if i == 0 {
				r.firstWritten()
			}
		}
		if err := r.strokeDown(&strokes, c.key, bits); err != nil {
			return err
		}
		if err := r.strokeUp(&strokes, c.key, bits); err != nil {
			return err
		}
		for i := len(c.modifiers) - 1; i >= 0; i-- {
			bits &^= modifierKeys[c.modifiers[i]].bit.Int64()
			if err := r.strokeUp(&strokes, modifierStroke(c.modifiers[i]), bits); err != nil {
				return err
			}
		}
		r.lastWritten()
		return nil
	}()
	if _, unanswered := r.finish(strokes); err == nil {
		err = unanswered
	}
	return err
}

func (r *run) strokeDown(to *[]stroke, k keyStroke, bits int64) error {
	pend, err := r.keyDown(k, bits)
	if err == nil {
		*to = append(*to, stroke{pend: pend})
	}
	return err
}

func (r *run) strokeUp(to *[]stroke, k keyStroke, bits int64) error {
	pend, err := r.keyUp(k, bits)
	if err == nil {
		*to = append(*to, stroke{pend: pend, up: &k})
	}
	return err
}

func modifierStroke(name string) keyStroke {
	m := modifierKeys[name]
	return keyStroke{key: name, code: m.code, windows: m.vk}
}
