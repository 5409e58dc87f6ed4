package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reins/protocol"
)

// report prints the steps of the job as they happen and keeps the receipts.
type report struct {
	out      io.Writer
	receipts *os.File
	ids      int
	steps    int
	began    time.Time
	invoice  string // SHA-256 of the downloaded invoice
}

func newReport(cfg RunConfig) (*report, error) {
	f, err := os.Create(filepath.Join(cfg.OutDir, "receipts.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the receipts cannot be kept: %w", err)
	}
	return &report{out: cfg.Out, receipts: f, began: time.Now()}, nil
}

func (r *report) close() error { return r.receipts.Close() }

func (r *report) nextID() protocol.OperationID {
	r.ids++
	return protocol.OperationID(fmt.Sprintf("order-%02d", r.ids))
}

func (r *report) part(title string) {
	fmt.Fprintf(r.out, "\n%s (%.1f s)\n", title, time.Since(r.began).Seconds())
}

func (r *report) note(format string, args ...any) {
	fmt.Fprintf(r.out, "      %s\n", fmt.Sprintf(format, args...))
}

func (r *report) receipt(what string, got protocol.Receipt) {
	t := got.Timing
	ms := (t.QueuedUS + t.ResolveUS + t.PersistUS + t.InputUS + t.SettleUS) / 1000
	r.step(string(got.State), string(got.Effect), ms, string(got.Method), what, string(got.Reason))
	if err := json.NewEncoder(r.receipts).Encode(got); err != nil {
		r.note("the receipt could not be kept: %v", err)
	}
}

func (r *report) read(what string, m protocol.Method, took time.Duration) {
	r.step("seen", "", took.Milliseconds(), string(m), what, "")
}

func (r *report) step(state, effect string, ms int64, method, what, reason string) {
	r.steps++
	if reason != "" {
		what += " (" + reason + ")"
	}
	fmt.Fprintf(r.out, "  %2d  %-9s %-10s %6d ms  %-10s %s\n", r.steps, state, effect, ms, method, what)
}

// counts shows how often the shop saw each action beside what the receipts say.
func (r *report) counts(expect, seen map[Action]int) {
	var names, said, saw strings.Builder
	for _, a := range Actions {
		fmt.Fprintf(&names, "%9s", a)
		fmt.Fprintf(&said, "%9d", expect[a])
		fmt.Fprintf(&saw, "%9d", seen[a])
	}
	r.note("%-14s%s", "", names.String())
	r.note("%-14s%s", "receipts say", said.String())
	r.note("%-14s%s", "the shop saw", saw.String())
}

// verdict is the last line of the job.
func (r *report) verdict(err error) {
	if err != nil {
		fmt.Fprintf(r.out, "\nFAILED after %.1f s: %v\n", time.Since(r.began).Seconds(), err)
		return
	}
	fmt.Fprintf(r.out, "\nDone in %.1f s: every action reached the shop exactly once.\n", time.Since(r.began).Seconds())
}
