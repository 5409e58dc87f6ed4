package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"reins/chaos"
	"reins/protocol"
)

// TestNoBrowserOutlivesItsDaemon kills the daemon at moments while its browser
// comes up, when no crash point tells how far it is, on one state directory.
func TestNoBrowserOutlivesItsDaemon(t *testing.T) {
	p := process(t)
	l := newLedger(t)
	raw, err := json.Marshal(protocol.OpenArguments{Kind: protocol.KindPage, URL: l.Page("up")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runWithin)
	defer cancel()
	for i, after := range []time.Duration{0, 30, 80, 150, 250, 400, 700} {
		if err := p.Start(ctx, chaos.Faults{}); err != nil {
			t.Fatal(err)
		}
		c, err := p.Client(ctx)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Nobody waits for its answer, which will not come.
			_, _ = c.Do(ctx, protocol.Request{OperationID: protocol.OperationID("open-" + string(rune('a'+i))), Method: protocol.MethodOpen, Arguments: raw})
		}()
		<-time.After(after * time.Millisecond)
		p.Kill()
		<-done
		c.Close()
		if left := gone(ctx, p); len(left) > 0 {
			t.Errorf("killed %d ms after a page was asked for, this is left: %v", after, left)
		}
	}
}

// gone waits for the end of everything of a dead daemon, and returns what does not end.
func gone(ctx context.Context, p *Process) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		left := p.Orphans()
		if len(left) == 0 || ctx.Err() != nil {
			return left
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestOrphansAreSeen: a search that finds nothing proves nothing.
func TestOrphansAreSeen(t *testing.T) {
	p := process(t)
	ctx, cancel := context.WithTimeout(t.Context(), runWithin)
	defer cancel()
	if err := p.Start(ctx, chaos.Faults{}); err != nil {
		t.Fatal(err)
	}
	stray := exec.CommandContext(ctx, "sh", "-c", "echo up; read line", "sh", "--user-data-dir="+p.state()+"/profiles/default")
	in, err := stray.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := stray.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if left := p.Orphans(); len(left) != 2 { // the daemon itself, too, while it lives
		t.Errorf("found %q", left)
	}
	p.Kill()
	if left := p.Orphans(); len(left) != 1 || !strings.Contains(left[0], "read line") {
		t.Errorf("found %q", left)
	}
	_ = in.Close()
	_ = stray.Wait()
	if left := gone(ctx, p); len(left) > 0 {
		t.Errorf("found %q", left)
	}
}
