package broker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"reins/actors/scope"
	"reins/protocol"
)

// ConnectionSilence is how long a connection may say nothing before it counts as lost.
const ConnectionSilence = 35 * time.Second

// connections knows the nonces that were given out, and which owners are here.
type connections struct {
	mu      sync.Mutex
	by      map[string]*connection // guarded by mu
	changed func(owner protocol.OwnerID, here bool)
}

type connection struct {
	owner protocol.OwnerID
	seen  time.Time
}

// open registers a connection and returns its nonce.
func (c *connections) open(owner protocol.OwnerID, now time.Time) string {
	var b [16]byte
	rand.Read(b[:])
	nonce := hex.EncodeToString(b[:])
	c.mu.Lock()
	if c.by == nil {
		c.by = map[string]*connection{}
	}
	c.by[nonce] = &connection{owner: owner, seen: now}
	c.mu.Unlock()
	c.changed(owner, true)
	return nonce
}

// known reports whether the nonce was given to this owner and still lives.
func (c *connections) known(from protocol.Caller) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.by[from.Connection]
	if k == nil || k.owner != from.Owner {
		return false
	}
	k.seen = time.Now()
	return true
}

func (c *connections) close(from protocol.Caller) {
	c.mu.Lock()
	k := c.by[from.Connection]
	if k == nil || k.owner != from.Owner {
		c.mu.Unlock()
		return
	}
	delete(c.by, from.Connection)
	here := c.here(from.Owner)
	c.mu.Unlock()
	if !here {
		c.changed(from.Owner, false)
	}
}

// here reports whether an owner has a connection; mu is held.
func (c *connections) here(owner protocol.OwnerID) bool {
	for _, k := range c.by {
		if k.owner == owner {
			return true
		}
	}
	return false
}

// sweep drops connections that have been silent for too long.
func (c *connections) sweep(now time.Time) {
	c.mu.Lock()
	var lost []protocol.OwnerID
	for nonce, k := range c.by {
		if now.Sub(k.seen) > ConnectionSilence {
			delete(c.by, nonce)
			if !c.here(k.owner) {
				lost = append(lost, k.owner)
			}
		}
	}
	c.mu.Unlock()
	for _, o := range lost {
		c.changed(o, false)
	}
}

// Hello implements protocol.Handler.
func (b *Broker) Hello(_ context.Context, owner protocol.OwnerID, h protocol.Hello) protocol.HelloReply {
	r := protocol.HelloReply{Version: protocol.Version, Owner: owner, Daemon: b.Version}
	if h.Version != protocol.Version {
		r.Problem = &protocol.Problem{Reason: protocol.ReasonVersion, Message: protocol.ReasonVersion.Sentence()}
		return r
	}
	r.Connection = b.connections.open(owner, time.Now())
	return r
}

// Alive implements protocol.Handler.
func (b *Broker) Alive(c protocol.Caller) { b.connections.known(c) }

// Bye implements protocol.Handler.
func (b *Broker) Bye(c protocol.Caller) { b.connections.close(c) }

// Sweep ends connections that went silent and budgets of old user turns; call it now and then.
func (b *Broker) Sweep(now time.Time) {
	b.connections.sweep(now)
	b.budgets.sweep(now)
}

// ownerChanged tells every scope that an owner came or went.
func (b *Broker) ownerChanged(owner protocol.OwnerID, here bool) {
	var ev scope.Event = scope.OwnerLost{Owner: owner}
	if here {
		ev = scope.OwnerBack{Owner: owner}
	}
	for _, r := range b.Directory.Records() {
		if e, ok := b.Directory.Get(r.ID); ok && e.Scope != nil {
			b.System.Root.Send(e.Scope, ev)
		}
	}
}
