package scope

import (
	"time"

	"reins/protocol"
	"reins/targets"
)

// Key names an operation: its owner and the id the owner chose.
type Key struct {
	Owner protocol.OwnerID
	ID    protocol.OperationID
}

// Op is an operation as the scope keeps it.
type Op struct {
	Key      Key
	Request  protocol.Request
	Hash     [32]byte
	UserTurn string
	Queued   time.Time
	// QueueUntil ends the wait in the queue; Until ends everything. A zero Until
	// is set at the head of the queue from RunFor.
	QueueUntil time.Time
	Until      time.Time
	RunFor     time.Duration
}

// Event is what happens to a scope.
type Event interface{ scopeEvent() }

type (
	// Submit asks for a write. It is answered by an Answer command.
	Submit struct{ Op Op }
	// Cancel withdraws an operation that was submitted here.
	Cancel struct{ Key Key }
	// Claim takes the lease, Release gives it up; Ask is echoed in the Told command.
	Claim struct {
		Owner protocol.OwnerID
		Ask   uint64
	}
	Release struct {
		Owner protocol.OwnerID
		Ask   uint64
	}
	// OwnerLost says that the owner's last connection ended, OwnerBack that it has one.
	OwnerLost struct{ Owner protocol.OwnerID }
	OwnerBack struct{ Owner protocol.OwnerID }
	// Resolved answers Resolve, whose Try it echoes.
	Resolved struct {
		Key     Key
		Gen     protocol.Generation
		Try     uint64
		Problem *protocol.Problem
		Element *protocol.Control
		Point   *protocol.Point
		Took    time.Duration
	}
	// AdmissionStored answers StoreAdmission.
	AdmissionStored struct {
		Key     Key
		Problem *protocol.Problem
		Took    time.Duration
	}
	// Ran answers Run.
	Ran struct {
		Key     Key
		Gen     protocol.Generation
		Outcome targets.Outcome
		Token   protocol.Token // random, minted by the shell for the receipt
	}
	// EndingStored answers StoreEnding.
	EndingStored struct {
		Key Key
		OK  bool
	}
	// Fence closes admission; the old generation is over. Words go into refusals.
	Fence struct {
		Reason  protocol.Reason
		Message string
	}
	// Settle asks that every operation of the old generation gets its outcome;
	// answered by Settled, which echoes Gen, the generation to come. Final: what
	// still runs is declared uncertain now.
	Settle struct {
		Gen   protocol.Generation
		Final bool
	}
	// Open opens admission for a generation. Restarted: something was there before.
	// Document is the one it begins with: that it is there is no disturbance.
	Open struct {
		Gen       protocol.Generation
		Restarted bool
		Document  string
	}
	// Look asks for the epoch before an observation, Seen for the token after it.
	Look struct{ Ask uint64 }
	Seen struct {
		Ask      uint64
		Owner    protocol.OwnerID
		Gen      protocol.Generation
		Epoch    protocol.Epoch
		Geometry string
		Token    protocol.Token // random, minted by the shell
	}
	// Disturbed says that the target changed without an operation of ours, so
	// that what was observed before no longer holds. Document, if known, is the
	// document it has now: that an operation of ours has brought.
	Disturbed struct {
		Gen      protocol.Generation
		Document string
	}
	// Reserved answers Reserve.
	Reserved struct {
		UpTo protocol.Epoch
		OK   bool
	}
	// Tick lets deadlines and leases end.
	Tick struct{}
)

func (Submit) scopeEvent()          {}
func (Cancel) scopeEvent()          {}
func (Claim) scopeEvent()           {}
func (Release) scopeEvent()         {}
func (OwnerLost) scopeEvent()       {}
func (OwnerBack) scopeEvent()       {}
func (Resolved) scopeEvent()        {}
func (AdmissionStored) scopeEvent() {}
func (Ran) scopeEvent()             {}
func (EndingStored) scopeEvent()    {}
func (Fence) scopeEvent()           {}
func (Settle) scopeEvent()          {}
func (Open) scopeEvent()            {}
func (Look) scopeEvent()            {}
func (Seen) scopeEvent()            {}
func (Disturbed) scopeEvent()       {}
func (Reserved) scopeEvent()        {}
func (Tick) scopeEvent()            {}

// Command is what a scope wants done.
type Command interface{ scopeCommand() }

type (
	// Answer ends a submitted operation for its caller. Recorded: the receipt is
	// stored, so the id is bound for good.
	Answer struct {
		Key      Key
		Receipt  protocol.Receipt
		Recorded bool
	}
	// Told answers Claim, Release.
	Told struct {
		Ask     uint64
		Problem *protocol.Problem
	}
	// Looked answers Look, Tokened answers Seen.
	Looked struct {
		Ask   uint64
		Gen   protocol.Generation
		Epoch protocol.Epoch
		Open  bool
	}
	Tokened struct {
		Ask   uint64
		Stale bool // the generation ended meanwhile
	}
	// Resolve asks the incarnation to find what the operation names. Try is another
	// number each time: an id that was refused may come again with other content.
	Resolve struct {
		Op       Op
		Gen      protocol.Generation
		Try      uint64
		Geometry string
	}
	// StoreAdmission asks for the first synced write.
	StoreAdmission struct {
		Op      Op
		Gen     protocol.Generation
		Epoch   protocol.Epoch
		Reserve protocol.Epoch // 0: the reserve suffices
	}
	// Run asks the incarnation to give the input, under a new permit.
	Run struct {
		Op       Op
		Gen      protocol.Generation
		Epoch    protocol.Epoch
		Geometry string
	}
	// Revoke takes the permit of the running operation away.
	Revoke struct {
		Key    Key
		Reason protocol.Reason
	}
	// StoreEnding asks for the second synced write.
	StoreEnding struct {
		Op      Op
		Receipt protocol.Receipt
	}
	// Settled answers Settle.
	Settled struct{ Gen protocol.Generation }
	// Suspect tells the supervisor that input of this generation is unanswered
	// or that the incarnation hangs: it has to be fenced.
	Suspect struct {
		Gen     protocol.Generation
		Reason  protocol.Reason
		Message string
	}
	// Tell publishes a cue.
	Tell struct{ Cue protocol.Cue }
	// Late puts a result that came too late into history.
	Late struct {
		Key     Key
		Gen     protocol.Generation
		Outcome targets.Outcome
	}
	// Reserve asks that epochs are reserved durably, in time before they are used.
	Reserve struct{ UpTo protocol.Epoch }
	// Held tells who has the lease now; empty for nobody.
	Held struct{ Owner protocol.OwnerID }
)

func (Answer) scopeCommand()         {}
func (Told) scopeCommand()           {}
func (Looked) scopeCommand()         {}
func (Tokened) scopeCommand()        {}
func (Resolve) scopeCommand()        {}
func (StoreAdmission) scopeCommand() {}
func (Run) scopeCommand()            {}
func (Revoke) scopeCommand()         {}
func (StoreEnding) scopeCommand()    {}
func (Settled) scopeCommand()        {}
func (Suspect) scopeCommand()        {}
func (Tell) scopeCommand()           {}
func (Late) scopeCommand()           {}
func (Reserve) scopeCommand()        {}
func (Held) scopeCommand()           {}
