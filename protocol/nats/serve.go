package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// The bounds of a [Service].
const (
	MaxRequests      = 1024 // being worked on at once; one more is refused/busy
	MaxLightRequests = 256  // hello, alive, bye, cancel, release, status: places of their own
	maxRefusals      = 1024 // waiting to be told; one more is dropped and counted
	// cutAfter is how long after the contexts of the last requests were ended they are still waited for.
	cutAfter = 500 * time.Millisecond
)

// ServeOptions are the options of [Serve].
type ServeOptions struct {
	Logger *slog.Logger
	// Publisher, if given, is closed with the service.
	Publisher *Publisher
	// Requests and LightRequests are how many are worked on at once; 0 takes
	// MaxRequests and MaxLightRequests.
	Requests, LightRequests int
}

// Counts is what a service saw since it began.
type Counts struct {
	Requests uint64 // handed to the handler
	Forged   uint64 // dropped: the reply would have gone to somebody else, or to nobody
	Late     uint64 // refused: they came after their expiry
	Busy     uint64 // refused, or not even that, because all places were taken
	Panics   uint64 // of the handler
	Lost     uint64 // answers that could not be sent
}

// Service serves a handler on the bus.
type Service struct {
	nc      *gonats.Conn
	handler protocol.Handler
	ServeOptions
	limit int64 // bytes of an answer

	base   context.Context // ends when requests are cut off
	cut    context.CancelFunc
	places struct{ all, light chan struct{} }
	subs   []*gonats.Subscription

	refusals chan refusal
	stop     chan struct{} // ends the goroutine that refuses
	refused  chan struct{} // closed when it has ended

	counts struct{ requests, forged, late, busy, panics, lost atomic.Uint64 }

	mu      sync.Mutex
	closing bool          // nothing new is taken in
	running int           // requests with a goroutine
	idle    chan struct{} // closed when closing and none runs
	once    sync.Once
	ended   error // of Close
}

// refusal is an answer that a callback of the bus left to be sent.
type refusal struct {
	reply string
	verb  *verb
	raw   []byte
	why   *protocol.Problem
}

// Serve subscribes the handler to every subject of [Subjects] that takes
// requests. nc is the daemon's own connection and stays open.
func Serve(nc *gonats.Conn, handler protocol.Handler, o ServeOptions) (*Service, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{nc: nc, handler: handler, ServeOptions: o, limit: min(nc.MaxPayload(), protocol.MaxReplyBytes) - headerRoom,
		refusals: make(chan refusal, maxRefusals), stop: make(chan struct{}), refused: make(chan struct{}), idle: make(chan struct{})}
	s.places.all = make(chan struct{}, places(o.Requests, MaxRequests))
	s.places.light = make(chan struct{}, places(o.LightRequests, MaxLightRequests))
	s.base, s.cut = context.WithCancel(context.Background())
	go s.refuseAll()
	for _, v := range verbs {
		sub, err := nc.Subscribe(withOwner(v.pattern, "*"), func(m *gonats.Msg) { s.receive(v, m) })
		if err != nil {
			s.unsubscribe()
			s.end()
			return nil, fmt.Errorf("the bus does not let the daemon serve %s: %w", v.pattern, err)
		}
		s.subs = append(s.subs, sub)
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectWithin)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		s.unsubscribe()
		s.end()
		return nil, fmt.Errorf("the bus does not take the daemon's subscriptions: %w", err)
	}
	return s, nil
}

func places(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Counts returns what the service saw since it began.
func (s *Service) Counts() Counts {
	c := &s.counts
	return Counts{Requests: c.requests.Load(), Forged: c.forged.Load(), Late: c.late.Load(), Busy: c.busy.Load(),
		Panics: c.panics.Load(), Lost: c.lost.Load()}
}

// receive takes one message from the bus. It never blocks (I5).
func (s *Service) receive(v *verb, m *gonats.Msg) {
	owner, ok := ownerOf(v.pattern, m.Subject)
	if !ok || !mayAnswer(v, owner, m.Reply) {
		if n := s.counts.forged.Add(1); n&(n-1) == 0 { // a flood of them gets few lines
			s.Logger.Warn("a request was dropped: its answer would not go to its owner", "subject", m.Subject, "reply", m.Reply, "so_far", n)
		}
		return
	}
	all := s.places.all
	if v.light {
		all = s.places.light
	}
	select {
	case all <- struct{}{}:
	default:
		s.counts.busy.Add(1)
		s.refuse(v, m, problemOf(protocol.ReasonBusy, "The daemon works on as many requests as it can. Nothing happened; wait for answers before sending more."))
		return
	}
	s.mu.Lock()
	closing := s.closing
	if !closing {
		s.running++
	}
	s.mu.Unlock()
	if closing {
		<-all
		s.refuse(v, m, problemOf(protocol.ReasonShuttingDown, ""))
		return
	}
	go func() {
		defer s.done(all)
		s.handle(v, owner, m)
	}()
}

func (s *Service) done(place chan struct{}) {
	<-place
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.closing && s.running == 0 {
		close(s.idle)
	}
}

// refuse leaves a refusal to be sent, so that the callback need not wait for the bus.
func (s *Service) refuse(v *verb, m *gonats.Msg, why *protocol.Problem) {
	select {
	case s.refusals <- refusal{m.Reply, v, m.Data, why}:
	default:
		s.counts.lost.Add(1)
	}
}

func (s *Service) refuseAll() {
	defer close(s.refused)
	tell := func(r refusal) {
		s.respond(r.reply, s.guarded(
			func() answer { return r.verb.refuse(r.raw, r.why) },
			func() answer { return brokenAny(nil) }))
	}
	for {
		select {
		case r := <-s.refusals:
			tell(r)
			continue
		case <-s.stop:
		}
		for len(s.refusals) > 0 {
			tell(<-s.refusals)
		}
		return
	}
}

// Close takes no more requests, and waits for those that run: in the first half
// of the time that ctx leaves as they are, in the second with their contexts
// ended. The error says if some still run.
func (s *Service) Close(ctx context.Context) error {
	s.once.Do(func() { s.ended = s.close(ctx) })
	return s.ended
}

func (s *Service) close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true // who comes from now on is told so, rather than left without an answer
	if s.running == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	var errs []error
	if !s.waited(ctx) {
		s.mu.Lock()
		errs = append(errs, fmt.Errorf("%d requests did not end in time and were left behind", s.running))
		s.mu.Unlock()
	}
	s.unsubscribe()
	s.end()
	if s.Publisher != nil {
		errs = append(errs, s.Publisher.Close(ctx))
	}
	if !s.nc.IsClosed() {
		if err := s.nc.FlushWithContext(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the last answers were not taken by the bus: %w", err))
		}
	}
	return errors.Join(errs...)
}

// waited waits until no request runs.
func (s *Service) waited(ctx context.Context) bool {
	defer s.cut()
	patience := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		patience = time.Until(end) / 2
	}
	half := time.NewTimer(patience)
	defer half.Stop()
	select {
	case <-s.idle:
		return true
	case <-half.C:
	case <-ctx.Done():
	}
	s.cut()
	last := time.NewTimer(cutAfter)
	defer last.Stop()
	select {
	case <-s.idle:
		return true
	case <-last.C:
		return false
	}
}

func (s *Service) unsubscribe() {
	for _, sub := range s.subs {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, gonats.ErrConnectionClosed) && !errors.Is(err, gonats.ErrBadSubscription) {
			s.Logger.Debug("a subscription could not be ended", "subject", sub.Subject, "error", err)
		}
	}
}

// end ends the goroutine that refuses, after it has told all it has.
func (s *Service) end() {
	s.cut()
	close(s.stop)
	<-s.refused
}
