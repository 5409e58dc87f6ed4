package protocol

import (
	"reflect"
	"time"
)

// MethodKind tells a write from a read.
type MethodKind string

// The kinds of methods.
const (
	KindWrite MethodKind = "write" // goes through the lane and is recorded
	KindRead  MethodKind = "read"  // changes nothing and takes no turn
)

// MethodInfo is one row of the table of methods.
type MethodInfo struct {
	Method Method
	Kind   MethodKind
	// Doc is one sentence for people.
	Doc string
	// Arguments is the struct type of the method's arguments.
	Arguments reflect.Type
	// NavigatesPage: doing it is asking for another document in the main frame.
	NavigatesPage bool
	// NeedsResource and NeedsGeneration: the request has to name them.
	NeedsResource, NeedsGeneration bool
	// InBatch: it may be a primitive of a batch.
	InBatch bool
	// Run is how long it may take by default, from the head of the queue for a
	// write, from its arrival for a read.
	Run time.Duration

	check func(arguments any, f *faults)
}

// Methods calls yield with each method, writes first, in the order of the docs.
func Methods(yield func(MethodInfo) bool) {
	for _, m := range methodTable {
		if !yield(m) {
			return
		}
	}
}

// Info returns the row of a method, and whether there is such a method.
func (m Method) Info() (MethodInfo, bool) {
	i, ok := methodIndex[m]
	if !ok {
		return MethodInfo{}, false
	}
	return methodTable[i], true
}

var methodTable = []MethodInfo{
	alone(write(MethodOpen, checkOpen, "Opens a new Page in the background and loads a URL in it. The receipt names the resource.")),
	alone(write(MethodClose, checkNothing[EmptyArguments], "Closes the target for good.")),
	navigates(write(MethodNavigate, checkNavigate, "Loads a URL.")),
	navigates(write(MethodBack, checkNothing[EmptyArguments], "Goes one page back in the history.")),
	navigates(write(MethodForward, checkNothing[EmptyArguments], "Goes one page forward in the history.")),
	navigates(write(MethodReload, checkNothing[EmptyArguments], "Loads the page again.")),
	write(MethodClick, checkClick, "Clicks an element or a point: button, count and modifiers can be given."),
	write(MethodHover, checkHover, "Moves the pointer over an element or a point."),
	write(MethodDrag, checkDrag, "Presses at one element or point, moves to another and releases there."),
	write(MethodFill, checkFill, "Puts exactly this text into a field, in place of what it held, and reads it back."),
	write(MethodType, checkType, "Types text key by key, into an element or into what has the focus."),
	write(MethodPress, checkPress, "Presses a key or a combination, on an element or on what has the focus."),
	write(MethodScroll, checkScroll, "Scrolls the page, or what is at an element or a point, by CSS pixels."),
	write(MethodViewport, checkViewport, "Sets the Page's size in CSS pixels and its device pixel ratio."),
	write(MethodDialog, checkDialog, "Answers the open dialog."),
	write(MethodDownload, checkDownload, "Clicks an element and takes the file that comes."),
	alone(write(MethodBatch, checkNothing[BatchArguments], "Runs up to 50 primitives in order, as one operation; it stops at the first that fails.")),
	read(MethodObserve, ReadDeadline, checkObserve, "Lists the controls and texts of the target, with a token for the next write; a picture if asked for."),
	read(MethodScreenshot, ReadDeadline, checkScreenshot, "Takes a picture; its size is the coordinate system of points."),
	read(MethodWait, WaitDeadline, checkWait, "Waits until a text, an element or a URL is there, or gone."),
	read(MethodVerify, ReadDeadline, checkVerify, "Checks one assertion against the real page. text, value and url take equals (the whole) or text (a part), value also its locator; present and absent take a locator or a text; count takes a locator and a count."),
}

var methodIndex = func() map[Method]int {
	index := make(map[Method]int, len(methodTable))
	for i, m := range methodTable {
		index[m.Method] = i
	}
	return index
}()

func write[T any](m Method, check func(*T, *faults), doc string) MethodInfo {
	return MethodInfo{
		Method: m, Kind: KindWrite, Doc: doc, Arguments: reflect.TypeFor[T](),
		NeedsResource: m != MethodOpen, NeedsGeneration: m != MethodOpen,
		InBatch: true, Run: WriteDeadline, check: erase(check),
	}
}

func read[T any](m Method, run time.Duration, check func(*T, *faults), doc string) MethodInfo {
	return MethodInfo{
		Method: m, Kind: KindRead, Doc: doc, Arguments: reflect.TypeFor[T](),
		NeedsResource: true, Run: run, check: erase(check),
	}
}

// alone marks what acts on a target as a whole and cannot be one of several primitives.
func alone(m MethodInfo) MethodInfo {
	m.InBatch = false
	return m
}

func navigates(m MethodInfo) MethodInfo {
	m.NavigatesPage, m.Run = true, NavigateDeadline
	return m
}

func erase[T any](check func(*T, *faults)) func(any, *faults) {
	return func(arguments any, f *faults) { check(arguments.(*T), f) }
}
