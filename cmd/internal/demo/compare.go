package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// compare holds the shop's ledger against what the receipts say (I3).
func (j *job) compare(ctx context.Context) error {
	j.say.part("Comparing the receipts with the shop's own ledger")
	l, err := fetchLedger(ctx, j.url)
	if err != nil {
		return err
	}
	if err := keepJSON(filepath.Join(j.cfg.OutDir, "ledger.json"), l); err != nil {
		return err
	}
	j.say.counts(j.expect, l.Counts)
	if err := disagreement(j.expect, j.loads, j.say.invoice, l); err != nil {
		return err
	}
	j.say.note("each page was asked for once, and once more for the return of %s", j.page)
	return nil
}

// disagreement tells every point in which a ledger differs from the receipts.
func disagreement(expect map[Action]int, loads map[string]int, invoice string, l Ledger) error {
	var errs []error
	for _, a := range Actions {
		if got, want := l.Counts[a], expect[a]; got != want {
			errs = append(errs, fmt.Errorf("the shop saw %s %d times, the receipts say %d", a, got, want))
		}
	}
	for path, want := range loads {
		if got := l.Pages[path]; got != want {
			errs = append(errs, fmt.Errorf("the page %s was asked for %d times, not %d", path, got, want))
		}
	}
	if l.Sessions != 1 {
		errs = append(errs, fmt.Errorf("the shop saw %d visitors, not one: a cookie was lost", l.Sessions))
	}
	if len(l.Invoices) != 1 {
		errs = append(errs, fmt.Errorf("the shop wrote %d invoices, not one", len(l.Invoices)))
	}
	for order, sha := range l.Invoices {
		if sha != invoice {
			errs = append(errs, fmt.Errorf("the invoice of order %s has SHA-256 %s, the download has %s", order, sha, invoice))
		}
	}
	return errors.Join(errs...)
}

func fetchLedger(ctx context.Context, url string) (Ledger, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", url+"ledger", nil)
	if err != nil {
		return Ledger{}, err
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := c.Do(r)
	if err != nil {
		return Ledger{}, fmt.Errorf("the shop's ledger cannot be read: %w", err)
	}
	defer got.Body.Close()
	var l Ledger
	if err := json.NewDecoder(io.LimitReader(got.Body, 8<<20)).Decode(&l); err != nil {
		return Ledger{}, fmt.Errorf("the shop's ledger cannot be read: %w", err)
	}
	return l, nil
}

func keepJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
