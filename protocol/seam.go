package protocol

// Step names a step of the path of a write (or of a fence) at which a process
// can die. Traces, metrics and fault injection use the same names.
type Step string

// The steps, in the order in which a write passes them.
const (
	StepAdmitBefore    Step = "admit_before"    // resolved, nothing stored
	StepAdmitAfter     Step = "admit_after"     // admitted is stored
	StepDispatch       Step = "dispatch"        // epoch advanced, nothing written
	StepMarked         Step = "marked"          // the mark is set, no byte is written
	StepPressWritten   Step = "press_written"   // the first input is written
	StepReleaseWritten Step = "release_written" // the last input is written
	StepAcknowledged   Step = "acknowledged"    // the target answered
	StepOutcomeBefore  Step = "outcome_before"  // settled, outcome not stored
	StepOutcomeAfter   Step = "outcome_after"   // outcome stored, not answered

	StepFenceClosed    Step = "fence_closed"    // admission is closed
	StepFencePersisted Step = "fence_persisted" // generation+1 is stored
	StepFenceRevoked   Step = "fence_revoked"   // the target takes no more input of the old one
	StepFenceSettled   Step = "fence_settled"   // old operations have their outcome
	StepFenceAttached  Step = "fence_attached"  // the new incarnation is attached
	StepFenceBarrier   Step = "fence_barrier"   // the barrier has passed
)

// Steps lists every step.
var Steps = []Step{
	StepAdmitBefore, StepAdmitAfter, StepDispatch, StepMarked, StepPressWritten, StepReleaseWritten,
	StepAcknowledged, StepOutcomeBefore, StepOutcomeAfter,
	StepFenceClosed, StepFencePersisted, StepFenceRevoked, StepFenceSettled, StepFenceAttached, StepFenceBarrier,
}

// Bug names a fault that a test build plants to prove that its test has teeth.
type Bug string

// The planted bugs.
const (
	BugEffectBeforePersist Bug = "effect_before_persist"
	BugNoSync              Bug = "no_sync"
	BugRetryUncertain      Bug = "retry_uncertain"
	BugFenceWithoutRevoke  Bug = "fence_without_revoke"
	BugSkipBarrier         Bug = "skip_barrier"
	BugLateOverwrites      Bug = "late_overwrites"
	BugAdmissionLeftOpen   Bug = "admission_left_open"
	BugPermitOnce          Bug = "permit_once"
)

// Seams are the places where a test build puts its hand in. The zero value is
// what ships: nothing is called and no bug is planted.
type Seams struct {
	// At is called when a resource's operation passes a step. It may not return.
	At func(Step, ResourceID, OperationID)
	// Planted is the set of planted bugs.
	Planted map[Bug]bool
}

// Pass reports that a step was passed.
func (s Seams) Pass(p Step, r ResourceID, op OperationID) {
	if s.At != nil {
		s.At(p, r, op)
	}
}
