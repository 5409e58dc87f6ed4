package chaos

import (
	"context"
	"time"

	"reins/protocol"
)

// Client is how a run speaks to the system; [protocol/nats.Client] is one.
type Client interface {
	Do(context.Context, protocol.Request) (protocol.Receipt, error)
	Receipt(context.Context, protocol.OperationID) (protocol.Receipt, error)
	Cancel(context.Context, protocol.OperationID) (protocol.Receipt, error)
	Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, error)
	Restart(context.Context, protocol.ResourceID) error
	Resources(context.Context) ([]protocol.Record, error)
	History(context.Context, protocol.HistoryQuery) ([]protocol.HistoryEntry, error)
	Close()
}

// System is what a run breaks: one daemon on one state directory. It is used by
// one run at a time.
type System interface {
	// Start brings the daemon up with the faults and returns when it serves.
	Start(ctx context.Context, f Faults) error
	// Arm lets the passes of the crash's step count from now on.
	Arm() error
	// Hanging returns when the first of the hangs holds something up.
	Hanging(ctx context.Context) error
	// Died is closed when the process that was started last has ended.
	Died() <-chan struct{}
	// Stop ends the daemon politely and waits for it.
	Stop(ctx context.Context) error
	// Kill ends it by SIGKILL and waits for it.
	Kill()
	// KillRenderers and KillBrowser end processes of the browser by SIGKILL.
	KillRenderers() error
	KillBrowser() error
	// Orphans lists what still lives of daemons that have ended.
	Orphans() []string
	Client(ctx context.Context) (Client, error)
	// Log is what the daemons wrote.
	Log() string
}

// Faults are what a daemon is started with. The zero value is none.
type Faults struct {
	// Crash is the step at which it dies by SIGKILL; empty for none.
	Crash protocol.Step
	// Operation restricts Crash to passes of this operation; empty for all.
	Operation protocol.OperationID
	// Armed: passes count from the start, and Arm is not waited for.
	Armed bool
	// Nth is which pass it is, from 1.
	Nth int
	// After is how long after the pass it dies; meanwhile all goes on.
	After time.Duration
	// Hold is how long after the pass it dies; meanwhile what passed stands still.
	Hold time.Duration
	// Hangs make what passes a step for the first time stand still, and then go on.
	Hangs []Hang
	Bugs  []protocol.Bug
}

// Hang holds up the first pass of a step.
type Hang struct {
	Step      protocol.Step
	Operation protocol.OperationID // empty for all
	For       time.Duration
}
