// Package target is the actor of one incarnation: it runs the adapter's calls in
// goroutines of its own, so that no mailbox waits for a browser, and turns their
// panics into a report to the supervisor.
//
// It is named by its generation (…/g12) and is never restarted: a new
// incarnation is a new actor with an empty mailbox.
//
// Invariants:
//
//	I1  No adapter call runs in a mailbox.
//	I2  A panic of the adapter ends this incarnation ([Crashed]), never the process.
//	I3  A call that panicked is not answered: its operation gets its outcome by the fence.
//	I4  A call that came after the end is answered: nothing of it happened.
//
// Imported by scope, supervisors and cmd.
package target
