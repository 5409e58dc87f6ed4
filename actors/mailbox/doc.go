// Package mailbox is the mailbox of actors that others wait for. The library
// drops, without a word, what is still unread when an actor stops, what comes
// while it does, and what is sent to it later; whoever sent it would wait for
// ever. With this mailbox the actor's package answers it.
//
// Invariants:
//
//	I1  Every message given to the actor is either received by it or turned away, once.
//	I2  Turning away happens only after the actor has stopped.
//
// Imported by scope, target and supervisors.
package mailbox
