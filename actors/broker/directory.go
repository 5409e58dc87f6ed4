package broker

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/protocol"
	"reins/targets"
)

// Entry is what the daemon knows of a resource now: its record and the live
// parts. Live parts are never stored.
type Entry struct {
	Record      protocol.Record
	Scope       *actor.PID
	Supervisor  *actor.PID
	Incarnation targets.Incarnation
	Gen         protocol.Generation // of Incarnation
}

// Directory is the projection of the tree that the broker looks things up in.
// Supervisors write it. It is safe for concurrent use.
type Directory struct {
	mu      sync.Mutex
	entries map[protocol.ResourceID]*Entry // guarded by mu
	changed chan struct{}                  // guarded by mu; closed and renewed at each change
	publish func(protocol.Record)          // does not block
}

// NewDirectory makes an empty directory that publishes each changed record.
func NewDirectory(publish func(protocol.Record)) *Directory {
	return &Directory{entries: map[protocol.ResourceID]*Entry{}, changed: make(chan struct{}), publish: publish}
}

// Update changes an entry, making it if need be, and tells who waits.
func (d *Directory) Update(id protocol.ResourceID, f func(*Entry)) protocol.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[id]
	if e == nil {
		e = &Entry{}
		d.entries[id] = e
	}
	before := e.Record
	f(e)
	e.Record.State = words(e.Record)
	if e.Record != before {
		if before.ID != "" || e.Record.Changed == 0 { // else it comes from the store, which knows when it was used last
			// Later changes have later times, also when the clock goes back: the store keeps the latest.
			e.Record.Changed = max(protocol.Time(time.Now().UnixMilli()), before.Changed+1)
		}
		d.publish(e.Record)
	}
	close(d.changed)
	d.changed = make(chan struct{})
	return e.Record
}

// Get returns an entry.
func (d *Directory) Get(id protocol.ResourceID) (Entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil {
		return *e, true
	}
	return Entry{}, false
}

// Records returns every record, the newest resource last.
func (d *Directory) Records() []protocol.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]protocol.Record, 0, len(d.entries))
	for _, e := range d.entries {
		out = append(out, e.Record)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Created != out[j].Created {
			return out[i].Created < out[j].Created
		}
		return out[i].ID < out[j].ID
	})
	return out
}

// Wait returns the entry as soon as ok holds for it, or when ctx ends (false).
func (d *Directory) Wait(ctx context.Context, id protocol.ResourceID, ok func(Entry) bool) (Entry, bool) {
	for {
		d.mu.Lock()
		changed := d.changed
		var e Entry
		if p := d.entries[id]; p != nil {
			e = *p
		}
		d.mu.Unlock()
		if ok(e) {
			return e, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return e, false
		}
	}
}

// words are what people read for a record's state.
func words(r protocol.Record) string {
	switch r.Lifecycle {
	case protocol.LifecycleReady:
		if r.HeldBy != "" {
			return "Operating"
		}
		return "Ready to use"
	case protocol.LifecycleFailed:
		return "Could not restore page"
	case protocol.LifecycleClosed:
		return "Closed pages"
	}
	return "Restoring page…"
}
