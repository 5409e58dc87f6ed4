package protocol

// Receipt is the recorded answer to an operation.
type Receipt struct {
	OperationID OperationID `json:"operation_id"`
	Resource    ResourceID  `json:"resource"`
	Generation  Generation  `json:"generation"`
	Method      Method      `json:"method,omitempty"`
	State       State       `json:"state"`
	Effect      Effect      `json:"effect,omitempty"`
	// LastAppliedIndex is the last primitive applied: −1 for none, null if
	// unknown. After uncertain it is the last one acknowledged.
	LastAppliedIndex *int   `json:"last_applied_index"`
	Reason           Reason `json:"reason_code"`
	Message          string `json:"message"`
	// ObservationToken lets the caller act on without looking, when nothing else happened.
	ObservationToken Token `json:"observation_token,omitempty"`
	// ObserveRequired: the next write in this scope needs a newer observation.
	ObserveRequired bool      `json:"observe_required,omitempty"`
	Progress        *Progress `json:"progress,omitempty"`
	Page            *Page     `json:"page,omitempty"`
	Download        *Download `json:"download,omitempty"`
	Candidates      []Control `json:"candidates,omitempty"`
	HeldBy          OwnerID   `json:"held_by,omitempty"`
	// ActualValue is what an editable field holds where that differs from what was
	// asked; never of a secret field.
	ActualValue *string `json:"actual_value,omitempty"`
	Timing      Timing  `json:"timing"`
}

// Progress says how far typing or a drag came.
type Progress struct {
	Unit string `json:"unit"` // "characters" or "points"
	Done int    `json:"done"`
}

// Timing is where the time of an operation went, in microseconds.
type Timing struct {
	QueuedUS  int64 `json:"queued_us"`
	ResolveUS int64 `json:"resolve_us"` // finding the element, and aiming at it right before the input
	PersistUS int64 `json:"persist_us"` // the synced write before dispatch; the one behind it writes this receipt
	InputUS   int64 `json:"input_us"`
	SettleUS  int64 `json:"settle_us"`
}

// Page is the state of a Page as an operation or an observation left it.
type Page struct {
	URL        string  `json:"url"` // secrets in its query removed
	Title      string  `json:"title"`
	HTTPStatus int     `json:"http_status,omitempty"`
	Loading    bool    `json:"loading,omitempty"`
	Settled    bool    `json:"settled"` // false: the page did not come to rest within the bound
	Dialog     *Dialog `json:"dialog,omitempty"`
	// Document names the main frame's document; it changes with each navigation.
	Document string `json:"document,omitempty"`
}

// Download is a file a Page delivered.
type Download struct {
	Name   string `json:"name"` // as the page suggested it
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	State  string `json:"state"` // completed, canceled or in_progress
}

// Final reports whether the receipt is one that is stored for good.
func (r Receipt) Final() bool {
	switch r.State {
	case StateApplied, StateFailed, StateUncertain, StateCancelled:
		return true
	}
	return false
}

// Index returns a pointer for [Receipt].LastAppliedIndex.
func Index(i int) *int { return &i }
