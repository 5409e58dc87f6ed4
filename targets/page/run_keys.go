package page

import (
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
		return step{}, err
	}
	seen := w.end(r.late)
	if seen.lost || seen.Seen == nil {
		seen = w.told()
	}
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

// strike presses the modifiers, then the key, and lets them go in reverse.
func (r *run) strike(c chord) error {
	var bits int64
	for _, m := range c.modifiers {
		bits |= modifierKeys[m].bit.Int64()
		down, err := r.keyDown(modifierStroke(m), bits)
		if err != nil {
			return err
		}
		if err := r.finish([]stroke{{pend: down}}); err != nil {
			return err
		}
	}
	if len(c.modifiers) == 0 {
		return r.tap(c.key, 0)
	}
	down, err := r.keyDown(c.key, bits)
	if err != nil {
		return err
	}
	r.seam(protocol.StepPressWritten)
	if err := r.finish([]stroke{{pend: down}}); err != nil {
		return err
	}
	up, err := r.keyUp(c.key, bits)
	if err != nil {
		return err
	}
	if err := r.finish([]stroke{{pend: up, up: &c.key}}); err != nil {
		return err
	}
	for i := len(c.modifiers) - 1; i >= 0; i-- {
		m := c.modifiers[i]
		bits &^= modifierKeys[m].bit.Int64()
		k := modifierStroke(m)
		up, err := r.keyUp(k, bits)
		if err != nil {
			return err
		}
		if i == 0 {
			r.seam(protocol.StepReleaseWritten)
		}
		if err := r.finish([]stroke{{pend: up, up: &k}}); err != nil {
			return err
		}
	}
	return nil
}

func modifierStroke(name string) keyStroke {
	m := modifierKeys[name]
	return keyStroke{key: name, code: m.code, windows: m.vk}
}
