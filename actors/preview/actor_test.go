package preview

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"reins/protocol"
	"reins/targets"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The actor library's throttle of dead letters has no end; it is one a system.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// within is how long a test waits for what must come; nothing is timed by it.
const within = 20 * time.Second

var system = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// capturing is one call of Frames, under the test's hand.
type capturing struct {
	ctx   context.Context
	gen   protocol.Generation
	width int
	sink  func(protocol.FrameHeader, []byte)
	end   chan error
}

// frame offers a frame.
func (c capturing) frame(gen protocol.Generation, sequence uint64) {
	c.sink(protocol.FrameHeader{Resource: "pg_1", Generation: gen, Sequence: sequence}, nil)
}

// fake is an incarnation that is captured.
type fake struct {
	targets.Incarnation
	gen   protocol.Generation
	calls chan capturing
}

func (f fake) Frames(ctx context.Context, width int, sink func(protocol.FrameHeader, []byte)) error {
	c := capturing{ctx: ctx, gen: f.gen, width: width, sink: sink, end: make(chan error, 1)}
	f.calls <- c
	select {
	case err := <-c.end:
		if err == nil {
			panic("planted")
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// stand is the preview actor with one page.
type stand struct {
	t       *testing.T
	p       *Previews
	running sync.WaitGroup
	calls   chan capturing
	frames  chan protocol.FrameHeader

	mu  sync.Mutex
	gen protocol.Generation // 0: there is no incarnation
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, calls: make(chan capturing, 16), frames: make(chan protocol.FrameHeader, 16), gen: 1}
	s.p = Spawn(Config{System: system(), Logger: slog.New(slog.DiscardHandler), Running: &s.running,
		Publish: func(h protocol.FrameHeader, _ []byte) { s.frames <- h },
		Find: func(protocol.ResourceID) (targets.Incarnation, protocol.Generation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.gen == 0 {
				return nil, 0
			}
			return fake{gen: s.gen, calls: s.calls}, s.gen
		}})
	t.Cleanup(func() {
		stop(s.p.pid)
		done := make(chan struct{})
		go func() { s.running.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(within):
			t.Error("a capture never ended")
		}
	})
	return s
}

func (s *stand) set(gen protocol.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen = gen
}

func (s *stand) demand(width int, ttl time.Duration) {
	s.p.Demand("viewer", protocol.Demand{Resource: "pg_1", Width: width, TTLMS: ttl.Milliseconds()})
}

// capture waits for the next call of Frames.
func (s *stand) capture() capturing {
	s.t.Helper()
	select {
	case c := <-s.calls:
		return c
	case <-time.After(within):
		s.t.Fatal("nothing is captured")
		panic("unreachable")
	}
}

func (s *stand) ended(c capturing) {
	s.t.Helper()
	select {
	case <-c.ctx.Done():
	case <-time.After(within):
		s.t.Fatal("the capture goes on")
	}
}

// published returns the sequences that came out so far.
func (s *stand) published() (all []uint64) {
	for {
		select {
		case h := <-s.frames:
			all = append(all, h.Sequence)
		default:
			return all
		}
	}
}

// TestCapture (I1, I2): it begins with a demand, is widened by a wider one, and
// ends when nobody demands it any more.
func TestCapture(t *testing.T) {
	s := newStand(t)
	s.demand(0, 0) // 640 pixels for 5 s
	first := s.capture()
	if first.width != 640 {
		t.Fatalf("captured at %d", first.width)
	}
	s.demand(1280, time.Second)
	second := s.capture()
	s.ended(first)
	if second.width != 1280 {
		t.Fatalf("captured at %d", second.width)
	}
	s.ended(second) // the viewer says no more
	select {
	case <-s.calls:
		t.Fatal("it is captured, and nobody demands it")
	default:
	}
}

// TestFrames (I3): only of the current generation, and in order.
func TestFrames(t *testing.T) {
	s := newStand(t)
	s.demand(640, 30*time.Second)
	c := s.capture()
	for _, n := range []uint64{1, 2, 2, 1, 4, 3, 5} {
		c.frame(1, n)
	}
	c.frame(2, 6) // of a generation that it does not belong to
	if got := s.published(); len(got) != 4 || got[0] != 1 || got[1] != 2 || got[2] != 4 || got[3] != 5 {
		t.Fatalf("published %v", got)
	}
	s.set(2)
	c.frame(1, 7) // late
	if got := s.published(); got != nil {
		t.Fatalf("published %v of an old generation", got)
	}
	next := s.capture()
	s.ended(c)
	next.frame(2, 1)
	if got := s.published(); len(got) != 1 {
		t.Fatalf("published %v", got)
	}
	s.set(0)
	s.ended(next)
}

// TestAdapterFails: a capture that ends by itself, or panics, is begun again
// while it is demanded.
func TestAdapterFails(t *testing.T) {
	s := newStand(t)
	s.demand(640, 30*time.Second)
	s.capture().end <- errors.New("planted")
	s.capture().end <- nil // panics
	s.capture().frame(1, 1)
	if got := s.published(); len(got) != 1 {
		t.Fatalf("published %v", got)
	}
}

// TestPanic: an actor that panicked leaves no capture behind, and the next demand
// is heard.
func TestPanic(t *testing.T) {
	s := newStand(t)
	s.demand(640, 30*time.Second)
	c := s.capture()
	system().Root.Send(s.p.pid, Panic{Why: "planted"})
	s.ended(c)
	s.demand(640, 30*time.Second)
	s.capture()
}

// stop ends an actor and waits until it has, with everything below it.
func stop(pid *actor.PID) {
	ended := make(chan struct{})
	watcher := system().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
			ctx.Stop(pid)
		case *actor.Terminated:
			close(ended)
		}
	}))
	<-ended
	system().Root.Stop(watcher)
}
