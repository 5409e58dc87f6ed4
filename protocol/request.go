package protocol

import "encoding/json"

// Caller is who a request comes from, as the transport knows it.
type Caller struct {
	Owner OwnerID
	// Connection is the nonce that the daemon gave at hello.
	Connection string
	// UserTurn is the message or task of a person this belongs to; the
	// connection where the host names none.
	UserTurn string
}

// Request asks for one write. The transport supplies the [Caller].
type Request struct {
	OperationID OperationID     `json:"operation_id"`
	Resource    ResourceID      `json:"resource"`
	Generation  Generation      `json:"generation"`
	Method      Method          `json:"method"`
	Observation Token           `json:"observation,omitempty"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	// DeadlineMS covers everything from admission to the answer, 1–600,000 ms.
	// 0 takes the default: 120 s in the queue, then 45 s (navigation 20 s).
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
}

// Primitive is one element of a batch, and the unit in which permits are asked.
type Primitive struct {
	Method    Method          `json:"method"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// ReadRequest asks to look: it changes nothing, takes no turn and is not recorded as an effect.
type ReadRequest struct {
	Resource ResourceID `json:"resource"`
	// Generation, if given, must be the current one.
	Generation Generation      `json:"generation,omitempty"`
	Method     Method          `json:"method"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	// DeadlineMS is 1–600,000 ms; 0 takes the default: 6 s, for wait 30 s.
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
}

// ReadReply answers a [ReadRequest]. Exactly one of the pointers is set. The
// bytes of an image travel beside it.
type ReadReply struct {
	Observation *Observation `json:"observation,omitempty"`
	Verdict     *Verdict     `json:"verdict,omitempty"`
	Problem     *Problem     `json:"problem,omitempty"`
	// ImageBytes are the bytes beside the JSON; never inside it.
	ImageBytes []byte `json:"-"`
}

// Problem says why something could not be done, in words and by a reason code.
type Problem struct {
	Reason  Reason  `json:"reason_code"`
	Message string  `json:"message"`
	HeldBy  OwnerID `json:"held_by,omitempty"`
	// Candidates are the elements an ambiguous locator matches.
	Candidates []Control `json:"candidates,omitempty"`
	Dialog     *Dialog   `json:"dialog,omitempty"`
}

func (p *Problem) Error() string { return string(p.Reason) + ": " + p.Message }

// Verdict is the answer of wait and verify.
type Verdict struct {
	Holds   bool   `json:"holds"`
	Reason  Reason `json:"reason_code,omitempty"`
	Message string `json:"message,omitempty"`
	// Actual is what was found instead, unless it is secret.
	Actual *string `json:"actual,omitempty"`
	Count  *int    `json:"count,omitempty"`
	Page   *Page   `json:"page,omitempty"`
}

// HistoryQuery selects history entries, newest last.
type HistoryQuery struct {
	Resource ResourceID `json:"resource,omitempty"`
	Owner    OwnerID    `json:"owner,omitempty"`
	Since    Time       `json:"since,omitempty"`
	// Limit is 1–1,000; 0 takes 100. The newest are kept.
	Limit int `json:"limit,omitempty"`
}

// HistoryEntry is one line of what happened, without arguments, text or secrets.
type HistoryEntry struct {
	At          Time        `json:"at"`
	Event       string      `json:"event"` // receipt, recovered, late, fence, opened, restored, failed, closed
	Resource    ResourceID  `json:"resource"`
	Generation  Generation  `json:"generation"`
	Owner       OwnerID     `json:"owner,omitempty"`
	OperationID OperationID `json:"operation_id,omitempty"`
	Method      Method      `json:"method,omitempty"`
	State       State       `json:"state,omitempty"`
	Effect      Effect      `json:"effect,omitempty"`
	Reason      Reason      `json:"reason_code,omitempty"`
	Message     string      `json:"message,omitempty"`
}

// Hello opens a connection.
type Hello struct {
	// Version is the client's protocol major version.
	Version int    `json:"version"`
	Client  string `json:"client,omitempty"`
}

// HelloReply tells a client its nonce, which every request carries from then on.
type HelloReply struct {
	Version    int      `json:"version"`
	Owner      OwnerID  `json:"owner"`
	Connection string   `json:"connection"`
	Daemon     string   `json:"daemon"` // version of the daemon
	Problem    *Problem `json:"problem,omitempty"`
}

// Demand asks for frames of a resource for a while.
type Demand struct {
	Resource ResourceID `json:"resource"`
	// Width is the widest frame wanted in pixels, 64–4,096; 0 takes 640.
	Width int `json:"width,omitempty"`
	// TTLMS is how long the demand lives unless renewed, 1,000–60,000 ms; 0 takes 5,000.
	TTLMS int64 `json:"ttl_ms,omitempty"`
}

// Status is the daemon's own state.
type Status struct {
	Version     string         `json:"version"`
	Process     int            `json:"process"`
	Store       string         `json:"store"` // "ok" or a reason code
	Message     string         `json:"message,omitempty"`
	Resources   map[string]int `json:"resources"`    // by lifecycle
	Browser     string         `json:"browser"`      // "up", "starting", "down", "failed"
	LateResults uint64         `json:"late_results"` // results that came after their operation had its outcome, and were dropped
	Goroutines  int            `json:"goroutines"`
}
