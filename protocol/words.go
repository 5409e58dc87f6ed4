package protocol

// The words of the contract. Each identifier is opaque to everyone but the
// package that makes it.
type (
	// ResourceID names a resource for ever; it is never used again.
	ResourceID string
	// OwnerID names the invocation a request belongs to. It comes from the
	// credential of the connection, never from a request's body.
	OwnerID string
	// OperationID is chosen by the caller, unique for its owner.
	OperationID string
	// Generation counts the incarnations of a resource, from 1.
	Generation uint64
	// Epoch counts the writes and disturbances of a scope.
	Epoch uint64
	// Token binds an observation to its owner, resource, generation and epoch.
	Token string
	// Ref names one element: resource, generation, document and node.
	Ref string
	// ApprovalID names an approval that a person has to give.
	ApprovalID string
	// Kind is the kind of a target.
	Kind string
)

// The kinds of targets.
const (
	KindPage    Kind = "page"
	KindWindow  Kind = "window"
	KindDesktop Kind = "desktop"
	KindVM      Kind = "vm"
)

// State is the outcome of an operation as its receipt says it.
type State string

const (
	// StateRefused: never dispatched; nothing happened.
	StateRefused State = "refused"
	// StateCancelled: admitted, withdrawn before dispatch; nothing happened.
	StateCancelled State = "cancelled"
	// StateApplied: dispatched and acknowledged by the adapter. It does not mean
	// that the task succeeded.
	StateApplied State = "applied"
	// StateFailed: dispatched and known to have stopped; no written byte is unanswered.
	StateFailed State = "failed"
	// StateUncertain: dispatched, answer lost. Final: never replayed, never upgraded.
	StateUncertain State = "uncertain"
)

// Effect is the evidence of what an operation did.
type Effect string

const (
	// EffectDelivered: the trusted event reached the intended element.
	EffectDelivered Effect = "delivered"
	// EffectConfirmed: a value, state, URL, focus or window changed as the method intends.
	EffectConfirmed Effect = "confirmed"
	// EffectDispatched: input was given and there is no way to see what it did.
	EffectDispatched Effect = "dispatched"
	// EffectNone: looked for after a round trip behind the input, and nothing arrived.
	EffectNone Effect = "no_effect"
)

// Lifecycle is the state of a resource.
type Lifecycle string

const (
	LifecycleOpening   Lifecycle = "opening"   // its first incarnation is being made
	LifecycleRestoring Lifecycle = "restoring" // a new incarnation is being made
	LifecycleReady     Lifecycle = "ready"     // admission is open
	LifecycleFailed    Lifecycle = "failed"    // gave up; needs an explicit restart or an observation
	LifecycleClosed    Lifecycle = "closed"    // for good
)

// Record is what the world knows of a resource.
type Record struct {
	ID          ResourceID `json:"id"`
	Kind        Kind       `json:"kind"`
	Title       string     `json:"title"`
	Origin      string     `json:"origin"`
	URL         string     `json:"url"`                    // last confirmed, secrets in its query removed
	URLRedacted bool       `json:"url_redacted,omitempty"` // a secret was removed from URL
	Owner       OwnerID    `json:"owner"`
	Provenance  string     `json:"provenance"` // how it came to be: "opened", "popup of pg_…"
	Lifecycle   Lifecycle  `json:"lifecycle"`
	State       string     `json:"state"` // the words people read: "Ready to use", "Restoring page…"
	Reason      Reason     `json:"reason_code,omitempty"`
	Message     string     `json:"message,omitempty"`
	Generation  Generation `json:"generation"`
	Preview     bool       `json:"preview"` // frames can be had
	HeldBy      OwnerID    `json:"held_by,omitempty"`
	Viewport    *Viewport  `json:"viewport,omitempty"`
	Dialog      *Dialog    `json:"dialog,omitempty"`
	Created     Time       `json:"created"`
	Changed     Time       `json:"changed"`
}

// Viewport is a Page's size in CSS pixels, 1–16,384 each way, and its device
// pixel ratio, 0.25–8.
type Viewport struct {
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Scale  float64 `json:"scale"`
}

// Dialog is a native dialog that stands open on a Page. Nothing answers it on its own.
type Dialog struct {
	Type    string `json:"type"` // alert, confirm, prompt or beforeunload
	Message string `json:"message"`
	Default string `json:"default,omitempty"` // what a prompt offers
}

// Time is milliseconds since 1970-01-01 UTC.
type Time int64
