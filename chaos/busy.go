package chaos

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"reins/protocol"
)

// Busy is a page that stands still in the middle of a gesture, so that input
// which was written before a fence has its effect long after.
type Busy struct {
	Operation protocol.OperationID // whose gesture it is
	Probe     protocol.OperationID // a button beside it
	Method    protocol.Method      // click, drag or type
	// Trigger and Nth: the event of the gesture after which it stands still.
	Trigger string
	Nth     int
	// Moment is when it stands still.
	Moment Moment
	// For is how long.
	For time.Duration
	// Spin: it computes instead of waiting for the ledger.
	Spin bool
	// Cross: the gesture happens in a frame of another site.
	Cross bool
}

// Moment is when a busy page stands still.
type Moment string

// The moments, all of one event.
const (
	BeforeIt Moment = "before" // in its handler, before that does anything
	InIt     Moment = "in"     // in its handler, when that has done what it does
	AfterIt  Moment = "after"  // when it was answered, so that what comes next is not
)

// Frame is the name of the frame in which the gesture of a busy page happens;
// empty for the page itself.
func (b Busy) Frame() string {
	if b.Cross {
		return "inner"
	}
	return ""
}

// From and To are the names of the ends of a drag.
func (b Busy) From() string { return string(b.Operation) + " from" }

// To is the name of a drag's end.
func (b Busy) To() string { return string(b.Operation) + " to" }

const busyPage = `<!doctype html><html lang=en><title>{{.Name}}</title><link rel=icon href="data:,">
<style>body{margin:0}.at{position:absolute;width:200px;height:80px}</style>{{template "report" .}}
<button class=at style="left:500px;top:0" id=probe>{{.Busy.Probe}}</button>
<script>probe.onclick = e => report({{.Busy.Probe}}, '', e.isTrusted)</script>
{{if .Hide}}<button class=at style="left:750px;top:0" id=hide>{{.Hide}}</button>
<script>hide.onclick = e => { report({{.Hide}}, '', e.isTrusted); window.open('/front/' + page, '_blank') }</script>{{end}}
{{if .Busy.Cross}}<iframe name=inner src="http://localhost:{{.Port}}/inner/{{.Name}}" style="position:absolute;left:0;top:200px;width:480px;height:240px;border:0"></iframe>
{{else}}{{template "gesture" .}}{{end}}`

const innerPage = `<!doctype html><html lang=en><title>inner</title><link rel=icon href="data:,">
<style>body{margin:0}.at{position:absolute;width:200px;height:80px}</style>{{template "report" .}}{{template "gesture" .}}`

// gesture reports each event beside the other buttons, numbered, and stands still
// at one of them. A pointer move to where the pointer is already comes from the
// browser itself. What comes off the page is how a fence lets go what is held.
const gesture = `{{with .Busy}}
{{if eq .Method "drag"}}<div class=at role=img aria-label="{{.From}}" style="left:0;top:0;background:#ccc;user-select:none"></div>
<div class=at role=img aria-label="{{.To}}" style="left:250px;top:120px;background:#eee;user-select:none"></div>
{{else if eq .Method "type"}}<input class=at aria-label="{{.Operation}}" autocomplete=off>
{{else}}<button class=at>{{.Operation}}</button>{{end}}
<script>
let n = 0, triggers = 0, last = '';
function still() {
	const x = new XMLHttpRequest();
	x.open('POST', '/block/' + page + '?for=' + ({{.Spin}} ? 0 : {{.For.Milliseconds}}), false);
	x.send();
	if ({{.Spin}}) { const t = performance.now(); while (performance.now() - t < {{.For.Milliseconds}}); }
}
const soon = new MessageChannel(); // timers of a hidden page run once a second
soon.port1.onmessage = still;
for (const kind of ['mousemove', 'mousedown', 'mouseup', 'click', 'keydown', 'keyup', 'input'])
	addEventListener(kind, e => {
		if (e.target.id === 'probe' || e.target.id === 'hide') return;
		const at = e.clientX + ' ' + e.clientY;
		if (kind === 'mousemove' && at === last) return;
		if (kind.startsWith('mouse')) last = at;
		const off = e instanceof MouseEvent && (e.clientX < 0 || e.clientY < 0);
		const now = kind === {{.Trigger}} && ++triggers === {{.Nth}};
		if (now && {{.Moment}} === 'before') still();
		report({{.Operation}}, (off ? 'off ' : '') + kind + '#' + ++n, e.isTrusted);
		if (now && {{.Moment}} === 'in') still();
		if (now && {{.Moment}} === 'after') soon.port2.postMessage(0);
	}, true);
</script>{{end}}`

// BusyPage sets up a busy page and returns its URL. hide: it has a button that
// opens another tab in front of it.
func (l *Ledger) BusyPage(name string, b Busy, hide bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages[name] = &sheet{busy: &b, hide: hide}
	return "http://" + l.address + "/page/" + name
}

// block is asked by a page that stands still from now on.
func (l *Ledger) block(r *http.Request, page string) {
	most, err := time.ParseDuration(r.URL.Query().Get("for") + "ms")
	if err != nil {
		return
	}
	l.hit("block " + page)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// Still waits until a busy page stands still.
func (l *Ledger) Still(ctx context.Context, page string) error {
	if err := l.await(ctx, func() bool { return l.hits["block "+page] > 0 }); err != nil {
		return fmt.Errorf("the page %s did not come to stand still: %w", page, err)
	}
	return nil
}
