package cdp

import (
	"errors"
	"fmt"
)

// Why a call ended without the browser's answer.
var (
	// ErrRevoked: the session's right to write ended; attach anew.
	ErrRevoked = errors.New("session revoked: it takes no more commands; use the newer incarnation")
	// ErrCrashed: the renderer behind the session crashed.
	ErrCrashed = errors.New("the page's process crashed: close the target and make it anew")
	// ErrDetached: the session ended.
	ErrDetached = errors.New("the session is detached: its target or frame is gone")
	// ErrDown: the link to the browser is gone, and so is the browser.
	ErrDown = errors.New("the link to the browser is down: start the browser again")
	// ErrOverrun: events arrived faster than they were handled, so that the state
	// of the target is no longer known.
	ErrOverrun = errors.New("too many unhandled events: the state of the target is unknown; attach anew")
)

// callError is a call that ended without the browser's answer.
type callError struct {
	method  string
	written bool // bytes of the command were handed to the link
	cause   error
}

func (e *callError) Error() string {
	if e.written {
		return fmt.Sprintf("%s was written and not answered: %v", e.method, e.cause)
	}
	return fmt.Sprintf("%s was not written: %v", e.method, e.cause)
}

func (e *callError) Unwrap() error { return e.cause }

// NotWritten reports whether err is of a command of which no byte was written,
// so that it cannot have had an effect.
func NotWritten(err error) bool {
	var ce *callError
	return errors.As(err, &ce) && !ce.written
}

// Unanswered reports whether err is of a command that was written and whose
// answer never came: it may or may not have had its effect.
func Unanswered(err error) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.written
}
