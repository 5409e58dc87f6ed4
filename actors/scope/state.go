package scope

import (
	"time"

	"reins/protocol"
)

// stage is how far the running operation has come.
type stage int

const (
	resolving stage = iota + 1
	admitting
	running
	ending
)

func (s stage) String() string {
	return [...]string{"", "resolving", "admitting", "running", "ending"}[s]
}

// Grace is how long after its deadline a running operation may take to report
// before it is declared uncertain and its incarnation suspect.
const Grace = 2 * time.Second

// State is all that a scope knows. The zero value is not usable: see [New].
type State struct {
	resource protocol.ResourceID
	gen      protocol.Generation
	open     bool
	closed   bool // for good
	opening  bool // its first incarnation is being made: the open operation waits for it
	// why admission is closed
	reason  protocol.Reason
	message string

	epoch   protocol.Epoch
	reserve protocol.Epoch // epochs up to here are reserved durably
	asked   protocol.Epoch // a reservation up to here is under way; 0 for none
	// floor: tokens of an older epoch are stale, whoever has them.
	floor protocol.Epoch
	// mark: the next write needs a token of at least this epoch; 0 for none.
	mark protocol.Epoch
	// document is the main frame's, as the last operation or disturbance left it.
	document string

	lease  lease
	tokens tokens
	queue  []Op
	run    *runningOp
	tries  uint64 // counts what came to the head
	// settling: the supervisor waits for Settled.
	settling bool
	next     protocol.Generation // for which it waits
	limits   Limits
	planted  map[protocol.Bug]bool
}

// Limits are the scope's numbers; zero values take the protocol's.
type Limits struct {
	Queue     int
	LeaseIdle time.Duration
	LeaseLost time.Duration
}

type runningOp struct {
	op      Op
	stage   stage
	gen     protocol.Generation
	try     uint64
	epoch   protocol.Epoch
	reserve protocol.Epoch // what its admission reserves; 0 for nothing
	seen    token          // what its observation was bound to; zero without one
	// withdrawn: the operation must not be dispatched (or must stop); the reason
	// goes into its receipt.
	withdrawn protocol.Reason
	revoked   bool
	element   *protocol.Control
	point     *protocol.Point
	receipt   protocol.Receipt // while ending
	timing    protocol.Timing
}

// New makes the state of a scope. Epochs start above reserve, which is what the
// store had reserved before.
func New(r protocol.ResourceID, reserve protocol.Epoch, opening bool, l Limits, planted map[protocol.Bug]bool) State {
	if l.Queue == 0 {
		l.Queue = protocol.MaxQueue
	}
	if l.LeaseIdle == 0 {
		l.LeaseIdle = protocol.LeaseIdle
	}
	if l.LeaseLost == 0 {
		l.LeaseLost = protocol.LeaseLost
	}
	return State{resource: r, opening: opening, epoch: reserve, reserve: reserve, floor: reserve, limits: l, planted: planted,
		reason: protocol.ReasonRestoring, message: protocol.ReasonRestoring.Sentence()}
}

// lease is an owner's right to write.
type lease struct {
	owner protocol.OwnerID // empty: free
	last  protocol.OwnerID // who had it before
	used  time.Time
	lost  time.Time // when the owner's last connection ended; zero while connected
}

// token is what an observation was bound to.
type token struct {
	owner    protocol.OwnerID
	gen      protocol.Generation
	epoch    protocol.Epoch
	geometry string
}

// tokenLimit is how many tokens a scope remembers; the oldest go first.
const tokenLimit = 512

// tokens remembers the latest tokens.
type tokens struct {
	by    map[protocol.Token]token
	order []protocol.Token
}

func (t *tokens) put(k protocol.Token, v token) {
	if t.by == nil {
		t.by = map[protocol.Token]token{}
	}
	if len(t.order) >= tokenLimit {
		delete(t.by, t.order[0])
		t.order = t.order[1:]
	}
	t.by[k] = v
	t.order = append(t.order, k)
}

// dropOthers forgets the tokens of everybody but owner: a write of his outdates theirs.
func (t *tokens) dropOthers(owner protocol.OwnerID) {
	kept := t.order[:0]
	for _, k := range t.order {
		if t.by[k].owner == owner {
			kept = append(kept, k)
		} else {
			delete(t.by, k)
		}
	}
	t.order = kept
}
