package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"

	"reins/protocol"
	"reins/targets"
)

func TestADialogDuringLoadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, map[string]string{"/alert": "<title>a</title><script>alert('hello')</script>after"})
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/alert"})
	<-p.dialogSignal()
	if d := p.dialog(); d == nil || d.Type != "alert" || d.Message != "hello" {
		t.Fatalf("dialog: %+v", d)
	}
	if ev := next(t, p, targets.EventDialog); ev.Page.Dialog == nil {
		t.Errorf("the event has no dialog: %+v", ev)
	}
	if err := p.Barrier(within(t)); err != nil {
		t.Errorf("the barrier of a new tab: %v", err)
	}
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "2"), Generation: 1, URL: s.URL + "/plain"})
	if got := eval(t, q, "1+1"); got != "2" {
		t.Errorf("the other Page: %s", got)
	}
	if err := p.session().Call(within(t), cdproto.CommandPageHandleJavaScriptDialog, map[string]any{"accept": true}, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dialog is closed and the load goes on", func() bool { return p.dialog() == nil && !p.nav().loading })
	select {
	case <-p.dialogSignal():
		t.Error("the signal of the next dialog is given already")
	default:
	}
}

func TestADialogOutlivesNoFence(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/plain"})
	begin(t, p, cdproto.CommandRuntimeEvaluate, map[string]any{"expression": "confirm('sure?')"})
	<-p.dialogSignal()
	if err := p.Revoke(within(t)); err != nil {
		t.Fatal(err)
	}
	// No later session could answer it: the tab is made anew.
	q, loaded := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 2, URL: s.URL + "/plain"})
	if !loaded || q.dialog() != nil {
		t.Errorf("loaded %v, dialog %+v", loaded, q.dialog())
	}
	if err := q.Barrier(within(t)); err != nil {
		t.Error(err)
	}
}

func TestTitleAndAddressOfADocumentAreTold(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/plain"})
	next(t, p, targets.EventNavigated)
	navs := p.navigations()
	eval(t, p, "history.pushState({}, '', '/pushed?token=abcdef0123456789#x'), document.title = 'second'")
	eventually(t, "both are confirmed", func() bool {
		snap := p.Snapshot()
		return snap.Title == "second" && strings.HasPrefix(snap.URL, s.URL+"/pushed")
	})
	if ev := next(t, p, targets.EventTitle); ev.Page.Document == "" {
		t.Errorf("title: %+v", ev.Page)
	}
	if p.navigations() != navs {
		t.Error("a change within the document counts as a navigation")
	}
}

func TestPopupsLiveAndAreCounted(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, map[string]string{"/pop": "<title>p</title><script>addEventListener('load', () => fetch('/reported'))</script>"})
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/plain"})
	for i, open := range []string{"!!window.open('/pop')", "!!window.open('/pop', '_blank', 'noopener')"} {
		eval(t, p, open)
		eventually(t, open+" is counted", func() bool { return p.popupCount() == uint64(i+1) })
		eventually(t, open+" runs", func() bool { return s.count("/reported") == i+1 })
	}
	tabs := p.tab.popups
	if len(tabs) != 2 {
		t.Errorf("%d popups are known", len(tabs))
	}
	if err := p.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	b := h.browser()
	eventually(t, "the popups went with their opener", func() bool {
		var res struct {
			TargetInfos []struct{ Type, OpenerID string } `json:"targetInfos"`
		}
		if err := b.conn.Browser().Call(within(t), cdproto.CommandTargetGetTargets, nil, &res); err != nil {
			t.Fatal(err)
		}
		for _, i := range res.TargetInfos {
			if i.OpenerID == string(p.target) {
				return false
			}
		}
		return true
	})
	if _, ok := <-p.Events(); ok {
		for range p.Events() {
		}
	}
}

func TestAnIdlePageHasAFrameAtOnce(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, map[string]string{"/moving": `<title>m</title><body style="background:#fff"><div id=d style="width:200px;height:200px;background:red"></div>
		<script>let n=0;setInterval(()=>{d.style.marginLeft=(n++%100)+'px'},30)</script>`})
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 7, URL: s.URL + "/plain"})
	eventually(t, "it has loaded", func() bool { return !p.nav().loading })
	for round := range 2 { // a second viewer after the first has a frame at once as well
		frames := seeFrames(t, p, 640, 1)
		f := frames[0]
		if f.h.Resource != own(t, "1") || f.h.Generation != 7 || f.h.MediaType != "image/jpeg" || f.h.Sequence != uint64(round+1) {
			t.Errorf("header: %+v", f.h)
		}
		cfg, err := jpeg.DecodeConfig(bytes.NewReader(f.data))
		if err != nil || cfg.Width != f.h.Width || cfg.Height != f.h.Height || cfg.Width > 640 || cfg.Width < 300 {
			t.Errorf("picture: %dx%d, %v; header %+v", cfg.Width, cfg.Height, err, f.h)
		}
		if w := f.h.Transform.A * float64(f.h.Width); w < 1918 || w > 1922 {
			t.Errorf("the map takes the width to %v CSS pixels", w)
		}
	}
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "2"), Generation: 1, URL: s.URL + "/moving"})
	frames := seeFrames(t, q, 320, 4)
	for i := 1; i < len(frames); i++ {
		if frames[i].h.Sequence <= frames[i-1].h.Sequence || frames[i].h.Captured < frames[i-1].h.Captured {
			t.Errorf("frame %d is not after the one before: %+v, %+v", i, frames[i-1].h, frames[i].h)
		}
	}
}

func TestAPreviewGoesOnThroughNavigations(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, nil)
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/plain"})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	frames := make(chan protocol.FrameHeader, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- p.Frames(ctx, 320, func(h protocol.FrameHeader, _ []byte) { frames <- h })
	}()
	for _, url := range []string{"http://localhost:" + port(s.URL) + "/a", s.URL + "/b"} {
		<-frames
		navs := p.navigations()
		begin(t, p, cdproto.CommandPageNavigate, map[string]any{"url": url})
		eventually(t, "the page is at "+url, func() bool { return p.navigations() > navs && !p.nav().loading })
		for len(frames) > 0 {
			<-frames
		}
		begin(t, p, cdproto.CommandRuntimeEvaluate, map[string]any{"expression": "document.body.style.background = 'green'"})
	}
	select {
	case <-frames:
	case <-ctx.Done():
		t.Error("no frame after the navigations")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type seenFrame struct {
	h    protocol.FrameHeader
	data []byte
}

// seeFrames watches at a Page until it has seen n frames.
func seeFrames(t *testing.T, p *incarnation, width, n int) []seenFrame {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex
	var seen []seenFrame
	err := p.Frames(ctx, width, func(h protocol.FrameHeader, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, seenFrame{h, b})
		if len(seen) == n {
			cancel()
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if err != nil || len(seen) < n {
		t.Fatalf("%d frames: %v", len(seen), err)
	}
	return seen
}

func TestDownloadsArriveWholeUnderSafeNames(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, map[string]string{"/links": `<a id=a href="/file">a</a><a id=b href="/file" target=_blank>b</a>`})
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/links"})
	eventually(t, "it has loaded", func() bool { return !p.nav().loading })
	taken := map[string]bool{}
	for _, link := range []string{"a", "b"} {
		begun, cancel := h.downloads(p)
		eval(t, p, "document.getElementById('"+link+"').click()")
		var d *download
		select {
		case d = <-begun:
		case <-within(t).Done():
			t.Fatalf("link %s: no download began", link)
		}
		got, err := d.wait(within(t))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if taken[got.Path] || filepath.Dir(got.Path) != h.opts.DownloadDir || !strings.HasPrefix(filepath.Base(got.Path), "of the host") {
			t.Errorf("link %s: it is at %s", link, got.Path)
		}
		taken[got.Path] = true
		if got.Name != "of the host.txt" || got.Bytes != 5 || got.State != "completed" ||
			got.SHA256 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
			t.Errorf("link %s: %+v", link, got)
		}
		if b, err := os.ReadFile(got.Path); string(b) != "hello" {
			t.Errorf("link %s: %q, %v", link, b, err)
		}
	}
	eventually(t, "the staging directory is empty", func() bool {
		left, err := os.ReadDir(stagingDir(h.browser().opts))
		return err == nil && len(left) == 0
	})
}

func TestSafeName(t *testing.T) {
	for _, c := range [][2]string{
		{"report.pdf", "report.pdf"}, {"../../etc/passwd", "_.._etc_passwd"}, {"", "download"}, {"..", "download"},
		{"a\x00b\n.txt", "a_b_.txt"}, {`C:\x.exe`, "C__x.exe"}, {".bashrc", "bashrc"}, {"名前.txt", "名前.txt"},
	} {
		if got := safeName(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
	if got := safeName(string(bytes.Repeat([]byte("é"), 500)) + ".txt"); len(got) > maxDownloadName || filepath.Ext(got) != ".txt" {
		t.Errorf("a long name becomes %q", got)
	}
}

func TestTheCeilingOnPages(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(o *Options) { o.MaxPages = 2 })
	for i := range 2 {
		attachTo(t, h, targets.Spec{Resource: protocol.ResourceID(fmt.Sprint("pg_", i)), Generation: 1})
	}
	if _, _, err := h.attach(within(t), targets.Spec{Resource: "pg_more", Generation: 1}); !isProblem(err, protocol.ReasonTooMany) {
		t.Errorf("one more: %v", err)
	}
	// The living ones can be attached to all the same, and made anew.
	if _, loaded := attachTo(t, h, targets.Spec{Resource: "pg_0", Generation: 2}); loaded {
		t.Error("a living tab was made anew")
	}
	if _, loaded := attachTo(t, h, targets.Spec{Resource: "pg_0", Generation: 3, Fresh: true}); !loaded {
		t.Error("Fresh did not make it anew")
	}
}

func TestATabThatGoesAndASessionThatIsLostAreTold(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	b := h.browser()
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "goes"), Generation: 1})
	if err := b.conn.Browser().Call(within(t), cdproto.CommandTargetCloseTarget, map[string]any{"targetId": p.target}, nil); err != nil {
		t.Fatal(err)
	}
	next(t, p, targets.EventGone)
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "lost"), Generation: 1})
	if err := b.conn.Browser().Call(within(t), cdproto.CommandTargetDetachFromTarget, map[string]any{"sessionId": q.sess.ID()}, nil); err != nil {
		t.Fatal(err)
	}
	next(t, q, targets.EventCrashed)
}

func TestAPanicInAPagesWorkEndsThatPageOnly(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "panics"), Generation: 1})
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "stays"), Generation: 1})
	p.spawn("test", func() { panic("boom") })
	if ev := next(t, p, targets.EventCrashed); ev.Reason != protocol.ReasonInternal {
		t.Errorf("crashed: %+v", ev)
	}
	if q.isOver() || eval(t, q, "1+1") != "2" {
		t.Error("the other Page felt it")
	}
}

func isGone(err error) bool { return errors.Is(err, errFrameGone) }

func TestFramesOfOtherSitesHaveOurWorld(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, map[string]string{
		"/top":   `<title>top</title><iframe name=near src="/near"></iframe><iframe name=far src="http://localhost:PORT/far"></iframe>`,
		"/far":   `far<iframe name=back src="http://127.0.0.1:PORT/near"></iframe>`,
		"/near":  `near`,
		"/other": `other`,
	})
	check := func(p *incarnation) {
		t.Helper()
		eventually(t, "all frames are known and answer", func() bool {
			var names []string
			for _, f := range p.frames() {
				var body string
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				err := f.call(ctx, "(tail) => typeof __reins + ' ' + document.body.textContent.trim() + tail", &body, "!")
				cancel()
				if err != nil {
					return false
				}
				names = append(names, f.name+":"+body)
			}
			return fmt.Sprint(names) == "[:object ! near:object near! far:object far! back:object near!]"
		})
	}
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 1, URL: s.URL + "/top"})
	check(p)
	if p.frames()[2].sess == p.frames()[0].sess {
		t.Error("the frame of another site is in the same process, so that the test shows nothing")
	}
	if got := eval(t, p, "typeof __reins + typeof "+bindingName); got != "undefinedundefined" {
		t.Errorf("the page sees our world: %s", got)
	}
	// A new incarnation finds them all in a tab that lives already.
	q, loaded := attachTo(t, h, targets.Spec{Resource: own(t, "1"), Generation: 2})
	if loaded {
		t.Fatal("made anew")
	}
	check(q)
	if err := q.Barrier(within(t)); err != nil {
		t.Errorf("barrier: %v", err)
	}
	// A frame that moves to another process and back.
	old := q.frames()[1]
	for _, to := range []string{"http://localhost:" + port(s.URL) + "/other", s.URL + "/other"} {
		eval(t, q, "document.querySelector('[name=near]').src='"+to+"'")
		eventually(t, "the frame is at "+to, func() bool {
			fs := q.frames()
			var body string
			return len(fs) == 4 && fs[1].url == to && fs[1].call(within(t), "() => document.body.textContent", &body) == nil && body == "other"
		})
	}
	if err := old.call(within(t), "() => 1", nil); err == nil || !isGone(err) {
		t.Errorf("a document that is gone: %v", err)
	}
	reports, cancel := q.subscribeBinding()
	defer cancel()
	far := q.frames()[2]
	if err := far.call(within(t), "() => "+bindingName+"('{\"x\":1}')", nil); err != nil {
		t.Fatal(err)
	}
	for r := range reports {
		if r.payload == `{"x":1}` {
			if r.frame != far.id {
				t.Errorf("the report comes from %q, want %q", r.frame, far.id)
			}
			break
		}
	}
}
