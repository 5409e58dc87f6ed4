package nats

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

const (
	// connectWithin is how long connecting and saying hello may take together.
	connectWithin = 5 * time.Second
	// pingEvery and pingsOut find a connection that is open and dead.
	pingEvery = 10 * time.Second
	pingsOut  = 2
)

// wire is one connection to the bus, used until it breaks and never again: it
// does not reconnect, so that nothing it holds can be sent later (I2). It has its
// own reply subscription, because a request has to know whether it was sent.
type wire struct {
	nc    *gonats.Conn
	inbox string        // of this wire; a token is added for each request
	gone  chan struct{} // closed when the connection is

	mu      sync.Mutex
	waiting map[string]chan *gonats.Msg // by token; each has room for one
}

// contextDialer ends dialling and the handshake when its context ends.
type contextDialer struct {
	ctx    context.Context
	mu     sync.Mutex
	detach func() bool
}

// Dial implements [gonats.CustomDialer].
func (d *contextDialer) Dial(network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.detach = context.AfterFunc(d.ctx, func() { _ = conn.Close() }) // what reads from it says so
	return conn, nil
}

// connected lets the connection outlive the context.
func (d *contextDialer) connected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.detach == nil || d.detach()
}

// dialWire connects to a bus. ctx has a deadline.
func dialWire(ctx context.Context, url, name string, c Credentials, async gonats.ErrHandler) (*wire, error) {
	w := &wire{gone: make(chan struct{}), waiting: map[string]chan *gonats.Msg{}}
	within := connectWithin
	if end, ok := ctx.Deadline(); ok {
		within = max(min(within, time.Until(end)), time.Millisecond)
	}
	d := &contextDialer{ctx: ctx}
	nc, err := gonats.Connect(url,
		gonats.Name(name), gonats.UserInfo(c.User, c.Password), gonats.CustomInboxPrefix(InboxPrefix(c.Owner)),
		gonats.NoReconnect(), gonats.ReconnectBufSize(-1), gonats.Timeout(within), gonats.SetCustomDialer(d),
		gonats.PingInterval(pingEvery), gonats.MaxPingsOutstanding(pingsOut), gonats.ErrorHandler(async),
		gonats.ClosedHandler(func(*gonats.Conn) { close(w.gone) }))
	if err != nil {
		return nil, err
	}
	if !d.connected() {
		nc.Close()
		return nil, context.Cause(ctx)
	}
	w.nc, w.inbox = nc, nc.NewInbox()
	sub, err := nc.Subscribe(w.inbox+".*", w.deliver)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1) // bounded by the requests that wait
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("the inbox cannot be opened: %w", err)
	}
	return w, nil
}

func (w *wire) deliver(m *gonats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	w.mu.Lock()
	to := w.waiting[token]
	delete(w.waiting, token)
	w.mu.Unlock()
	if to != nil {
		to <- m // it has room for one, and is taken out of waiting by the first
	}
}

// alive reports whether the wire can still be used.
func (w *wire) alive() bool {
	select {
	case <-w.gone:
		return false
	default:
		return !w.nc.IsClosed()
	}
}

// sent says how far a request came.
type sent int

const (
	notSent   sent = iota // certainly not: it could not have reached anybody
	unheard               // the bus had nobody to give it to
	maybeSent             // it was given to the bus and no answer came
	answered
)

// ask sends one request, once, and waits for its answer until ctx ends. The
// error says why there is none.
func (w *wire) ask(ctx context.Context, subject string, h gonats.Header, body []byte) (*gonats.Msg, sent, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, notSent, err
	}
	var random [12]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[:])
	reply := make(chan *gonats.Msg, 1)
	w.mu.Lock()
	w.waiting[token] = reply
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiting, token)
		w.mu.Unlock()
	}()
	err := w.nc.PublishMsg(&gonats.Msg{Subject: subject, Reply: w.inbox + "." + token, Header: h, Data: body})
	switch {
	case err == nil:
	case neverWritten(err):
		return nil, notSent, err
	default:
		return nil, maybeSent, err // a write that failed may have failed behind the message
	}
	select {
	case m := <-reply:
		return heard(m)
	case <-ctx.Done():
		return nil, maybeSent, context.Cause(ctx)
	case <-w.gone:
		select { // the answer may have come just before the end
		case m := <-reply:
			return heard(m)
		default:
			return nil, maybeSent, gonats.ErrDisconnected
		}
	}
}

// heard tells an answer from the server's word that nobody is there to answer.
func heard(m *gonats.Msg) (*gonats.Msg, sent, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nil, unheard, gonats.ErrNoResponders
	}
	return m, answered, nil
}

// neverWritten lists the errors that nats.go returns before it writes anything.
// Of a connection that does not reconnect nothing is kept for later either.
func neverWritten(err error) bool {
	for _, e := range []error{gonats.ErrConnectionClosed, gonats.ErrMaxPayload, gonats.ErrReconnectBufExceeded, gonats.ErrConnectionDraining,
		gonats.ErrInvalidConnection, gonats.ErrBadSubject, gonats.ErrHeadersNotSupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// link is a wire that has said hello.
type link struct {
	*wire
	connection string
	skew       time.Duration // what the daemon's clock is ahead of ours
}

// hello opens a connection with the daemon.
func (w *wire) hello(ctx context.Context, owner protocol.OwnerID, client string) (*link, *protocol.Problem) {
	body, err := marshal(protocol.Hello{Version: protocol.Version, Client: client})
	if err != nil {
		return nil, problemOf(protocol.ReasonBadRequest, "The client's name cannot be sent: %v.", err)
	}
	m, how, err := w.ask(ctx, withOwner(SubjectHello, owner), nil, body)
	switch how {
	case notSent, maybeSent:
		return nil, problemOf(protocol.ReasonDaemonUnreachable, "The daemon did not answer to hello (%v). Nothing happened; is it stopping, or stopped by a debugger?", err)
	case unheard:
		return nil, problemOf(protocol.ReasonDaemonUnreachable, "The bus is there and no daemon serves on it: it is starting or stopping. Nothing happened; try again.")
	}
	r, _, err := decodeAnswer[protocol.HelloReply](m.Header, m.Data)
	switch {
	case err != nil:
		return nil, problemOf(protocol.ReasonVersion, "The daemon's hello cannot be read. Use the client that belongs to it.")
	case r.Problem != nil:
		return nil, r.Problem
	case r.Version != protocol.Version:
		return nil, problemOf(protocol.ReasonVersion, "The daemon speaks version %d of the protocol, this client %d. Use the client that belongs to it.", r.Version, protocol.Version)
	case r.Connection == "" || protocol.CheckID("connection", r.Connection) != nil:
		return nil, problemOf(protocol.ReasonVersion, "The daemon's hello names no connection. Use the client that belongs to it.")
	}
	l := &link{wire: w, connection: r.Connection}
	if now, ok := clockOf(m.Header); ok {
		l.skew = time.Until(now).Truncate(time.Millisecond)
	}
	return l, nil
}
