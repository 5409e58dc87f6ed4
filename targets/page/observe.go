package page

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"reins/protocol"
)

// The caps of what an observation says of one thing, in code points.
const (
	nameRunes = 400
	lineRunes = 1000
	// frameValueBytes is for all values of one frame.
	frameValueBytes = 32 << 10
)

// look is what one frame shows.
type look struct {
	frame    *frame
	toMain   frameMap
	err      error
	Doc      string        `json:"doc"`
	Geometry geometry      `json:"geometry"`
	Controls []lookControl `json:"controls"`
	Text     []string      `json:"text"`
	Left     int           `json:"left"`
	LeftText int           `json:"leftText"`
	Secrets  []string      `json:"secrets"`
}

// lookControl is a control as the world lists it.
type lookControl struct {
	ID     int        `json:"id"`
	Role   string     `json:"role"`
	Name   string     `json:"name"`
	States []string   `json:"states"`
	Box    [4]float64 `json:"box"`
	Depth  int        `json:"depth"`
	Value  *string    `json:"v"`
	Cut    bool       `json:"cut"`
	Secret bool       `json:"secret"`
}

// lookAll looks into every frame at once and takes in the page's secrets, before
// anything of it is passed on.
func (p *incarnation) lookAll(ctx context.Context) ([]look, error) {
	frames := p.frames()
	if len(frames) == 0 {
		return nil, errNoDocument
	}
	looks := make([]look, len(frames))
	var all sync.WaitGroup
	for i, f := range frames {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if r := recover(); r != nil {
					looks[i] = look{frame: f, err: fmt.Errorf("panic while looking into a frame: %v", r)}
				}
			}()
			looks[i] = f.look(ctx)
		}()
	}
	all.Wait()
	for _, l := range looks {
		p.secrets().add(l.Secrets...)
	}
	return looks, looks[0].err
}

func (f *frame) look(ctx context.Context) look {
	ctx, cancel := f.patience(ctx)
	defer cancel()
	l := look{}
	var text string
	if l.err = f.world(ctx, "snapshot", &text); l.err == nil {
		l.err = json.Unmarshal([]byte(text), &l)
	}
	if l.err == nil {
		l.toMain, l.err = f.toMain(ctx)
	}
	l.frame = f
	return l
}

// observe answers with what the page shows. With a dialog open, or a main thread
// that does not answer, it says what is known without it.
func (p *incarnation) observe(ctx context.Context, a protocol.ObserveArguments) (*protocol.Observation, string, *protocol.Problem) {
	scoped, end := p.untilDialog(ctx)
	defer end()
	if p.dialog() != nil {
		return p.blind(), p.knownGeometry(), nil
	}
	looks, err := retry(scoped, p, func() ([]look, error) { return p.lookAll(scoped) })
	if err != nil {
		if dialogCut(scoped, err) || p.dialog() != nil {
			return p.blind(), p.knownGeometry(), nil
		}
		return nil, "", p.lookFailed(ctx, err)
	}
	g := looks[0].Geometry
	p.remember(g)
	o := p.skeleton()
	g.onto(o.Page, p.secrets(), looks[0].frame)
	o.Viewport = &protocol.Viewport{Width: int(g.W), Height: int(g.H), Scale: g.DPR}
	o.Page.Settled = !o.Page.Loading
	o.ControlsAvailable = true
	p.fit(o, looks, a)
	return o, g.String(), nil
}

// skeleton is an observation without content.
func (p *incarnation) skeleton() *protocol.Observation {
	page := p.pageNow()
	return &protocol.Observation{
		Target:     protocol.TargetRef{Kind: protocol.KindPage, Resource: p.spec.Resource},
		Generation: p.spec.Generation, FrameID: p.nextFrame(), Page: &page, Controls: []protocol.Control{}, Capabilities: capabilities,
	}
}

// nextFrame names what is seen at one moment.
func (p *incarnation) nextFrame() string {
	return fmt.Sprintf("f%d-%d", p.spec.Generation, p.acting().seen.Add(1))
}

// capabilities are the methods that a page takes.
var capabilities = []string{"observe", "screenshot", "wait", "verify", "navigate", "back", "forward", "reload", "click", "hover",
	"drag", "fill", "type", "press", "scroll", "viewport", "dialog", "download", "batch"}

// blind is what can be said while a dialog blocks the page's main thread.
func (p *incarnation) blind() *protocol.Observation {
	o := p.skeleton()
	o.Capabilities = []string{"observe", "dialog"}
	o.Omitted = &protocol.Omitted{How: "a dialog is open and the page stands still: answer it with the method dialog, then observe again"}
	return o
}

// listed turns what a frame lists into controls without secrets.
func (p *incarnation) listed(l look) []protocol.Control {
	s := p.secrets()
	out := make([]protocol.Control, 0, len(l.Controls))
	room := frameValueBytes
	where := s.scrub(l.frame.words())
	for _, c := range l.Controls {
		name, _ := capRunes(s.scrub(c.Name), nameRunes)
		o := protocol.Control{Ref: makeRef(p.spec.Generation, l.Doc, c.ID), Role: c.Role, Name: name, States: c.States,
			Bounds: roundBox(l.toMain.box(c.Box)), Frame: where, Depth: c.Depth}
		switch {
		case c.Secret:
			o.ValueRedacted = true
		case c.Value != nil:
			v := s.scrub(*c.Value)
			o.ValueRedacted = v != *c.Value
			v, cut := capRunes(v, protocol.ValueCodePoints)
			if len(v) > room {
				v, cut = capBytes(v, room), true
			}
			room -= len(v)
			o.Value, o.ValueTruncated = &v, cut || c.Cut
		}
		out = append(out, o)
	}
	return out
}

// capBytes cuts text to at most n bytes, at a code point.
func capBytes(text string, n int) string {
	for n > 0 && n < len(text) && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:min(n, len(text))]
}

// fit puts into an observation what it has room for: controls that can be acted
// on, then the others, then text.
func (p *incarnation) fit(o *protocol.Observation, looks []look, a protocol.ObserveArguments) {
	var controls, behind []protocol.Control
	var text []string
	var unseen []string
	left, leftText := 0, 0
	s := p.secrets()
	for _, l := range looks {
		if l.err != nil {
			if l.err != errFrameHidden {
				unseen = append(unseen, s.scrub(l.frame.words()))
			}
			continue
		}
		left, leftText = left+l.Left, leftText+l.LeftText
		for _, c := range p.listed(l) {
			if slices.Contains(c.States, "inert") {
				behind = append(behind, c)
			} else {
				controls = append(controls, c)
			}
		}
		for _, t := range l.Text {
			t, cut := capRunes(s.scrub(t), lineRunes)
			if cut {
				t += "…"
			}
			text = append(text, t)
		}
	}
	controls = append(controls, behind...)
	controls, text = filter(controls, text, a.Find)
	b := budget{o: o, limit: a.Limit, offset: a.Offset}
	b.fill(controls, text)
	o.Omitted = b.omitted(len(controls)+left, len(text)+leftText, unseen)
}

// filter keeps what contains the words, case folded, after redaction: what a
// secret holds cannot be found out by asking for it.
func filter(controls []protocol.Control, text []string, find string) ([]protocol.Control, []string) {
	if find == "" {
		return controls, text
	}
	want := strings.ToLower(find)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), want) }
	controls = slices.DeleteFunc(controls, func(c protocol.Control) bool {
		return !has(c.Name) && (c.Value == nil || !has(*c.Value))
	})
	return controls, slices.DeleteFunc(text, func(t string) bool { return !has(t) })
}
