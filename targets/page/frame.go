package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"reins/targets/page/internal/cdp"
)

// errFrameGone says that the document a frame stood for is gone.
var errFrameGone = errors.New("the frame's document is gone: observe again")

// worldWait is how long the isolated world of a document is awaited before it
// is made by hand.
const worldWait = 250 * time.Millisecond

// frame is one document in one frame of a Page. A navigation makes a new one, so
// that a handle never reaches another document. Its fields never change.
type frame struct {
	p        *incarnation
	id       cdprotocol.FrameID
	document cdprotocol.LoaderID // names the document
	parent   *frame              // nil for the main one
	main     bool
	name     string
	url      string       // of the document when it was loaded
	failed   bool         // the browser's own error page stands in its place
	sess     *cdp.Session // of the process the frame lives in
}

// scriptError is an exception that a script threw.
type scriptError struct{ text string }

func (e *scriptError) Error() string { return "script: " + e.text }

// call calls the JavaScript function fn in the frame's isolated world and decodes
// what it returns (a promise is awaited) into out, unless that is nil or the
// function returned undefined. An argument of type runtime.RemoteObjectID is
// passed as the object, any other as JSON. Errors: errFrameGone, *scriptError,
// or those of the link.
func (f *frame) call(ctx context.Context, fn string, out any, args ...any) error {
	res, err := f.invoke(ctx, fn, args)
	if err != nil {
		return err
	}
	if out == nil || len(res.Value) == 0 {
		return nil
	}
	if err := json.Unmarshal(res.Value, out); err != nil {
		return fmt.Errorf("decoding what a script returned: %w", err)
	}
	return nil
}

func (f *frame) invoke(ctx context.Context, fn string, args []any) (*runtime.RemoteObject, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cdp.DefaultDeadline)
		defer cancel()
	}
	world, err := f.worldOf(ctx)
	if err != nil {
		return nil, err
	}
	params := runtime.CallFunctionOnParams{
		FunctionDeclaration: fn, UniqueContextID: world.unique,
		ReturnByValue: ptr(true), AwaitPromise: ptr(true), Silent: ptr(true),
	}
	for _, a := range args {
		arg, err := argument(a)
		if err != nil {
			return nil, err
		}
		params.Arguments = append(params.Arguments, arg)
	}
	res, err := cdprotocol.Call(ctx, f.sess, runtime.CallFunctionOn, params)
	if err != nil {
		return nil, f.explain(err)
	}
	if ex := res.ExceptionDetails; ex != nil {
		text := ex.Text
		if ex.Exception != nil && ex.Exception.Description != "" {
			text = ex.Exception.Description
		}
		return nil, &scriptError{text}
	}
	if res.Result == nil {
		return &runtime.RemoteObject{}, nil
	}
	return res.Result, nil
}

func argument(a any) (*runtime.CallArgument, error) {
	if id, ok := a.(runtime.RemoteObjectID); ok {
		return &runtime.CallArgument{ObjectID: id}, nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encoding an argument of a script: %w", err)
	}
	return &runtime.CallArgument{Value: jsonv2.Value(b)}, nil
}

// explain turns the browser's words for a document that went away into errFrameGone.
func (f *frame) explain(err error) error {
	var answer *cdproto.Error
	switch {
	case errors.As(err, &answer):
		for _, sign := range []string{"context", "navigated", "Context", "frame"} {
			if strings.Contains(answer.Message, sign) {
				return fmt.Errorf("%w (%s)", errFrameGone, answer.Message)
			}
		}
		if f.gone() {
			return fmt.Errorf("%w (%s)", errFrameGone, answer.Message)
		}
	case errors.Is(err, cdp.ErrDetached) && !f.p.isOver(), errors.Is(err, cdp.ErrCrashed) && f.sess != f.p.sess:
		return fmt.Errorf("%w: %w", errFrameGone, err)
	}
	return err
}

// world is the isolated world of one document.
type worldRef struct {
	id     runtime.ExecutionContextID // within its process
	unique string
}

// worldContext is the id of the frame's isolated world, for commands that take one.
func (f *frame) worldContext(ctx context.Context) (runtime.ExecutionContextID, error) {
	w, err := f.worldOf(ctx)
	return w.id, err
}

// worldOf waits for the isolated world of the frame's document.
func (f *frame) worldOf(ctx context.Context) (worldRef, error) {
	timer := time.NewTimer(worldWait)
	defer timer.Stop()
	for {
		w, changed, err := f.p.worldIn(f)
		if err != nil || w.unique != "" {
			return w, err
		}
		select {
		case <-changed:
		case <-timer.C:
			if err := f.makeWorld(ctx); err != nil {
				return worldRef{}, f.explain(err)
			}
		case <-f.p.endedCh:
			return worldRef{}, fmt.Errorf("%w: the incarnation is over", errFrameGone)
		case <-ctx.Done():
			return worldRef{}, ctx.Err()
		}
	}
}

// makeWorld makes the isolated world of a document that came without: one that
// was there before this session.
func (f *frame) makeWorld(ctx context.Context) error {
	made, err := cdprotocol.Call(ctx, f.sess, cdpage.CreateIsolatedWorld, cdpage.CreateIsolatedWorldParams{FrameID: f.id, WorldName: f.p.world})
	if err != nil {
		return err
	}
	_, err = cdprotocol.Call(ctx, f.sess, runtime.Evaluate, runtime.EvaluateParams{
		Expression: worldScript, ContextID: made.ExecutionContextID, Silent: ptr(true),
	})
	return err
}

func (f *frame) gone() bool {
	_, _, err := f.p.worldIn(f)
	return err != nil
}

func ptr[T any](v T) *T { return &v }
