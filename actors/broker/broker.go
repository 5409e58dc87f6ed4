package broker

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/index"
	"reins/actors/scope"
	"reins/protocol"
)

// Tree is what the broker asks of the supervisors.
type Tree interface {
	Open(protocol.Record)
	Look(protocol.ResourceID)
	Restart(protocol.ResourceID)
	Discard(protocol.ResourceID)
}

// Store is what the broker looks up and writes.
type Store interface {
	Operation(protocol.OwnerID, protocol.OperationID) (index.Stored, error)
	PutRecord(protocol.Record) error
	Entries(protocol.HistoryQuery) ([]protocol.HistoryEntry, error)
	Health() (protocol.Reason, string)
}

// Previews takes demands for frames.
type Previews interface {
	Demand(viewer string, d protocol.Demand)
}

// Config is what a broker works with.
type Config struct {
	System    *actor.ActorSystem
	Directory *Directory
	Store     Store
	Previews  Previews
	HashKey   []byte
	Version   string
	Logger    *slog.Logger
	// MaxPages is how many resources may be open; 0 takes protocol.MaxPages.
	MaxPages int
	// Writes and URLs are the budgets of a user turn; 0 takes the protocol's, −1 none.
	Writes, URLs int
	// HostState says how the browser is.
	HostState func() string
	// Late is how many results came too late.
	Late func() uint64
	// Running counts the broker's goroutines.
	Running *sync.WaitGroup
}

// Broker implements protocol.Handler.
type Broker struct {
	Config
	tree        Tree
	connections connections
	budgets     budgets

	mu      sync.Mutex
	index   index.Index // guarded by mu
	closing bool        // guarded by mu
}

var _ protocol.Handler = (*Broker)(nil)

// New makes a broker. SetTree must be called before it serves.
func New(c Config) *Broker {
	if c.MaxPages == 0 {
		c.MaxPages = protocol.MaxPages
	}
	b := &Broker{Config: c, budgets: budgets{writes: orDefault(c.Writes, protocol.BudgetWrites), urls: orDefault(c.URLs, protocol.BudgetURLs)}}
	b.connections.changed = b.ownerChanged
	return b
}

func orDefault(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}

// SetTree names the supervisors; they need the broker's Directory first.
func (b *Broker) SetTree(t Tree) { b.tree = t }

// Shut refuses everything new from now on.
func (b *Broker) Shut() {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
}

func refusal(r protocol.Request, why protocol.Reason, message string) protocol.Receipt {
	if message == "" {
		message = why.Sentence()
	}
	return protocol.Receipt{OperationID: r.OperationID, Resource: r.Resource, Generation: r.Generation, Method: r.Method,
		State: protocol.StateRefused, LastAppliedIndex: protocol.Index(-1), Reason: why, Message: message}
}

// Do implements protocol.Handler.
func (b *Broker) Do(ctx context.Context, c protocol.Caller, raw []byte) protocol.Receipt {
	req, problem := protocol.DecodeRequest(raw)
	if problem != nil {
		rc := refusal(req, problem.Reason, problem.Message)
		return rc
	}
	if !b.connections.known(c) {
		return refusal(req, protocol.ReasonStaleConnection, "")
	}
	key := index.Key{Owner: c.Owner, ID: req.OperationID}
	hash := protocol.ContentHash(b.HashKey, req)
	b.mu.Lock()
	if b.closing {
		b.mu.Unlock()
		return refusal(req, protocol.ReasonShuttingDown, "")
	}
	verdict, entry, err := b.index.Begin(key, hash, time.Now(), func() (index.Stored, error) { return b.Store.Operation(key.Owner, key.ID) })
	b.mu.Unlock()
	switch {
	case err != nil:
		return refusal(req, protocol.ReasonStorageUnavailable, "")
	case verdict == index.Reused:
		return refusal(req, protocol.ReasonOperationIDReused, "")
	case verdict == index.Overtaken:
		rc := refusal(req, protocol.ReasonCancelled, "Its cancel came before it; nothing happened.")
		rc.State = protocol.StateCancelled
		return rc
	case verdict == index.Answered:
		return entry.Receipt
	case verdict == index.New:
		b.start(c, req, key, hash, entry)
	}
	return b.await(ctx, req, entry)
}

// await waits for the receipt of an operation under way.
func (b *Broker) await(ctx context.Context, req protocol.Request, e *index.Entry) protocol.Receipt {
	select {
	case <-e.Done:
		return e.Receipt
	default:
	}
	select {
	case <-e.Done:
		return e.Receipt
	case <-ctx.Done():
		rc := refusal(req, protocol.ReasonAnswerLost, "The operation is still under way; ask for its receipt by its id.")
		rc.State, rc.LastAppliedIndex = protocol.StateUncertain, nil
		return rc
	}
}

// start runs an operation in a goroutine of its own, so that a caller who stops
// waiting does not end it.
func (b *Broker) start(c protocol.Caller, req protocol.Request, key index.Key, hash [32]byte, e *index.Entry) {
	b.Running.Go(func() {
		rc, recorded := refusal(req, protocol.ReasonInternal, ""), false
		submitted := false
		defer func() {
			if r := recover(); r != nil {
				b.Logger.Error("broker panicked", "operation", req.OperationID, "panic", r, "stack", string(debug.Stack()))
				if submitted {
					rc.State, rc.LastAppliedIndex = protocol.StateUncertain, nil
				}
			}
			b.mu.Lock()
			b.index.End(key, rc, recorded)
			b.mu.Unlock()
		}()
		scopePID, op, problem := b.admit(c, req, hash, e)
		if problem != nil {
			rc = refusal(req, problem.Reason, problem.Message)
			return
		}
		reply := make(chan scope.Answer, 1)
		submitted = true
		b.System.Root.Send(scopePID, scope.Do{Op: op, Reply: reply})
		a := <-reply // the scope answers everything it was given, also when it dies
		rc, recorded = a.Receipt, a.Recorded
		if rc.Method == "" {
			rc.Method = req.Method
		}
		if rc.State == protocol.StateApplied {
			b.keepViewport(req)
		}
		if req.Method == protocol.MethodOpen && (rc.State == protocol.StateRefused || rc.State == protocol.StateCancelled) {
			b.tree.Discard(op.Request.Resource)
		}
	})
}

// admit checks authority and budget and finds the scope.
func (b *Broker) admit(c protocol.Caller, req protocol.Request, hash [32]byte, e *index.Entry) (*actor.PID, scope.Op, *protocol.Problem) {
	queue, run := protocol.Deadline(req)
	now := time.Now()
	op := scope.Op{Key: scope.Key{Owner: c.Owner, ID: req.OperationID}, Hash: hash, UserTurn: c.UserTurn, QueueUntil: now.Add(queue), RunFor: run}
	if req.DeadlineMS > 0 {
		op.Until = now.Add(time.Duration(req.DeadlineMS) * time.Millisecond)
	}
	if p := b.budgets.spend(c, req); p != nil {
		return nil, op, p
	}
	if req.Method == protocol.MethodOpen {
		id, p := b.create(c, req)
		if p != nil {
			return nil, op, p
		}
		req.Resource = id
	}
	b.mu.Lock()
	e.Resource = req.Resource
	b.mu.Unlock()
	op.Request = req
	entry, ok := b.Directory.Get(req.Resource)
	if !ok {
		return nil, op, &protocol.Problem{Reason: protocol.ReasonUnknownResource, Message: fmt.Sprintf("There is no resource %q. List the resources, or open one.", req.Resource)}
	}
	if entry.Record.Lifecycle == protocol.LifecycleClosed {
		return nil, op, &protocol.Problem{Reason: protocol.ReasonResourceClosed, Message: protocol.ReasonResourceClosed.Sentence()}
	}
	if l := entry.Record.Lifecycle; l != protocol.LifecycleReady && l != protocol.LifecycleFailed {
		b.tree.Look(req.Resource) // first use jumps the queue of restores; only an observation or a restart leaves failed
	}
	if entry.Scope == nil {
		ctx, cancel := context.WithTimeout(context.Background(), run)
		defer cancel()
		entry, ok = b.Directory.Wait(ctx, req.Resource, func(e Entry) bool { return e.Scope != nil })
		if !ok {
			return nil, op, &protocol.Problem{Reason: protocol.ReasonResourceUnavailable, Message: protocol.ReasonResourceUnavailable.Sentence()}
		}
	}
	return entry.Scope, op, nil
}

// create stores the record of a new resource and has it made.
func (b *Broker) create(c protocol.Caller, req protocol.Request) (protocol.ResourceID, *protocol.Problem) {
	args, err := protocol.Arguments[protocol.OpenArguments](req.Arguments)
	if err != nil {
		return "", &protocol.Problem{Reason: protocol.ReasonBadArguments, Message: err.Error()}
	}
	open := 0
	for _, r := range b.Directory.Records() {
		if r.Lifecycle != protocol.LifecycleClosed {
			open++
		}
	}
	if open >= b.MaxPages {
		return "", &protocol.Problem{Reason: protocol.ReasonTooMany, Message: fmt.Sprintf("%d targets are open, which is the ceiling. Close one, or raise the ceiling.", open)}
	}
	now := protocol.Time(time.Now().UnixMilli())
	view := args.Viewport
	if view == nil {
		view = &protocol.Viewport{Width: 1920, Height: 1080, Scale: 1}
	}
	record := protocol.Record{ID: newResourceID(args.Kind), Kind: protocol.KindPage, Owner: c.Owner, Provenance: "opened",
		Lifecycle: protocol.LifecycleOpening, Viewport: view, Created: now, Changed: now}
	if err := b.Store.PutRecord(record); err != nil {
		return "", &protocol.Problem{Reason: protocol.ReasonStorageUnavailable, Message: protocol.ReasonStorageUnavailable.Sentence()}
	}
	b.Directory.Update(record.ID, func(e *Entry) { e.Record = record })
	b.tree.Open(record)
	return record.ID, nil
}

// Cancel implements protocol.Handler.
func (b *Broker) Cancel(ctx context.Context, c protocol.Caller, id protocol.OperationID) protocol.Receipt {
	req := protocol.Request{OperationID: id}
	if !b.connections.known(c) {
		return refusal(req, protocol.ReasonStaleConnection, "")
	}
	key := index.Key{Owner: c.Owner, ID: id}
	b.mu.Lock()
	under, answered, err := b.index.Cancel(key, time.Now(), func() (index.Stored, error) { return b.Store.Operation(key.Owner, key.ID) })
	var resource protocol.ResourceID
	if under != nil {
		resource = under.Resource
	}
	b.mu.Unlock()
	switch {
	case err != nil:
		return refusal(req, protocol.ReasonStorageUnavailable, "")
	case answered != nil:
		return *answered
	case under == nil:
		return refusal(req, protocol.ReasonUnknownOperation, "No operation of that id is known. Should it still arrive within 60 s, it is cancelled.")
	}
	if e, ok := b.Directory.Get(resource); ok && e.Scope != nil {
		b.System.Root.Send(e.Scope, scope.Cancel{Key: scope.Key(key)})
	}
	return b.await(ctx, req, under)
}

// Receipt implements protocol.Handler.
func (b *Broker) Receipt(ctx context.Context, c protocol.Caller, id protocol.OperationID) protocol.Receipt {
	req := protocol.Request{OperationID: id}
	if !b.connections.known(c) {
		return refusal(req, protocol.ReasonStaleConnection, "")
	}
	key := index.Key{Owner: c.Owner, ID: id}
	b.mu.Lock()
	under := b.index.Find(key)
	b.mu.Unlock()
	if under != nil {
		return b.await(ctx, req, under)
	}
	s, err := b.Store.Operation(key.Owner, key.ID)
	switch {
	case err != nil:
		return refusal(req, protocol.ReasonStorageUnavailable, "")
	case !s.Known:
		return refusal(req, protocol.ReasonUnknownOperation, "")
	}
	return index.Settled(key, s.Receipt)
}
