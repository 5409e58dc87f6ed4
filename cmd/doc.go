// Command reins is the one binary: the daemon, and everything that speaks to it.
//
// What it does is in the packages below: internal/cli is the command line,
// internal/daemon wires the daemon, internal/demo is the demonstration,
// internal/bench the measurements.
//
// Invariants:
//
//	I1  The first SIGINT or SIGTERM asks a command to end; a second one ends the process at once.
//	I2  The process ends with the exit code that internal/cli returns, and in no other way of its own.
package main
