// Package demo is a small shop and the job that orders from it through reins.
//
// The shop ([App]) is a real web application: a list that arrives late, a
// basket kept on the server under a cookie, a form, a payment frame of another
// site, a confirm dialog and an invoice to download. It keeps a [Ledger] of
// every action that reached it, so that what a receipt says can be compared
// with what really happened.
//
// The job ([Run]) starts the shop and a daemon as processes of their own,
// places one order through the NATS client as any program would, kills the
// browser in the middle, and compares the receipts with the ledger.
//
// Invariants:
//
//	I1  An action is written to the ledger when it arrives, before it is judged: a repeat is counted, never hidden.
//	I2  The ledger lives in the shop's process, which the job never kills before it has read it.
//	I3  The job succeeds only if every action was seen exactly as often as the receipts say.
//	I4  Card numbers and security codes are never kept, not in the ledger either.
//	I5  No process that the job started outlives it.
//	I6  The job speaks to reins by the public client only; its one back door is the signal that kills the browser.
//
// Only cmd/internal/cli imports this package.
package demo
