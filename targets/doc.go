// Package targets is the contract between reins and whatever it drives: a
// browser, a display, a guest. Each kind is one package below it, which
// implements [Host] and [Incarnation] and is registered in one line.
//
// An adapter resolves, gives input and looks. It decides nothing about who may
// write, when, or what an outcome means for the target's future: actors and
// supervisors do.
//
// What an adapter must do:
//
//  1. [Incarnation.Prepare] finds the element and checks that it can be acted on. It gives no input.
//  2. [Incarnation.Run] asks the [Permit] at each primitive, at the very place where bytes leave,
//     and reports in [Outcome] what is known. It always returns before its context's deadline plus a second.
//  3. [Incarnation.Revoke] makes sure that no further byte of this incarnation is written.
//  4. [Incarnation.Barrier] answers only after all input given earlier has had its effect.
//
// Invariants:
//
//	I1  No input byte is written without a nil answer of the Permit, asked under the mutex of the write.
//	I2  After Revoke returned no byte of the incarnation is written.
//	I3  An Outcome says failed only when no written byte is unanswered.
//	I4  A panic in a goroutine of the adapter becomes an [EventCrashed], never the end of the process.
//	I5  Secrets are removed before anything leaves the package.
//
// Only actors, supervisors and cmd import this package.
package targets
