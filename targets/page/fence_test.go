package page

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"

	"reins/protocol"
	"reins/targets"
	"reins/targets/page/internal/cdp"
)

// busyPages count what arrives in them and can be blocked.
var busyPages = map[string]string{
	"/busy": `<title>busy</title><body style="margin:0"><input id=i style="position:absolute;left:400px;top:0">
		<button style="position:absolute;left:0;top:0;width:300px;height:300px">x</button>
		<iframe src="http://localhost:PORT/inner" style="position:absolute;left:0;top:320px;width:300px;height:300px;border:0"></iframe>` + busyScript,
	"/inner": `<body style="margin:0"><button style="width:300px;height:300px">y</button>` + busyScript,
}

const busyScript = `<script>
	window.seen = []; window.at = 0;
	for (const k of ['mousemove', 'mousedown', 'mouseup', 'click', 'keydown', 'keyup', 'beforeinput'])
		addEventListener(k, e => { seen.push(k + '@' + e.target.nodeName); at = Date.now(); }, true);
	// Without load on the machine, so that many pages can be blocked at once.
	window.block = time => setTimeout(() => {
		const x = new XMLHttpRequest(); x.open('GET', '/wait?for=' + time, false); x.send();
	}, 0);
	window.spin = ms => setTimeout(() => { const t = performance.now(); while (performance.now() - t < ms); }, 0);
</script>`

// lateInput is a kind of input that a fence may find half-way.
type lateInput struct {
	name string
	give []command
	sign string // of its arrival
	deep bool   // it goes to the frame of another site, which is what blocks
	spin bool   // the page computes instead of waiting
}

func mouseCommand(typ string, x, y float64, button string) command {
	p := map[string]any{"type": typ, "x": x, "y": y, "button": button}
	if typ != "mouseMoved" {
		p["clickCount"] = 1
	}
	return command{cdproto.CommandInputDispatchMouseEvent, p}
}

var lateInputs = []lateInput{
	{name: "move", give: []command{mouseCommand("mouseMoved", 50, 50, "none")}, sign: "mousemove"},
	{name: "move over a page that computes", give: []command{mouseCommand("mouseMoved", 50, 50, "none")}, sign: "mousemove", spin: true},
	{name: "click", give: []command{mouseCommand("mousePressed", 50, 50, "left"), mouseCommand("mouseReleased", 50, 50, "left")}, sign: "click"},
	{name: "key", give: []command{
		{cdproto.CommandInputDispatchKeyEvent, map[string]any{"type": "keyDown", "key": "a", "text": "a", "code": "KeyA"}},
		{cdproto.CommandInputDispatchKeyEvent, map[string]any{"type": "keyUp", "key": "a", "code": "KeyA"}},
	}, sign: "keyup"},
	{name: "move in the frame of another site", give: []command{mouseCommand("mouseMoved", 50, 400, "none")}, sign: "mousemove", deep: true},
	{name: "click in the frame of another site", give: []command{
		mouseCommand("mousePressed", 50, 400, "left"), mouseCommand("mouseReleased", 50, 400, "left"),
	}, sign: "click", deep: true},
}

// busy attaches to a page and waits until it and its frame are there.
func busy(t *testing.T, h *Host, s *site, r protocol.ResourceID) *incarnation {
	p, _, err := h.attach(within(t), targets.Spec{Resource: r, Generation: 1, URL: s.URL + "/busy"})
	if err != nil {
		t.Errorf("attach: %v", err)
		return nil
	}
	eventually(t, "the page and its frame have loaded", func() bool {
		fs := p.frames()
		return len(fs) == 2 && fs[0].sess != fs[1].sess && !p.nav().loading &&
			evalIn(t, fs[0], "typeof block") == "function" && evalIn(t, fs[1], "typeof block") == "function"
	})
	return p
}

// cross gives input to a blocked page, fences it and lets the next generation
// in. It returns what the page saw in the end, and how long after the new
// generation was let in the last of it came; at most 0: in time.
func cross(t *testing.T, h *Host, in lateInput, r protocol.ResourceID) (seen string, late time.Duration) {
	s := newSite(t, busyPages)
	p := busy(t, h, s, r)
	if p == nil {
		return "", 0
	}
	defer func() { _ = h.Destroy(within(t), r) }()
	f := p.frames()[0]
	if in.deep {
		f = p.frames()[1]
	}
	evalIn(t, f, "seen.length = 0")
	if in.spin {
		evalIn(t, f, "spin(700)")
	} else {
		evalIn(t, f, "block('2s')")
		eventually(t, "the page is blocked", func() bool { return s.waiting() > 0 })
	}
	for _, c := range in.give {
		begin(t, p, c.method, c.params)
	}
	if err := p.Revoke(within(t)); err != nil {
		t.Error(err)
	}
	if _, err := p.sess.Start(within(t), in.give[0].method, in.give[0].params); !cdp.NotWritten(err) {
		t.Errorf("%s: the old session still writes: %v", in.name, err)
	}
	q, loaded, err := h.attach(within(t), targets.Spec{Resource: r, Generation: 2, URL: s.URL + "/busy"})
	if err != nil || loaded {
		t.Errorf("%s: attached again: loaded %v, %v", in.name, loaded, err)
		return "", 0
	}
	if err := q.Barrier(within(t)); err != nil {
		t.Errorf("%s: barrier: %v", in.name, err)
		return "", 0
	}
	let := time.Now()
	<-q.ready
	eventually(t, "the frames are known", func() bool { return len(q.frames()) == 2 })
	g := q.frames()[0]
	if in.deep {
		g = q.frames()[1]
	}
	seen = evalIn(t, g, "new Promise(done => setTimeout(() => done(seen.join() + '|' + at), 250))")
	var at int64
	seen, last, _ := strings.Cut(seen, "|")
	if _, err := fmt.Sscan(last, &at); err != nil {
		t.Errorf("%s: when the last came is %q", in.name, last)
	}
	if at == 0 {
		return seen, 0
	}
	return seen, time.UnixMilli(at).Sub(let.Truncate(time.Millisecond))
}

func TestNothingOfTheOldGenerationArrivesAfterTheBarrier(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(o *Options) { o.BarrierDeadline = patience })
	const tries = 2
	room := make(chan struct{}, 8) // as many pages at once as two cores can open
	var mu sync.Mutex
	arrived := map[string]int{}
	try := func(in lateInput, i int) {
		seen, late := cross(t, h, in, protocol.ResourceID(fmt.Sprint("pg_", in.name, i)))
		if late > 0 {
			t.Errorf("%s: [%s] came %v after the new generation was let in", in.name, seen, late)
		}
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(seen, in.sign) {
			arrived[in.name]++
		}
	}
	// Those that wait can be blocked all at once; those that compute have a core each.
	var wg sync.WaitGroup
	for _, in := range lateInputs {
		for i := range tries {
			if !in.spin {
				wg.Add(1)
				go func() {
					defer wg.Done()
					room <- struct{}{}
					defer func() { <-room }()
					try(in, i)
				}()
			}
		}
	}
	wg.Wait()
	for _, in := range lateInputs {
		for i := range tries {
			if in.spin {
				try(in, i)
			}
		}
		// Input that never arrives shows nothing of a fence.
		if arrived[in.name] == 0 {
			t.Errorf("%s: it never arrived at all", in.name)
		}
	}
}

func TestASkippedBarrierIsSeen(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(o *Options) {
		o.Seams.Planted = map[protocol.Bug]bool{protocol.BugSkipBarrier: true}
	})
	if seen, late := cross(t, h, lateInputs[0], "pg_1"); late <= 0 {
		t.Errorf("with the barrier skipped [%s] came in time, so that the test of the barrier has no teeth", seen)
	}
}

func TestARevocationThatIsSkippedIsSeen(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(o *Options) {
		o.Seams.Planted = map[protocol.Bug]bool{protocol.BugFenceWithoutRevoke: true}
	})
	s := newSite(t, busyPages)
	p := busy(t, h, s, "pg_1")
	if err := p.Revoke(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.sess.Start(within(t), lateInputs[0].give[0].method, lateInputs[0].give[0].params); err != nil {
		t.Errorf("with the revocation skipped the old session cannot write, so that the test of it has no teeth: %v", err)
	}
}

func TestAPageThatNeverAnswersIsDestroyedAlone(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(o *Options) { o.BarrierDeadline = defaultBarrier / 3 })
	s := newSite(t, busyPages)
	p := busy(t, h, s, "pg_1")
	other := busy(t, h, s, "pg_2")
	begin(t, p, cdproto.CommandRuntimeEvaluate, map[string]any{"expression": "for(;;);"})
	begin(t, p, lateInputs[2].give[0].method, lateInputs[2].give[0].params)
	if err := p.Revoke(within(t)); err != nil {
		t.Fatal(err)
	}
	q, loaded, err := h.attach(within(t), targets.Spec{Resource: "pg_1", Generation: 2, URL: s.URL + "/busy"})
	if err != nil || loaded {
		t.Fatalf("attached again: loaded %v, %v", loaded, err)
	}
	if err := q.Barrier(within(t)); !isProblem(err, protocol.ReasonPageUnresponsive) {
		t.Fatalf("the barrier of a page that never answers: %v", err)
	}
	if err := h.Destroy(within(t), "pg_1"); err != nil {
		t.Fatal(err)
	}
	if !q.isOver() || q.tab.alive() {
		t.Error("it is not gone")
	}
	if other.isOver() || evalIn(t, other.frames()[0], "1+1") != "2" {
		t.Error("the other Page felt it")
	}
	again, loaded := attachTo(t, h, targets.Spec{Resource: "pg_1", Generation: 3, URL: s.URL + "/busy"})
	if !loaded || again.Barrier(within(t)) != nil {
		t.Errorf("made anew: loaded %v", loaded)
	}
	if s.count("/busy") != 3 {
		t.Errorf("%d loads", s.count("/busy"))
	}
}

func TestHeldInputIsLetGoOffThePage(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	s := newSite(t, busyPages)
	p := busy(t, h, s, own(t, "holding"))
	evalIn(t, p.frames()[0], "seen.length = 0")
	p.held.press("left", 50, 50)
	k := heldKey{key: "Shift", code: "ShiftLeft", vk: 16}
	p.held.keyDown(k)
	for _, c := range []command{
		lateInputs[2].give[0],
		{cdproto.CommandInputDispatchKeyEvent, map[string]any{"type": "keyDown", "key": k.key, "code": k.code}},
	} {
		if err := p.sess.Call(within(t), c.method, c.params, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Revoke(within(t)); err != nil {
		t.Fatal(err)
	}
	q, _ := attachTo(t, h, targets.Spec{Resource: own(t, "holding"), Generation: 2})
	if err := q.Barrier(within(t)); err != nil {
		t.Fatal(err)
	}
	seen := evalIn(t, q.frames()[0], "seen.join()")
	if !strings.Contains(seen, "mouseup") || !strings.Contains(seen, "keyup") || strings.Contains(seen, "click@BUTTON") {
		t.Errorf("the page saw [%s]", seen)
	}
	if still := q.held.snapshot(); len(still.buttons)+len(still.keys) != 0 {
		t.Errorf("still held: %+v", still)
	}
}

const draggable = `<title>drag</title><body style="margin:0">
	<div id=src draggable=true style="position:absolute;left:0;top:0;width:100px;height:100px;background:red">s</div>
	<button id=dst style="position:absolute;left:300px;top:0;width:200px;height:200px">d</button><script>
	window.seen = [];
	for (const k of ['mousedown', 'mouseup', 'click', 'dragstart', 'dragend', 'dragover', 'drop'])
		addEventListener(k, e => { seen.push(k + '@' + (e.target.id || e.target.nodeName)); if (k == 'dragover') e.preventDefault(); }, true);
	window.block = time => setTimeout(() => {
		const x = new XMLHttpRequest(); x.open('GET', '/wait?for=' + time, false); x.send();
	}, 0);
	</script>`

// A page that is left in a drag takes no pointer input any more.
func TestADragDoesNotOutliveItsFence(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	for _, blocked := range []bool{false, true} {
		s := newSite(t, map[string]string{"/drag": draggable})
		r := own(t, fmt.Sprint(blocked))
		p, _ := attachTo(t, h, targets.Spec{Resource: r, Generation: 1, URL: s.URL + "/drag"})
		eventually(t, "it has loaded", func() bool { return !p.nav().loading && eval(t, p, "typeof block") == "function" })
		if err := p.sess.Call(within(t), cdproto.CommandInputSetInterceptDrags, map[string]any{"enabled": true}, nil); err != nil {
			t.Fatal(err)
		}
		intercepted, cancel := p.sess.Subscribe(cdproto.EventInputDragIntercepted)
		if blocked {
			eval(t, p, "block('500ms')")
			eventually(t, "it is blocked", func() bool { return s.waiting() > 0 })
		}
		p.held.press("left", 50, 50)
		begin(t, p, cdproto.CommandInputDispatchMouseEvent, map[string]any{"type": "mousePressed", "x": 50, "y": 50, "button": "left", "clickCount": 1})
		for _, x := range []int{70, 90} {
			begin(t, p, cdproto.CommandInputDispatchMouseEvent, map[string]any{"type": "mouseMoved", "x": x, "y": 50, "button": "left", "buttons": 1})
		}
		if !blocked {
			<-intercepted
		}
		if err := p.Revoke(within(t)); err != nil {
			t.Fatal(err)
		}
		cancel()
		q, loaded := attachTo(t, h, targets.Spec{Resource: r, Generation: 2})
		if err := q.Barrier(within(t)); err != nil || loaded {
			t.Fatalf("blocked %v: barrier: %v, loaded %v", blocked, err, loaded)
		}
		seen := eval(t, q, "seen.join()")
		if strings.Contains(seen, "drop") || strings.Contains(seen, "click") || !strings.Contains(seen, "mousedown@src") {
			t.Errorf("blocked %v: the page saw [%s]", blocked, seen)
		}
		eval(t, q, "seen.length = 0")
		for _, typ := range []string{"mousePressed", "mouseReleased"} {
			c := mouseCommand(typ, 350, 50, "left")
			if err := q.sess.Call(within(t), c.method, c.params, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := eval(t, q, "seen.join()"); got != "mousedown@dst,mouseup@dst,click@dst" {
			t.Errorf("blocked %v: after the fence a click comes as [%s]; before it the page saw [%s]", blocked, got, seen)
		}
	}
}

func TestRevokeAndCloseAreIdempotent(t *testing.T) {
	t.Parallel()
	h := sharedHost(t)
	p, _ := attachTo(t, h, targets.Spec{Resource: own(t, "twice"), Generation: 1})
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := p.Revoke(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	for range 2 {
		if err := p.Close(within(t)); err != nil {
			t.Error(err)
		}
		if err := h.Destroy(within(t), own(t, "twice")); err != nil {
			t.Error(err)
		}
	}
	if _, ok := <-p.Events(); ok {
		for range p.Events() {
		}
	}
}
