// Package chaos breaks a running system at chosen moments and checks what it
// said against what really happened.
//
// A run has three parts. The [System] is what is broken: cmd supplies it, as a
// daemon in a process of its own. The [Ledger] is a web server that is never
// broken; its pages report each click, key and load to it before their handler
// returns, so that it knows what happened without asking the system. The
// [History] is what was asked and what was answered. [Check] compares the two.
//
//	Plan ──▶ Run ──▶ System (killed at a step) ──▶ receipts ──▶ History ─┐
//	                    │                                                ├─▶ Check
//	                    └──▶ page in a browser ──▶ Ledger ───────────────┘
//
// A newcomer reads plan.go, then run.go, then check.go. A [Plan] follows from its
// step and seed alone, so that a seed repeats a run.
//
// Invariants, which [Check] holds for every history:
//
//	I1  An operation has one final receipt, which is the same whenever it is asked for.
//	I2  A part of an operation is at most once in the ledger, and the parts come in their order, without gaps.
//	I3  applied: all of it was in the ledger when it was said.
//	I4  refused, cancelled, unknown: nothing of it is in the ledger.
//	I5  What a receipt says of its last primitive is so.
//	I6  Nothing is dispatched under a generation that was over when it was asked for, nor under another than was named.
//	I7  Nothing of a generation is in the ledger after the next one opened, and never two documents of one page at once.
//	I8  uncertain is said only of what was in flight when something was broken.
//	I9  A run in which less than its floor was applied proves nothing and fails.
//	I10 There is an order of the operations that agrees with the ledger and with the time they were asked and answered.
//	I11 Nothing is in the ledger that nobody asked for, or that the page got by script.
//	I12 What was cancelled before half of it had happened does not run to its end.
//
// It imports protocol only, so that it shares no fault with what it checks.
// Imported by cmd.
package chaos
