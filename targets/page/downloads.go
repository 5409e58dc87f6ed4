package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/browser"
	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"reins/protocol"
)

const (
	maxDownloads    = 16  // at once; more are cancelled
	maxDownloadName = 200 // bytes of a file's name
	maxSameName     = 10000
)

// download is a file that a Page is delivering.
type download struct {
	guid  string
	name  string // as the page suggested it
	url   string
	frame cdprotocol.FrameID

	whole  bool          // it is being copied; guarded by the browser's mu
	done   chan struct{} // closed when result and err are set
	result protocol.Download
	err    error
}

// downloadWait is someone who waits for the downloads of an incarnation.
type downloadWait struct {
	p  *incarnation
	ch chan *download
}

// allowDownloads makes the browser put files under names of its own into the
// staging directory, and tell of them.
func (b *browserProcess) allowDownloads(ctx context.Context) error {
	params := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: ptr(true)}
	if b.opts.DownloadDir != "" {
		params.Behavior, params.DownloadPath = browser.SetDownloadBehaviorBehaviorAllowAndName, stagingDir(b.opts)
	}
	_, err := cdprotocol.Call(ctx, b.conn.Browser(), browser.SetDownloadBehavior, params)
	return err
}

// downloads delivers the downloads that begin in p from now on, also in pages
// that p opened. cancel closes the channel; what has begun goes on.
func (h *Host) downloads(p *incarnation) (begun <-chan *download, cancel func()) {
	b := p.b
	w := &downloadWait{p: p, ch: make(chan *download, maxDownloads)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[w] = true
	return w.ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.waiting[w] {
			delete(b.waiting, w)
			close(w.ch)
		}
	}
}

// wait waits until the file is whole and in the download directory. When ctx
// ends before, the download goes on and its state is in_progress. A file that did
// not arrive is a *protocol.Problem with download_failed.
func (d *download) wait(ctx context.Context) (protocol.Download, error) {
	select {
	case <-d.done:
		return d.result, d.err
	case <-ctx.Done():
		return protocol.Download{Name: d.name, State: "in_progress"}, ctx.Err()
	}
}

func (b *browserProcess) downloadBegins(e browser.EventDownloadWillBegin) {
	d := &download{guid: e.GUID, name: e.SuggestedFilename, url: e.URL, frame: e.FrameID, done: make(chan struct{})}
	b.mu.Lock()
	waiters := make([]*downloadWait, 0, len(b.waiting))
	for w := range b.waiting {
		waiters = append(waiters, w)
	}
	full := len(b.downloads) >= maxDownloads
	if !full {
		b.downloads[d.guid] = d
	}
	opener := b.openerOf(target.ID(e.FrameID))
	b.mu.Unlock()
	if full {
		b.log.Warn("a download was cancelled: too many at once", "limit", maxDownloads)
		b.cancelDownload(d)
		return
	}
	for _, w := range waiters {
		if (opener != nil && opener.id == w.p.target) || w.p.hasFrame(e.FrameID) {
			b.mu.Lock()
			if b.waiting[w] {
				select {
				case w.ch <- d:
				default: // as many as it can ever hold: only one is waited for
				}
			}
			b.mu.Unlock()
		}
	}
}

func (p *incarnation) hasFrame(id cdprotocol.FrameID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.nodes[id] != nil
}

func (b *browserProcess) cancelDownload(d *download) {
	b.spawn("download", func() {
		ctx, cancel := context.WithTimeout(b.ctx, callMost)
		defer cancel()
		if _, err := cdprotocol.Call(ctx, b.conn.Browser(), browser.CancelDownload, browser.CancelDownloadParams{GUID: d.guid}); err != nil {
			b.log.Debug("cancelling a download", "error", err)
		}
	})
}

func (b *browserProcess) downloadProgress(e browser.EventDownloadProgress) {
	if e.State == browser.DownloadProgressStateInProgress {
		return
	}
	b.mu.Lock()
	d := b.downloads[e.GUID]
	if d != nil {
		d.whole = e.State == browser.DownloadProgressStateCompleted
	}
	b.mu.Unlock()
	if d == nil {
		return
	}
	if e.State != browser.DownloadProgressStateCompleted {
		b.endDownload(d, protocol.Download{Name: d.name, State: "canceled"}, downloadFailed("the file %q did not arrive whole", d.name))
		return
	}
	b.spawn("download", func() {
		got, err := collect(b.opts, d)
		b.endDownload(d, got, err)
	})
}

func (b *browserProcess) endDownload(d *download, got protocol.Download, err error) {
	b.mu.Lock()
	_, open := b.downloads[d.guid]
	delete(b.downloads, d.guid)
	b.mu.Unlock()
	if open {
		d.result, d.err = got, err
		close(d.done)
	}
}

// endDownloads ends those that the browser took with it.
func (b *browserProcess) endDownloads() {
	b.mu.Lock()
	left := make([]*download, 0, len(b.downloads))
	for _, d := range b.downloads {
		if !d.whole {
			left = append(left, d)
		}
	}
	for w := range b.waiting {
		delete(b.waiting, w)
		close(w.ch)
	}
	b.mu.Unlock()
	for _, d := range left {
		b.endDownload(d, protocol.Download{Name: d.name, State: "canceled"}, downloadFailed("the browser ended before the file %q was whole", d.name))
	}
}

func downloadFailed(format string, args ...any) error {
	return &protocol.Problem{Reason: protocol.ReasonDownloadFailed, Message: fmt.Sprintf(format, args...)}
}

// collect copies a finished download out of the staging directory, which the
// browser's user may write to, into one that it may not.
func collect(o Options, d *download) (protocol.Download, error) {
	failed := protocol.Download{Name: d.name, State: "canceled"}
	staged := filepath.Join(stagingDir(o), filepath.Base(d.guid))
	defer os.Remove(staged)
	in, err := os.OpenFile(staged, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return failed, downloadFailed("the file %q is not where the browser put it: %v", d.name, err)
	}
	defer in.Close()
	if fi, err := in.Stat(); err != nil || !fi.Mode().IsRegular() {
		return failed, downloadFailed("what the browser put in place of %q is no file", d.name)
	}
	if err := os.MkdirAll(o.DownloadDir, 0o700); err != nil {
		return failed, downloadFailed("the download directory cannot be made: %v", err)
	}
	out, err := createUnique(o.DownloadDir, safeName(d.name))
	if err != nil {
		return failed, downloadFailed("the file %q cannot be put into the download directory: %v", d.name, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), in)
	if err := errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(out.Name())
		return failed, downloadFailed("the file %q cannot be put into the download directory: %v", d.name, err)
	}
	return protocol.Download{
		Name: d.name, Path: out.Name(), Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil)), State: "completed",
	}, nil
}

// createUnique makes a new file; where the name is taken, "name (2).ext" and so on.
func createUnique(dir, name string) (*os.File, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for i := 1; i <= maxSameName; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s (%d)%s", stem, i, ext)
		}
		f, err := os.OpenFile(filepath.Join(dir, try), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("%q exists %d times", name, maxSameName)
}

// safeName turns what a page suggests into a plain file name.
func safeName(suggested string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, suggested)
	name = strings.Trim(name, ". ")
	ext := filepath.Ext(name)
	if len(ext) > maxDownloadName/4 {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	for len(stem)+len(ext) > maxDownloadName {
		_, w := utf8.DecodeLastRuneInString(stem)
		stem = stem[:len(stem)-w]
	}
	if stem == "" {
		stem = "download"
	}
	return stem + ext
}
