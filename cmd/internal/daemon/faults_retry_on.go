//go:build reinsfaults

package daemon

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"reins/actors/broker"
	"reins/actors/scope"
	"reins/protocol"
)

// The planted bug retry_uncertain: what was left uncertain by the last end of
// the daemon is sent again when its target is back. The store keeps no arguments,
// so that the bug needs a memory of its own.

// rememberer keeps each request of a write in a file.
type rememberer struct {
	protocol.Handler
	dir string
}

// planted puts the memory of planted bugs before the broker.
func (d *Daemon) planted(h protocol.Handler) protocol.Handler {
	if !d.Seams.Planted[protocol.BugRetryUncertain] {
		return h
	}
	return rememberer{Handler: h, dir: d.Config.memory()}
}

func (c Config) memory() string { return filepath.Join(c.StateDir, "planted") }

// Do implements protocol.Handler.
func (m rememberer) Do(ctx context.Context, c protocol.Caller, raw []byte) protocol.Receipt {
	if r, p := protocol.DecodeRequest(raw); p == nil && os.MkdirAll(m.dir, 0o700) == nil {
		b, err := json.Marshal(remembered{Caller: c, Request: r})
		if err == nil {
			_ = os.WriteFile(filepath.Join(m.dir, string(r.OperationID)), b, 0o600)
		}
	}
	return m.Handler.Do(ctx, c, raw)
}

type remembered struct {
	Caller  protocol.Caller
	Request protocol.Request
}

// retryUncertain sends again what recovery left uncertain.
func (d *Daemon) retryUncertain() {
	if !d.Seams.Planted[protocol.BugRetryUncertain] {
		return
	}
	for _, rc := range d.Recovered() {
		if rc.State == protocol.StateUncertain {
			d.running.Go(func() { d.retry(rc) })
		}
	}
}

// retry goes round the broker, which would answer from the store.
func (d *Daemon) retry(rc protocol.Receipt) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var was remembered
	b, err := os.ReadFile(filepath.Join(d.memory(), string(rc.OperationID)))
	if err != nil || json.Unmarshal(b, &was) != nil {
		return
	}
	e, ok := d.dir.Wait(ctx, rc.Resource, func(e broker.Entry) bool { return e.Record.Lifecycle == protocol.LifecycleReady })
	if !ok {
		return
	}
	hello := d.broker.Hello(ctx, was.Caller.Owner, protocol.Hello{Version: protocol.Version, Client: "planted"})
	look, err := json.Marshal(protocol.ReadRequest{Resource: rc.Resource, Method: protocol.MethodObserve})
	if err != nil {
		return
	}
	seen := d.broker.Read(ctx, protocol.Caller{Owner: was.Caller.Owner, Connection: hello.Connection}, look)
	if seen.Observation == nil {
		return
	}
	hash := protocol.ContentHash(d.store.HashKey(), was.Request)
	r := was.Request
	r.Generation, r.Observation = seen.Observation.Generation, seen.Observation.Token
	now := time.Now()
	reply := make(chan scope.Answer, 1)
	d.broker.System.Root.Send(e.Scope, scope.Do{Reply: reply, Op: scope.Op{Key: scope.Key{Owner: was.Caller.Owner, ID: r.OperationID}, Request: r, Hash: hash,
		QueueUntil: now.Add(20 * time.Second), RunFor: 20 * time.Second}})
	select {
	case <-reply:
	case <-ctx.Done():
	}
}
