package nats_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"reins/protocol"
	"reins/protocol/nats"
)

// seen is what a Watch was told.
type seen struct {
	mu      sync.Mutex
	cues    []protocol.Cue
	frames  []protocol.FrameHeader
	bytes   int
	records []protocol.Record
	ups     int
	downs   []protocol.Reason
}

func (s *seen) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *seen) count(of func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

// newest is the newest frame and record of a resource that was told. Of several
// resources any may be the last to be told.
func (s *seen) newest(id protocol.ResourceID) string {
	var frame uint64
	var record protocol.Generation
	s.with(func() {
		for _, f := range s.frames {
			if f.Resource == id {
				frame = f.Sequence
			}
		}
		for _, r := range s.records {
			if r.ID == id {
				record = r.Generation
			}
		}
	})
	return fmt.Sprint(frame, record)
}

// watch starts watching and returns when everything is subscribed to.
func watch(t *testing.T, c *nats.Client, id protocol.ResourceID, change ...func(*nats.Watching)) *seen {
	t.Helper()
	s, up := &seen{}, make(chan struct{}, 64)
	w := nats.Watching{
		Resource: id,
		Cue:      func(c protocol.Cue) { s.with(func() { s.cues = append(s.cues, c) }) },
		Frame: func(h protocol.FrameHeader, image []byte) {
			s.with(func() { s.frames, s.bytes = append(s.frames, h), s.bytes+len(image) })
		},
		Record: func(r protocol.Record) { s.with(func() { s.records = append(s.records, r) }) },
		Up:     func() { s.with(func() { s.ups++ }); up <- struct{}{} },
		Down:   func(p *protocol.Problem) { s.with(func() { s.downs = append(s.downs, p.Reason) }) },
	}
	for _, f := range change {
		f(&w)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Watch(ctx, w) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("watching ended with %v", err)
		}
	})
	select {
	case <-up:
	case <-time.After(patience):
		t.Fatal("watching did not begin")
	}
	return s
}

func cue(id protocol.ResourceID, n int) protocol.Cue {
	return protocol.Cue{Phase: protocol.CueDispatched, Resource: id, Generation: 1, Sequence: uint64(n), Words: "Click"}
}

func picture(id protocol.ResourceID, gen protocol.Generation, n int) protocol.FrameHeader {
	return protocol.FrameHeader{Resource: id, Generation: gen, Sequence: uint64(n), Width: 4, Height: 3, MediaType: "image/jpeg"}
}

// TestWatch holds that cues come all and in order, that one resource can be
// watched alone, and that the newest record and frame come.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	all, one := watch(t, w.client("alice"), ""), watch(t, w.client("bob"), "pg_1")
	for i := range 100 {
		id := protocol.ResourceID(fmt.Sprintf("pg_%d", i%2))
		w.publisher.Cue(cue(id, i))
		w.publisher.Record(protocol.Record{ID: id, Generation: protocol.Generation(i + 1)})
		w.publisher.Frame(picture(id, 1, i+1), []byte("picture"))
	}
	for _, r := range []struct {
		s    *seen
		cues int
	}{{all, 100}, {one, 50}} {
		eventually(t, "every cue and the newest of the rest", func() bool {
			return r.s.count(func() int { return len(r.s.cues) }) == r.cues && r.s.newest("pg_1") == "100 100"
		})
		r.s.with(func() {
			for i := range r.s.cues[1:] {
				if r.s.cues[i].Sequence >= r.s.cues[i+1].Sequence {
					t.Errorf("cue %d came before %d", r.s.cues[i].Sequence, r.s.cues[i+1].Sequence)
				}
			}
			if r.s.bytes != len("picture")*len(r.s.frames) {
				t.Errorf("%d frames have %d bytes", len(r.s.frames), r.s.bytes)
			}
		})
	}
	one.with(func() {
		for _, c := range one.cues {
			if c.Resource != "pg_1" {
				t.Errorf("a cue of %s came to a viewer of pg_1", c.Resource)
			}
		}
	})
	err := w.client("alice").Watch(limited(t), nats.Watching{Resource: "pg_*"})
	problem(t, "a wildcard as resource", err, protocol.ReasonBadRequest)
}

// TestOldFramesAreLeftOut holds that frames of an older generation, and out of
// order, are not told.
func TestOldFramesAreLeftOut(t *testing.T) {
	w := newWorld(t)
	s := watch(t, w.client("alice"), "")
	told := func(id protocol.ResourceID) (list []string) {
		s.with(func() {
			for _, f := range s.frames {
				if f.Resource == id {
					list = append(list, fmt.Sprintf("g%d.%d", f.Generation, f.Sequence))
				}
			}
		})
		return list
	}
	for i, f := range []struct {
		gen protocol.Generation
		n   int
	}{{1, 5}, {1, 4}, {1, 5}, {1, 6}, {2, 1}, {1, 7}, {2, 2}} {
		w.publisher.Frame(picture("pg_1", f.gen, f.n), nil)
		w.publisher.Frame(picture("pg_2", 1, i+1), nil) // told behind the one before it
		eventually(t, "the frame behind it", func() bool { return len(told("pg_2")) == i+1 })
	}
	if got := strings.Join(told("pg_1"), " "); got != "g1.5 g1.6 g2.1 g2.2" {
		t.Errorf("told were %s", got)
	}
}

// TestGap holds that watching goes on after the daemon was gone, says so, and
// tells every record then.
func TestGap(t *testing.T) {
	w := newWorld(t)
	c := w.client("alice")
	s := watch(t, c, "")
	w.publisher.Cue(cue("pg_1", 1))
	eventually(t, "the first cue", func() bool { return s.count(func() int { return len(s.cues) }) == 1 })
	w.stop()
	eventually(t, "Down is told", func() bool { return s.count(func() int { return len(s.downs) }) == 1 })
	w.handler.restart()
	w.handler.set(func() {
		w.handler.records = []protocol.Record{{ID: "pg_1", Generation: 2}, {ID: "pg_2", Generation: 7}}
	})
	w.start()
	eventually(t, "Up is told again, with every record", func() bool {
		return s.count(func() int { return s.ups }) == 2 && s.count(func() int { return len(s.records) }) == 2
	})
	w.publisher.Cue(cue("pg_1", 2))
	eventually(t, "the second cue", func() bool { return s.count(func() int { return len(s.cues) }) == 2 })
}

// TestSlowViewers holds I5: neither a viewer whose functions are slow nor one
// that takes nothing from its socket slows another, or the publisher.
func TestSlowViewers(t *testing.T) {
	w := newWorld(t, func(w *world) { w.options.WriteDeadline = 200 * time.Millisecond })
	stalled := stall(t, w)
	defer stalled.Close()
	stuck := make(chan struct{})
	first := make(chan struct{}, 1)
	var once sync.Once
	watch(t, w.client("bob"), "", func(v *nats.Watching) {
		v.Frame = func(protocol.FrameHeader, []byte) { once.Do(func() { close(first) }); <-stuck }
	})
	defer close(stuck)
	good := watch(t, w.client("alice"), "")
	image := make([]byte, 200<<10)
	for i := range 150 {
		w.publisher.Frame(picture("pg_1", 1, i+1), image)
		w.publisher.Cue(cue("pg_1", i))
		eventually(t, "the good viewer gets each frame while the others take nothing", func() bool {
			return good.count(func() int {
				if len(good.frames) == 0 {
					return 0
				}
				return int(good.frames[len(good.frames)-1].Sequence)
			}) == i+1
		})
	}
	<-first
	eventually(t, "the good viewer has every cue", func() bool { return good.count(func() int { return len(good.cues) }) == 150 })
	if d := w.publisher.Dropped(); d != (nats.Dropped{}) {
		t.Errorf("the publisher dropped %+v", d)
	}
	eventually(t, "the stalled connection is cut", func() bool { return strings.Contains(w.log.String(), "Slow Consumer") })
	applied(t, w.client("alice"), "op-1")
}

// stall connects as an owner, subscribes to frames and takes nothing more.
func stall(t *testing.T, w *world) net.Conn {
	t.Helper()
	c := w.owner("carol")
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.server.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"user\":%q,\"pass\":%q}\r\nSUB reins.v1.frame.> 1\r\nPING\r\n", c.User, c.Password)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if lines.Text() == "PONG" {
			return conn
		}
	}
	t.Fatalf("the bus did not answer: %v", lines.Err())
	return nil
}

// TestPublisherNeverBlocks holds that a publisher whose bus is gone takes
// everything at once and drops it.
func TestPublisherNeverBlocks(t *testing.T) {
	w := newWorld(t)
	w.server.Shutdown()
	for i := range 3 * nats.MaxCuesWaiting {
		w.publisher.Cue(cue("pg_1", i))
		w.publisher.Frame(picture("pg_1", 1, i), make([]byte, 1000))
		w.publisher.Record(protocol.Record{ID: "pg_1"})
	}
}

// TestOversizedFrame holds that a frame over the limit is dropped, counted and logged.
func TestOversizedFrame(t *testing.T) {
	w := newWorld(t)
	s := watch(t, w.client("alice"), "")
	w.publisher.Frame(picture("pg_1", 1, 1), make([]byte, 8<<20))
	w.publisher.Frame(picture("pg_1", 1, 2), make([]byte, 1<<20))
	eventually(t, "the smaller frame", func() bool { return s.count(func() int { return len(s.frames) }) == 1 })
	if d := w.publisher.Dropped(); d.Frames != 1 || !strings.Contains(w.log.String(), "over the message limit") {
		t.Errorf("dropped %+v", d)
	}
	// What cannot be a subject is dropped too.
	w.publisher.Cue(cue("pg.*", 1))
	w.publisher.Record(protocol.Record{ID: ">"})
	eventually(t, "both are dropped", func() bool { d := w.publisher.Dropped(); return d.Cues == 1 && d.Records == 1 })
}
