package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

const (
	// AliveEvery is how often a client says that it still lives.
	AliveEvery = 10 * time.Second
	// byeWithin bounds the farewell of a client that closes.
	byeWithin = 500 * time.Millisecond
)

// ClientOptions say where the daemon is and who asks. Either StateDir, or URL
// and Credentials.
type ClientOptions struct {
	// StateDir is the daemon's: its address and the owner's credentials are read
	// from there, anew for each connection.
	StateDir string
	// URL is where a bus is that has no state directory here.
	URL string
	// Credentials go with URL.
	Credentials *Credentials
	// Owner is who the requests belong to; by default DefaultOwner.
	Owner protocol.OwnerID
	// Name tells people which program this is.
	Name string
	// UserTurn is the message or task of a person that the requests belong to,
	// 1–128 bytes of printable ASCII; by default the connection.
	UserTurn string
	// Logger is told what no call returns; by default nobody is.
	Logger *slog.Logger
}

// Client speaks to a daemon as one owner. Its methods may be used at once by
// many. Each returns a *[protocol.Problem] as its error, never anything else.
//
// When the connection breaks, calls that wait return at once, and the next call
// connects anew; nothing is sent a second time (I3).
type Client struct {
	ClientOptions
	base    context.Context // ends at Close
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	link    *link    // the current one; it may be broken
	attempt *attempt // under way to make one
	closed  bool
}

// attempt is one try to connect, which everybody who needs it waits for.
type attempt struct {
	done    chan struct{} // closed when link or problem is set
	link    *link
	problem *protocol.Problem
}

// Dial connects to a daemon and says hello. The error is a *[protocol.Problem]:
// daemon_unreachable where none answers, not_allowed where it does not know the
// credentials, version_mismatch where it speaks another version.
func Dial(ctx context.Context, o ClientOptions) (*Client, error) {
	if o.Owner == "" {
		o.Owner = DefaultOwner
		if o.Credentials != nil {
			o.Owner = o.Credentials.Owner
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if p := o.check(); p != nil {
		return nil, p
	}
	c := &Client{ClientOptions: o}
	c.base, c.stop = context.WithCancel(context.Background())
	if _, p := c.ready(ctx); p != nil {
		c.Close()
		return nil, p
	}
	c.running.Go(c.stayAlive)
	return c, nil
}

func (o ClientOptions) check() *protocol.Problem {
	switch {
	case (o.StateDir == "") == (o.URL == ""):
		return problemOf(protocol.ReasonBadRequest, "Name either the daemon's state directory or the URL of its bus.")
	case o.URL != "" && o.Credentials == nil:
		return problemOf(protocol.ReasonBadRequest, "A URL needs the owner's credentials with it.")
	case o.UserTurn != "" && protocol.CheckID("user turn", o.UserTurn) != nil:
		return problemOf(protocol.ReasonBadRequest, "The user turn must be 1 to %d bytes of printable ASCII without spaces.", protocol.MaxIDBytes)
	case o.Credentials != nil && o.Credentials.Owner != o.Owner:
		return problemOf(protocol.ReasonBadRequest, "The credentials belong to another owner.")
	}
	if o.URL != "" {
		if err := checkBusURL(o.URL); err != nil {
			return problemOf(protocol.ReasonBadRequest, "%v.", err)
		}
	}
	if err := CheckOwner(string(o.Owner)); err != nil {
		return problemOf(protocol.ReasonBadRequest, "%v.", err)
	}
	return nil
}

// Close says farewell and ends the connection. Calls that wait return.
func (c *Client) Close() {
	c.mu.Lock()
	l, first := c.link, !c.closed
	c.closed = true
	c.mu.Unlock()
	if first && l != nil && l.alive() {
		ctx, cancel := context.WithTimeout(context.Background(), byeWithin)
		defer cancel()
		if _, _, err := l.ask(ctx, withOwner(SubjectBye, c.Owner), c.header(l, time.Now().Add(byeWithin)), nil); err != nil {
			c.Logger.Debug("the daemon did not hear the farewell", "error", err)
		}
	}
	c.stop()
	c.running.Wait()
	if l := c.current(); l != nil {
		l.nc.Close()
		<-l.gone
	}
}

func (c *Client) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// ready returns a connection that has said hello. It makes one where there is none.
func (c *Client) ready(ctx context.Context) (*link, *protocol.Problem) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, problemOf(protocol.ReasonDaemonUnreachable, "This client was closed. Nothing was sent.")
	}
	if l := c.link; l != nil && l.connection != "" && l.alive() {
		c.mu.Unlock()
		return l, nil
	}
	a := c.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		c.attempt = a
		c.running.Go(func() { c.connect(a) })
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.link, a.problem
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// connect makes one attempt. It does not end with the caller who began it, as
// others may wait for it too.
func (c *Client) connect(a *attempt) {
	ctx, cancel := context.WithTimeout(c.base, connectWithin)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			c.Logger.Error("connecting panicked", "panic", r, "stack", string(debug.Stack()))
			a.link, a.problem = nil, problemOf(protocol.ReasonInternal, "")
		}
		c.mu.Lock()
		if a.link != nil {
			c.link = a.link
		}
		c.attempt = nil
		c.mu.Unlock()
		close(a.done)
	}()
	if l := c.current(); l != nil && l.alive() { // only its nonce is no longer known
		a.link, a.problem = l.hello(ctx, c.Owner, c.Name)
		return
	}
	w, p := c.dial(ctx)
	if p == nil {
		if a.link, p = w.hello(ctx, c.Owner, c.Name); p != nil {
			w.nc.Close()
			<-w.gone
		}
	}
	a.problem = p
}

// dial finds out where the daemon is and connects.
func (c *Client) dial(ctx context.Context) (*wire, *protocol.Problem) {
	url, cred, p := c.where()
	if p != nil {
		return nil, p
	}
	w, err := dialWire(ctx, url, c.Name, cred, c.async)
	if err == nil {
		return w, nil
	}
	if errors.Is(err, gonats.ErrAuthorization) {
		return nil, problemOf(protocol.ReasonNotAllowed, "The daemon at %s does not accept the credentials of %s. Make new ones with: reins owner add %s", url, c.Owner, c.Owner)
	}
	if c.StateDir != "" {
		return nil, problemOf(protocol.ReasonDaemonUnreachable, "No daemon answers at %s, where the one of %s was last (%v). Start one with: reins serve --state %s",
			url, c.StateDir, err, c.StateDir)
	}
	return nil, problemOf(protocol.ReasonDaemonUnreachable, "No daemon answers at %s (%v). Check the address, and that it runs.", url, err)
}

func (c *Client) where() (url string, cred Credentials, p *protocol.Problem) {
	if c.URL != "" {
		return c.URL, *c.Credentials, nil
	}
	if _, err := os.Stat(c.StateDir); err != nil {
		return "", cred, problemOf(protocol.ReasonDaemonUnreachable, "There is no state directory %s. Start a daemon with: reins serve --state %s", c.StateDir, c.StateDir)
	}
	a, err := ReadAddress(c.StateDir)
	switch {
	case errors.Is(err, ErrNoAddress):
		return "", cred, problemOf(protocol.ReasonDaemonUnreachable, "No daemon serves %s. Start one with: reins serve --state %s", c.StateDir, c.StateDir)
	case err != nil:
		return "", cred, problemOf(protocol.ReasonDaemonUnreachable, "%v.", err)
	case a.Protocol != protocol.Version:
		return "", cred, problemOf(protocol.ReasonVersion, "The daemon of %s speaks version %d of the protocol, this client %d. Use the client that belongs to it.",
			c.StateDir, a.Protocol, protocol.Version)
	}
	file := filepath.Join(c.StateDir, credentialsFolder, string(c.Owner)+".json")
	cred, err = ReadCredentials(file)
	if err == nil && cred.Owner != c.Owner {
		err = fmt.Errorf("%s holds the credentials of another owner", file)
	}
	if err != nil {
		return "", cred, problemOf(protocol.ReasonNotAllowed, "%v.", err)
	}
	return a.URL, cred, nil
}

// async is told what the bus says outside of any call, such as a forbidden subject.
func (c *Client) async(_ *gonats.Conn, sub *gonats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.Logger.Warn("the bus complains", "error", err, "subscription", subject)
}

// stayAlive keeps the owner's leases while this client lives. It also connects
// anew where the connection broke.
func (c *Client) stayAlive() {
	t := time.NewTicker(AliveEvery)
	defer t.Stop()
	for {
		select {
		case <-c.base.Done():
			return
		case <-t.C:
		}
		c.sayAlive()
	}
}

func (c *Client) sayAlive() {
	defer func() {
		if r := recover(); r != nil {
			c.Logger.Error("saying alive panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(c.base, connectWithin)
	defer cancel()
	l, p := c.ready(ctx)
	if p != nil {
		c.Logger.Debug("the daemon cannot be told that this client lives", "problem", p)
		return
	}
	m, _, err := l.ask(ctx, withOwner(SubjectAlive, c.Owner), c.header(l, time.Now().Add(connectWithin)), nil)
	if err != nil {
		c.Logger.Debug("the daemon did not hear that this client lives", "error", err)
		return
	}
	if now, ok := clockOf(m.Header); ok { // clocks drift, and are set
		c.replace(l, &link{wire: l.wire, connection: l.connection, skew: time.Until(now).Truncate(time.Millisecond)})
	}
}

// replace puts a newer state of a link in its place, unless it is gone.
func (c *Client) replace(old, with *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == old {
		c.link = with
	}
}

// forget drops a nonce that the daemon does not know: the next call says hello.
func (c *Client) forget(connection string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.link; l != nil && l.connection == connection {
		c.link = &link{wire: l.wire, skew: l.skew}
	}
}

// header is what every request but hello carries. expires is by our own clock.
func (c *Client) header(l *link, expires time.Time) gonats.Header {
	return sealEnvelope(l.connection, c.UserTurn, expires.Add(l.skew))
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }
