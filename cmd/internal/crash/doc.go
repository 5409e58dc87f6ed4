// Package crash lets package chaos break real daemons: [Process] is its System,
// a daemon in a process of its own, with a real browser, on a real store.
//
// The program below crashd is that daemon. Its faults exist only in a build with
// the tag reinsfaults; the tests build it so, and otherwise it is an ordinary
// daemon which no crash point can end.
//
//	go test ./cmd/internal/crash -v -run TestCrashPoints
//
// Environment of the tests:
//
//	REINS_CHAOS_SEEDS=n    seeds a step, from 0 (default 2)
//	REINS_CHAOS_ROUNDS=n   rounds of each gesture on each kind of busy page (default 3)
//	REINS_CHAOS_STEP=step  only this step
//	REINS_CHAOS_SEED=n     only this seed
//
// Invariants:
//
//	I1  The ledger and the checker are in the process of the test, which nothing kills.
//	I2  A daemon that is started dies with the process that started it.
//	I3  What is left of a dead daemon is found by its profile and by who descended from it while it lived.
//
// Imported by nobody; it is here for its tests.
package crash
