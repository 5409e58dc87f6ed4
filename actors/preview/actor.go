package preview

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/protocol"
	"reins/targets"
)

// Find returns a resource's current incarnation; nil for none.
type Find func(protocol.ResourceID) (targets.Incarnation, protocol.Generation)

// Config is what the preview actor works with.
type Config struct {
	System  *actor.ActorSystem
	Find    Find
	Publish func(protocol.FrameHeader, []byte)
	Logger  *slog.Logger
	Running *sync.WaitGroup
}

// Previews is the handle of the actor.
type Previews struct {
	Config
	pid *actor.PID
}

type (
	demanded struct {
		id protocol.ResourceID
		ev Demanded
	}
	ended struct {
		id  protocol.ResourceID
		gen protocol.Generation
		run uint64 // which capture, so that the end of an old one says nothing of a newer
	}
	look struct{}
	// Panic makes the actor panic in its mailbox: a fault to inject.
	Panic struct{ Why string }
)

// lookEvery is how often demanded targets are looked at for a new incarnation.
const lookEvery = 250 * time.Millisecond

// Spawn starts the actor.
func Spawn(c Config) *Previews {
	p := &Previews{Config: c}
	p.pid = c.System.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &shell{Config: c, targets: map[protocol.ResourceID]*one{}}
	}))
	return p
}

// Demand renews a viewer's demand.
func (p *Previews) Demand(viewer string, d protocol.Demand) {
	width, ttl := d.Width, time.Duration(d.TTLMS)*time.Millisecond
	if width == 0 {
		width = 640
	}
	if ttl == 0 {
		ttl = 5 * time.Second
	}
	p.System.Root.Send(p.pid, demanded{id: d.Resource, ev: Demanded{Viewer: viewer, Width: width, TTL: ttl}})
}

// Stop ends every capture.
func (p *Previews) Stop() { p.System.Root.Stop(p.pid) }

type shell struct {
	Config
	self    *actor.PID
	root    *actor.RootContext
	targets map[protocol.ResourceID]*one
	timer   *time.Timer
}

type one struct {
	State
	run    uint64
	cancel context.CancelFunc
}

// Receive implements actor.Actor.
func (a *shell) Receive(ctx actor.Context) {
	a.self, a.root = ctx.Self(), ctx.ActorSystem().Root
	switch m := ctx.Message().(type) {
	case *actor.Stopping, *actor.Restarting:
		if a.timer != nil {
			a.timer.Stop()
		}
		for _, t := range a.targets {
			t.end()
		}
	case Panic:
		panic(m.Why)
	case demanded:
		t := a.targets[m.id]
		if t == nil {
			t = &one{}
			a.targets[m.id] = t
		}
		a.refresh(m.id, t)
		a.step(m.id, t, m.ev)
		a.arm()
	case ended:
		if t := a.targets[m.id]; t != nil && t.run == m.run {
			a.step(m.id, t, Ended{Gen: m.gen})
		}
	case look:
		for id, t := range a.targets {
			a.refresh(id, t)
			a.step(id, t, Tick{})
			if t.Next().IsZero() {
				delete(a.targets, id)
			}
		}
		a.arm()
	}
}

func (a *shell) arm() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if len(a.targets) > 0 {
		self, root := a.self, a.root
		a.timer = time.AfterFunc(lookEvery, func() { root.Send(self, look{}) })
	}
}

func (a *shell) refresh(id protocol.ResourceID, t *one) {
	inc, gen := a.Find(id)
	a.step(id, t, Incarnation{Gen: gen, Alive: inc != nil})
}

func (a *shell) step(id protocol.ResourceID, t *one, ev Event) {
	c, changed := Step(&t.State, time.Now(), ev)
	if !changed {
		return
	}
	t.end()
	if c.Width == 0 {
		return
	}
	inc, gen := a.Find(id)
	if inc == nil || gen != c.Gen {
		return // the next look finds what there is
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.run++
	self, root, run := a.self, a.root, t.run
	a.Running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				a.Logger.Error("preview panicked", "resource", id, "panic", r)
			}
			cancel()
			root.Send(self, ended{id: id, gen: gen, run: run})
		}()
		var last uint64
		err := inc.Frames(ctx, c.Width, func(h protocol.FrameHeader, image []byte) {
			_, now := a.Find(id)
			if ctx.Err() != nil || now != gen || h.Generation != gen || (last != 0 && h.Sequence <= last) {
				return
			}
			last = h.Sequence
			a.Publish(h, image)
		})
		if err != nil && ctx.Err() == nil {
			a.Logger.Info("preview ended", "resource", id, "generation", gen, "error", err)
		}
	})
}

func (t *one) end() {
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
	}
}
