package page

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

// How long one look into a frame may take: a frame whose process hangs does not
// hold up the main one, and without the main one nothing can be said.
const (
	mainLook  = 5500 * time.Millisecond
	frameLook = 1500 * time.Millisecond
)

// patience bounds one look into the frame.
func (f *frame) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.main {
		return context.WithTimeout(ctx, mainLook)
	}
	return context.WithTimeout(ctx, frameLook)
}

// searchMost bounds a search that navigations interrupt again and again.
const searchMost = 6 * time.Second

// maxCandidates is how many elements an ambiguous locator names.
const maxCandidates = 10

// found is the one element a locator matches.
type found struct {
	frame *frame
	item
	toMain frameMap
}

// item is an element as the world describes it; its boxes are of its frame.
type item struct {
	H      int        `json:"h"`
	Role   string     `json:"role"`
	Name   string     `json:"name"`
	States []string   `json:"states"`
	Box    [4]float64 `json:"box"`
	Check  *checked   `json:"check"`
	// Frame and Has are of what has the focus: it is a frame's element; its document has it.
	Frame bool `json:"frame"`
	Has   bool `json:"has"`
}

// checked is what can be said of an element without touching it.
type checked struct {
	Kind     string   `json:"kind"` // text, set, select, rich or empty
	Tag      string   `json:"tag"`
	Type     string   `json:"type"`
	Disabled bool     `json:"disabled"`
	ReadOnly bool     `json:"readonly"`
	Secret   bool     `json:"secret"`
	InView   bool     `json:"inView"`
	Behind   bool     `json:"behind"`
	X        *float64 `json:"x"`
	Y        *float64 `json:"y"`
	By       *sketch  `json:"by"`
	Aside    bool     `json:"aside"` // scrolling may bring it out from under By
	Options  [][3]any `json:"options"`
}

// findings is the answer of one frame.
type findings struct {
	frame   *frame
	err     error
	Total   int    `json:"total"`
	Visible int    `json:"visible"`
	Items   []item `json:"items"`
	Stale   string `json:"stale"`
	Other   bool   `json:"other"` // the ref is of another document
	Bad     string `json:"bad"`
}

// worldLocator is a locator as the world takes it.
type worldLocator struct {
	Ref         int    `json:"ref,omitempty"`
	Doc         string `json:"doc,omitempty"`
	Role        string `json:"role,omitempty"`
	Name        string `json:"name,omitempty"`
	Label       string `json:"label,omitempty"`
	Text        string `json:"text,omitempty"`
	TestID      string `json:"test_id,omitempty"`
	Placeholder string `json:"placeholder,omitempty"`
	CSS         string `json:"css,omitempty"`
	Contains    bool   `json:"contains,omitempty"`
}

func problem(r protocol.Reason, format string, args ...any) *protocol.Problem {
	return &protocol.Problem{Reason: r, Message: fmt.Sprintf(format, args...)}
}

// search asks the frames that a locator may mean, all at once; what a navigation
// interrupts is asked again. The main frame's answer comes first.
func (p *incarnation) search(ctx context.Context, l protocol.Locator, purpose string) ([]findings, *protocol.Problem) {
	w := worldLocator{Role: l.Role, Name: l.Name, Label: l.Label, Text: l.Text, TestID: l.TestID,
		Placeholder: l.Placeholder, CSS: l.CSS, Contains: l.Contains}
	if l.Ref != "" {
		g, doc, node, ok := parseRef(l.Ref)
		if !ok || g != p.spec.Generation {
			return nil, problem(protocol.ReasonStaleRef, "the ref is not of this incarnation of the page; observe and use its new ref")
		}
		w = worldLocator{Ref: node, Doc: doc}
	}
	ctx, cancel := context.WithTimeout(ctx, searchMost)
	defer cancel()
	var none bool
	out, err := retry(ctx, p, func() ([]findings, error) {
		frames := p.frames()
		if len(frames) == 0 {
			return nil, errNoDocument
		}
		if l.Frame != "" {
			if frames = keepFrames(ctx, frames, l.Frame); len(frames) == 0 {
				none = true
				return nil, nil
			}
		}
		out := p.searchIn(ctx, frames, w, purpose)
		return out, out[0].err
	})
	if none {
		return nil, problem(protocol.ReasonNotFound, "no frame has the name, URL or element id %q; observe and use a frame that is there", l.Frame)
	}
	if err != nil {
		return nil, p.lookFailed(ctx, err)
	}
	return out, nil
}

// searchIn asks these frames at once.
func (p *incarnation) searchIn(ctx context.Context, frames []*frame, w worldLocator, purpose string) []findings {
	out := make([]findings, len(frames))
	var all sync.WaitGroup
	for i, f := range frames {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if r := recover(); r != nil {
					out[i] = findings{frame: f, err: fmt.Errorf("panic while looking into a frame: %v", r)}
				}
			}()
			one, cancel := f.patience(ctx)
			defer cancel()
			out[i].err = f.world(one, "find", &out[i], w, purpose)
			out[i].frame = f
		}()
	}
	all.Wait()
	return out
}

func keepFrames(ctx context.Context, frames []*frame, want string) []*frame {
	var kept []*frame
	for _, f := range frames {
		if f.named(ctx, want) {
			kept = append(kept, f)
		}
	}
	return kept
}

// lookFailed says why a page could not be looked at.
func (p *incarnation) lookFailed(ctx context.Context, err error) *protocol.Problem {
	switch {
	case dialogCut(ctx, err) || p.dialog() != nil:
		return p.dialogProblem()
	case ctx.Err() != nil:
		return problem(protocol.ReasonPageUnresponsive, "the page did not answer within the deadline; wait, or restart it")
	case cdp.Unanswered(err) || cdp.NotWritten(err):
		return problem(protocol.ReasonPageUnresponsive, "the page does not answer (%v); wait, or restart it", err)
	}
	return problem(protocol.ReasonPageUnresponsive, "the page changed while it was looked at (%v); observe and try again", err)
}

// dialogProblem refuses something because a dialog is open.
func (p *incarnation) dialogProblem() *protocol.Problem {
	d := p.openDialog()
	pr := problem(protocol.ReasonDialogOpen, "a dialog is open and has to be answered with the method dialog first")
	if d != nil {
		pr.Dialog = d
		pr.Message = fmt.Sprintf("a dialog (%s: %q) is open and has to be answered with the method dialog first", d.Type, d.Message)
	}
	return pr
}

// openDialog is the dialog that stands open, without the page's secrets; or nil.
func (p *incarnation) openDialog() *protocol.Dialog {
	d := p.dialog()
	if d == nil {
		return nil
	}
	s := p.secrets()
	return &protocol.Dialog{Type: d.Type, Message: clip(s.scrub(d.Message), maxDialog), Default: clip(s.scrub(d.Default), maxDialog)}
}

// locate finds the one visible element that a locator means.
func (p *incarnation) locate(ctx context.Context, l protocol.Locator, purpose string) (*found, *protocol.Problem) {
	answers, pr := p.search(ctx, l, purpose)
	if pr != nil {
		return nil, pr
	}
	if l.Ref != "" {
		return p.locatedRef(ctx, answers)
	}
	var hits []found
	total := 0
	for _, a := range answers {
		if a.err != nil {
			continue // a frame that went away or hangs; the main frame answered
		}
		if a.Bad != "" {
			return nil, problem(protocol.ReasonBadArguments, "css: %q: %s", l.CSS, a.Bad)
		}
		total += a.Total
		m, err := a.frame.toMain(ctx)
		if err != nil {
			continue
		}
		for _, it := range a.Items {
			hits = append(hits, found{a.frame, it, m})
		}
	}
	hits = inFront(hits)
	switch {
	case len(hits) == 1:
		return &hits[0], nil
	case len(hits) > 1:
		return nil, p.ambiguous(ctx, l, hits)
	case total > 0:
		return nil, problem(protocol.ReasonNotVisible, "%d elements match %s and none is visible; bring it into view by what shows it", total, locatorWords(l))
	}
	return nil, problem(protocol.ReasonNotFound, "no element matches %s; observe, and use a locator from what is there", locatorWords(l))
}

// inFront leaves out what stands behind a modal dialog, unless nothing else matches.
func inFront(hits []found) []found {
	var front []found
	for _, h := range hits {
		if h.Check == nil || !h.Check.Behind {
			front = append(front, h)
		}
	}
	if len(front) > 0 {
		return front
	}
	return hits
}

func (p *incarnation) locatedRef(ctx context.Context, answers []findings) (*found, *protocol.Problem) {
	for _, a := range answers {
		switch {
		case a.err != nil || a.Other:
			continue
		case a.Stale != "":
			return nil, problem(protocol.ReasonStaleRef, "the ref is stale: %s; observe and use its new ref", a.Stale)
		case len(a.Items) == 0:
			return nil, problem(protocol.ReasonNotVisible, "the element of the ref is not visible; bring it into view by what shows it")
		}
		m, err := a.frame.toMain(ctx)
		if err != nil {
			return nil, problem(protocol.ReasonNotVisible, "the frame of the element is not shown; bring it into view by what shows it")
		}
		return &found{a.frame, a.Items[0], m}, nil
	}
	return nil, problem(protocol.ReasonStaleRef, "the document of the ref is gone; observe and use the new ref")
}

func (p *incarnation) ambiguous(ctx context.Context, l protocol.Locator, hits []found) *protocol.Problem {
	pr := problem(protocol.ReasonAmbiguous, "%d elements match %s; use the ref of one of the candidates, or a narrower locator", len(hits), locatorWords(l))
	if len(hits) > maxCandidates {
		pr.Message = fmt.Sprintf("more than %d elements match %s; use the ref of one of the candidates, or a narrower locator", maxCandidates, locatorWords(l))
		hits = hits[:maxCandidates]
	}
	for _, h := range hits {
		c := p.control(h)
		c.Ref = p.refOf(ctx, h)
		pr.Candidates = append(pr.Candidates, c)
	}
	return pr
}

// refOf lists one element to the caller and returns its ref.
func (p *incarnation) refOf(ctx context.Context, h found) protocol.Ref {
	var listed struct {
		Doc string `json:"doc"`
		IDs []int  `json:"ids"`
	}
	if err := h.frame.world(ctx, "refsFor", &listed, []int{h.H}); err != nil || len(listed.IDs) != 1 || listed.IDs[0] == 0 {
		return ""
	}
	return makeRef(p.spec.Generation, listed.Doc, listed.IDs[0])
}

// control describes an element for people and programs, without its value and
// without the page's secrets.
func (p *incarnation) control(h found) protocol.Control {
	s := p.secrets()
	name, _ := capRunes(s.scrub(h.Name), nameRunes)
	return protocol.Control{Role: h.Role, Name: name, States: h.States, Bounds: roundBox(h.toMain.box(h.Box)), Frame: s.scrub(h.frame.words())}
}

func locatorWords(l protocol.Locator) string {
	var b strings.Builder
	add := func(k, v string) {
		if v == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		v, cut := capRunes(v, 120)
		if cut {
			v += "…"
		}
		fmt.Fprintf(&b, "%s %q", k, v)
	}
	add("role", l.Role)
	add("name", l.Name)
	add("label", l.Label)
	add("text", l.Text)
	add("test_id", l.TestID)
	add("placeholder", l.Placeholder)
	add("css", l.CSS)
	add("frame", l.Frame)
	return b.String()
}
