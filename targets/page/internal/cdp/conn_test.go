package cdp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/target"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// fake is the browser's side of a link.
type fake struct {
	t    *testing.T
	conn *Conn
	in   *os.File // what the link writes
	out  *os.File // what the link reads
	read *bufio.Reader
}

// message is one message as it stands on the pipe.
type message struct {
	ID        int64           `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
}

func newFake(t *testing.T) *fake {
	t.Helper()
	in, ourW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourR, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, in: in, out: out, read: bufio.NewReader(in)}
	f.conn = New(ourR, ourW, Options{Discard: func(m string) bool { return m == "Noise.event" }})
	t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
		f.conn.Close()
	})
	return f
}

// next reads the next command.
func (f *fake) next() message {
	f.t.Helper()
	_ = f.in.SetReadDeadline(time.Now().Add(patience))
	b, err := f.read.ReadBytes(0)
	if err != nil {
		f.t.Fatalf("reading a command: %v", err)
	}
	var m message
	if err := json.Unmarshal(b[:len(b)-1], &m); err != nil {
		f.t.Fatalf("a command is %q: %v", b, err)
	}
	return m
}

// none checks that no command comes, after one more of another session went through.
func (f *fake) none(s *Session) {
	f.t.Helper()
	if _, err := s.Start(context.Background(), "Probe.mark", nil); err != nil {
		f.t.Fatal(err)
	}
	if m := f.next(); m.Method != "Probe.mark" {
		f.t.Errorf("a byte was written: %+v", m)
	}
}

func (f *fake) send(format string, args ...any) {
	f.t.Helper()
	if _, err := io.WriteString(f.out, fmt.Sprintf(format, args...)+"\x00"); err != nil {
		f.t.Fatal(err)
	}
}

// session makes a session below a parent ("" is the browser).
func (f *fake) session(parent, id string) *Session {
	f.t.Helper()
	f.send(`{"sessionId":%q,"method":"Target.attachedToTarget","params":{"sessionId":%q,"targetInfo":{"targetId":"t","type":"page","title":"","url":"","attached":true,"canAccessOpener":false},"waitingForDebugger":false}}`, parent, id)
	f.until(func() bool { return f.conn.Session(target.SessionID(id)) != nil })
	return f.conn.Session(target.SessionID(id))
}

func (f *fake) until(holds func() bool) {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			f.t.Fatal("it never came to this")
		}
	}
}

type outcome struct {
	result map[string]any
	err    error
}

func call(ctx context.Context, s *Session, method string) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = s.Call(ctx, method, map[string]any{"a": 1}, &o.result)
		ch <- o
	}()
	return ch
}

type permitFunc func() error

func (p permitFunc) Use() error { return p() }

func TestACallEndsInOneOfThreeWays(t *testing.T) {
	answered := func(err error) bool {
		var e *cdproto.Error
		return errors.As(err, &e) && !NotWritten(err) && !Unanswered(err)
	}
	for name, c := range map[string]struct {
		end  func(f *fake, s *Session, m message, cancel context.CancelFunc)
		kind func(error) bool
		is   error
	}{
		"the browser refuses": {func(f *fake, _ *Session, m message, _ context.CancelFunc) {
			f.send(`{"id":%d,"sessionId":"s","error":{"code":-32000,"message":"no"}}`, m.ID)
		}, answered, nil},
		"the deadline passes": {func(_ *fake, _ *Session, _ message, cancel context.CancelFunc) { cancel() }, Unanswered, context.Canceled},
		"the page crashes": {func(f *fake, _ *Session, _ message, _ context.CancelFunc) {
			f.send(`{"sessionId":"s","method":"Inspector.targetCrashed","params":{}}`)
		}, Unanswered, ErrCrashed},
		"the session is detached": {func(f *fake, _ *Session, _ message, _ context.CancelFunc) {
			f.send(`{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}`)
		}, Unanswered, ErrDetached},
		"the link is lost": {func(f *fake, _ *Session, _ message, _ context.CancelFunc) { _ = f.out.Close() }, Unanswered, ErrDown},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			s := f.session("", "s")
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ch := call(ctx, s, "Input.press")
			m := f.next()
			if m.SessionID != "s" || m.Method != "Input.press" || string(m.Params) != `{"a":1}` {
				t.Errorf("the command is %+v", m)
			}
			c.end(f, s, m, cancel)
			o := <-ch
			if o.err == nil || !c.kind(o.err) || (c.is != nil && !errors.Is(o.err, c.is)) {
				t.Errorf("the call ended with %v", o.err)
			}
			if c.is == nil || errors.Is(c.is, context.Canceled) {
				return
			}
			// What comes after is not even written.
			if o := <-call(context.Background(), s, "Input.release"); !NotWritten(o.err) || !errors.Is(o.err, c.is) {
				t.Errorf("the call after it ended with %v", o.err)
			}
		})
	}
}

func TestAnswersFindTheirCalls(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	first, second := call(context.Background(), s, "A.a"), call(context.Background(), f.conn.Browser(), "B.b")
	for range 2 {
		m := f.next()
		f.send(`{"id":%d,"result":{"method":%q}}`, m.ID, m.Method)
	}
	if o := <-first; o.err != nil || o.result["method"] != "A.a" {
		t.Errorf("%+v", o)
	}
	if o := <-second; o.err != nil || o.result["method"] != "B.b" {
		t.Errorf("%+v", o)
	}
	// Neither rubbish nor a late answer does harm.
	f.send(`{"id":1,"result":{}}`)
	f.send(`{"id":`)
	f.send(`{"method":"Some.event","params":{"text":"\ud800"}}`)
	third := call(context.Background(), s, "C.c")
	f.send(`{"id":%d,"result":{"ok":true}}`, f.next().ID)
	if o := <-third; o.err != nil {
		t.Error(o.err)
	}
}

// I1: a command whose permit is refused writes nothing.
func TestARefusedPermitWritesNothing(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	no := errors.New("no further primitive")
	ctx := WithPermit(context.Background(), permitFunc(func() error { return no }))
	if err := s.Call(ctx, "Input.press", nil, nil); !NotWritten(err) || !errors.Is(err, no) {
		t.Errorf("refused: %v", err)
	}
	ctx = WithPermit(context.Background(), permitFunc(func() error { panic("boom") }))
	if err := s.Call(ctx, "Input.press", nil, nil); !NotWritten(err) {
		t.Errorf("panicked: %v", err)
	}
	f.none(f.conn.Browser())
	used := 0
	ctx = WithPermit(context.Background(), permitFunc(func() error { used++; return nil }))
	if _, err := s.Start(ctx, "Input.press", nil); err != nil || used != 1 || f.next().Method != "Input.press" {
		t.Errorf("granted: %v, asked %d times", err, used)
	}
}

// I1: the permit is asked while nobody else can write, so that a revocation
// waits for the command that has it.
func TestARevocationWaitsForTheWriteThatHasItsPermit(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	asked, let := make(chan struct{}), make(chan struct{})
	ctx := WithPermit(context.Background(), permitFunc(func() error {
		close(asked)
		<-let
		return nil
	}))
	var wrote atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.Start(ctx, "Input.press", nil); err == nil {
			wrote.Store(true)
		}
	}()
	<-asked
	revoked := make(chan struct{})
	go func() {
		f.conn.Revoke(s)
		close(revoked)
	}()
	f.until(s.Revoked)
	select {
	case <-revoked:
		t.Error("it did not wait")
	default:
	}
	close(let)
	<-revoked
	<-done
	select {
	case <-f.conn.Done():
		// The scheduler took longer than RevokeWait: the link was cut, which is as good.
		return
	default:
	}
	if !wrote.Load() || f.next().Method != "Input.press" {
		t.Error("the command that had its permit was not written")
	}
	if err := s.Call(context.Background(), "Input.release", nil, nil); !NotWritten(err) || !errors.Is(err, ErrRevoked) {
		t.Errorf("after it: %v", err)
	}
}

// I2, under load: what the browser reads after Revoke returned has nothing of
// the session or of those below it.
func TestNoByteIsWrittenAfterARevocation(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	child := f.session("s", "child")
	other := f.session("", "other")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			from := []*Session{s, child, other}[i%3]
			for {
				if _, err := from.Start(ctx, "Input.press", nil); err != nil {
					return
				}
			}
		}()
	}
	for range 200 {
		f.next()
	}
	marked := make(chan error, 1)
	go func() {
		f.conn.Revoke(s)
		_, err := other.Start(ctx, "Probe.mark", nil)
		marked <- err
	}()
	for f.next().Method != "Probe.mark" {
	}
	if err := <-marked; err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if m := f.next(); m.SessionID != "other" {
			t.Fatalf("after the revocation a byte of %q was written", m.SessionID)
		}
	}
	cancel()
	_ = f.in.Close()
	wg.Wait()
}

// I2, I6: a browser that does not read is cut off rather than waited for.
func TestAStuckWriteCutsTheLink(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Start(ctx, "Input.insertText", map[string]string{"text": strings.Repeat("x", 1<<20)})
		ended <- err
	}()
	if _, err := f.read.Peek(1); err != nil { // its first bytes have left, the rest cannot
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !Unanswered(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a write that does not end: %v", err)
	}
	// Another session waits its turn no longer than its own deadline.
	ctx, cancel = context.WithTimeout(context.Background(), RevokeWait)
	defer cancel()
	if err := f.conn.Browser().Call(ctx, "Browser.getVersion", nil, nil); !NotWritten(err) {
		t.Errorf("behind a write that does not end: %v", err)
	}
	f.conn.Revoke(s)
	select {
	case <-f.conn.Done():
	default:
		t.Error("the link still stands")
	}
}

// I3: a listener that hangs stalls neither the reader nor another session.
func TestASlowListenerStallsNobodyElse(t *testing.T) {
	f := newFake(t)
	slow, fast := f.session("", "slow"), f.session("", "fast")
	let := make(chan struct{})
	var handled atomic.Int64
	slow.Handle(func(*Session, Event) { <-let; handled.Add(1) }, nil)
	got := make(chan string, 4)
	fast.Handle(func(_ *Session, ev Event) { got <- ev.Method }, nil)
	for i := range 2000 {
		f.send(`{"sessionId":"slow","method":"Some.event","params":{"i":%d}}`, i)
		f.send(`{"sessionId":"slow","method":"Noise.event","params":{}}`)
	}
	f.send(`{"sessionId":"fast","method":"Fast.event","params":{}}`)
	if m := <-got; m != "Fast.event" {
		t.Errorf("got %q", m)
	}
	ch := call(context.Background(), slow, "A.a")
	f.send(`{"id":%d,"result":{}}`, f.next().ID)
	if o := <-ch; o.err != nil {
		t.Errorf("a call on the slow session: %v", o.err)
	}
	close(let)
	f.until(func() bool { return handled.Load() == 2000 })
}

func TestEventsKeepTheirOrderAndTheInlineAnswerItsPlace(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	got := make(chan string, 8)
	f.send(`{"sessionId":"s","method":"One.event","params":{}}`) // before there is a handler
	p, err := s.StartInline(context.Background(), "Page.getFrameTree", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := f.next()
	f.send(`{"sessionId":"s","method":"Two.event","params":{}}`)
	f.send(`{"id":%d,"result":{"x":1}}`, m.ID)
	f.send(`{"sessionId":"s","method":"Three.event","params":{}}`)
	s.Handle(func(_ *Session, ev Event) { got <- ev.Method }, nil)
	for _, want := range []string{"One.event", "Two.event", "Page.getFrameTree", "Three.event"} {
		if m := <-got; m != want {
			t.Errorf("got %q, want %q", m, want)
		}
	}
	var res struct{ X int }
	if err := p.Wait(context.Background(), &res); err != nil {
		t.Error(err)
	}
}

func TestScreencastFramesAreDroppedFirstAndAFloodEndsTheSession(t *testing.T) {
	c := New(io.NopCloser(strings.NewReader("")), nopCloser{io.Discard}, Options{})
	defer c.Close()
	s := newSession(c, nil, "s", nil)
	for i := range 20 {
		s.push(Event{Method: cdproto.EventPageScreencastFrame, Params: []byte(fmt.Sprint(i))})
	}
	s.push(Event{Method: "Some.event"})
	if n := len(s.queue); n != maxScreencast+1 || string(s.queue[0].Params) != "16" {
		t.Errorf("%d wait, the first is frame %s", n, s.queue[0].Params)
	}
	for range maxEvents {
		s.push(Event{Method: "Some.event"})
	}
	if !errors.Is(s.Cause(), ErrOverrun) || s.queue != nil {
		t.Errorf("after a flood: %v, %d wait", s.Cause(), len(s.queue))
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestASubscriptionDropsTheOldestAndEndsWithItsSession(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	events, cancel := s.Subscribe("Some.event")
	ended, _ := s.Subscribe("Other.event")
	for i := range maxSubscribed + 10 {
		f.send(`{"sessionId":"s","method":"Some.event","params":%d}`, i)
	}
	ch := call(context.Background(), s, "A.a") // its answer comes behind them
	f.send(`{"id":%d,"result":{}}`, f.next().ID)
	<-ch
	if first := string(<-events); first != "10" {
		t.Errorf("the first that waits is %s", first)
	}
	cancel()
	f.send(`{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}`)
	if _, ok := <-ended; ok {
		t.Error("an event after the end")
	}
	if ch, _ := s.Subscribe("Some.event"); ch != nil {
		if _, ok := <-ch; ok {
			t.Error("a subscription of a session that ended delivers")
		}
	}
}

func TestAPanicInAHandlerIsTold(t *testing.T) {
	f := newFake(t)
	s := f.session("", "s")
	told := make(chan any, 1)
	s.Handle(func(*Session, Event) { panic("boom") }, func(cause any) { told <- cause })
	f.send(`{"sessionId":"s","method":"Some.event","params":{}}`)
	if cause := fmt.Sprint(<-told); !strings.Contains(cause, "boom") {
		t.Errorf("told %s", cause)
	}
}

// I5
func TestMessageIDsStaySmall(t *testing.T) {
	f := newFake(t)
	f.conn.mu.Lock()
	f.conn.lastID = maxID - 1
	f.conn.mu.Unlock()
	for _, want := range []int64{maxID, 1} {
		if _, err := f.conn.Browser().Start(context.Background(), "A.a", nil); err != nil {
			t.Fatal(err)
		}
		if m := f.next(); m.ID != want {
			t.Errorf("id %d, want %d", m.ID, want)
		}
	}
}

// I4
func TestACallWithoutADeadlineHasOne(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	ch := call(context.Background(), f.conn.Browser(), "A.a")
	f.next()
	select {
	case o := <-ch:
		if !Unanswered(o.err) || !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", o.err)
		}
	case <-time.After(patience):
		t.Error("it never ended")
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{}}`))
	f.Add([]byte(`{"method":"Target.attachedToTarget","params":{"sessionId":"s"}}`))
	f.Add([]byte(`{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}` + "\x00" + `{"sessionId":"s","method":"Inspector.targetCrashed"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := New(io.NopCloser(strings.NewReader(string(b)+"\x00")), nopCloser{io.Discard}, Options{})
		c.Browser().Handle(func(*Session, Event) {}, nil)
		<-c.Done()
		c.Close()
	})
}
