// Package persistence is the store: what was admitted, how it ended, which
// generation of a resource came last, and what a restart needs to bring every
// resource back. It is the only package that knows Pebble.
//
// A full or failing disk is treated as a crash. The database stands on a file
// system that freezes at the first write that fails: from then on nothing
// reaches the disk, the database is told that all is well (it would end the
// process otherwise, or try for ever), and what is read stays readable. The
// keeper opens the database anew, in the same process, when the disk allows it.
//
//	        space below the reserve           a write failed, or hung
//	well ───────────────────────▶ low ─────────────────────────┐
//	 ▲  ◀───────────────────────   │ no admissions,            ▼
//	 │       space is back         │ outcomes still stored   frozen ── damaged: until a person acts
//	 └─────────────────────────────┴──────────────── opened anew │
//	                                                 ◀───────────┘
//
// Beside the database lie three files: marks (mapped memory that survives the
// death of the process, not of the machine), ballast (given up so that outcomes
// can be stored on a full disk) and pid (who has the store).
//
// Invariants:
//
//	I1  What Admit, Finish, RaiseGeneration, ReserveEpoch, PutDescriptor, PutCookies and MarkClean
//	    acknowledge survives the death of the process and of the machine.
//	I2  An operation costs two synced writes: Admit one, Finish one.
//	I3  A stored outcome is final. One that could not be stored is uncertain, also after a restart.
//	I4  Recovery says cancelled only where the mark proves, on the same boot, that nothing was sent.
//	    An operation is recovered once, and its receipt is stored before Open returns.
//	I5  Generations and reserved epochs never go down.
//	I6  No call blocks for ever, and no fault of the disk ends the process: it freezes the store.
//	I7  A damaged store, or one of a newer version, is an error and stays as it is.
//	I8  A receipt is known for at least ReceiptsAge and among its owner's last ReceiptsKept.
//	I9  What was refused for want of space or a failing disk is not there later.
//	I10 Only the writer writes; every goroutine has ended when Close returns.
//
// Imported by actors, supervisors and cmd; it imports protocol.
package persistence
