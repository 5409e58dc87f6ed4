package chaos

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"reins/protocol"
)

func ledgerFor(t *testing.T) *Ledger {
	t.Helper()
	l, err := NewLedger()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		t.Errorf("%s: %d %s %v", url, res.StatusCode, b, err)
	}
	return string(b)
}

func TestLedgerPages(t *testing.T) {
	l := ledgerFor(t)
	url := l.Page("p", Call{Operation: "c", Method: protocol.MethodClick, Parts: []string{""}},
		Call{Operation: "k", Method: protocol.MethodType}, Call{Operation: "b", Method: protocol.MethodBatch, Parts: []string{"x", "y"}})
	page := get(t, url)
	for _, want := range []string{`>c</button>`, `>b.x</button>`, `data-part="y"`, `<label>k <input`, `load =  1 `} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
	base := strings.TrimSuffix(url, "/page/p")
	get(t, base+"/did?op=c&part=&page=p&load=1&trusted=true")
	get(t, base+"/did?op=b&part=x&page=p&load=1&trusted=false")
	if got := get(t, l.Destination("p", "n")); !strings.Contains(got, `load =  2 `) {
		t.Errorf("the destination leads to:\n%s", got)
	}
	var told []string
	for _, e := range l.Entries() {
		told = append(told, e.String())
	}
	if got, want := strings.Join(told, "; "), "0 c on p, load 1; 1 b[x] by script on p, load 1; 2 n on p, load 1"; got != want {
		t.Errorf("the ledger has %s, want %s", got, want)
	}
	if n := l.Loads("p"); n != 2 {
		t.Errorf("%d loads", n)
	}
}

func TestBusyPageOfAFrame(t *testing.T) {
	l := ledgerFor(t)
	b := Busy{Operation: "o", Probe: "probe", Method: protocol.MethodDrag, Trigger: "mousemove", Nth: 3, Moment: BeforeIt, For: time.Second, Cross: true}
	url := l.BusyPage("p", b, true)
	outer, inner := get(t, url), get(t, strings.Replace(url, "/page/", "/inner/", 1))
	for _, want := range []string{`src="http://localhost:`, `id=hide`} {
		if !strings.Contains(outer, want) {
			t.Errorf("the page has no %s:\n%s", want, outer)
		}
	}
	for _, want := range []string{`aria-label="o from"`, `aria-label="o to"`, `kind === "mousemove"`, `=== 3 `} {
		if !strings.Contains(strings.ReplaceAll(inner, "  ", " "), want) {
			t.Errorf("the frame has no %s:\n%s", want, inner)
		}
	}
	if l.Loads("p") != 1 {
		t.Error("its frame counts as a load of the page")
	}
}

// A report that is held has its entry at once, and its answer when it is let go.
func TestHold(t *testing.T) {
	l := ledgerFor(t)
	base := strings.TrimSuffix(l.Page("p"), "/page/p")
	h := l.Hold("c", "", patience)
	answered := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(answered)
		get(t, base+"/did?op=c&part=&page=p&load=1&trusted=true")
	})
	<-h.Reached
	if len(l.Entries()) != 1 {
		t.Error("what is held is not in the ledger")
	}
	select {
	case <-answered:
		t.Error("it was not held")
	default:
	}
	h.Release()
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.Quiet(ctx); err != nil {
		t.Error(err)
	}
}

func TestUntil(t *testing.T) {
	l := ledgerFor(t)
	base := strings.TrimSuffix(l.Page("p"), "/page/p")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 3 {
			get(t, base+"/did?op=c&part=&page=p&load=1&trusted=true")
		}
	})
	if err := l.Until(ctx, "c", 3); err != nil {
		t.Error(err)
	}
	wg.Wait()
	short, stop := context.WithCancel(ctx)
	stop()
	if err := l.Until(short, "c", 4); err == nil {
		t.Error("it did not wait")
	}
}
