package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reins/protocol"
)

// hostile pages by name.
var hostilePages = map[string]string{
	"spin":          `<button onclick="1">Go</button><script>setTimeout(()=>{while(true);},300)</script>`,
	"spin-load":     `<button>Go</button><script>while(true);</script>`,
	"spin-click":    `<button onclick="while(true);">Go</button>`,
	"alert":         `<button>Go</button><script>alert('now')</script>`,
	"alert-forever": `<button>Go</button><script>while(true) alert('again')</script>`,
	"alert-timer":   `<button>Go</button><script>setInterval(()=>alert('tick'),50)</script>`,
	"close-load":    `<button>Go</button><script>window.close()</script>`,
	"close-timer":   `<button>Go</button><script>setTimeout(()=>window.close(),200)</script>`,
	"close-click":   `<button onclick="window.close()">Go</button>`,
	"nav-loop":      `<button>Go</button><script>setTimeout(()=>{location.href='/x/nav-loop?'+Math.random()},20)</script>`,
	"nav-sync":      `<button>Go</button><script>location.href='/x/nav-sync?'+Math.random()</script>`,
	"push-loop":     `<button>Go</button><script>let i=0;setInterval(()=>history.pushState({},'','/x/push-loop?'+i++),1)</script>`,
	"hash-loop":     `<button>Go</button><script>let i=0;setInterval(()=>{location.hash='h'+i++},1)</script>`,
	"popups":        `<button onclick="for(let i=0;i<20;i++)window.open('/x/plain?'+i)">Go</button><script>for(let i=0;i<5;i++)window.open('/x/plain?l'+i)</script>`,
	"unload":        `<button>Go</button><script>onbeforeunload=e=>{e.preventDefault();return 'x'};onunload=()=>{const t=Date.now();while(Date.now()-t<3000);}</script>`,
	"dom-storm":     `<button>Go</button><div id=d></div><script>setInterval(()=>{d.innerHTML='';for(let i=0;i<300;i++)d.appendChild(document.createElement('button')).textContent='b'+i},1)</script>`,
	"replace":       `<button id=b>Go</button><script>setInterval(()=>{const n=b.cloneNode(true);b.replaceWith(n);window.b=n},1)</script>`,
	"override":      `<button>Go</button><script>for(const p of [Element.prototype,Document.prototype,Node.prototype,EventTarget.prototype,Array.prototype])for(const k of Object.getOwnPropertyNames(p)){try{if(typeof p[k]==='function'&&k!=='constructor')p[k]=()=>{throw new Error('gotcha')}}catch{}};JSON.stringify=()=>'{}';Promise=null;requestAnimationFrame=()=>0</script>`,
	"huge":          `<button>Go</button><script>document.write('<p>'+'word '.repeat(400000)+'</p>');for(let i=0;i<5000;i++)document.write('<button>n'+i+'</button>')</script>`,
	"deep":          `<button>Go</button><script>let e=document.body;for(let i=0;i<20000;i++)e=e.appendChild(document.createElement('div'));e.textContent='deep'</script>`,
	"frames":        `<button>Go</button><script>for(let i=0;i<100;i++){const f=document.createElement('iframe');f.src='/x/plain?f'+i;document.body.appendChild(f)}</script>`,
	"frame-self":    `<button>Go</button><iframe src="/x/frame-self?1"></iframe>`,
	"print":         `<button onclick="print()">Go</button><script>print()</script>`,
	"title":         `<title></title><button>Go</button><script>let i=0;setInterval(()=>document.title='t'.repeat(100000)+i++,1)</script>`,
	"bigtitle":      `<title></title><button>Go</button><script>document.title='T'.repeat(12000000)</script>`,
	"bigalert":      `<button onclick="alert('A'.repeat(20000000))">Go</button>`,
	"bigprompt":     `<button onclick="prompt('A','B'.repeat(9000000))">Go</button>`,
	"bigurl":        `<button>Go</button><script>history.pushState({},'','/x/plain?'+'u'.repeat(1500000))</script>`,
	"bigvalue":      `<button>Go</button><textarea id=x></textarea><select><option>o</select><script>x.value='v'.repeat(9000000);document.querySelector('option').textContent='o'.repeat(5000000);document.querySelector('button').setAttribute('aria-label','Go'.repeat(3000000))</script>`,
	"plain":         `<button>Go</button>`,
	"moving":        `<button id=b style="position:absolute">Go</button><script>let i=0;(function f(){b.style.left=(i+=7)%500+'px';requestAnimationFrame(f)})()</script>`,
	"lock":          `<button>Go</button><script>document.documentElement.requestFullscreen?.();document.body.requestPointerLock?.();navigator.geolocation?.getCurrentPosition(()=>{});Notification?.requestPermission?.();navigator.mediaDevices?.getUserMedia({video:true})</script>`,
	"debugger":      `<button onclick="debugger">Go</button><script>debugger</script>`,
	"download":      `<button onclick="for(let i=0;i<50;i++){const a=document.createElement('a');a.href='data:application/octet-stream,'+i;a.download='f'+i;a.click()}">Go</button>`,
	"crash":         `<button onclick="location='chrome://crash'">Go</button><script>setTimeout(()=>{const a=[];try{for(;;)a.push(new ArrayBuffer(1<<28))}catch(e){}},10)</script>`,
	"slow":          `slow`,
	"half":          `half`,
	"redirect":      `redirect`,
	"empty":         `empty`,
	"binary":        `binary`,
	"reset":         `reset`,
	"auth":          `auth`,
	"refresh":       `<meta http-equiv=refresh content="0"><button>Go</button>`,
	"jsurl":         `<a role=button href="javascript:while(true);">Go</a>`,
	"fileurl":       `<a role=button href="file:///etc/passwd">Go</a>`,
	"pw":            `<label>Password <input type=password></label><label>Echo <input id=e></label><button onclick="document.title=document.querySelector('input').value;e.value=document.title;document.body.append(document.title);alert(document.title)">Go</button>`,
}

func hostileSite(t *testing.T) *httptest.Server {
	s := httptest.NewServer(hostileHandler())
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func hostileHandler() http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/x/")
		body := hostilePages[name]
		switch body {
		case "slow":
			rw.Header().Set("Content-Type", "text/html")
			for i := 0; i < 600; i++ {
				if _, err := fmt.Fprintf(rw, "<button>Go %d</button>", i); err != nil {
					return
				}
				rw.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		case "half":
			rw.Header().Set("Content-Length", "100000")
			fmt.Fprint(rw, "<button>Go</button>")
			panic(http.ErrAbortHandler)
		case "redirect":
			http.Redirect(rw, r, "/x/redirect?"+fmt.Sprint(time.Now().UnixNano()), 302)
		case "empty":
			rw.WriteHeader(204)
		case "binary":
			rw.Header().Set("Content-Type", "application/octet-stream")
			rw.Write(make([]byte, 4096))
		case "reset":
			c, _, _ := rw.(http.Hijacker).Hijack()
			c.Close()
		case "auth":
			rw.Header().Set("WWW-Authenticate", "Basic realm=x")
			rw.WriteHeader(401)
			fmt.Fprint(rw, "<button>Go</button>")
		default:
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(rw, "<!doctype html><body>"+body)
		}
	}
}

func brief(rc protocol.Receipt) string {
	m := rc.Message
	if len(m) > 110 {
		m = m[:110] + "…"
	}
	return fmt.Sprintf("%s/%s/%s %q", rc.State, rc.Effect, rc.Reason, m)
}

func TestXHostilePages(t *testing.T) {
	w := newWorld(t)
	hostile := hostileSite(t)
	c := w.client("cli")
	probe := c.opened(w.web.URL + "/page/probe")
	only := os.Getenv("ATK_ONLY")
	for name := range hostilePages {
		if only != "" && !strings.Contains(","+only+",", ","+name+",") {
			continue
		}
		t.Logf("=== %s", name)
		step := func(what string, limit time.Duration, f func() string) {
			began := time.Now()
			got := f()
			took := time.Since(began)
			flag := ""
			if took > limit {
				flag = "   <<<<<< TOO SLOW"
			}
			t.Logf("   %-9s %6dms %s%s", what, took.Milliseconds(), got, flag)
		}
		var id protocol.ResourceID
		step("open", 12*time.Second, func() string {
			rc := c.send(protocol.Request{OperationID: c.id(), Method: protocol.MethodOpen, Arguments: args(t, m{"kind": "page", "url": hostile.URL + "/x/" + name}), DeadlineMS: 6000})
			id = rc.Resource
			return brief(rc)
		})
		if id == "" {
			continue
		}
		var tok protocol.Observation
		step("observe", 9*time.Second, func() string {
			r := c.readWithin(5*time.Second, id, protocol.MethodObserve, m{})
			if r.Problem != nil {
				return "problem " + string(r.Problem.Reason) + " " + r.Problem.Message
			}
			tok = *r.Observation
			return fmt.Sprintf("%d controls %d bytes", len(tok.Controls), len(show(tok)))
		})
		step("click", 12*time.Second, func() string {
			return brief(c.send(protocol.Request{OperationID: c.id(), Resource: id, Generation: max(1, c.record(id).Generation), Method: protocol.MethodClick, Arguments: args(t, button("Go")), DeadlineMS: 5000}))
		})
		step("shot", 9*time.Second, func() string {
			r := c.readWithin(5*time.Second, id, protocol.MethodScreenshot, m{})
			if r.Problem != nil {
				return "problem " + string(r.Problem.Reason) + " " + r.Problem.Message
			}
			return fmt.Sprint(len(r.ImageBytes))
		})
		step("cancel", 14*time.Second, func() string {
			op := c.id()
			done := make(chan protocol.Receipt, 1)
			go func() {
				done <- c.send(protocol.Request{OperationID: op, Resource: id, Generation: max(1, c.record(id).Generation), Method: protocol.MethodReload, DeadlineMS: 6000})
			}()
			<-time.After(150 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			rc, err := c.Cancel(ctx, op)
			return fmt.Sprint(brief(rc), " ", err, " op: ", brief(<-done))
		})
		step("restart", 40*time.Second, func() string {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			err := c.Restart(ctx, id)
			end := time.Now().Add(40 * time.Second)
			for time.Now().Before(end) {
				r := c.record(id)
				if r.Lifecycle == protocol.LifecycleReady || r.Lifecycle == protocol.LifecycleClosed || r.Lifecycle == protocol.LifecycleFailed {
					return fmt.Sprint(err, " ", r.Lifecycle, " g", r.Generation, " ", r.Reason)
				}
				<-time.After(50 * time.Millisecond)
			}
			return "never back: " + show(c.record(id))
		})
		step("probe", 5*time.Second, func() string { return brief(c.do(probe, protocol.MethodClick, button("Alpha"))) })
		step("close", 12*time.Second, func() string {
			rc := c.send(protocol.Request{OperationID: c.id(), Resource: id, Generation: max(1, c.record(id).Generation), Method: protocol.MethodClose, DeadlineMS: 10000})
			return brief(rc) + " " + string(c.record(id).Lifecycle)
		})
	}
	t.Logf("goroutines %d, browsers %d, renderers %d", runtime.NumGoroutine(), len(w.browsers()), len(w.renderers()))
}

// receipts compared with the ledger while processes are killed.
func TestXKillStorm(t *testing.T) {
	w := newWorld(t)
	counter := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ledger" {
			w.web.mu.Lock()
			w.web.ledger = append(w.web.ledger, r.URL.Query().Get("did"))
			w.web.mu.Unlock()
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, strings.Replace(fmt.Sprintf(ledgerPage, "count"), "encodeURIComponent(b.textContent)", "encodeURIComponent(n.value)", 1))
	}))
	t.Cleanup(func() { counter.CloseClientConnections(); counter.Close() })
	const n = 4
	var ids [n]protocol.ResourceID
	var cs [n]*client
	for i := range n {
		cs[i] = w.client(fmt.Sprintf("own%d", i))
		ids[i] = cs[i].opened(counter.URL + fmt.Sprintf("/count/%d", i))
	}
	counts := map[protocol.State]int{}
	var mu sync.Mutex
	state := map[string]protocol.Receipt{}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c, id := cs[i], ids[i]
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				r := c.readWithin(20*time.Second, id, protocol.MethodObserve, m{})
				if r.Problem != nil {
					continue
				}
				op := protocol.OperationID(fmt.Sprintf("c%d-%d", i, k))
				rc := c.send(protocol.Request{OperationID: op, Resource: id, Generation: r.Observation.Generation, Observation: r.Observation.Token, Method: protocol.MethodFill, Arguments: args(t, m{"locator": m{"label": "Name"}, "text": string(op)}), DeadlineMS: 8000})
				if rc.State != protocol.StateApplied {
					continue
				}
				cop := op + "-k"
				rc = c.send(protocol.Request{OperationID: cop, Resource: id, Generation: rc.Generation, Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 8000})
				mu.Lock()
				state[string(op)] = rc
				counts[rc.State]++
				mu.Unlock()
			}
		})
	}
	end := time.Now().Add(25 * time.Second)
	for k := 0; time.Now().Before(end); k++ {
		<-time.After(time.Duration(800+k*137%1500) * time.Millisecond)
		ps := w.browsers()
		if len(ps) == 0 {
			continue
		}
		p := ps[(k*7919)%len(ps)]
		cl := commandLine(p)
		kind := "browser"
		if i := strings.Index(cl, "--type="); i >= 0 {
			kind = strings.FieldsFunc(cl[i:], func(r rune) bool { return r == 0 || r == ' ' })[0]
		}
		t.Logf("kill %s", kind)
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	close(stop)
	all.Wait()
	seen := map[string]int{}
	for _, d := range w.web.did() {
		seen[d]++
	}
	for op, k := range seen {
		if k > 1 {
			t.Errorf("%s happened %d times: %s", op, k, brief(state[op]))
		}
		if rc, ok := state[op]; ok && (rc.State == protocol.StateRefused || rc.State == protocol.StateCancelled) {
			t.Errorf("%s happened but %s", op, brief(rc))
		}
	}
	for op, rc := range state {
		if rc.State == protocol.StateApplied && seen[op] == 0 {
			t.Errorf("%s applied but did not happen: %s", op, show(rc))
		}
	}
	t.Logf("%v; ledger %d", counts, len(w.web.did()))
	for i := range n {
		r := cs[i].record(ids[i])
		t.Logf("page %d: %s g%d %s %s", i, r.Lifecycle, r.Generation, r.Reason, r.Message)
	}
}

func TestXBrowserTenTimes(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/ten")
	kills := 0
	end := time.Now().Add(90 * time.Second)
	for kills < 10 && time.Now().Before(end) {
		main := 0
		for _, pid := range w.browsers() {
			if !strings.Contains(commandLine(pid), "--type=") {
				main = pid
			}
		}
		if main == 0 {
			if c.record(id).Lifecycle == protocol.LifecycleFailed {
				break
			}
			<-time.After(20 * time.Millisecond)
			continue
		}
		_ = syscall.Kill(main, syscall.SIGKILL)
		kills++
		for {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", main)); err != nil {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	t.Logf("killed %d times; %s", kills, show(c.record(id)))
	c.until(id, "failed", func(r protocol.Record) bool { return r.Lifecycle == protocol.LifecycleFailed })
	rc := c.do(id, protocol.MethodClick, button("Alpha"))
	t.Log("write on failed: ", brief(rc))
	nu := c.open(w.web.URL + "/page/new")
	t.Log("open with failed host: ", brief(nu))
	o := c.observe(id)
	t.Log("observed g", o.Generation)
	is(t, c.with(o, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
}

func TestXFrozenBrowser(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/frozen")
	other := c.opened(w.web.URL + "/page/frozen2")
	freeze := func(sig syscall.Signal) {
		for _, p := range w.browsers() {
			_ = syscall.Kill(p, sig)
		}
	}
	began := time.Now()
	done := make(chan protocol.Receipt, 2)
	freeze(syscall.SIGSTOP)
	go func() {
		done <- c.send(protocol.Request{OperationID: "fz1", Resource: id, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 4000})
	}()
	go func() {
		done <- c.send(protocol.Request{OperationID: "fz2", Resource: other, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 30000})
	}()
	<-time.After(10 * time.Second)
	t.Log(show(c.record(id)))
	freeze(syscall.SIGCONT)
	for range 2 {
		rc := <-done
		t.Log(time.Since(began).Round(time.Millisecond), rc.OperationID, brief(rc))
	}
	for _, i := range []protocol.ResourceID{id, other} {
		c.until(i, "ready", func(r protocol.Record) bool { return r.Lifecycle == protocol.LifecycleReady })
		o := c.observe(i)
		is(t, c.with(o, protocol.MethodClick, button("Beta")), protocol.StateApplied, "")
		t.Log(show(c.record(i)))
	}
	t.Log(w.web.did())
	// frozen during the click itself
	rc := make(chan protocol.Receipt, 1)
	g := c.record(id).Generation
	go func() {
		rc <- c.send(protocol.Request{OperationID: "fz3", Resource: id, Generation: g, Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 5000})
	}()
	<-time.After(15 * time.Millisecond)
	for _, p := range w.renderers() {
		_ = syscall.Kill(p, syscall.SIGSTOP)
	}
	got := <-rc
	t.Log("renderer frozen:", brief(got))
	<-time.After(2 * time.Second)
	freeze(syscall.SIGCONT)
	c.until(id, "ready", func(r protocol.Record) bool { return r.Lifecycle == protocol.LifecycleReady })
	is(t, c.with(c.observe(id), protocol.MethodClick, button("Beta")), protocol.StateApplied, "")
	t.Log(w.web.did())
}

func TestXOwnersRace(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("anna"), w.client("bert")
	id := a.opened(w.web.URL + "/page/race")
	var stop atomic.Bool
	var all sync.WaitGroup
	var applied atomic.Int64
	var mu sync.Mutex
	reasons := map[string]int{}
	for _, c := range []*client{a, b} {
		all.Go(func() {
			for !stop.Load() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				_ = c.Claim(ctx, id)
				rc := c.do(id, protocol.MethodClick, button("Alpha"))
				if rc.State == protocol.StateApplied {
					applied.Add(1)
				}
				mu.Lock()
				reasons[string(rc.State)+"/"+string(rc.Reason)]++
				mu.Unlock()
				_ = c.Release(ctx, id)
				cancel()
			}
		})
	}
	<-time.After(4 * time.Second)
	stop.Store(true)
	all.Wait()
	t.Log(reasons)
	if int(applied.Load()) != len(w.web.did()) {
		t.Errorf("applied %d, ledger %d", applied.Load(), len(w.web.did()))
	}
	// close while the other's op runs; close twice at once
	_ = a.Release(context.Background(), id)
	_ = b.Release(context.Background(), id)
	w.web.mu.Lock()
	never := make(chan struct{})
	w.web.hold["/page/hang"] = never
	w.web.mu.Unlock()
	nav := make(chan protocol.Receipt, 1)
	go func() {
		nav <- b.send(protocol.Request{OperationID: "nav", Resource: id, Generation: 1, Method: protocol.MethodNavigate, Arguments: args(t, m{"url": w.web.URL + "/page/hang"}), DeadlineMS: 10000})
	}()
	for w.web.got("/page/hang") == 0 {
		<-time.After(5 * time.Millisecond)
	}
	t.Log("close by the other:", brief(a.do(id, protocol.MethodClose, m{})))
	ctx := context.Background()
	t.Log("claim by the other:", a.Claim(ctx, id), "release by the other:", a.Release(ctx, id), "restart by the other:", a.Restart(ctx, id))
	began := time.Now()
	var cl [3]protocol.Receipt
	for i := range cl {
		all.Go(func() { cl[i] = b.do(id, protocol.MethodClose, m{}) })
	}
	all.Wait()
	t.Log("closes:", time.Since(began), brief(cl[0]), brief(cl[1]), brief(cl[2]))
	t.Log("nav:", brief(<-nav))
	close(never)
	// open closed while opening
	id2 := make(chan protocol.Receipt, 1)
	w.web.mu.Lock()
	never2 := make(chan struct{})
	w.web.hold["/page/hang2"] = never2
	w.web.mu.Unlock()
	go func() {
		id2 <- a.send(protocol.Request{OperationID: "open2", Method: protocol.MethodOpen, Arguments: args(t, m{"kind": "page", "url": w.web.URL + "/page/hang2"}), DeadlineMS: 20000})
	}()
	for w.web.got("/page/hang2") == 0 {
		<-time.After(5 * time.Millisecond)
	}
	var op protocol.Record
	rs, _ := a.Resources(ctx)
	for _, r := range rs {
		if r.Lifecycle != protocol.LifecycleClosed {
			op = r
		}
	}
	t.Log("opening: ", show(op))
	began = time.Now()
	rc := a.send(protocol.Request{OperationID: "close2", Resource: op.ID, Generation: max(1, op.Generation), Method: protocol.MethodClose, DeadlineMS: 10000})
	t.Log("close while opening:", time.Since(began), brief(rc))
	t.Log("open:", brief(<-id2))
	close(never2)
	t.Log(show(a.record(op.ID)))
	// cancel an open
	w.web.mu.Lock()
	never3 := make(chan struct{})
	w.web.hold["/page/hang3"] = never3
	w.web.mu.Unlock()
	go func() {
		id2 <- a.send(protocol.Request{OperationID: "open3", Method: protocol.MethodOpen, Arguments: args(t, m{"kind": "page", "url": w.web.URL + "/page/hang3"}), DeadlineMS: 20000})
	}()
	for w.web.got("/page/hang3") == 0 {
		<-time.After(5 * time.Millisecond)
	}
	began = time.Now()
	rc, err := a.Cancel(ctx, "open3")
	t.Log("cancel open:", time.Since(began), brief(rc), err, "; open:", brief(<-id2))
	close(never3)
	rs, _ = a.Resources(ctx)
	for _, r := range rs {
		t.Log(r.ID, r.Lifecycle, r.URL)
	}
}

func TestXManyQueued(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/q")
	w.web.mu.Lock()
	never := make(chan struct{})
	defer close(never)
	w.web.hold["/page/hang"] = never
	w.web.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		t.Log(brief(c.send(protocol.Request{OperationID: "head", Resource: id, Generation: 1, Method: protocol.MethodNavigate, Arguments: args(t, m{"url": w.web.URL + "/page/hang"}), DeadlineMS: 15000})))
	})
	for w.web.got("/page/hang") == 0 {
		<-time.After(5 * time.Millisecond)
	}
	var mu sync.Mutex
	got := map[string]int{}
	for i := range 300 {
		all.Go(func() {
			rc := c.send(protocol.Request{OperationID: protocol.OperationID(fmt.Sprintf("q%d", i)), Resource: id, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Alpha")), DeadlineMS: 60000})
			mu.Lock()
			got[string(rc.State)+"/"+string(rc.Reason)]++
			mu.Unlock()
		})
	}
	<-time.After(2 * time.Second)
	began := time.Now()
	var cs sync.WaitGroup
	for i := range 300 {
		cs.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := c.Cancel(ctx, protocol.OperationID(fmt.Sprintf("q%d", i)))
			if err != nil {
				t.Error(err)
			}
		})
	}
	cs.Wait()
	t.Log("cancelled in", time.Since(began))
	ctx := context.Background()
	rc, err := c.Cancel(ctx, "head")
	t.Log("head", brief(rc), err)
	all.Wait()
	t.Log(time.Since(began), got)
	if n := len(w.web.did()); n != 0 {
		t.Errorf("%d happened", n)
	}
	// same id from 20 goroutines, then another resource
	id2 := c.opened(w.web.URL + "/page/q2")
	g := c.record(id).Generation
	rcs := make([]protocol.Receipt, 20)
	for i := range rcs {
		all.Go(func() {
			rcs[i] = c.send(protocol.Request{OperationID: "same", Resource: id2, Generation: 1, Method: protocol.MethodClick, Arguments: args(t, button("Beta"))})
		})
	}
	all.Wait()
	for _, r := range rcs {
		if show(r) != show(rcs[0]) {
			t.Errorf("differs: %s %s", show(r), show(rcs[0]))
		}
	}
	t.Log(brief(rcs[0]), w.web.did())
	is(t, c.send(protocol.Request{OperationID: "same", Resource: id, Generation: g, Method: protocol.MethodClick, Arguments: args(t, button("Beta"))}), protocol.StateRefused, protocol.ReasonOperationIDReused)
	// cancel races: cancel at random moments of a click
	bad := 0
	before := len(w.web.did())
	res := map[string]int{}
	for i := range 40 {
		op := protocol.OperationID(fmt.Sprintf("cr%d", i))
		ch := make(chan protocol.Receipt, 1)
		gen := c.record(id2).Generation
		was := len(w.web.did())
		go func() {
			ch <- c.send(protocol.Request{OperationID: op, Resource: id2, Generation: gen, Method: protocol.MethodClick, Arguments: args(t, button("Alpha"))})
		}()
		<-time.After(time.Duration(i) * 2 * time.Millisecond)
		cr, err := c.Cancel(ctx, op)
		rc := <-ch
		if err != nil {
			t.Error(err)
		}
		is := len(w.web.did())
		k := fmt.Sprintf("%s/%s happened=%d cancel=%s/%s", rc.State, rc.Reason, is-was, cr.State, cr.Reason)
		res[k]++
		if (rc.State == protocol.StateApplied) != (is-was == 1) && rc.State != protocol.StateUncertain {
			bad++
			t.Errorf("%s: %d: %s", k, i, show(rc))
		}
		if rc.ObserveRequired || rc.State == protocol.StateUncertain || rc.State == protocol.StateFailed {
			c.observe(id2)
			// an observation's token is needed for the next write
			o := c.observe(id2)
			c.with(o, protocol.MethodScroll, m{"dy": 1})
		}
	}
	for k, n := range res {
		t.Log(n, k)
	}
	_ = before
	// deadline 1 ms
	for _, me := range []protocol.Method{protocol.MethodReload, protocol.MethodClose, protocol.MethodOpen} {
		r := protocol.Request{OperationID: c.id(), Method: me, DeadlineMS: 1}
		if me != protocol.MethodOpen {
			r.Resource, r.Generation = id2, c.record(id2).Generation
		} else {
			r.Arguments = args(t, m{"kind": "page", "url": w.web.URL + "/page/ms"})
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		began := time.Now()
		rc, err := c.Do(ctx, r)
		cancel()
		t.Log(me, time.Since(began), brief(rc), err)
	}
	rd, err := c.Read(ctx, protocol.ReadRequest{Resource: id2, Method: protocol.MethodObserve, DeadlineMS: 1})
	t.Log(show(rd.Problem), err)
	t.Log(show(c.record(id2)))
	// many observers
	var ids []protocol.ResourceID
	for i := range 6 {
		ids = append(ids, c.opened(w.web.URL+fmt.Sprintf("/page/many%d", i)))
	}
	began = time.Now()
	var fails atomic.Int64
	for i := range 120 {
		all.Go(func() {
			r := c.readWithin(20*time.Second, ids[i%6], protocol.MethodObserve, m{})
			if r.Problem != nil {
				fails.Add(1)
				t.Log(r.Problem)
			}
		})
	}
	all.Wait()
	t.Log("120 observes", time.Since(began), "failed", fails.Load())
}

func TestXZygote(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/zyg")
	for _, p := range w.browsers() {
		if strings.Contains(commandLine(p), "--type=zygote") {
			t.Log(p, syscall.Kill(p, syscall.SIGKILL))
		}
	}
	<-time.After(time.Second)
	t.Log("browsers", len(w.browsers()), "renderers", len(w.renderers()))
	rc := c.open(w.web.URL + "/page/zyg2")
	t.Log("open:", brief(rc))
	t.Log(show(c.record(id)))
	for _, p := range w.renderers() {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	<-time.After(3 * time.Second)
	t.Log(show(c.record(id)))
	r := c.readWithin(30*time.Second, id, protocol.MethodObserve, m{})
	t.Log(r.Problem, r.Observation != nil)
	t.Log(show(c.record(id)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t.Log(c.Restart(ctx, id))
	r = c.readWithin(30*time.Second, id, protocol.MethodObserve, m{})
	t.Log(r.Problem, r.Observation != nil)
	rc = c.open(w.web.URL + "/page/zyg3")
	t.Log("open:", brief(rc))
}

func TestXSpinRestore(t *testing.T) {
	w := newWorld(t)
	hostile := hostileSite(t)
	c := w.client("cli")
	plain := c.opened(w.web.URL + "/page/plain")
	var spins []protocol.ResourceID
	for range 4 {
		rc := c.send(protocol.Request{OperationID: c.id(), Method: protocol.MethodOpen, Arguments: args(t, m{"kind": "page", "url": hostile.URL + "/x/spin-load"}), DeadlineMS: 2500})
		t.Log(brief(rc))
		spins = append(spins, rc.Resource)
	}
	began := time.Now()
	if err := syscall.Kill(w.mainBrowser(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.ready(plain, 2)
	t.Log("plain back after", time.Since(began))
	for _, s := range spins {
		r := c.until(s, "settled", func(r protocol.Record) bool {
			return r.Generation > 1 && (r.Lifecycle == protocol.LifecycleReady || r.Lifecycle == protocol.LifecycleFailed)
		})
		t.Log(time.Since(began), r.Lifecycle, r.Generation, r.Reason, r.Message)
	}
	// restart all at once: a barrier each that nobody answers
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	began = time.Now()
	for _, s := range spins {
		t.Log(c.Restart(ctx, s))
	}
	t.Log(c.Restart(ctx, plain))
	c.ready(plain, 3)
	t.Log("plain back after restart", time.Since(began))
	began = time.Now()
	rc := c.open(w.web.URL + "/page/other")
	t.Log("open beside", time.Since(began), brief(rc))
}

func TestXSecretDialog(t *testing.T) {
	w := newWorld(t)
	hostile := hostileSite(t)
	c := w.client("cli")
	id := c.opened(hostile.URL + "/x/pw")
	is(t, c.do(id, protocol.MethodFill, m{"locator": m{"label": "Password"}, "text": "Sup3rSecretWord"}), protocol.StateApplied, "")
	rc := c.do(id, protocol.MethodClick, button("Go"))
	r := c.record(id)
	t.Log(show(rc), show(r))
	if strings.Contains(show(rc)+show(r), "Sup3r") {
		t.Error("leak")
	}
}
