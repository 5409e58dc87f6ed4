// Package index keeps what every owner's operation ids are bound to, across all
// scopes: the same id with the same content is answered with the same receipt,
// with other content it is refused.
//
// It is a pure state machine over what the caller looked up in the store: it has
// no clock, no I/O and no goroutine. The broker guards it with one mutex.
//
// Invariants:
//
//	I1  An id is under way at most once.
//	I2  A receipt that was recorded, or could not be recorded after dispatch, is answered for ever.
//	I3  A refusal leaves the id free.
//	I4  A cancel that overtakes its operation is remembered for CancelMemory.
//
// Imported by broker only.
package index
