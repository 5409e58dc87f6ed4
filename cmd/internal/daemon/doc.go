// Package daemon wires everything: the store, the browser, the actors, the
// supervisors and the transport. It is the one place where all of them meet, and
// it is the same in production and in tests.
//
// Invariants:
//
//	I1  Nothing is served before the store is open and everything retained is listed.
//	I2  Stop refuses new work first, ends the browser politely, and closes the store last.
//	I3  Test faults exist only in builds with the tag reinsfaults.
//
// Imported by cmd only.
package daemon
