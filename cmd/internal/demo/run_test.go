package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"reins/cmd/internal/cli"
	"reins/cmd/internal/demo"
	"reins/protocol"
)

// asReins makes the test binary the command line: the job starts it as the shop
// and as the daemon, under the race detector like the rest.
const asReins = "REINS_TEST_AS_REINS"

func TestMain(m *testing.M) {
	if os.Getenv(asReins) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// The main job, whole: an order from the shop with the browser killed in the middle.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asReins, "1")
	out := t.TempDir()
	var said bytes.Buffer
	err = demo.Run(t.Context(), demo.RunConfig{Executable: self, OutDir: out, Out: io.MultiWriter(&said, t.Output())})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(out, "daemon.log"))
		t.Fatalf("%v\nthe daemon's log ends with:\n%s", err, log[max(0, len(log)-8000):])
	}
	for _, want := range []string{"SIGKILL to the browser", "as generation 2", "stale_generation", "every action reached the shop exactly once"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the job did not say %q", want)
		}
	}
	f, err := os.Open(filepath.Join(out, "order.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if picture, err := png.DecodeConfig(f); err != nil || picture.Width != 1280 || picture.Height != 800 {
		t.Errorf("the picture is %+v, %v; want 1280×800", picture, err)
	}
	checkReceipts(t, filepath.Join(out, "receipts.jsonl"))
}

// checkReceipts: every receipt that was kept is applied, but the one for the old handle.
func checkReceipts(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused, seen := 0, map[protocol.OperationID]bool{}
	for line := range strings.Lines(string(b)) {
		var r protocol.Receipt
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if seen[r.OperationID] {
			t.Errorf("operation %s has two receipts", r.OperationID)
		}
		seen[r.OperationID] = true
		switch r.State {
		case protocol.StateApplied:
		case protocol.StateRefused:
			refused++
		default:
			t.Errorf("%s %s is %s %s", r.OperationID, r.Method, r.State, r.Reason)
		}
	}
	if refused != 1 || len(seen) < 20 {
		t.Errorf("%d receipts, %d refused; want more than 20, one refused", len(seen), refused)
	}
}
