package persistence

import (
	"errors"
	"fmt"
)

// The errors of the store. What is returned wraps one of them with the path,
// and with the process or the number that matters.
var (
	// ErrLocked: another process, or another part of this one, has the store open.
	ErrLocked = errors.New("the store is in use; stop what uses it, or name another state directory")
	// ErrCorrupt: something in the store is not what was written there.
	ErrCorrupt = errors.New("the store is damaged and was left as it is; put a copy in its place, or move it away to begin with an empty one")
	// ErrNewerSchema: a newer version wrote the store.
	ErrNewerSchema = errors.New("the store was written by a newer version; run that version, or name another state directory")
	// ErrStorageUnavailable: the disk is full or failing. Of an admission that
	// ends with it nothing is recorded.
	ErrStorageUnavailable = errors.New("the disk of the store is full or failing, so nothing is recorded; free space, the store goes on by itself")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed and records nothing any more")
	// ErrRecorded: the id is bound already, or the outcome is stored already.
	// Nothing was changed; [Store.Operation] tells what is stored.
	ErrRecorded = errors.New("the operation is recorded already; look up its receipt")
)

// unavailableError is ErrStorageUnavailable with what the disk said.
type unavailableError struct{ cause error }

func (e unavailableError) Error() string {
	return fmt.Sprintf("%v (%v)", ErrStorageUnavailable, e.cause)
}

func (e unavailableError) Unwrap() []error { return []error{ErrStorageUnavailable, e.cause} }

// unavailable wraps what the disk said, once.
func unavailable(cause error) error {
	var already unavailableError
	if errors.As(cause, &already) {
		return already
	}
	return unavailableError{cause}
}
