package demo

import (
	"sync"
	"time"
)

// Action names something that a visitor of the shop did.
type Action string

// The actions, in the order of a purchase.
const (
	ActionList    Action = "list"    // asked for the list of products
	ActionAdd     Action = "add"     // put a product into the basket
	ActionForm    Action = "form"    // sent name, address and delivery
	ActionPayment Action = "payment" // gave a card in the payment frame
	ActionConfirm Action = "confirm" // placed the order
	ActionInvoice Action = "invoice" // fetched the invoice
)

// Actions lists every action, in the order of a purchase.
var Actions = []Action{ActionList, ActionAdd, ActionForm, ActionPayment, ActionConfirm, ActionInvoice}

// maxEntries bounds the ledger; counts go on beyond it.
const maxEntries = 10_000

// Entry is one action as it reached the shop.
type Entry struct {
	Number  int               `json:"number"` // position in the ledger, from 1
	AtMS    int64             `json:"at_ms"`  // milliseconds since 1970-01-01 UTC
	Action  Action            `json:"action"`
	Session int               `json:"session"` // ordinal of the visitor's cookie, from 1; 0 without one
	What    map[string]string `json:"what"`
}

// Ledger is what the shop itself saw.
type Ledger struct {
	Counts map[Action]int `json:"counts"`
	// Pages counts the documents that were delivered, by path.
	Pages    map[string]int `json:"pages"`
	Sessions int            `json:"sessions"` // how many cookies were given out
	Entries  []Entry        `json:"entries"`
	// Invoices has the SHA-256 of each invoice, by order number.
	Invoices map[string]string `json:"invoices"`
}

// book is the ledger while it is being written.
type book struct {
	mu  sync.Mutex
	now func() time.Time
	l   Ledger // guarded by mu
}

func newBook(now func() time.Time) *book {
	b := &book{now: now}
	b.l = Ledger{Counts: map[Action]int{}, Pages: map[string]int{}, Invoices: map[string]string{}}
	for _, a := range Actions {
		b.l.Counts[a] = 0
	}
	return b
}

// enter records an action. It is called before the action is judged (I1).
func (b *book) enter(a Action, session int, what map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.l.Counts[a]++
	if len(b.l.Entries) == maxEntries {
		return
	}
	b.l.Entries = append(b.l.Entries, Entry{
		Number: len(b.l.Entries) + 1, AtMS: b.now().UnixMilli(), Action: a, Session: session, What: what,
	})
}

func (b *book) page(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.l.Pages[path]; known || len(b.l.Pages) < maxEntries {
		b.l.Pages[path]++
	}
}

func (b *book) session() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.l.Sessions++
	return b.l.Sessions
}

func (b *book) invoice(order, sha256 string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.l.Invoices[order] = sha256
}

// read returns a copy of the ledger as it stands.
func (b *book) read() Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := Ledger{
		Counts: map[Action]int{}, Pages: map[string]int{}, Invoices: map[string]string{},
		Sessions: b.l.Sessions, Entries: append([]Entry{}, b.l.Entries...),
	}
	for k, v := range b.l.Counts {
		l.Counts[k] = v
	}
	for k, v := range b.l.Pages {
		l.Pages[k] = v
	}
	for k, v := range b.l.Invoices {
		l.Invoices[k] = v
	}
	return l
}
