package cli

import (
	"errors"
	"fmt"
	"strings"

	"reins/protocol"
)

// The exit codes of every command.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2
	exitRefused     = 3
	exitCancelled   = 4
	exitFailed      = 5
	exitUncertain   = 6
	exitFalse       = 7
	exitUnreachable = 8
)

// exitCodes is the table of `reins help exit-codes` and of the README.
var exitCodes = []struct {
	code int
	doc  string
}{
	{exitOK, "applied, or the command did what it says"},
	{exitOther, "something else went wrong; the message says what"},
	{exitUsage, "the command line is wrong; nothing was sent"},
	{exitRefused, "refused: nothing happened; the reason code says why"},
	{exitCancelled, "cancelled before it began: nothing happened"},
	{exitFailed, "failed: it began and is known to have stopped; the receipt says how far it came"},
	{exitUncertain, "uncertain: it may or may not have happened; observe before going on, it is never sent again"},
	{exitFalse, "the answer of wait or verify is no"},
	{exitUnreachable, "no daemon answers"},
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Every command ends with one of these codes:\n\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", c.code, c.doc)
	}
	b.WriteString("\nAfter 2, 3, 4 and 8 it is certain that nothing happened. Nothing is ever sent twice by itself.\n")
	return b.String()
}

// outcome ends a command with an exit code. err is nil when what there was to
// say was already printed.
type outcome struct {
	code int
	err  error
}

func (o *outcome) Error() string {
	if o.err == nil {
		return fmt.Sprintf("exit %d", o.code)
	}
	return o.err.Error()
}

func (o *outcome) Unwrap() error { return o.err }

// usagef says what is wrong with the command line.
func usagef(format string, args ...any) error {
	return &outcome{exitUsage, fmt.Errorf(format, args...)}
}

// said ends a command whose answer was printed.
func said(code int) error {
	if code == exitOK {
		return nil
	}
	return &outcome{code: code}
}

// stateCode is the exit code of a receipt.
func stateCode(r protocol.Receipt) int {
	switch r.State {
	case protocol.StateApplied:
		return exitOK
	case protocol.StateRefused:
		if r.Reason == protocol.ReasonDaemonUnreachable {
			return exitUnreachable
		}
		return exitRefused
	case protocol.StateCancelled:
		return exitCancelled
	case protocol.StateFailed:
		return exitFailed
	case protocol.StateUncertain:
		return exitUncertain
	}
	return exitOther
}

// problemCode is the exit code of a problem: nothing happened, except where the answer was lost.
func problemCode(p *protocol.Problem) int {
	switch p.Reason {
	case protocol.ReasonDaemonUnreachable:
		return exitUnreachable
	case protocol.ReasonAnswerLost, protocol.ReasonOutcomeNotStored:
		return exitUncertain
	case protocol.ReasonCancelled:
		return exitCancelled
	case protocol.ReasonInternal, protocol.ReasonVersion:
		return exitOther
	}
	return exitRefused
}

// codeOf is the exit code of an error that a command returned.
func codeOf(err error) int {
	var o *outcome
	var p *protocol.Problem
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &o):
		return o.code
	case errors.As(err, &p):
		return problemCode(p)
	}
	return exitOther
}
