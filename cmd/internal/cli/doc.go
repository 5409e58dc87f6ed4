// Package cli is the command line: it turns words into requests, sends each
// once, and says in one short line and an exit code what became of it.
//
// Invariants:
//
//	I1  A write is sent once. Nothing here sends again, whatever the answer or its absence.
//	I2  The exit code says the outcome ([exitCodes]); it never turns uncertain into failed.
//	I3  What a page wrote is printed without control characters, so that it cannot drive the terminal.
//	I4  With --json exactly one JSON value, or one a line for a stream, goes to standard output.
//	I5  An argument is refused when it is not UTF-8, never repaired.
//
// Only cmd imports this package. The daemon is started in serve.go; dial.go is the
// one file that knows protocol/nats.
package cli
