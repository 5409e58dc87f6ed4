package nats

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// Watching says what to watch, and who is told. Functions that are nil are not
// told, and their subjects not subscribed to. They are called one at a time; a
// slow one loses frames and the oldest cues and slows nobody else (I5).
type Watching struct {
	// Resource restricts it to one; empty watches all.
	Resource protocol.ResourceID
	Cue      func(protocol.Cue)
	// Frame gets preview frames, which come only while somebody demands them.
	// Frames of an older generation and out of order are left out.
	Frame func(protocol.FrameHeader, []byte)
	// Record gets each change. After a gap it gets every record again.
	Record func(protocol.Record)
	// Up is called when everything is subscribed to, also after a gap; Down when
	// the connection broke. Watching goes on by itself.
	Up   func()
	Down func(*protocol.Problem)
}

// The pause before the next try to watch again; it doubles up to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// Watch tells what happens until ctx ends, and returns its error. Where the
// daemon is gone it waits until it is back. It returns a *[protocol.Problem] if
// the resource cannot be watched at all, or the client was closed.
func (c *Client) Watch(ctx context.Context, w Watching) error {
	if w.Resource != "" && !isToken(w.Resource) {
		return problemOf(protocol.ReasonBadRequest, "%.40q is no resource's id.", w.Resource)
	}
	v := &view{Watching: w, client: c, box: newBox()}
	pause := firstPause
	for gap := false; ; gap = true {
		lived, p := v.once(ctx, gap)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case c.base.Err() != nil:
			return problemOf(protocol.ReasonDaemonUnreachable, "This client was closed.")
		}
		if lived {
			pause = firstPause
			if w.Down != nil {
				w.Down(p)
			}
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
		case <-c.base.Done():
		}
		wait.Stop()
		pause = min(2*pause, longestPause)
	}
}

// view is one Watch.
type view struct {
	Watching
	client *Client
	box    *box
	newest newest

	mu      sync.Mutex
	changed map[protocol.ResourceID]bool // records that came since the subscriptions stand
}

// once watches over one connection, until it breaks or ctx ends. lived says
// whether everything was subscribed to.
func (v *view) once(ctx context.Context, gap bool) (lived bool, p *protocol.Problem) {
	l, p := v.client.ready(ctx)
	if p != nil {
		return false, p
	}
	subs, err := v.subscribe(ctx, l)
	defer func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // it fails only where the connection is gone, and the subscription with it
		}
	}()
	if err != nil {
		return false, problemOf(protocol.ReasonDaemonUnreachable, "The bus does not take the subscriptions (%v).", err)
	}
	if v.Up != nil {
		v.Up()
	}
	if gap && v.Record != nil {
		v.whole(ctx)
	}
	for {
		for i, ok := v.box.take(); ok && ctx.Err() == nil; i, ok = v.box.take() {
			v.tell(i)
		}
		select {
		case <-v.box.ready:
		case <-l.gone:
			return true, problemOf(protocol.ReasonDaemonUnreachable, "The connection broke. Watching goes on when the daemon is back.")
		case <-ctx.Done():
			return true, nil
		case <-v.client.base.Done():
			return true, nil
		}
	}
}

func (v *view) subscribe(ctx context.Context, l *link) (subs []*gonats.Subscription, err error) {
	id := v.Resource
	if id == "" {
		id = ">"
	}
	v.mu.Lock()
	v.changed = map[protocol.ResourceID]bool{}
	v.mu.Unlock()
	for _, s := range []struct {
		wanted  bool
		pattern string
		take    gonats.MsgHandler
	}{
		{v.Cue != nil, SubjectCue, v.takeCue},
		{v.Frame != nil, SubjectFrame, v.takeFrame},
		{v.Record != nil, SubjectRecord, v.takeRecord},
	} {
		if !s.wanted {
			continue
		}
		sub, err := l.nc.Subscribe(withResource(s.pattern, id), s.take)
		if err != nil {
			return subs, err
		}
		subs = append(subs, sub)
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return subs, l.nc.FlushWithContext(ctx)
}

// whole tells every record, since changes may have been missed.
func (v *view) whole(ctx context.Context) {
	records, err := v.client.Resources(ctx)
	if err != nil {
		v.client.Logger.Debug("the records could not be had after a gap", "error", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range records {
		if (v.Resource == "" || r.ID == v.Resource) && !v.changed[r.ID] { // a change that came by itself is newer than the list
			v.box.putRecord(r)
		}
	}
}

func (v *view) tell(i item) {
	switch {
	case i.cue != nil:
		v.Cue(*i.cue)
	case i.record != nil:
		v.Record(*i.record)
	case i.frame != nil:
		v.Frame(i.frame.header, i.frame.image)
	}
}

// The callbacks of the bus: they decode, put, and never wait.

func (v *view) takeCue(m *gonats.Msg) {
	var cue protocol.Cue
	if json.Unmarshal(m.Data, &cue) == nil {
		v.box.putCue(cue)
	}
}

func (v *view) takeRecord(m *gonats.Msg) {
	var r protocol.Record
	if json.Unmarshal(m.Data, &r) != nil || r.ID == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changed[r.ID] = true
	v.box.putRecord(r)
}

func (v *view) takeFrame(m *gonats.Msg) {
	h, err := decodeFrame(m.Header)
	if err == nil && v.newest.is(h) {
		v.box.putFrame(h, m.Data)
	}
}

// newest knows the last frame of each resource.
type newest struct {
	mu   sync.Mutex
	last map[protocol.ResourceID]protocol.FrameHeader
}

// is reports whether a frame is newer than all before it, and remembers it.
func (n *newest) is(h protocol.FrameHeader) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	last, seen := n.last[h.Resource]
	if seen && (h.Generation < last.Generation || h.Generation == last.Generation && h.Sequence <= last.Sequence) {
		return false
	}
	if n.last == nil || len(n.last) >= MaxRecordsWaiting {
		n.last = map[protocol.ResourceID]protocol.FrameHeader{} // bounded; at worst an old frame is shown once
	}
	n.last[h.Resource] = h
	return true
}
