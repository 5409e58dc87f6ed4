package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reins/protocol"
)

func TestExitCodesOfReceipts(t *testing.T) {
	for state, want := range map[protocol.State]int{
		protocol.StateApplied: exitOK, protocol.StateRefused: exitRefused, protocol.StateCancelled: exitCancelled,
		protocol.StateFailed: exitFailed, protocol.StateUncertain: exitUncertain, "": exitOther, "novel": exitOther,
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			r := &recorder{answer: func(_ context.Context, q protocol.Request) (protocol.Receipt, error) {
				return protocol.Receipt{OperationID: q.OperationID, Method: q.Method, State: state}, nil
			}}
			got := command(t, r, "", append([]string{"do", "pg_1", "back"}, flags...)...)
			if got.code != want || len(got.requests) != 1 {
				t.Errorf("%s %v: exit %d after %d requests, want %d after one", state, flags, got.code, len(got.requests), want)
			}
		}
	}
}

// I1, I2: an answer that is lost stays lost: nothing is sent again, and the code is uncertain's.
func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		says string
	}{
		{&protocol.Problem{Reason: protocol.ReasonDaemonUnreachable, Message: "no daemon at state"}, exitUnreachable, "daemon_unreachable"},
		{fmt.Errorf("asking: %w", &protocol.Problem{Reason: protocol.ReasonAnswerLost, Message: "the connection broke"}), exitUncertain, "reins receipt op-1"},
		{&protocol.Problem{Reason: protocol.ReasonHeldBy, Message: "held", HeldBy: "ann"}, exitRefused, "held by ann"},
		{&protocol.Problem{Reason: protocol.ReasonVersion}, exitOther, "another major version"},
		{errors.New("no such thing"), exitOther, "no such thing"},
	} {
		r := &recorder{answer: func(context.Context, protocol.Request) (protocol.Receipt, error) { return protocol.Receipt{}, c.err }}
		got := command(t, r, "", "do", "pg_1", "back", "--id", "op-1")
		if got.code != c.want || len(got.requests) != 1 || !strings.Contains(got.err, c.says) {
			t.Errorf("%v: exit %d, %d requests, %q; want %d and %q", c.err, got.code, len(got.requests), got.err, c.want, c.says)
		}
		if got.out != "" {
			t.Errorf("%v: standard output has %q", c.err, got.out)
		}
	}
}

func TestUnknownResource(t *testing.T) {
	got := command(t, nil, "", "do", "pg_9", "back")
	if got.code != exitRefused || len(got.requests) != 0 || !strings.Contains(got.err, "unknown_resource") {
		t.Errorf("exit %d, %d requests, %q", got.code, len(got.requests), got.err)
	}
}

func TestVerdicts(t *testing.T) {
	actual := "evil\x1b[2J"
	for _, c := range []struct {
		reply protocol.ReadReply
		want  int
		says  string
	}{
		{protocol.ReadReply{Verdict: &protocol.Verdict{Holds: true}}, exitOK, "yes"},
		{protocol.ReadReply{Verdict: &protocol.Verdict{Reason: protocol.ReasonAssertionFailed, Actual: &actual}}, exitFalse, `evil\u001b[2J`},
		{protocol.ReadReply{Problem: &protocol.Problem{Reason: protocol.ReasonAmbiguous, Message: "two match"}}, exitRefused, ""},
		{protocol.ReadReply{}, exitOther, ""},
	} {
		got := command(t, &recorder{reply: c.reply}, "", "verify", "pg_1", "text", "--has", "a")
		if got.code != c.want || !strings.Contains(got.out, c.says) {
			t.Errorf("exit %d %q, want %d %q", got.code, got.out, c.want, c.says)
		}
	}
}

// I3: nothing that a page wrote reaches the terminal as a control character.
func TestPageTextIsCleaned(t *testing.T) {
	const evil = "a\x1b]0;x\x07\u009b1m\u202eb\n\t\x00\xff"
	value := evil
	o := &protocol.Observation{
		Target: protocol.TargetRef{Resource: "pg_1"}, Page: &protocol.Page{URL: evil, Title: evil, Dialog: &protocol.Dialog{Type: evil, Message: evil}},
		Controls: []protocol.Control{{Ref: "e1", Role: evil, Name: evil, States: []string{evil}, Value: &value, Frame: evil}},
		Text:     []string{evil}, Omitted: &protocol.Omitted{Text: 1, How: evil},
	}
	r := &recorder{reply: protocol.ReadReply{Observation: o}, answer: func(context.Context, protocol.Request) (protocol.Receipt, error) {
		return protocol.Receipt{
			State: protocol.StateFailed, Message: evil, Page: o.Page, ActualValue: &value, Candidates: o.Controls,
			Download: &protocol.Download{Path: evil, State: "completed"}, Progress: &protocol.Progress{Unit: evil},
		}, nil
	}}
	r.records = []protocol.Record{{ID: "pg_1", Title: evil, URL: evil, HeldBy: evil, Message: evil}}
	for _, line := range []string{"observe pg_1", "do pg_1 back", "resources"} {
		got := command(t, r, "", strings.Split(line, " ")...)
		if got.out == "" {
			t.Errorf("%s printed nothing: %s", line, got.err)
		}
		for _, c := range got.out {
			if unprintable(c) && c != '\n' || c == '\ufffd' && strings.ContainsRune(got.out, '\xff') {
				t.Errorf("%s prints %q in %q", line, c, got.out)
			}
		}
	}
}

// I4: one JSON value on standard output, also for what went wrong.
func TestJSONIsOneValue(t *testing.T) {
	full := func() *recorder {
		return &recorder{reply: protocol.ReadReply{Verdict: &protocol.Verdict{}, Observation: &protocol.Observation{}, ImageBytes: []byte("png")}}
	}
	picture := filepath.Join(t.TempDir(), "a.png")
	for _, line := range []string{
		"do pg_1 back", "do pg_9 back", "do pg_1 smash", "open http://a/", "open -q http://a/", "close pg_1", "observe pg_1", "wait pg_1 --text a",
		"screenshot pg_1 " + picture, "resources", "history", "receipt op-1", "cancel op-1", "release pg_1", "restart pg_1", "status", "version", "frobnicate",
	} {
		got := command(t, full(), "", append(strings.Split(line, " "), "--json")...)
		d := json.NewDecoder(strings.NewReader(got.out))
		var v any
		if err := d.Decode(&v); err != nil {
			t.Errorf("%s: %v in %q", line, err, got.out)
		}
		if err := d.Decode(&v); err != io.EOF {
			t.Errorf("%s prints more than one value: %q", line, got.out)
		}
		if got.err != "" {
			t.Errorf("%s: standard error has %q", line, got.err)
		}
	}
}

// An interrupt asks once that the operation stops; the operation's own receipt says what that came to.
func TestInterruptCancels(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r := &recorder{}
	asked := make(chan struct{})
	watched := &cancelSeen{recorder: r, seen: asked}
	r.answer = func(ctx context.Context, q protocol.Request) (protocol.Receipt, error) {
		interrupt()
		select {
		case <-asked:
			return protocol.Receipt{OperationID: q.OperationID, State: protocol.StateFailed, Reason: protocol.ReasonCancelled}, nil
		case <-ctx.Done():
			return protocol.Receipt{}, ctx.Err()
		}
	}
	receipt, err := send(ctx, watched, protocol.Request{OperationID: "op-1", Method: protocol.MethodType})
	if err != nil || receipt.State != protocol.StateFailed {
		t.Errorf("got %+v, %v", receipt, err)
	}
	if len(r.cancelled) != 1 || r.cancelled[0] != "op-1" {
		t.Errorf("cancelled %v, want op-1 once", r.cancelled)
	}
}

type cancelSeen struct {
	*recorder
	seen chan struct{}
}

func (c *cancelSeen) Cancel(ctx context.Context, id protocol.OperationID) (protocol.Receipt, error) {
	defer close(c.seen)
	return c.recorder.Cancel(ctx, id)
}

func TestOpenQuietPrintsTheID(t *testing.T) {
	r := &recorder{answer: func(_ context.Context, q protocol.Request) (protocol.Receipt, error) {
		return protocol.Receipt{OperationID: q.OperationID, Resource: "pg_7", State: protocol.StateApplied}, nil
	}}
	if got := command(t, r, "", "open", "-q", "http://a/"); got.out != "pg_7\n" || got.code != exitOK {
		t.Errorf("exit %d %q", got.code, got.out)
	}
}

func TestScreenshotIsSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jpg")
	r := &recorder{reply: protocol.ReadReply{Observation: &protocol.Observation{}, ImageBytes: []byte("bytes")}}
	got := command(t, r, "", "screenshot", "pg_1", file, "--quality", "70")
	if b, err := os.ReadFile(file); err != nil || string(b) != "bytes" || got.code != exitOK {
		t.Errorf("exit %d, %q, %v", got.code, b, err)
	}
	if !sameJSON(t, string(got.reads[0].Arguments), `{"format":"jpeg","quality":70}`) {
		t.Errorf("asked with %s", got.reads[0].Arguments)
	}
	r = &recorder{reply: protocol.ReadReply{Observation: &protocol.Observation{}}}
	if got := command(t, r, "", "screenshot", "pg_1", file); got.code == exitOK {
		t.Error("an answer without a picture passed")
	}
}

func TestWatchKeepsTheNewestFrames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frames")
	r := &recorder{watched: func(w watcher) {
		w.cue(protocol.Cue{Phase: protocol.CueDispatched, Resource: "pg_1", Generation: 1, Words: "Click\x1b"})
		w.record(protocol.Record{ID: "pg_1", State: "Ready to use"})
		for i := range 5 {
			w.frame(protocol.FrameHeader{Resource: "../pg_1", Generation: 2, Sequence: uint64(i), MediaType: "image/jpeg"}, []byte{byte(i)})
		}
	}}
	got := command(t, r, "", "watch", "pg_1", "--frames", dir, "--keep", "2")
	if got.code != exitOK {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) != 2 || filepath.Base(files[1]) != "---pg_1-g2-000004.jpg" {
		t.Errorf("kept %v, %v", files, err)
	}
	if !strings.Contains(got.out, "dispatched") || !strings.Contains(got.out, "Ready to use") || strings.ContainsRune(got.out, 0x1b) {
		t.Errorf("printed %q", got.out)
	}
}

func TestManage(t *testing.T) {
	for line, want := range map[string]string{"release pg_1": "release pg_1", "restart pg_1": "restart pg_1"} {
		got := command(t, nil, "", strings.Split(line, " ")...)
		if got.code != exitOK || len(got.asked) != 2 || got.asked[0] != want || got.asked[1] != "close" {
			t.Errorf("%s: exit %d, asked %v", line, got.code, got.asked)
		}
	}
	if got := command(t, nil, "", "cancel", "op-1"); got.code != exitCancelled || len(got.cancelled) != 1 {
		t.Errorf("cancel: exit %d, %v", got.code, got.cancelled)
	}
	if got := command(t, nil, "", "receipt", "op-1"); got.code != exitUncertain || !strings.Contains(got.out, "observe first") {
		t.Errorf("receipt: exit %d, %q", got.code, got.out)
	}
}

// The README and the help say what the code does.
func TestExitCodesAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	help := command(t, nil, "", "help", "exit-codes")
	for _, c := range exitCodes {
		if row := fmt.Sprintf("| %d | %s |", c.code, c.doc); !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row %q", row)
		}
		if line := fmt.Sprintf("  %d  %s", c.code, c.doc); !strings.Contains(help.out, line) {
			t.Errorf("help exit-codes lacks %q", line)
		}
	}
	if help.code != exitOK {
		t.Errorf("help ends with %d", help.code)
	}
}

func TestStateDir(t *testing.T) {
	t.Setenv("REINS_STATE", "")
	t.Setenv("XDG_STATE_HOME", "/x/state")
	if got := stateDir(); got != "/x/state/reins" {
		t.Errorf("got %s", got)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/ada")
	if got := stateDir(); got != "/home/ada/.local/state/reins" {
		t.Errorf("got %s", got)
	}
	t.Setenv("REINS_STATE", "/mine")
	if got := stateDir(); got != "/mine" {
		t.Errorf("got %s", got)
	}
}
