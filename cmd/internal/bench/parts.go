package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"reins/persistence"
	"reins/protocol"
	"reins/targets/page"
)

// samples are durations, in the order they were taken.
type samples []time.Duration

func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	c := append(samples(nil), s...)
	sort.Slice(c, func(i, j int) bool { return c[i] < c[j] })
	return c[min(len(c)-1, int(q*float64(len(c))))]
}

func (s samples) String() string {
	return fmt.Sprintf("median %8s   p99 %8s", round(s.at(0.5)), round(s.at(0.99)))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// memory prints what the daemon needs with nothing open.
func (b *bench) memory(context.Context) error {
	pss, err := proportional(b.daemon.Process.Pid)
	if err != nil {
		return err
	}
	b.printf("\nidle memory of the daemon (no Page, browser not started): %d MiB proportional set size\n", pss>>10)
	return nil
}

// proportional is the PSS of a process in KiB.
func proportional(pid int) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		var kib int
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kib); err == nil {
			return kib, nil
		}
	}
	return 0, fmt.Errorf("no Pss of process %d", pid)
}

// clicks alternates a click by ref through reins with the same click raw.
func (b *bench) clicks(ctx context.Context) error {
	id, err := b.open(ctx, b.web.URL+"/click")
	if err != nil {
		return err
	}
	seen, err := b.look(ctx, id, map[string]any{})
	if err != nil {
		return err
	}
	o := seen.Observation
	var ref protocol.Ref
	for _, c := range o.Controls {
		if c.Role == "button" {
			ref = c.Ref
		}
	}
	tab, err := b.raw.OpenRaw(ctx, b.web.URL+"/click")
	if err != nil {
		return err
	}
	var ours, theirs, own, resolve, settle, input samples
	for i := range b.Clicks + 10 {
		began := time.Now()
		rc, err := b.do(ctx, protocol.Request{Resource: id, Generation: o.Generation, Method: protocol.MethodClick}, map[string]any{"locator": map[string]any{"ref": ref}})
		took := time.Since(began)
		if err != nil {
			return err
		}
		began = time.Now()
		if err := rawClick(ctx, tab); err != nil {
			return err
		}
		if rawTook := time.Since(began); i >= 10 { // the first ones warm up
			us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
			t := rc.Timing
			ours, theirs = append(ours, took), append(theirs, rawTook)
			resolve, settle, input = append(resolve, us(t.ResolveUS)), append(settle, us(t.SettleUS)), append(input, us(t.InputUS))
			own = append(own, took-us(t.ResolveUS)-us(t.SettleUS)-us(t.InputUS))
		}
	}
	writes, err := b.syncedWrites()
	if err != nil {
		return err
	}
	b.printf("\nclick by ref, %d times, alternating\n", b.Clicks)
	b.printf("  through reins (client, bus, queue, log, permit, page)  %s\n", ours)
	b.printf("  raw DevTools session, same waits                       %s\n", theirs)
	b.printf("  ratio of medians: %.2f\n", ratio(ours.at(0.5), theirs.at(0.5)))
	b.printf("  of it: resolve %s, input %s, settle %s (medians)\n", round(resolve.at(0.5)), round(input.at(0.5)), round(settle.at(0.5)))
	b.printf("  the rest (bus + queue + both synced writes + permit)   %s\n", own)
	b.printf("  two synced writes of the log alone                     %s\n", writes)
	b.printf("  rest − two synced writes, medians: %s (aim: at most 1 ms)\n", round(own.at(0.5)-writes.at(0.5)))
	return nil
}

// syncedWrites times admission and outcome on a store of their own, on the same disk.
func (b *bench) syncedWrites() (samples, error) {
	s, err := persistence.Open(filepath.Join(b.dir, "scratch"), persistence.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	var out samples
	for i := range b.Clicks {
		op := protocol.OperationID(fmt.Sprintf("s-%d", i))
		began := time.Now()
		if _, err := s.Admit(persistence.Admission{Owner: "bench", Operation: op, Resource: "pg_bench", Generation: 1, Method: protocol.MethodClick}); err != nil {
			return nil, err
		}
		if err := s.Finish(persistence.Ending{Owner: "bench", Receipt: protocol.Receipt{OperationID: op, Resource: "pg_bench", Generation: 1, State: protocol.StateApplied}}); err != nil {
			return nil, err
		}
		out = append(out, time.Since(began))
	}
	return out, nil
}

const rawFind = `(async () => { const b = document.getElementById('b'); b.scrollIntoView({block: 'nearest'});
 const box = () => JSON.stringify(b.getBoundingClientRect()); let last = box();
 for (;;) { await new Promise(requestAnimationFrame); const now = box(); if (now === last) break; last = now }
 window.seen ??= (addEventListener('click', e => { window.hit = e.isTrusted && e.target === b }, true), true); window.hit = false
 const r = b.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2, top: document.elementFromPoint(r.x + 5, r.y + 5) === b} })()`

const rawSettle = `(async () => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); 
 await new Promise(done => { let t = setTimeout(done, 50); new MutationObserver(() => { clearTimeout(t); t = setTimeout(done, 50) }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true}) }); return window.hit })()`

// rawClick is what a careful driver does without a log: find, wait until it is
// stable, hit-test, move, press, release, see the trusted click, wait until it is quiet.
func rawClick(ctx context.Context, tab *page.Raw) error {
	var found struct {
		Result struct {
			Value struct{ X, Y float64 } `json:"value"`
		} `json:"result"`
	}
	if err := tab.Call(ctx, "Runtime.evaluate", map[string]any{"expression": rawFind, "awaitPromise": true, "returnByValue": true}, &found); err != nil {
		return err
	}
	p := found.Result.Value
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		ev := map[string]any{"type": kind, "x": p.X, "y": p.Y}
		if kind != "mouseMoved" {
			ev["button"], ev["clickCount"] = "left", 1
		}
		if err := tab.Call(ctx, "Input.dispatchMouseEvent", ev, nil); err != nil {
			return err
		}
	}
	var hit struct {
		Result struct {
			Value bool `json:"value"`
		} `json:"result"`
	}
	if err := tab.Call(ctx, "Runtime.evaluate", map[string]any{"expression": rawSettle, "awaitPromise": true, "returnByValue": true}, &hit); err != nil {
		return err
	}
	if !hit.Result.Value {
		return fmt.Errorf("the raw click did not reach the button")
	}
	return nil
}

// observe compares an observation of a page of 1,000 controls with the full accessibility tree.
func (b *bench) observe(ctx context.Context) error {
	id, err := b.open(ctx, b.web.URL+"/controls")
	if err != nil {
		return err
	}
	tab, err := b.raw.OpenRaw(ctx, b.web.URL+"/controls")
	if err != nil {
		return err
	}
	var ours, full, theirs samples
	var size, fullSize, treeSize int
	for range 10 {
		began := time.Now()
		r, err := b.look(ctx, id, map[string]any{})
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(began))
		size = jsonSize(r.Observation)
		began = time.Now()
		if r, err = b.look(ctx, id, map[string]any{"limit": 5000}); err != nil {
			return err
		}
		full = append(full, time.Since(began))
		fullSize = jsonSize(r.Observation)
		began = time.Now()
		var tree json.RawMessage
		if err := tab.Call(ctx, "Accessibility.getFullAXTree", map[string]any{}, &tree); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(began))
		treeSize = len(tree)
	}
	b.printf("\nobserve a page of 1,000 controls, 10 times, alternating\n")
	b.printf("  reins, default budget        %s   %7d bytes\n", ours, size)
	b.printf("  reins, as much as is allowed %s   %7d bytes\n", full, fullSize)
	b.printf("  raw full accessibility tree  %s   %7d bytes\n", theirs, treeSize)
	b.printf("  ratio of medians: %.2f in time, %.3f in bytes\n", ratio(ours.at(0.5), theirs.at(0.5)), float64(size)/float64(max(treeSize, 1)))
	return nil
}

func jsonSize(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(raw)
}

// pages opens many Pages through reins and as raw tabs.
func (b *bench) pages(ctx context.Context) error {
	began := time.Now()
	for i := range b.Pages {
		if _, err := b.open(ctx, fmt.Sprintf("%s/small?i=%d", b.web.URL, i)); err != nil {
			return err
		}
		if (i+1)%10 == 0 {
			b.printf("  %d Pages open after %s\n", i+1, time.Since(began).Round(time.Millisecond))
		}
	}
	ours := time.Since(began)
	began = time.Now()
	for i := range b.Pages {
		tab, err := b.raw.OpenRaw(ctx, fmt.Sprintf("%s/small?i=%d", b.web.URL, i))
		if err != nil {
			return err
		}
		if err := tab.Call(ctx, "Runtime.evaluate", map[string]any{"awaitPromise": true,
			"expression": `new Promise(d => document.readyState === 'complete' ? d() : addEventListener('load', d))`}, nil); err != nil {
			return err
		}
	}
	theirs := time.Since(began)
	pss, err := proportional(b.daemon.Process.Pid)
	if err != nil {
		return err
	}
	b.printf("\n%d Pages opened: reins %s, raw tabs %s, ratio %.2f; the daemon then needs %d MiB\n", b.Pages,
		ours.Round(time.Millisecond), theirs.Round(time.Millisecond), ratio(ours, theirs), pss>>10)
	return nil
}
