package protocol

// Method names what to do.
type Method string

// Writes.
const (
	MethodOpen     Method = "open"
	MethodClose    Method = "close"
	MethodNavigate Method = "navigate"
	MethodBack     Method = "back"
	MethodForward  Method = "forward"
	MethodReload   Method = "reload"
	MethodClick    Method = "click"
	MethodHover    Method = "hover"
	MethodDrag     Method = "drag"
	MethodFill     Method = "fill"
	MethodType     Method = "type"
	MethodPress    Method = "press"
	MethodScroll   Method = "scroll"
	MethodViewport Method = "viewport"
	MethodDialog   Method = "dialog"
	MethodDownload Method = "download"
	MethodBatch    Method = "batch"
)

// Reads.
const (
	MethodObserve    Method = "observe"
	MethodScreenshot Method = "screenshot"
	MethodWait       Method = "wait"
	MethodVerify     Method = "verify"
)

// Locator names one element. Exactly one of Ref, Role, Label, Text, TestID,
// Placeholder and CSS is set; Name goes with Role. It must match exactly one
// visible element.
type Locator struct {
	Ref         Ref    `json:"ref,omitempty"`
	Role        string `json:"role,omitempty"` // ARIA role
	Name        string `json:"name,omitempty"` // accessible name
	Label       string `json:"label,omitempty"`
	Text        string `json:"text,omitempty"`
	TestID      string `json:"test_id,omitempty"` // data-testid
	Placeholder string `json:"placeholder,omitempty"`
	CSS         string `json:"css,omitempty"`
	// Contains takes a part of Name, Label or Text, case folded, instead of the whole.
	Contains bool `json:"contains,omitempty"`
	// Frame restricts the search to the frame of this name, URL or element id.
	Frame string `json:"frame,omitempty"`
}

// Arguments of the writes. Where a method takes Locator or Point, exactly one
// of them; Point needs the token of the observation it was read from.
type (
	OpenArguments struct {
		Kind     Kind      `json:"kind"` // only "page" here
		URL      string    `json:"url,omitempty"`
		Viewport *Viewport `json:"viewport,omitempty"`
	}
	NavigateArguments struct {
		URL string `json:"url"` // http, https or about:blank, without credentials
	}
	ClickArguments struct {
		Locator   *Locator `json:"locator,omitempty"`
		Point     *Point   `json:"point,omitempty"`
		Button    string   `json:"button,omitempty"`    // left, right, middle
		Count     int      `json:"count,omitempty"`     // 1–3
		Modifiers []string `json:"modifiers,omitempty"` // Alt, Control, Meta, Shift
	}
	HoverArguments struct {
		Locator *Locator `json:"locator,omitempty"`
		Point   *Point   `json:"point,omitempty"`
	}
	// DragArguments: from one element or point to another, in Steps moves (1–100, default 10).
	DragArguments struct {
		Locator   *Locator `json:"locator,omitempty"`
		Point     *Point   `json:"point,omitempty"`
		ToLocator *Locator `json:"to_locator,omitempty"`
		ToPoint   *Point   `json:"to_point,omitempty"`
		Steps     int      `json:"steps,omitempty"`
	}
	FillArguments struct {
		Locator *Locator `json:"locator"`
		Text    string   `json:"text"` // up to 65,536 bytes
	}
	TypeArguments struct {
		Locator *Locator `json:"locator,omitempty"` // default: what has the focus
		Text    string   `json:"text"`              // up to 65,536 bytes
	}
	PressArguments struct {
		Key     string   `json:"key"` // "Enter", "a", "Control+Shift+ArrowLeft"
		Locator *Locator `json:"locator,omitempty"`
	}
	// ScrollArguments: DX and DY in CSS pixels, −100,000 to 100,000, positive is
	// right and down. Without Locator and Point the page itself scrolls.
	ScrollArguments struct {
		Locator *Locator `json:"locator,omitempty"`
		Point   *Point   `json:"point,omitempty"`
		DX      float64  `json:"dx,omitempty"`
		DY      float64  `json:"dy,omitempty"`
	}
	ViewportArguments struct {
		Width  int     `json:"width"`
		Height int     `json:"height"`
		Scale  float64 `json:"scale,omitempty"` // 0 keeps 1
	}
	DialogArguments struct {
		Accept bool    `json:"accept"`
		Text   *string `json:"text,omitempty"` // for a prompt
	}
	// DownloadArguments: the click that starts it.
	DownloadArguments struct {
		Locator *Locator `json:"locator"`
	}
	BatchArguments struct {
		Primitives []Primitive `json:"primitives"` // 1–50, no batch in a batch
	}
	EmptyArguments struct{}
)

// Arguments of the reads.
type (
	ObserveArguments struct {
		// Find keeps controls whose name, value or text contains this, case folded.
		Find string `json:"find,omitempty"`
		// Limit is how many controls at most, 1–5,000; 0 takes what fits 16 KiB.
		Limit int `json:"limit,omitempty"`
		// Offset skips that many controls, to page through a long list.
		Offset int `json:"offset,omitempty"`
		// Image asks for a picture beside it.
		Image bool `json:"image,omitempty"`
	}
	ScreenshotArguments struct {
		Format  string `json:"format,omitempty"`  // png (default) or jpeg
		Quality int    `json:"quality,omitempty"` // jpeg, 1–100
	}
	// WaitArguments: exactly one of Text, Locator, URL. URL is a substring.
	WaitArguments struct {
		Text    string   `json:"text,omitempty"`
		Locator *Locator `json:"locator,omitempty"`
		URL     string   `json:"url,omitempty"`
		Gone    bool     `json:"gone,omitempty"` // wait until it is absent
	}
	// VerifyArguments: an assertion about the real page.
	VerifyArguments struct {
		Assert  string   `json:"assert"` // text, value, url, present, absent, count
		Locator *Locator `json:"locator,omitempty"`
		Text    string   `json:"text,omitempty"`
		Equals  *string  `json:"equals,omitempty"`
		Count   *int     `json:"count,omitempty"`
	}
)
