package targets

import (
	"context"
	"encoding/json"
	"errors"

	"reins/protocol"
)

// ErrRevoked is what a [Permit] answers when no further primitive may start.
var ErrRevoked = errors.New("permit revoked: no further input may be given")

// Permit is the right to give the input of one operation, asked anew at each
// primitive (each point of a drag, each chunk of typing).
type Permit interface {
	// Use is called under the mutex of the write, right before the bytes of one
	// input command leave. nil: write them. An error: write nothing and stop.
	Use() error
	// Begin starts primitive i of a list (0 for a single one); it advances the
	// scope's epoch. An error: do not start it.
	Begin(i int) error
}

// Spec says what incarnation to make.
type Spec struct {
	Resource   protocol.ResourceID
	Generation protocol.Generation
	// URL is loaded when the target is made anew; empty is about:blank.
	URL      string
	Viewport protocol.Viewport
	// Fresh forbids attaching to what is still alive: it is destroyed first.
	Fresh bool
}

// Host is what targets live in: a browser process, a display, a guest's link.
// It may be started again after it went down.
type Host interface {
	// Start brings it up. It returns a channel that is closed when it goes down.
	Start(ctx context.Context) (down <-chan struct{}, err error)
	// Attach makes an incarnation: of the live target where there is one and
	// Spec.Fresh is false, else of a new one. loaded says that it was made anew,
	// so that its document is a fresh load of Spec.URL.
	Attach(ctx context.Context, s Spec) (inc Incarnation, loaded bool, err error)
	// Destroy ends what is left of a resource's target, so that no input it still
	// holds can have an effect. It is for targets whose barrier was missed.
	Destroy(ctx context.Context, r protocol.ResourceID) error
	// Stop ends the host politely, and by force when ctx ends.
	Stop(ctx context.Context) error
}

// Call is one operation for an incarnation.
type Call struct {
	Operation protocol.OperationID
	Method    protocol.Method
	Arguments json.RawMessage
	// Geometry is what the observation of the request's token said of the
	// geometry; coordinates are refused when it has changed. Empty without a token.
	Geometry string
}

// Prepared is what Prepare found; only the adapter that made it looks inside.
type Prepared struct {
	// Element is the element found, for the cue. Its value is left out.
	Element *protocol.Control
	Point   *protocol.Point
	State   any
}

// Outcome is what Run knows when it ends.
type Outcome struct {
	// State is applied, failed or uncertain. refused is allowed only while no
	// input byte was written.
	State    protocol.State
	Effect   protocol.Effect
	Reason   protocol.Reason
	Message  string
	LastDone int // last primitive applied (acknowledged, when uncertain), −1 for none
	Begun    int // primitives begun: how many epochs were used
	// Unanswered: input bytes were written whose answer never came.
	Unanswered bool
	// Navigated: the main frame's document changed.
	Navigated bool
	// Geometry is the geometry after it, for the next token.
	Geometry        string
	ObserveRequired bool
	Progress        *protocol.Progress
	Page            *protocol.Page
	Download        *protocol.Download
	Candidates      []protocol.Control
	ActualValue     *string
	// Where the time of Run went, in microseconds: looking and aiming, giving
	// input until it was answered, waiting for the page to come to rest.
	AimUS    int64
	InputUS  int64
	SettleUS int64
}

// Incarnation is one life of a target. All methods may be called concurrently.
type Incarnation interface {
	Prepare(ctx context.Context, c Call) (Prepared, *protocol.Problem)
	Run(ctx context.Context, c Call, p Prepared, permit Permit) Outcome
	// Read looks: observe, screenshot, wait, verify. geometry goes with the token.
	Read(ctx context.Context, r protocol.ReadRequest) (reply protocol.ReadReply, geometry string)
	// Frames sends preview frames no wider than width to sink until ctx ends.
	// sink does not block. It returns early with an error when it cannot.
	Frames(ctx context.Context, width int, sink func(protocol.FrameHeader, []byte)) error
	// Revoke ends this incarnation's right to write: it waits out a write in
	// progress 100 ms, else cuts the host's link. Idempotent.
	Revoke(ctx context.Context) error
	// Barrier is asked on a new incarnation; it releases held input of the old
	// one and returns after everything given earlier had its effect.
	Barrier(ctx context.Context) error
	// Close closes the target for good (the user's act).
	Close(ctx context.Context) error
	// Snapshot is the last confirmed state of the target.
	Snapshot() protocol.Page
	// Events is closed after the incarnation ended. The adapter never blocks on it.
	Events() <-chan Event
}

// EventKind says what happened to a target without an operation of ours.
type EventKind string

const (
	EventCrashed   EventKind = "crashed"   // this incarnation is over; Reason says why
	EventGone      EventKind = "gone"      // the target was closed by itself
	EventNavigated EventKind = "navigated" // the main frame has a new document, confirmed
	EventTitle     EventKind = "title"     // title or URL changed in the same document
	EventDialog    EventKind = "dialog"    // a dialog opened or closed
)

// Event is something that happened to a target.
type Event struct {
	Kind    EventKind
	Page    protocol.Page
	Reason  protocol.Reason
	Message string
}
