package nats_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"reins/protocol"
	"reins/protocol/nats"
)

// proxy is a link to the bus that can be held and cut.
type proxy struct {
	to     string
	listen net.Listener
	all    sync.WaitGroup

	mu    sync.Mutex
	free  *sync.Cond
	held  bool          // what clients send stays here
	stuck chan struct{} // closed when something stays
	conns []net.Conn
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: strings.TrimPrefix(url, "nats://"), listen: l}
	p.free = sync.NewCond(&p.mu)
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.release()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listen.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listen.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.all.Go(func() { p.carry(out, in, true) })
		p.all.Go(func() { p.carry(in, out, false) })
	}
}

func (p *proxy) carry(to, from net.Conn, upward bool) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			for upward && p.held {
				if p.stuck != nil {
					close(p.stuck)
					p.stuck = nil
				}
				p.free.Wait()
			}
			p.mu.Unlock()
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold keeps what clients send from now on. The channel is closed when there is something.
func (p *proxy) hold() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
	stuck := make(chan struct{})
	p.stuck = stuck
	return stuck
}

func (p *proxy) release() {
	p.mu.Lock()
	p.held = false
	p.free.Broadcast()
	p.mu.Unlock()
}

// cut ends every connection there is.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// TestHeldLink holds I1 and I3: a write that the link held back reaches the
// daemon after its time and is not handled; its caller was told that its answer
// is lost. The daemon is the same one all the time, so that only the expiry and
// the broken connection stand against it.
func TestHeldLink(t *testing.T) {
	w := newWorld(t)
	cred := w.owner("alice")
	p := newProxy(t, w.server.URL())
	c := w.dial(nats.ClientOptions{URL: p.url(), Credentials: &cred})
	applied(t, c, "before")
	p.hold()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, reload("held"))
	problem(t, "a write on a held link", err, protocol.ReasonAnswerLost)
	p.release()
	applied(t, c, "after")
	if n := w.service.Counts().Late; n != 1 {
		t.Errorf("%d late requests were counted, want the held one", n)
	}
	if got, want := strings.Join(w.handler.asked("do"), ","), "do alice before,do alice after"; got != want {
		t.Errorf("the handler saw %s, want %s", got, want)
	}
}

// TestCutLink holds I2 for a daemon that lives on, whose nonces stay known: a
// write whose link was cut is not sent on the next one.
func TestCutLink(t *testing.T) {
	w := newWorld(t)
	cred := w.owner("alice")
	p := newProxy(t, w.server.URL())
	c := w.dial(nats.ClientOptions{URL: p.url(), Credentials: &cred})
	for range 5 {
		applied(t, c, "before")
		stuck := p.hold()
		lost := make(chan error, 1)
		go func() {
			_, err := c.Do(limited(t), reload("lost"))
			lost <- err
		}()
		<-stuck
		p.cut()
		problem(t, "a write whose link was cut", <-lost, protocol.ReasonAnswerLost)
		p.release()
		applied(t, c, "after")
	}
	for _, s := range w.handler.asked("do") {
		if s == "do alice lost" {
			t.Fatalf("a write of a link that was cut arrived: %q", w.handler.asked("do"))
		}
	}
}
