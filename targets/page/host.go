package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// CookieStore keeps the cookies of the profile over an unclean end. What it is
// given are secrets.
type CookieStore interface {
	// Load returns what was saved last and whether the end before was clean.
	Load() (cookies []byte, clean bool, err error)
	// Save keeps the cookies; it returns when they are durable.
	Save(cookies []byte) error
	// MarkClean notes whether the browser ended in order: false at its start,
	// true after a polite end.
	MarkClean(clean bool) error
}

// Options are the settings of a [Host].
type Options struct {
	// Browser is the path of the browser's own binary; empty finds one.
	Browser string
	// ProfileDir is the profile's directory. Beside it, under its name with
	// ".home", ".staging" and ".browser", lie what goes with it. Where this
	// process is root, every directory above must let others pass.
	ProfileDir string
	// DownloadDir is where finished downloads are put; empty refuses downloads.
	DownloadDir string
	// Headful shows the browser on a display; the default is headless.
	Headful bool
	// ExtraFlags are added to the browser's command line.
	ExtraFlags []string
	// UID is the ordinary user to run as where this process is root; 0 takes
	// one from 61,000 on that belongs to the profile.
	UID int
	// Cookies, if set, keeps cookies over an unclean end.
	Cookies CookieStore
	// Logger gets what happens; nil discards it.
	Logger *slog.Logger
	Seams  protocol.Seams
	// MaxPages is how many Pages may live at once; 0 takes protocol.MaxPages.
	MaxPages int
	// BarrierDeadline is how long a barrier may take; 0 takes 3 s.
	BarrierDeadline time.Duration
}

const defaultBarrier = 3 * time.Second

// Host is one browser process and its Pages. It implements targets.Host.
type Host struct {
	opts Options
	log  *slog.Logger
	life sync.Mutex // one Start or Stop at a time

	mu   sync.Mutex
	live *browserProcess // nil while down
}

var _ targets.Host = (*Host)(nil)

// New makes a host; nothing is started.
func New(opts Options) *Host {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.MaxPages == 0 {
		opts.MaxPages = protocol.MaxPages
	}
	if opts.BarrierDeadline == 0 {
		opts.BarrierDeadline = defaultBarrier
	}
	return &Host{opts: opts, log: opts.Logger}
}

// Start brings the browser up: it ends what an earlier one left behind, starts
// the process and gives back the cookies of an unclean end. down is closed when
// the browser is gone and none of its processes is left. Started again while it
// is up, it returns the same channel. Errors are *protocol.Problem with
// backend_unavailable where a person has to do something.
func (h *Host) Start(ctx context.Context) (down <-chan struct{}, err error) {
	h.life.Lock()
	defer h.life.Unlock()
	if b := h.browser(); b != nil {
		return b.down, nil
	}
	o := h.opts
	bin, err := FindBrowser(o.Browser)
	if err != nil {
		return nil, err
	}
	if err := absolute(&o); err != nil {
		return nil, err
	}
	if err := reap(ctx, o, h.log); err != nil {
		return nil, err
	}
	id := browserIdentity(o)
	if err := prepareDirs(ctx, o, id); err != nil {
		return nil, err
	}
	proc, err := launch(bin, o, id)
	if err != nil {
		return nil, err
	}
	b := h.newBrowser(proc, o)
	b.shell = isHeadlessShell(bin)
	go b.watch()
	if err := writeRecord(o, proc.pid); err != nil {
		h.log.Warn("the browser's process could not be recorded; the next start finds it by its arguments", "error", err)
	}
	if err := b.begin(ctx); err != nil {
		return nil, b.explain(errors.Join(err, b.end()))
	}
	if err := b.restoreCookies(ctx); err != nil {
		return nil, errors.Join(err, b.end())
	}
	b.spawn("poll", b.poll)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !b.forgotten { // it may have died already
		h.live = b
	}
	return b.down, nil
}

// absolute makes the directories independent of where the browser runs.
func absolute(o *Options) error {
	if o.ProfileDir == "" {
		return errors.New("the browser's profile needs a directory: name one in Options.ProfileDir")
	}
	for _, dir := range []*string{&o.ProfileDir, &o.DownloadDir} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("making %s absolute: %w", *dir, err)
		}
		*dir = abs
	}
	return nil
}

func (h *Host) newBrowser(proc *process, o Options) *browserProcess {
	b := &browserProcess{
		host: h, log: h.log, proc: proc, down: make(chan struct{}), stopPoll: make(chan struct{}), opts: o,
		slots:     map[protocol.ResourceID]*slot{},
		targets:   map[target.ID]*pageTarget{},
		downloads: map[string]*download{},
		waiting:   map[*downloadWait]bool{},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.conn = cdp.New(proc.reads, proc.writes, cdp.Options{Logger: h.log, Discard: discarded})
	return b
}

// browser is the living browser, or nil.
func (h *Host) browser() *browserProcess {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

func (h *Host) forget(b *browserProcess) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.forgotten = true
	if h.live == b {
		h.live = nil
	}
}

// Stop saves the cookies, lets the browser close itself so that its profile is
// whole, and kills it when ctx ends before that. Stopped again it returns at once.
func (h *Host) Stop(ctx context.Context) error {
	h.life.Lock()
	defer h.life.Unlock()
	b := h.browser()
	if b == nil {
		return nil
	}
	b.stopPolling()
	if err := b.syncCookies(ctx); err != nil {
		h.log.Warn("the cookies could not be saved at the end", "error", err)
	}
	polite := b.closePolitely(ctx)
	if !polite {
		h.log.Warn("the browser did not close by itself: killing it")
		if err := b.end(); err != nil {
			return err
		}
	}
	b.work.wait()
	if !polite || h.opts.Cookies == nil {
		return nil
	}
	if err := h.opts.Cookies.MarkClean(true); err != nil {
		return fmt.Errorf("noting that the browser ended in order: %w", err)
	}
	return nil
}

// closePolitely reports whether the browser exited by itself, in order.
func (b *browserProcess) closePolitely(ctx context.Context) bool {
	ask, cancel := context.WithTimeout(ctx, callMost)
	defer cancel()
	// The answer may be lost with the link: only the exit counts.
	if _, err := cdprotocol.Call(ask, b.conn.Browser(), browser.Close, cdprotocol.Empty{}); cdp.NotWritten(err) {
		return false
	}
	select {
	case <-b.down:
		return b.proc.err == nil
	case <-ctx.Done():
		return false
	}
}

// discarded names the events that nobody wants. A page may flood some of them.
func discarded(method string) bool {
	switch method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Runtime.exceptionRevoked", "Runtime.inspectRequested",
		"Page.lifecycleEvent", "Page.frameResized", "Page.windowOpen", "Page.downloadWillBegin", "Page.downloadProgress",
		"Page.frameScheduledNavigation", "Page.frameClearedScheduledNavigation", "Page.frameRequestedNavigation",
		"Page.screencastVisibilityChanged", "Page.frameSubtreeWillBeDetached":
		return true
	}
	return false
}
