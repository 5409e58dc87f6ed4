package protocol

// Observation is what was seen, with a token that binds it to resource,
// generation, epoch and frame. It is untrusted data.
type Observation struct {
	Target            TargetRef  `json:"target"`
	Generation        Generation `json:"generation"`
	Epoch             Epoch      `json:"epoch"`
	Token             Token      `json:"observation_token"`
	FrameID           string     `json:"frame_id"`
	BaseFrameID       *string    `json:"base_frame_id"`
	Page              *Page      `json:"page,omitempty"`
	Image             *Image     `json:"image,omitempty"`
	Transform         *Transform `json:"transform,omitempty"`
	Controls          []Control  `json:"controls"`
	Text              []string   `json:"text,omitempty"`
	Capabilities      []string   `json:"capabilities"`
	ControlsAvailable bool       `json:"controls_available"`
	Omitted           *Omitted   `json:"omitted,omitempty"`
	Viewport          *Viewport  `json:"viewport,omitempty"`
}

// TargetRef names what was observed.
type TargetRef struct {
	Kind     Kind       `json:"kind"`
	Resource ResourceID `json:"resource"`
}

// Image describes the bytes beside the JSON. Its size is the coordinate system.
type Image struct {
	Width     int    `json:"width"`  // pixels
	Height    int    `json:"height"` // pixels
	Detail    string `json:"detail"` // "original" or "preview"
	MediaType string `json:"media_type"`
}

// Transform maps a point of the image to the target's own coordinates (CSS
// pixels of a Page's viewport): x' = a·x + c·y + e, y' = b·x + d·y + f.
type Transform struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
	C float64 `json:"c"`
	D float64 `json:"d"`
	E float64 `json:"e"`
	F float64 `json:"f"`
}

// Control is one element that can be acted on or read.
type Control struct {
	Ref            Ref        `json:"ref"`
	Role           string     `json:"role"`
	Name           string     `json:"name"`
	States         []string   `json:"states,omitempty"`
	Value          *string    `json:"value,omitempty"`
	ValueTruncated bool       `json:"value_truncated,omitempty"`
	ValueRedacted  bool       `json:"value_redacted,omitempty"`
	Bounds         [4]float64 `json:"bounds"` // x, y, width, height in CSS pixels of the main viewport
	Frame          string     `json:"frame,omitempty"`
	Depth          int        `json:"depth,omitempty"`
}

// Omitted says what an observation left out and how to get it.
type Omitted struct {
	Controls int    `json:"controls"`
	Text     int    `json:"text"`
	How      string `json:"how"`
}

// Cue is a trusted event that says what an operation is doing, for people to see.
// It never carries text that is typed.
type Cue struct {
	Phase       CuePhase    `json:"phase"`
	Resource    ResourceID  `json:"resource"`
	Generation  Generation  `json:"generation"`
	Owner       OwnerID     `json:"owner"`
	OperationID OperationID `json:"operation_id"`
	Method      Method      `json:"method"`
	Sequence    uint64      `json:"sequence"`
	At          Time        `json:"at"`
	// Point is where the input went, in CSS pixels, if it has one place.
	Point   *Point   `json:"point,omitempty"`
	Element *Control `json:"element,omitempty"`
	Words   string   `json:"words"` // "Click", "Type", "Scroll", …
	State   State    `json:"state,omitempty"`
	Reason  Reason   `json:"reason_code,omitempty"`
}

// CuePhase is how far the operation of a cue has come.
type CuePhase string

// The phases of a cue, in order; one of the last three ends it.
const (
	CueAttempted    CuePhase = "attempted"
	CueDispatched   CuePhase = "dispatched"
	CueAcknowledged CuePhase = "acknowledged"
	CueFailed       CuePhase = "failed"
	CueUnknown      CuePhase = "unknown"
)

// Point is a place in CSS pixels of the main viewport, or in pixels of an image.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// FrameHeader goes with each preview frame; the image's bytes travel beside it.
type FrameHeader struct {
	Resource   ResourceID `json:"resource"`
	Generation Generation `json:"generation"`
	Sequence   uint64     `json:"sequence"`
	Captured   Time       `json:"captured"`
	Width      int        `json:"width"`
	Height     int        `json:"height"`
	Transform  Transform  `json:"transform"`
	MediaType  string     `json:"media_type"`
}
