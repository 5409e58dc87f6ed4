// Package scope is the lane of one input scope: the queue of writes, the lease,
// the epoch, the tokens of observations, and the path of a write from admission
// to its receipt.
//
// [Step] is a pure function: no clock, no I/O, no goroutine. Every event brings
// the time with it, every command says what the shell has to do, and slow work
// comes back as another event. actor.go is the shell on protoactor.
//
//	stage of the one running operation
//
//	queued → resolving → admitting → running → ending → answered
//	   │         │           │          │
//	refused   refused    cancelled   applied / failed / uncertain
//
// Invariants:
//
//	I1  At most one operation of a scope is past the queue.
//	I2  Run is commanded only after its admission is stored, under the open generation, and once.
//	I3  The epoch is advanced before each dispatch and never goes down.
//	I4  Every submitted operation is answered exactly once.
//	I5  refused and cancelled are only said of operations for which Run was not commanded,
//	    or of which the adapter says that no byte was written.
//	I6  After Fence nothing is dispatched until Open names the new generation.
//	I7  While another owner holds the lease nothing of this owner is queued or dispatched.
//	I8  A result of another generation or of an operation already ended changes no receipt.
//	I9  After uncertain, or a restart, the next write needs a token made after it.
//	I10 The queue never exceeds its limit; full is an answer.
//
// Imported by supervisors (which spawn it), broker (which speaks to it) and cmd.
package scope
