package nats

import (
	"sync"

	"reins/protocol"
)

// The bounds of what waits to be told.
const (
	MaxCuesWaiting    = 1024 // the oldest are dropped
	MaxRecordsWaiting = 4096 // resources; of one the latest waits
	MaxFramesWaiting  = 256  // resources; of one the latest waits
)

// box holds what waits to be told, by the publisher to the bus or by the bus to
// a viewer. Who puts never waits (I5). Cues go first, then records, then frames.
type box struct {
	ready chan struct{} // has room for one: something is there

	mu      sync.Mutex
	cues    []protocol.Cue
	records latest[protocol.Record]
	frames  latest[frame]
	dropped Dropped
	closed  bool // nothing is taken in any more
}

// Dropped counts what could not be told in time.
type Dropped struct {
	Cues, Records, Frames uint64
}

type frame struct {
	header protocol.FrameHeader
	image  []byte
}

// item is one thing to tell: exactly one of its fields is set.
type item struct {
	cue    *protocol.Cue
	record *protocol.Record
	frame  *frame
}

func newBox() *box {
	return &box{
		ready:   make(chan struct{}, 1),
		records: latest[protocol.Record]{limit: MaxRecordsWaiting},
		frames:  latest[frame]{limit: MaxFramesWaiting},
	}
}

// close ends taking in; what waits can still be taken out.
func (b *box) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

func (b *box) ring() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// put takes in by add, unless the box is closed.
func (b *box) put(add func()) {
	b.mu.Lock()
	if !b.closed {
		add()
	}
	b.mu.Unlock()
	b.ring()
}

func (b *box) putCue(c protocol.Cue) {
	b.put(func() {
		if len(b.cues) == MaxCuesWaiting {
			b.cues = append(b.cues[:0], b.cues[1:]...)
			b.dropped.Cues++
		}
		b.cues = append(b.cues, c)
	})
}

func (b *box) putRecord(r protocol.Record) {
	b.put(func() {
		if b.records.put(r.ID, r) == overflowed {
			b.dropped.Records++
		}
	})
}

func (b *box) putFrame(h protocol.FrameHeader, image []byte) {
	b.put(func() {
		if b.frames.put(h.Resource, frame{h, image}) != added {
			b.dropped.Frames++
		}
	})
}

// drop counts a thing that was taken and could not be told after all.
func (b *box) drop(i item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case i.cue != nil:
		b.dropped.Cues++
	case i.record != nil:
		b.dropped.Records++
	case i.frame != nil:
		b.dropped.Frames++
	}
}

// take returns what is to be told next, and false if there is nothing.
func (b *box) take() (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.cues) > 0 {
		c := b.cues[0]
		b.cues = b.cues[1:]
		return item{cue: &c}, true
	}
	if r, ok := b.records.take(); ok {
		return item{record: &r}, true
	}
	if f, ok := b.frames.take(); ok {
		return item{frame: &f}, true
	}
	return item{}, false
}

// counts returns what was dropped so far.
func (b *box) counts() Dropped {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// latest keeps the newest value of each resource, in the order in which the
// resources came to wait.
type latest[T any] struct {
	limit int
	order []protocol.ResourceID
	by    map[protocol.ResourceID]T
}

// placed says where a value went.
type placed int

const (
	added      placed = iota
	replaced          // an older value of the same resource
	overflowed        // the resource that waited longest made room
)

func (l *latest[T]) put(id protocol.ResourceID, v T) placed {
	if l.by == nil {
		l.by = map[protocol.ResourceID]T{}
	}
	if _, waits := l.by[id]; waits {
		l.by[id] = v
		return replaced
	}
	how := added
	if len(l.order) == l.limit {
		delete(l.by, l.order[0])
		l.order = l.order[1:]
		how = overflowed
	}
	l.order = append(l.order, id)
	l.by[id] = v
	return how
}

func (l *latest[T]) take() (v T, ok bool) {
	if len(l.order) == 0 {
		return v, false
	}
	id := l.order[0]
	l.order = l.order[1:]
	v = l.by[id]
	delete(l.by, id)
	return v, true
}
