// Package house holds the rules of this source tree and the tests that enforce
// them: what may import what, which calls are not made and what to use instead,
// how large things may grow, and what has to be documented. The program docgen
// below it writes the documents that are taken from the source.
//
// A rule here is precise or it is not here: it reads syntax and never guesses.
// What has to break a rule is named in the list of allowances with its reason,
// and an allowance that nothing needs any more is a finding itself.
//
// Invariants:
//
//	I1  Each finding says where, what is wrong and what to use instead.
//	I2  Each rule has a test with a tree that breaks it.
//	I3  Each allowance has a reason and is needed.
//
// Only its own tests and docgen import this package.
package house
