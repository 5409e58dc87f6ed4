package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"reins/protocol"
	"reins/protocol/nats"
	"reins/targets/page"
)

// Options say what to measure with.
type Options struct {
	Binary  string // the reins binary to run as the daemon
	Browser string // empty: found
	Clicks  int    // 0: 200
	Pages   int    // 0: 50
	Out     io.Writer
}

// bench is one run: a daemon of its own process, and a raw browser beside it.
type bench struct {
	Options
	web    *httptest.Server
	dir    string
	daemon *exec.Cmd
	client *nats.Client
	raw    *page.Host
	n      int
}

// Run measures everything and prints a table.
func Run(ctx context.Context, o Options) (err error) {
	if o.Clicks == 0 {
		o.Clicks = 200
	}
	if o.Pages == 0 {
		o.Pages = 50
	}
	b := &bench{Options: o}
	defer func() { err = joinEnd(err, b.end()) }()
	if err := b.begin(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{b.memory, b.clicks, b.observe, b.pages} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func joinEnd(err, end error) error {
	if err != nil {
		return err
	}
	return end
}

func (b *bench) printf(format string, a ...any) { _, _ = fmt.Fprintf(b.Out, format, a...) }

func (b *bench) begin(ctx context.Context) error {
	b.web = httptest.NewServer(http.HandlerFunc(serve))
	dir, err := os.MkdirTemp("", "reins-bench-")
	if err != nil {
		return err
	}
	b.dir = dir
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	state := filepath.Join(dir, "state")
	b.printf("starting a daemon and a raw browser beside it …\n")
	b.daemon = exec.Command(b.Binary, "serve", "--state", state, "--no-budget", "--browser", b.Browser)
	b.daemon.Stderr = os.Stderr
	b.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.daemon.Start(); err != nil {
		return err
	}
	for b.client == nil {
		c, err := nats.Dial(ctx, nats.ClientOptions{StateDir: state, Owner: "cli", Name: "bench"})
		if err == nil {
			b.client = c
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the daemon did not come up: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	b.raw = page.New(page.Options{Browser: b.Browser, ProfileDir: filepath.Join(dir, "raw")})
	_, err = b.raw.Start(ctx)
	return err
}

func (b *bench) end() error {
	if b.client != nil {
		b.client.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if b.raw != nil {
		_ = b.raw.Stop(ctx)
	}
	if b.daemon != nil && b.daemon.Process != nil {
		_ = b.daemon.Process.Signal(syscall.SIGTERM)
		_ = b.daemon.Wait()
	}
	if b.web != nil {
		b.web.CloseClientConnections()
		b.web.Close()
	}
	return os.RemoveAll(b.dir)
}

// serve is the pages that are measured on: /click, /controls?n=1000, /small?i=7.
func serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	head := `<!doctype html><html lang=en><title>bench</title><link rel=icon href="data:,">`
	switch r.URL.Path {
	case "/click":
		fmt.Fprint(w, head, `<button id=b style="margin:40px;padding:20px">Press</button><p id=n>0</p><script>let n=0;document.getElementById('b').onclick=()=>{document.getElementById('n').textContent=++n}</script>`)
	case "/controls":
		fmt.Fprint(w, head)
		for i := range 1000 {
			switch i % 4 {
			case 0:
				fmt.Fprintf(w, "<button>Action %d</button>", i)
			case 1:
				fmt.Fprintf(w, "<label>Field %d <input value='value %d'></label>", i, i)
			case 2:
				fmt.Fprintf(w, "<a href='/small?i=%d'>Link %d</a> ", i, i)
			case 3:
				fmt.Fprintf(w, "<label><input type=checkbox> Choice %d</label><br>", i)
			}
		}
	default:
		fmt.Fprint(w, head, strings.Repeat("<p>Some text of a small page.</p><button>One</button>", 20))
	}
}

func (b *bench) do(ctx context.Context, r protocol.Request, args any) (protocol.Receipt, error) {
	b.n++
	r.OperationID = protocol.OperationID(fmt.Sprintf("bench-%d", b.n))
	raw, err := json.Marshal(args)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r.Arguments = raw
	rc, err := b.client.Do(ctx, r)
	if err == nil && rc.State != protocol.StateApplied {
		err = fmt.Errorf("%s: %s/%s: %s", r.Method, rc.State, rc.Reason, rc.Message)
	}
	return rc, err
}

func (b *bench) open(ctx context.Context, url string) (protocol.ResourceID, error) {
	rc, err := b.do(ctx, protocol.Request{Method: protocol.MethodOpen}, map[string]any{"kind": "page", "url": url})
	return rc.Resource, err
}

func (b *bench) look(ctx context.Context, id protocol.ResourceID, args any) (protocol.ReadReply, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return protocol.ReadReply{}, err
	}
	r, err := b.client.Read(ctx, protocol.ReadRequest{Resource: id, Method: protocol.MethodObserve, Arguments: raw})
	if err == nil && r.Problem != nil {
		err = r.Problem
	}
	return r, err
}
