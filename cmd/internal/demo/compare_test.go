package demo

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// I3: the comparison has teeth. Each way in which the ledger can differ is found.
func TestDisagreement(t *testing.T) {
	expect := map[Action]int{}
	for _, a := range Actions {
		expect[a] = 1
	}
	loads := map[string]int{"/": 1, "/checkout": 2, "/pay": 2, "/orders": 1}
	agreeing := func() Ledger {
		return Ledger{Counts: maps.Clone(expect), Pages: maps.Clone(loads), Sessions: 1, Invoices: map[string]string{"1001": "aa"}}
	}
	if err := disagreement(expect, loads, "aa", agreeing()); err != nil {
		t.Errorf("a ledger that agrees is refused: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Ledger)
		want   string
	}{
		"an action twice":     {func(l *Ledger) { l.Counts[ActionConfirm] = 2 }, "confirm 2 times, the receipts say 1"},
		"an action not seen":  {func(l *Ledger) { delete(l.Counts, ActionPayment) }, "payment 0 times"},
		"a page once more":    {func(l *Ledger) { l.Pages["/checkout"] = 3 }, "/checkout was asked for 3 times, not 2"},
		"a page not restored": {func(l *Ledger) { l.Pages["/pay"] = 1 }, "/pay was asked for 1 times, not 2"},
		"a lost cookie":       {func(l *Ledger) { l.Sessions = 2 }, "2 visitors"},
		"another invoice":     {func(l *Ledger) { l.Invoices["1001"] = "bb" }, "SHA-256 bb"},
		"a second order":      {func(l *Ledger) { l.Invoices["1002"] = "aa" }, "2 invoices"},
	} {
		l := agreeing()
		c.change(&l)
		if err := disagreement(expect, loads, "aa", l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What the receipts do not claim, the shop must not have seen either.
func TestDisagreementOnUnclaimedActions(t *testing.T) {
	l := Ledger{Counts: map[Action]int{ActionAdd: 1}, Sessions: 1, Invoices: map[string]string{"1001": ""}}
	if err := disagreement(nil, nil, "", l); err == nil || !strings.Contains(err.Error(), "add 1 times, the receipts say 0") {
		t.Errorf("got %v", err)
	}
}

func TestFetchLedger(t *testing.T) {
	v := newVisitor(t)
	v.get("/")
	l, err := fetchLedger(t.Context(), v.app.URL())
	if err != nil || l.Pages["/"] != 1 || l.Sessions != 1 {
		b, _ := json.Marshal(l)
		t.Errorf("%v %s", err, b)
	}
}
