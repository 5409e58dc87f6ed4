package broker

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"reins/actors/scope"
	"reins/protocol"
)

func problem(why protocol.Reason, message string) *protocol.Problem {
	if message == "" {
		message = why.Sentence()
	}
	return &protocol.Problem{Reason: why, Message: message}
}

// Read implements protocol.Handler. A read whose incarnation ended meanwhile is
// tried again within its deadline: it has no effect to repeat.
func (b *Broker) Read(ctx context.Context, c protocol.Caller, raw []byte) (reply protocol.ReadReply) {
	defer func() {
		if r := recover(); r != nil {
			b.Logger.Error("a read panicked", "panic", r, "stack", string(debug.Stack()))
			reply = protocol.ReadReply{Problem: problem(protocol.ReasonInternal, "")}
		}
	}()
	req, p := protocol.DecodeRead(raw)
	if p != nil {
		return protocol.ReadReply{Problem: p}
	}
	if !b.connections.known(c) {
		return protocol.ReadReply{Problem: problem(protocol.ReasonStaleConnection, "")}
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.DeadlineOfRead(req))
	defer cancel()
	for {
		reply, again := b.look(ctx, c, req)
		if !again || ctx.Err() != nil {
			return reply
		}
	}
}

// look reads once; again says that the incarnation ended in the middle of it.
func (b *Broker) look(ctx context.Context, c protocol.Caller, req protocol.ReadRequest) (reply protocol.ReadReply, again bool) {
	e, p := b.ready(ctx, req.Resource)
	if p != nil {
		return protocol.ReadReply{Problem: p}, false
	}
	if req.Generation != 0 && req.Generation != e.Gen {
		return protocol.ReadReply{Problem: problem(protocol.ReasonStaleGeneration, fmt.Sprintf("%s is at generation %d, the request names %d.", req.Resource, e.Gen, req.Generation))}, false
	}
	began := make(chan scope.Looked, 1)
	b.System.Root.Send(e.Scope, scope.BeginLook{Reply: began})
	var at scope.Looked
	select {
	case at = <-began:
	case <-ctx.Done():
		return protocol.ReadReply{Problem: problem(protocol.ReasonDeadline, "The target's scope did not answer in time.")}, false
	}
	if !at.Open || at.Gen != e.Gen {
		b.outlived(ctx, e)
		return protocol.ReadReply{Problem: problem(protocol.ReasonRestoring, "")}, true
	}
	reply, geometry := e.Incarnation.Read(ctx, req)
	o := reply.Observation
	if o == nil {
		now, _ := b.Directory.Get(req.Resource)
		return reply, reply.Problem != nil && now.Gen != e.Gen
	}
	minted := make(chan scope.Minted, 1)
	b.System.Root.Send(e.Scope, scope.EndLook{Owner: c.Owner, Gen: at.Gen, Epoch: at.Epoch, Geometry: geometry, Reply: minted})
	select {
	case m := <-minted:
		if m.Stale {
			b.outlived(ctx, e)
			return protocol.ReadReply{Problem: problem(protocol.ReasonRestoring, "")}, true
		}
		o.Target = protocol.TargetRef{Kind: e.Record.Kind, Resource: req.Resource}
		o.Generation, o.Epoch, o.Token = at.Gen, at.Epoch, m.Token
		return reply, false
	case <-ctx.Done():
		return protocol.ReadReply{Problem: problem(protocol.ReasonDeadline, "The target's scope did not answer in time.")}, false
	}
}

// outlived waits until the directory, too, knows that an entry's incarnation is over.
func (b *Broker) outlived(ctx context.Context, e Entry) {
	b.Directory.Wait(ctx, e.Record.ID, func(now Entry) bool { return now.Gen != e.Gen || now.Scope != e.Scope })
}

// ready waits until a target has an incarnation; waiting for it lets it come
// back before others, and out of failed.
func (b *Broker) ready(ctx context.Context, id protocol.ResourceID) (Entry, *protocol.Problem) {
	e, ok := b.Directory.Get(id)
	if !ok {
		return e, problem(protocol.ReasonUnknownResource, fmt.Sprintf("There is no resource %q. List the resources, or open one.", id))
	}
	began := e.Record.Changed // a failure that is older is what the look is to end
	if e.Record.Lifecycle != protocol.LifecycleReady {
		b.tree.Look(id)
	}
	e, ok = b.Directory.Wait(ctx, id, func(e Entry) bool {
		switch e.Record.Lifecycle {
		case protocol.LifecycleReady:
			return e.Incarnation != nil
		case protocol.LifecycleClosed:
			return true
		case protocol.LifecycleFailed:
			return e.Record.Changed > began
		}
		return false
	})
	switch {
	case e.Record.Lifecycle == protocol.LifecycleClosed:
		return e, problem(protocol.ReasonResourceClosed, "")
	case e.Record.Lifecycle == protocol.LifecycleFailed:
		why := e.Record.Reason
		if why == "" {
			why = protocol.ReasonCouldNotRestore
		}
		return e, problem(why, e.Record.Message)
	case !ok:
		return e, problem(protocol.ReasonRestoring, "The target is still coming back; observe again in a moment.")
	}
	return e, nil
}

// Claim implements protocol.Handler.
func (b *Broker) Claim(ctx context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	return b.lease(ctx, c, id, false)
}

// Release implements protocol.Handler.
func (b *Broker) Release(ctx context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	return b.lease(ctx, c, id, true)
}

func (b *Broker) lease(ctx context.Context, c protocol.Caller, id protocol.ResourceID, release bool) *protocol.Problem {
	e, p := b.find(c, id)
	if p != nil {
		return p
	}
	reply := make(chan *protocol.Problem, 1)
	b.System.Root.Send(e.Scope, scope.Lease{Owner: c.Owner, Release: release, Reply: reply})
	select {
	case p := <-reply:
		return p
	case <-ctx.Done():
		return problem(protocol.ReasonDeadline, "The target's scope did not answer in time.")
	}
}

func (b *Broker) find(c protocol.Caller, id protocol.ResourceID) (Entry, *protocol.Problem) {
	if !b.connections.known(c) {
		return Entry{}, problem(protocol.ReasonStaleConnection, "")
	}
	e, ok := b.Directory.Get(id)
	switch {
	case !ok:
		return e, problem(protocol.ReasonUnknownResource, fmt.Sprintf("There is no resource %q. List the resources, or open one.", id))
	case e.Record.Lifecycle == protocol.LifecycleClosed:
		return e, problem(protocol.ReasonResourceClosed, "")
	case e.Scope == nil:
		return e, problem(protocol.ReasonRestoring, "")
	}
	return e, nil
}

// Restart implements protocol.Handler.
func (b *Broker) Restart(_ context.Context, c protocol.Caller, id protocol.ResourceID) *protocol.Problem {
	e, p := b.find(c, id)
	if p != nil {
		return p
	}
	if h := e.Record.HeldBy; h != "" && h != c.Owner {
		p := problem(protocol.ReasonHeldBy, fmt.Sprintf("%s is held by %s; only its holder may restart it.", id, h))
		p.HeldBy = h
		return p
	}
	b.tree.Restart(id)
	return nil
}

// Resources implements protocol.Handler.
func (b *Broker) Resources(_ context.Context, c protocol.Caller) ([]protocol.Record, *protocol.Problem) {
	if !b.connections.known(c) {
		return nil, problem(protocol.ReasonStaleConnection, "")
	}
	return b.Directory.Records(), nil
}

// History implements protocol.Handler.
func (b *Broker) History(_ context.Context, c protocol.Caller, q protocol.HistoryQuery) ([]protocol.HistoryEntry, *protocol.Problem) {
	if !b.connections.known(c) {
		return nil, problem(protocol.ReasonStaleConnection, "")
	}
	if q.Limit < 0 || q.Limit > 1000 {
		return nil, problem(protocol.ReasonBadArguments, "limit must be 1 to 1,000.")
	}
	h, err := b.Store.Entries(q)
	if err != nil {
		return nil, problem(protocol.ReasonStorageUnavailable, "")
	}
	return h, nil
}

// Demand implements protocol.Handler.
func (b *Broker) Demand(_ context.Context, c protocol.Caller, d protocol.Demand) *protocol.Problem {
	if _, p := b.find(c, d.Resource); p != nil {
		return p
	}
	if d.Width != 0 && (d.Width < 64 || d.Width > 4096) {
		return problem(protocol.ReasonBadArguments, "width must be 64 to 4,096 pixels.")
	}
	if d.TTLMS != 0 && (d.TTLMS < 1000 || d.TTLMS > 60000) {
		return problem(protocol.ReasonBadArguments, "ttl_ms must be 1,000 to 60,000.")
	}
	b.Previews.Demand(c.Connection, d)
	return nil
}

// Status implements protocol.Handler.
func (b *Broker) Status(_ context.Context, _ protocol.Caller) protocol.Status {
	s := protocol.Status{Version: b.Version, Process: os.Getpid(), Resources: map[string]int{}, Store: "ok", Goroutines: runtime.NumGoroutine(), Browser: b.HostState(), LateResults: b.Late()}
	if why, message := b.Store.Health(); why != "" {
		s.Store, s.Message = string(why), message
	}
	for _, r := range b.Directory.Records() {
		s.Resources[string(r.Lifecycle)]++
	}
	return s
}

// newResourceID makes an id that is never used again and sorts by time.
func newResourceID(k protocol.Kind) protocol.ResourceID {
	prefix := map[protocol.Kind]string{protocol.KindPage: "pg_", protocol.KindWindow: "win_", protocol.KindDesktop: "dsk_", protocol.KindVM: "vm_"}[k]
	if prefix == "" {
		prefix = "pg_"
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	rand.Read(b[6:])
	return protocol.ResourceID(prefix + strings.ToUpper(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])))
}
