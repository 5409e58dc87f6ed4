package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
)

type M = map[string]any

func probeLaunch(t *testing.T, extra ...string) (*Conn, func()) {
	dir, _ := os.MkdirTemp("/tmp", "zzprobe")
	os.Chmod(dir, 0o777)
	cr, pw, _ := os.Pipe()
	pr, cw, _ := os.Pipe()
	args := append([]string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + dir + "/p", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-crash-reporter",
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-gpu", "--window-size=1920,1080", "--disable-hang-monitor", "--disable-back-forward-cache", "--renderer-process-limit=1000", "--site-per-process"}, extra...)
	bin := os.Getenv("PROBE_BIN")
	if bin == "" {
		bin = "/usr/lib/chromium/chromium"
	}
	cmd := exec.Command(bin, append(args, "about:blank")...)
	cmd.ExtraFiles = []*os.File{cr, cw}
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cr.Close()
	cw.Close()
	c := New(pr, pw, Options{})
	return c, func() {
		c.Close()
		syscall.Kill(-cmd.Process.Pid, 9)
		cmd.Wait()
		os.RemoveAll(dir)
	}
}

func jc(s *Session, m string, p any) (M, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var r M
	err := s.Call(ctx, m, p, &r)
	return r, err
}
func must(r M, err error) M {
	if err != nil {
		panic(err)
	}
	return r
}

var t0 = time.Now()

func logEv(name string, skip ...string) Handler {
	return func(s *Session, ev Event) {
		for _, k := range skip {
			if strings.HasPrefix(ev.Method, k) {
				return
			}
		}
		p := string(ev.Params)
		if len(p) > 330 {
			p = p[:330]
		}
		fmt.Printf("%6d %s %s %s\n", time.Since(t0).Milliseconds(), name, ev.Method, p)
	}
}

func newPage(c *Conn, extra M) (*Session, string) {
	p := M{"url": "about:blank", "background": true}
	for k, v := range extra {
		p[k] = v
	}
	tid := must(jc(c.Browser(), "Target.createTarget", p))["targetId"].(string)
	sid := must(jc(c.Browser(), "Target.attachToTarget", M{"targetId": tid, "flatten": true}))["sessionId"].(string)
	return c.Session(target.SessionID(sid)), tid
}
func setup(s *Session, world string) {
	for _, x := range []struct {
		m string
		p any
	}{{"Page.enable", M{}}, {"Runtime.enable", M{}}, {"Network.enable", M{"maxTotalBufferSize": 1}}, {"Inspector.enable", M{}},
		{"Target.setAutoAttach", M{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": []M{{"type": "iframe"}, {"exclude": true}}}},
		{"Runtime.addBinding", M{"name": "__reins_report", "executionContextName": world}},
		{"Page.addScriptToEvaluateOnNewDocument", M{"source": "globalThis.zz=1;", "worldName": world, "runImmediately": true}},
		{"Emulation.setDeviceMetricsOverride", M{"width": 1920, "height": 1080, "deviceScaleFactor": 1, "mobile": false}},
		{"Emulation.setFocusEmulationEnabled", M{"enabled": true}},
	} {
		t := time.Now()
		_, err := jc(s, x.m, x.p)
		fmt.Printf("       setup %s %v %v\n", x.m, time.Since(t).Round(time.Millisecond), err)
	}
}
func ev(s *Session, js string) any {
	r, err := jc(s, "Runtime.evaluate", M{"expression": js, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return err
	}
	b, _ := json.Marshal(r["result"].(M)["value"])
	return string(b)
}

var _ = jsonv2.Marshal

func probeServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/html")
		switch r.URL.Path {
		case "/slow":
			time.Sleep(1500 * time.Millisecond)
			fmt.Fprint(w, "<title>slow</title>slow")
		case "/alert":
			fmt.Fprint(w, "<title>al</title><script>alert('hi')</script>done")
		case "/204":
			w.WriteHeader(204)
		case "/dl":
			w.Header().Set("content-disposition", "attachment; filename=x.txt")
			fmt.Fprint(w, "hello")
		case "/frame":
			fmt.Fprint(w, "<body style='margin:0;background:#eee'><script>window.log=[];onmousemove=()=>log.push('m');onclick=()=>log.push('c')</script>frame")
		case "/host":
			fmt.Fprintf(w, "<title>host</title><body style='margin:0'><script>window.log=[];for(const e of ['mousedown','mouseup','click'])addEventListener(e,x=>log.push(e+':'+x.target.nodeName),true)</script><button id=b style='position:absolute;left:0;top:300px;width:200px;height:100px'>x</button><iframe src='http://localhost:%s/frame' style='width:300px;height:200px;border:0'></iframe>", strings.Split(r.Host, ":")[1])
		default:
			fmt.Fprint(w, "<title>plain</title><body style='margin:0'><button id=b style='position:absolute;left:0;top:0;width:200px;height:200px'>x</button><script>window.log=[];for(const e of ['mousedown','mouseup','click','mousemove'])addEventListener(e,x=>log.push(e+':'+(x.target.nodeName||'doc')),true)</script>")
		}
	}))
}

func TestProbe(t *testing.T) {
	srv := probeServer()
	defer srv.Close()
	c, stop := probeLaunch(t)
	defer stop()
	c.Browser().Handle(logEv("B"), nil)
	fmt.Println(must(jc(c.Browser(), "Browser.getVersion", nil))["product"])
	must(jc(c.Browser(), "Target.setDiscoverTargets", M{"discover": true, "filter": []M{{"type": "page"}, {"exclude": true}}}))
	s, _ := newPage(c, nil)
	s.Handle(logEv("P", "Network.requestWillBeSentExtra", "Network.responseReceivedExtra", "Network.data", "Network.policy", "Network.loadingFin"), nil)
	setup(s, "w1")
	fmt.Println("== navigate host")
	fmt.Println(jc(s, "Page.navigate", M{"url": srv.URL + "/host"}))
	time.Sleep(800 * time.Millisecond)
	fmt.Println("== click link slow")
	fmt.Println(ev(s, "location.href='/slow';1"))
	time.Sleep(2200 * time.Millisecond)
	fmt.Println("== bad host")
	fmt.Println(ev(s, "location.href='http://127.0.0.1:1/';1"))
	time.Sleep(800 * time.Millisecond)
	fmt.Println("== nav refused")
	fmt.Println(jc(s, "Page.navigate", M{"url": "http://127.0.0.1:2/"}))
	time.Sleep(500 * time.Millisecond)
	fmt.Println("== 204")
	fmt.Println(jc(s, "Page.navigate", M{"url": srv.URL + "/204"}))
	time.Sleep(300 * time.Millisecond)
	fmt.Println("== dl")
	fmt.Println(jc(s, "Page.navigate", M{"url": srv.URL + "/dl"}))
	time.Sleep(300 * time.Millisecond)
	fmt.Println("== alert")
	fmt.Println(jc(s, "Page.navigate", M{"url": srv.URL + "/alert"}))
	time.Sleep(300 * time.Millisecond)
	fmt.Println(jc(s, "Page.handleJavaScriptDialog", M{"accept": true}))
	time.Sleep(500 * time.Millisecond)
}
