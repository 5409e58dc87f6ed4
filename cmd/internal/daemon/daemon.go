package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"reins/actors/broker"
	"reins/actors/preview"
	"reins/actors/scope"
	"reins/persistence"
	"reins/protocol"
	"reins/protocol/nats"
	"reins/protocol/nats/embed"
	"reins/supervisors"
	"reins/targets"
	"reins/targets/page"
)

// Version is the daemon's version; the build sets it.
var Version = "0.1.0"

// StopWithin is how long a stop may take.
const StopWithin = 5 * time.Second

// Config is what a daemon is started with. Zero values take the defaults.
type Config struct {
	StateDir    string // store, credentials, address
	ProfileDir  string // browser profiles; default StateDir/profiles, for root where others can reach it
	DownloadDir string // finished downloads; default StateDir/downloads
	Browser     string // path of a Chromium; empty: found
	Listen      string // NATS address; default 127.0.0.1:0
	Headful     bool   // show the browser on the display
	Flags       []string
	MaxPages    int // open resources; default protocol.MaxPages
	Writes      int // budget of a user turn; 0: default, −1: none
	URLs        int // budget of a user turn and Page; 0: default, −1: none
	Barrier     time.Duration
	Policy      supervisors.Policy
	Limits      scope.Limits
	Logger      *slog.Logger
	Seams       protocol.Seams
}

func (c Config) withDefaults() (Config, error) {
	if c.StateDir == "" {
		return c, errors.New("no state directory named")
	}
	if c.ProfileDir == "" {
		c.ProfileDir = profilesFor(c.StateDir)
	}
	if c.DownloadDir == "" {
		c.DownloadDir = filepath.Join(c.StateDir, "downloads")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Seams.At == nil && c.Seams.Planted == nil {
		c.Seams = faults()
	}
	return c, nil
}

// Daemon is a running daemon.
type Daemon struct {
	Config
	store    *persistence.Store
	server   *embed.Server
	closeBus func()
	service  *nats.Service
	host     *page.Host
	tree     *supervisors.Tree
	broker   *broker.Broker
	previews *preview.Previews
	dir      *broker.Directory
	running  sync.WaitGroup
	stop     chan struct{}
	once     sync.Once
}

// Run starts a daemon, and stops it when ctx ends.
func Run(ctx context.Context, c Config, ready func(*Daemon)) error {
	d, err := Start(ctx, c)
	if err != nil {
		return err
	}
	if ready != nil {
		ready(d)
	}
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), StopWithin)
	defer cancel()
	return d.Close(end)
}

// Start brings a daemon up: it returns when everything retained is listed and
// requests are served. The retained targets come back in the background.
func Start(ctx context.Context, c Config) (started *Daemon, err error) {
	c, err = c.withDefaults()
	if err != nil {
		return nil, err
	}
	// Others may pass through to a profile below it; store and credentials are closed to them.
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return nil, fmt.Errorf("the state directory cannot be made; name another with --state: %w", err)
	}
	d := &Daemon{Config: c, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			end, cancel := context.WithTimeout(context.Background(), StopWithin)
			defer cancel()
			_ = d.Close(end)
		}
	}()
	d.store, err = persistence.Open(filepath.Join(c.StateDir, "store"), persistence.Options{Logger: c.Logger, Seams: c.Seams})
	if err != nil {
		return nil, err
	}
	d.server, err = embed.Start(embed.Options{StateDir: c.StateDir, Listen: c.Listen, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	bus, err := d.server.Connect()
	if err != nil {
		return nil, err
	}
	d.closeBus = bus.Close
	publisher := nats.NewPublisher(bus, c.Logger)
	d.wire(publisher)
	if err := d.tree.Begin(ctx); err != nil {
		return nil, err
	}
	d.service, err = nats.Serve(bus, d.planted(d.broker), nats.ServeOptions{Logger: c.Logger, Publisher: publisher})
	if err != nil {
		return nil, err
	}
	if err := d.server.Announce(); err != nil {
		return nil, err
	}
	d.running.Go(d.sweep)
	d.retryUncertain()
	return d, nil
}

// wire makes the actors and what they work with.
func (d *Daemon) wire(publisher protocol.Publisher) {
	c := d.Config
	st := &store{Store: d.store, log: c.Logger, running: &d.running}
	system := supervisors.NewSystem(c.Logger)
	d.dir = broker.NewDirectory(publisher.Record)
	d.host = page.New(page.Options{Browser: c.Browser, ProfileDir: filepath.Join(c.ProfileDir, profile), DownloadDir: c.DownloadDir, Headful: c.Headful,
		ExtraFlags: c.Flags, Cookies: cookies{d.store}, Logger: c.Logger, Seams: c.Seams, BarrierDeadline: c.Barrier})
	d.previews = preview.Spawn(preview.Config{System: system, Publish: publisher.Frame, Logger: c.Logger, Running: &d.running,
		Find: func(id protocol.ResourceID) (targets.Incarnation, protocol.Generation) {
			e, _ := d.dir.Get(id)
			return e.Incarnation, e.Gen
		}})
	d.broker = broker.New(broker.Config{System: system, Directory: d.dir, Store: st, Previews: d.previews, HashKey: d.store.HashKey(),
		Version: Version, Logger: c.Logger, MaxPages: c.MaxPages, Writes: c.Writes, URLs: c.URLs, Running: &d.running,
		HostState: func() string { return d.tree.HostState() }, Late: func() uint64 { return d.tree.Late.Load() }})
	d.tree = supervisors.NewTree(system, &supervisors.Shared{Host: d.host, Store: st, Scopes: st, Directory: d.dir, Publisher: publisher,
		Seams: c.Seams, Policy: c.Policy, Limits: c.Limits, Logger: c.Logger, Running: &d.running}, d.retained)
	d.broker.SetTree(d.tree)
}

// retained reads what has to come back. A resource that was never opened is
// closed: nobody was told of it.
func (d *Daemon) retained() ([]supervisors.Retained, error) {
	all, err := d.store.Descriptors()
	if err != nil {
		return nil, err
	}
	out := make([]supervisors.Retained, 0, len(all))
	for _, desc := range all {
		r := desc.Record
		r.HeldBy, r.Dialog = "", nil
		switch r.Lifecycle {
		case protocol.LifecycleClosed:
		case protocol.LifecycleOpening:
			if _, live := d.dir.Get(r.ID); !live {
				r.Lifecycle = protocol.LifecycleClosed
				r.Message = "It was being opened when the daemon ended, and was never used."
				if err := d.store.PutDescriptor(persistence.Descriptor{Record: r, EpochReserve: desc.EpochReserve}); err != nil {
					return nil, err
				}
			}
		default:
			r.Lifecycle, r.Preview = protocol.LifecycleRestoring, false
		}
		out = append(out, supervisors.Retained{Record: r, Reserve: desc.EpochReserve})
	}
	return out, nil
}

// sweep does what has to be done now and then.
func (d *Daemon) sweep() {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-d.stop:
			return
		case now := <-t.C:
			d.broker.Sweep(now)
			if n%12 == 0 {
				d.store.Sweep(now)
			}
		}
	}
}

// URL is the address clients connect to.
func (d *Daemon) URL() string { return d.server.URL() }

// Recovered is how many operations the last end of a daemon had left without an outcome.
func (d *Daemon) Recovered() []protocol.Receipt { return d.store.Recovered() }

// Close stops the daemon: new work is refused, what runs is cut off, the browser
// ends politely, the store is closed last.
func (d *Daemon) Close(ctx context.Context) error {
	var errs []error
	d.once.Do(func() {
		close(d.stop)
		if d.broker != nil {
			d.broker.Shut()
		}
		if d.previews != nil {
			d.previews.Stop()
		}
		if d.tree != nil {
			errs = append(errs, d.tree.Stop(ctx))
		}
		if d.service != nil {
			errs = append(errs, d.service.Close(ctx))
		}
		if d.closeBus != nil {
			d.closeBus()
		}
		if d.server != nil {
			d.server.Shutdown()
		}
		if d.store != nil {
			errs = append(errs, d.store.Close())
		}
	})
	return errors.Join(errs...)
}
