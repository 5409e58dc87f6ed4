// Package protocol holds the words of reins: the wire types, the reason codes,
// the limits and the rules that need no I/O to decide.
//
// Every other package imports it and it imports none of them. The packages
// below it (nats, …) are transports: they carry these types and call a
// [Handler], so that no actor knows which wire a request came by.
//
// Invariants:
//
//	I1  An outcome is a value ([Receipt].State), never an error.
//	I2  A request is bounded (size, depth, UTF-8, numbers in range) before anything acts on it.
//	I3  A reason code is declared once, with one line that says what it means and what to do.
//	I4  No type here has a field that could carry a live handle.
//	I5  Arguments are compared by a keyed hash ([ContentHash]) and are never stored in clear.
package protocol
