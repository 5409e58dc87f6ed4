// Package supervisors keeps targets alive: one supervisor a target, one a host
// (a browser), one coordinator of restores, and the tree that holds them.
//
// Decisions are pure step functions: [Step] for a target, [HostStep] for a host,
// [RestoreStep] for the order of restores, on one restart policy ([Policy]).
//
//	phase of a target
//
//	waiting → persisting → attaching → barrier → open
//	   ↑          ↑            │          │        │ crash, unanswered input, host down
//	   │        backoff ←──────┴──missed──┘        ↓
//	   └──────────┴────────────── closing admission → persisting → revoking → settling
//	failed: after too many restarts; left by an explicit restart or an observation
//	closed: for good
//
// The fence, in this order: close admission; persist generation+1; revoke at the
// target; settle the old operations; attach anew; pass the barrier; open admission.
//
// Invariants:
//
//	I1  A generation is stored before its incarnation is reachable, and never goes down.
//	I2  Admission opens only for an attached incarnation whose barrier passed, of the stored generation.
//	I3  Between a crash and the next opening: closed, persisted, revoked, settled, attached, barrier, in that order.
//	I4  A result of another generation changes nothing.
//	I5  At most Policy.Max restarts within Policy.Period, then failed. A host's death counts on the host only.
//	I6  Closed stays closed.
//	I7  A target's supervisor never waits for another target.
//	I8  A barrier that was missed is followed by the destruction of what holds the input, and a fresh target;
//	    a revocation that hangs by a fresh one, too. No phase but the store's waits for ever.
//	I9  At most RestoreWidth targets are made at a time, the wanted ones first; a wish that
//	    arrives while the same target is being made leads to exactly one more pass.
//
// Imported by cmd only.
package supervisors
