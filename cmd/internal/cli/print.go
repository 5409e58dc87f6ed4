package cli

import (
	"fmt"
	"strings"
	"time"

	"reins/protocol"
)

// receipt prints a receipt: its line, and below it what a person has to know.
func (a *app) receipt(r protocol.Receipt) {
	if a.json {
		a.emit(r)
		return
	}
	a.line(string(r.State), string(r.Effect), string(r.Method), clean(string(r.OperationID)), spent(r.Timing), string(r.Reason))
	if r.Message != "" {
		a.line("  " + clean(r.Message))
	}
	if r.Method == protocol.MethodOpen && r.Resource != "" {
		a.line("  resource", string(r.Resource), fmt.Sprintf("generation %d", r.Generation))
	}
	if p := r.Page; p != nil {
		a.page(p, r.Resource)
	}
	if d := r.Download; d != nil {
		a.line("  file", clean(d.Path), fmt.Sprintf("%d bytes sha256 %s %s", d.Bytes, d.SHA256, d.State))
	}
	if r.ActualValue != nil {
		a.line("  the field holds", quoted(*r.ActualValue, 200))
	}
	if n := r.LastAppliedIndex; n != nil && (r.State == protocol.StateFailed || r.State == protocol.StateUncertain) {
		a.line(fmt.Sprintf("  last primitive applied: %d", *n))
	}
	if p := r.Progress; p != nil {
		a.line(fmt.Sprintf("  came as far as %d %s", p.Done, clean(p.Unit)))
	}
	for _, c := range r.Candidates {
		a.line("  candidate", control(c))
	}
	if r.ObserveRequired {
		a.line("  observe first: reins observe " + clean(string(r.Resource)))
	}
}

func (a *app) page(p *protocol.Page, id protocol.ResourceID) {
	status := ""
	if p.HTTPStatus != 0 {
		status = fmt.Sprintf("HTTP %d", p.HTTPStatus)
	}
	rest := ""
	if !p.Settled {
		rest = "(not at rest)"
	}
	a.line("  page", clean(p.URL), quoted(p.Title, 80), status, rest)
	if d := p.Dialog; d != nil {
		a.line("  dialog", clean(d.Type), quoted(d.Message, 300), "answer with: reins do "+clean(string(id))+" dialog --accept | --dismiss")
	}
}

// spent is the time that an operation took in the daemon.
func spent(t protocol.Timing) string {
	us := t.QueuedUS + t.ResolveUS + t.PersistUS + t.InputUS + t.SettleUS
	return fmt.Sprintf("%d ms", (time.Duration(us) * time.Microsecond).Round(time.Millisecond).Milliseconds())
}

// control is one element in one line.
func control(c protocol.Control) string {
	parts := []string{string(c.Ref), clean(c.Role), quoted(c.Name, 120)}
	if len(c.States) > 0 {
		parts = append(parts, clean(strings.Join(c.States, ",")))
	}
	switch {
	case c.ValueRedacted:
		parts = append(parts, "= (secret)")
	case c.Value != nil:
		parts = append(parts, "= "+quoted(*c.Value, 200))
	}
	parts = append(parts, fmt.Sprintf("[%.0f,%.0f %.0f×%.0f]", c.Bounds[0], c.Bounds[1], c.Bounds[2], c.Bounds[3]))
	if c.Frame != "" {
		parts = append(parts, "in "+quoted(c.Frame, 60))
	}
	return strings.Join(parts, " ")
}

// quoted puts text of a page between quotes, cut and cleaned.
func quoted(s string, n int) string { return `"` + clean(cut(s, n)) + `"` }

// problemLine is a problem in one line, with what to do about it.
func problemLine(p *protocol.Problem) string {
	words := problemWords(p)
	lines := strings.Split(words, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	words = strings.Join(lines, "\n")
	if p.Reason != "" {
		words = string(p.Reason) + ": " + words
	}
	if p.HeldBy != "" && !strings.Contains(words, string(p.HeldBy)) {
		words += " (held by " + clean(string(p.HeldBy)) + ")"
	}
	if p.Dialog != nil {
		words += " (" + clean(p.Dialog.Type) + " " + quoted(p.Dialog.Message, 300) + ")"
	}
	for _, c := range p.Candidates {
		words += "\n  candidate " + control(c)
	}
	return words
}

// problemWords is what a problem says for itself, else what its reason means.
func problemWords(p *protocol.Problem) string {
	if p.Message != "" {
		return p.Message
	}
	return p.Reason.Sentence()
}

func (a *app) observation(o *protocol.Observation) {
	title := ""
	if o.Page != nil {
		title = clean(o.Page.URL) + " " + quoted(o.Page.Title, 100)
	}
	a.line(string(o.Target.Resource), fmt.Sprintf("generation %d", o.Generation), title)
	a.line("token", string(o.Token))
	if o.Page != nil && o.Page.Dialog != nil {
		a.page(o.Page, o.Target.Resource)
	}
	for _, c := range o.Controls {
		a.line(strings.Repeat("  ", min(c.Depth, 12)) + control(c))
	}
	for _, t := range o.Text {
		a.line("text", quoted(t, 400))
	}
	if m := o.Omitted; m != nil && (m.Controls > 0 || m.Text > 0) {
		a.line(fmt.Sprintf("left out: %d controls, %d texts.", m.Controls, m.Text), clean(m.How))
	}
}

func clock(t protocol.Time) string { return time.UnixMilli(int64(t)).Format("15:04:05.000") }

func day(t protocol.Time) string { return time.UnixMilli(int64(t)).Format("2006-01-02 15:04:05.000") }
