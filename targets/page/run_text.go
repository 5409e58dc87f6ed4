package page

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/input"

	"reins/protocol"
)

// field is what a field holds, as the world tells it.
type field struct {
	Gone   bool   `json:"gone"`
	Kind   string `json:"kind"`
	Secret bool   `json:"secret"`
	Value  string `json:"value"`
	Raw    string `json:"raw"` // the value behind the label of a list
	Start  *int   `json:"start"`
	End    *int   `json:"end"`
}

// read asks what the field holds.
func (r *run) read(f *found) (field, error) {
	var v field
	if err := f.frame.world(r.ctx, "field", &v, f.H); err != nil {
		return v, r.seenTrouble(err)
	}
	if v.Gone {
		return v, problem(protocol.ReasonStaleRef, "%s went away; observe again", f.words())
	}
	return v, nil
}

// focused asks whether an element still has the focus.
func (r *run) focused(f *found) (bool, error) {
	var on bool
	if err := f.frame.world(r.ctx, "hasFocus", &on, f.H); err != nil {
		return false, r.seenTrouble(err)
	}
	return on, nil
}

// focusOn puts the focus on an element. mode is all, end or keep.
func (r *run) focusOn(f *found, mode string) error {
	var got struct {
		Gone bool    `json:"gone"`
		OK   bool    `json:"ok"`
		On   *sketch `json:"on"`
	}
	if err := r.touch(f.frame, "focus", &got, f.H, mode); err != nil {
		return err
	}
	switch {
	case got.Gone:
		return problem(protocol.ReasonStaleRef, "%s went away; observe again", f.words())
	case !got.OK:
		return problem(protocol.ReasonNotEditable, "%s does not take the focus: it is on %s; observe", f.words(), got.On.words())
	}
	return nil
}

// fill puts exactly the text into a field, in place of what it holds, and reads
// it back. Text is inserted as an input method does; only where no key or input
// method can enter a value (a date, a colour, a range, a list) the element's own
// setter is used, with the events that go with it.
func (r *run) fill() (step, error) {
	f := r.pre.found
	if err := r.focusOn(f, fillMode(f)); err != nil {
		return step{}, err
	}
	var err error
	switch f.Check.Kind {
	case "set", "select":
		err = r.put(f)
	default:
		err = r.replace(r.pre.text)
	}
	if err != nil {
		return step{}, err
	}
	r.rest()
	return r.compare(f, func(v field) bool { return holds(v, r.pre.text) })
}

func fillMode(f *found) string {
	if f.Check.Kind == "set" || f.Check.Kind == "select" {
		return "keep"
	}
	return "all"
}

// holds: the field holds exactly the text.
func holds(v field, text string) bool {
	return v.Value == text || (v.Kind == "select" && (v.Raw == text || v.Value == squeeze(text)))
}

// put uses the element's own setter, as one gated command.
func (r *run) put(f *found) error {
	var got struct {
		Gone bool `json:"gone"`
		None bool `json:"none"`
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	r.firstWritten()
	err := r.touch(f.frame, "put", &got, f.H, r.pre.text)
	r.ended = time.Now()
	r.lastWritten()
	switch {
	case err != nil:
		return err
	case got.Gone:
		return problem(protocol.ReasonStaleRef, "%s went away; observe again", f.words())
	case got.None:
		return problem(protocol.ReasonNotFound, "%s has no such option any more; observe", f.words())
	}
	return nil
}

// replace puts text in the place of what is selected.
func (r *run) replace(text string) error {
	if text == "" {
		del := namedKeys["Delete"]
		return r.tap(del, 0, true)
	}
	pend, err := r.start(cdproto.CommandInputInsertText, &input.InsertTextParams{Text: text})
	if err != nil {
		return err
	}
	r.firstWritten()
	r.lastWritten()
	return r.wait(pend, nil)
}

// tap presses a key and lets it go. Both are written before an answer is awaited:
// what the key does may be to open a dialog, behind which no further key gets through.
func (r *run) tap(k keyStroke, bits int64, last bool) error {
	down, err := r.keyDown(k, bits)
	if err != nil {
		return err
	}
	r.firstWritten()
	up, err := r.keyUp(k, bits)
	if err != nil {
		_, _ = r.finish([]stroke{{pend: down}})
		return err
	}
	if last {
		r.lastWritten()
	}
	_, err = r.finish([]stroke{{pend: down}, {pend: up, up: &k}})
	return err
}

// compare reads a field back. What it holds instead is told, unless it is secret.
func (r *run) compare(f *found, same func(field) bool) (step, error) {
	if r.p.dialog() != nil {
		return applied(protocol.EffectDispatched), nil
	}
	v, err := r.read(f)
	if err != nil {
		if r.p.navigations() != r.navs {
			// The page went on to another document: nothing is left to read.
			return applied(protocol.EffectDispatched), nil
		}
		return step{}, err
	}
	if same(v) {
		return applied(protocol.EffectConfirmed), nil
	}
	if !v.Secret {
		actual, _ := capRunes(v.Value, protocol.ValueCodePoints)
		r.out.ActualValue = &actual
	}
	return failed(protocol.ReasonValueMismatch, "%s holds something else than was entered; observe", f.words()), nil
}

// chunkRunes is how many characters are typed before their answers are awaited
// and the focus is looked at again.
const chunkRunes = 16

// typeText sends keys for the characters that have one and inserts the others.
func (r *run) typeText() (step, error) {
	f := r.pre.found
	if err := r.focusOn(f, "end"); err != nil {
		return step{}, err
	}
	before, err := r.read(f)
	if err != nil {
		return step{}, err
	}
	w, err := r.watch(f.frame, 0)
	if err != nil {
		return step{}, err
	}
	defer w.cancel()
	r.out.Progress = &protocol.Progress{Unit: "characters"}
	all := clusters(r.pre.text)
	for len(all) > 0 {
		n := min(chunkRunes, len(all))
		if err := r.typeChunk(all[:n], n == len(all)); err != nil {
			return step{}, err
		}
		all = all[n:]
		if len(all) == 0 {
			break
		}
		if on, err := r.focused(f); err != nil {
			return step{}, err
		} else if !on {
			return failed(protocol.ReasonMoved, "the focus left %s in the middle of the text; the rest was not typed; observe", f.words()), nil
		}
	}
	seen := w.end(r.late)
	r.rest()
	return r.typed(f, before, seen)
}

// typeChunk types a few characters: all are written, then all answers awaited. A
// character counts when the command that enters it was answered.
func (r *run) typeChunk(cs []cluster, last bool) error {
	var strokes []stroke
	var enters []int // where in strokes each character is entered
	var stopped error
	for i, c := range cs {
		first := r.written == 0
		s, err := r.typeOne(c)
		if len(s) > 0 {
			enters = append(enters, len(strokes))
		}
		strokes = append(strokes, s...)
		if stopped = err; stopped != nil {
			break
		}
		if first {
			r.firstWritten()
		}
		if last && i == len(cs)-1 {
			r.lastWritten()
		}
	}
	answered, err := r.finish(strokes)
	for i, at := range enters {
		if at < answered {
			r.out.Progress.Done += utf8.RuneCountInString(cs[i].text)
		}
	}
	if errors.Is(err, errDialog) && r.complete && answered < enters[len(enters)-1] {
		r.complete = false // it opened before the last character: what followed may not have arrived
	}
	if stopped != nil {
		return stopped
	}
	return err
}

func (r *run) typeOne(c cluster) ([]stroke, error) {
	if c.key == nil {
		pend, err := r.start(cdproto.CommandInputInsertText, &input.InsertTextParams{Text: c.text})
		if err != nil {
			return nil, err
		}
		return []stroke{{pend: pend}}, nil
	}
	var bits int64
	if c.key.shift {
		bits = modifierKeys["Shift"].bit.Int64()
	}
	down, err := r.keyDown(*c.key, bits)
	if err != nil {
		return nil, err
	}
	up, err := r.keyUp(*c.key, bits)
	if err != nil {
		return []stroke{{pend: down}}, err
	}
	return []stroke{{pend: down}, {pend: up, up: c.key}}, nil
}

// typed weighs what a field holds after typing. A page may add to what is typed
// (a mask, a completion); what may not happen is that characters are missing.
func (r *run) typed(f *found, before field, seen evidence) (step, error) {
	if r.pre.text == "" {
		return applied(protocol.EffectConfirmed), nil
	}
	want := expected(before, r.pre.text)
	exact := false
	s, err := r.compare(f, func(v field) bool {
		exact = v.Value == want
		return exact || subsequence(r.pre.text, v.Value) && len(v.Value) >= len(before.Value)
	})
	if err == nil && s.state == protocol.StateApplied && s.effect == protocol.EffectConfirmed && !exact {
		s.effect = protocol.EffectDelivered
	}
	if err == nil && s.reason == protocol.ReasonValueMismatch && !seen.lost && !seen.any("keydown", "beforeinput", "input") {
		s = failed(protocol.ReasonNoEffect, "keys were given and none reached %s; observe", f.words())
		s.effect = protocol.EffectNone
	}
	return s, err
}

// expected is what a field holds when text was put where its caret was.
// Selection offsets count UTF-16 code units, as JavaScript does.
func expected(before field, text string) string {
	if before.Start == nil || before.End == nil {
		return before.Value + text
	}
	units := utf16Units(before.Value)
	if *before.Start > len(units) || *before.End > len(units) || *before.Start > *before.End {
		return before.Value + text
	}
	return fromUnits(units[:*before.Start]) + text + fromUnits(units[*before.End:])
}

// subsequence reports whether all characters of part are in whole, in their order.
func subsequence(part, whole string) bool {
	rest := whole
	for _, c := range part {
		i := strings.IndexRune(rest, c)
		if i < 0 {
			return false
		}
		rest = rest[i+utf8.RuneLen(c):]
	}
	return true
}
