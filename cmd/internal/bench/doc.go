// Package bench measures reins against named alternatives, side by side in one
// run, and prints ratios: a click by ref against the same click on a raw DevTools
// session with the same waits, an observation against the full accessibility
// tree, opening many Pages against raw tabs, and the daemon's memory.
//
// Invariants:
//
//	I1  Both sides of a ratio alternate within one run, in browsers started with the same flags.
//	I2  reins is measured through its public entry: the Go client over NATS, a daemon of its own process.
//	I3  Nothing here is asserted: a benchmark prints what it is.
//
// Imported by cmd only.
package bench
