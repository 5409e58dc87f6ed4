package embed_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"reins/protocol/nats"
	"reins/protocol/nats/embed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the deadline of whatever a test waits for; nothing is timed by it.
const patience = 20 * time.Second

func start(t *testing.T, change ...func(*embed.Options)) *embed.Server {
	t.Helper()
	o := embed.Options{StateDir: t.TempDir()}
	for _, f := range change {
		f(&o)
	}
	s, err := embed.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func credentials(t *testing.T, s *embed.Server, owner string) nats.Credentials {
	t.Helper()
	if err := embed.AddOwner(s.StateDir, owner); err != nil {
		t.Fatal(err)
	}
	file, err := nats.CredentialsFile(s.StateDir, owner)
	if err != nil {
		t.Fatal(err)
	}
	c, err := nats.ReadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connect is a connection of an owner, and what the bus complains about on it.
func connect(t *testing.T, url string, c nats.Credentials) (*gonats.Conn, chan error) {
	t.Helper()
	errs := make(chan error, 64)
	nc, err := gonats.Connect(url, gonats.UserInfo(c.User, c.Password), gonats.CustomInboxPrefix(nats.InboxPrefix(c.Owner)),
		gonats.ErrorHandler(func(_ *gonats.Conn, _ *gonats.Subscription, err error) { errs <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc, errs
}

// forbidden waits for the complaint about a subject.
func forbidden(t *testing.T, nc *gonats.Conn, errs chan error, what string) {
	t.Helper()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-errs:
		if !errors.Is(err, gonats.ErrPermissionViolation) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Errorf("%s was allowed", what)
	}
}

// TestOwnersRights holds I2, over TCP and over WebSocket.
func TestOwnersRights(t *testing.T) {
	s := start(t, func(o *embed.Options) { o.WebSocket = true })
	daemon, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	everything := make(chan *gonats.Msg, 1024)
	if _, err := daemon.ChanSubscribe("reins.>", everything); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{s.URL(), s.WebSocketURL()} {
		alice, errs := connect(t, url, credentials(t, s, "alice"))
		for _, subject := range []string{"reins.v1.bob.do", "reins.v1.cue.pg_1", "reins.v1.frame.pg_1", "reins.v1.record.pg_1",
			"reins.v2.alice.do", "_INBOX_bob.x", "_INBOX_alice.x", "$JS.API.INFO", "$KV.x.y", "$SYS.REQ.SERVER.PING", "other"} {
			if err := alice.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			forbidden(t, alice, errs, "publishing on "+subject)
		}
		for _, subject := range []string{"_INBOX_bob.>", "_INBOX.>", "reins.v1.bob.>", "reins.v1.alice.do", "reins.v1.*.do", "reins.>", ">", "$SYS.>", "*"} {
			if _, err := alice.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			forbidden(t, alice, errs, "subscribing to "+subject)
		}
		for _, subject := range []string{"_INBOX_alice.>", "reins.v1.cue.>", "reins.v1.frame.pg_1", "reins.v1.record.*"} {
			if _, err := alice.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(alice.Publish("reins.v1.alice.do", []byte("mine")), alice.Flush()); err != nil {
			t.Fatal(err)
		}
		if m := <-everything; m.Subject != "reins.v1.alice.do" || string(m.Data) != "mine" {
			t.Errorf("%s came with %q", m.Subject, m.Data)
		}
		if len(errs) != 0 || len(everything) != 0 {
			t.Errorf("what is allowed was complained about (%d), or more came than what is allowed (%d)", len(errs), len(everything))
		}
	}
}

// TestWhoMayConnect holds I1.
func TestWhoMayConnect(t *testing.T) {
	var log safeBuffer
	s := start(t, func(o *embed.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	cli, alice := credentials(t, s, nats.DefaultOwner), credentials(t, s, "alice") // alice after the start
	dir := filepath.Join(s.StateDir, "credentials")
	copied, err := os.ReadFile(filepath.Join(dir, "alice.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"copy": string(copied), "broken": "{", "empty": `{"owner":"empty","user":"empty","password":""}`} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		user, password string
		ok             bool
	}{
		{"cli", cli.Password, true},
		{"alice", alice.Password, true},
		{"alice", cli.Password, false},
		{"alice", "", false},
		{"", "", false},
		{"", alice.Password, false},
		{"nobody", "", false},
		{"copy", alice.Password, false},
		{"broken", "", false},
		{"empty", "", false},
		{"../credentials/alice", alice.Password, false},
		{"Alice", alice.Password, false},
		{"reins", "", false},
		{"reins", cli.Password, false},
	} {
		nc, err := gonats.Connect(s.URL(), gonats.UserInfo(row.user, row.password), gonats.Timeout(patience))
		if err == nil {
			nc.Close()
		}
		if (err == nil) != row.ok || !row.ok && !errors.Is(err, gonats.ErrAuthorization) {
			t.Errorf("%q: %v", row.user, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "alice.json")); err != nil {
		t.Fatal(err)
	}
	if nc, err := gonats.Connect(s.URL(), gonats.UserInfo("alice", alice.Password), gonats.Timeout(patience)); err == nil {
		nc.Close()
		t.Error("an owner whose credentials were removed connects")
	}
	for _, secret := range []string{cli.Password, alice.Password} {
		if strings.Contains(log.String(), secret) {
			t.Error("a password is in the log")
		}
	}
}

// TestDaemonsOwnConnection holds that the daemon may do everything from inside
// the process, JetStream too.
func TestDaemonsOwnConnection(t *testing.T) {
	s := start(t)
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "records"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctx, "pg_1", []byte("x")); err != nil {
		t.Fatal(err)
	}
}

// TestFiles holds that what is written is closed to others, stays at the next
// start, and that the address is there only between Announce and Shutdown.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	in := func(o *embed.Options) { o.StateDir = dir }
	if err := os.Mkdir(filepath.Join(dir, "credentials"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(t, in)
	first := credentials(t, s, nats.DefaultOwner)
	for name, want := range map[string]fs.FileMode{"credentials": 0o700, "credentials/cli.json": 0o600, "jetstream": 0o700} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if _, err := nats.ReadAddress(dir); !errors.Is(err, nats.ErrNoAddress) {
		t.Errorf("before Announce: %v", err)
	}
	if err := s.Announce(); err != nil {
		t.Fatal(err)
	}
	if a, err := nats.ReadAddress(dir); err != nil || a.URL != s.URL() || a.WebSocketURL != "" || a.Process != os.Getpid() || a.Protocol != 1 {
		t.Errorf("after Announce: %+v %v", a, err)
	}
	s.Shutdown()
	s.Shutdown()
	if _, err := nats.ReadAddress(dir); !errors.Is(err, nats.ErrNoAddress) {
		t.Errorf("after Shutdown: %v", err)
	}
	s = start(t, in)
	if again := credentials(t, s, nats.DefaultOwner); again != first || len(first.Password) != 64 {
		t.Error("the credentials are others after the second start")
	}
	theirs := nats.Address{URL: "nats://127.0.0.1:1", Process: os.Getpid() + 1, Protocol: 1}
	if err := nats.WriteAddress(dir, theirs); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	if a, err := nats.ReadAddress(dir); err != nil || a != theirs {
		t.Errorf("another daemon's address was removed: %+v %v", a, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}

// TestOwnerNames holds that a name that would make subjects or paths ambiguous is refused.
func TestOwnerNames(t *testing.T) {
	for name, ok := range map[string]bool{"cli": true, "a": true, "agent-7": true, strings.Repeat("a", 32): true,
		"": false, strings.Repeat("a", 33): false, "cue": false, "frame": false, "record": false, "reins": false,
		"Alice": false, "a.b": false, "a b": false, "*": false, ">": false, "../x": false, "a/b": false, "ä": false, "a\x00": false} {
		err := embed.AddOwner(t.TempDir(), name)
		if (err == nil) != ok || !ok && !errors.Is(err, nats.ErrOwner) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCannotStart holds that what keeps the bus from starting is said at once,
// with the way out.
func TestCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, row := range []struct {
		name string
		o    embed.Options
		says string
	}{
		{"no directory", embed.Options{}, "no state directory"},
		{"a file", embed.Options{StateDir: file}, "--state"},
		{"below a file", embed.Options{StateDir: filepath.Join(file, "state")}, "--state"},
		{"a blocked folder", embed.Options{StateDir: blocked}, "--state"},
		{"all addresses", embed.Options{StateDir: t.TempDir(), Listen: "0.0.0.0:0"}, "loopback"},
		{"no port", embed.Options{StateDir: t.TempDir(), Listen: "127.0.0.1"}, "loopback"},
		{"port in words", embed.Options{StateDir: t.TempDir(), Listen: "127.0.0.1:nats"}, "loopback"},
		{"a name", embed.Options{StateDir: t.TempDir(), Listen: "example.org:1"}, "loopback"},
		{"taken", embed.Options{StateDir: t.TempDir(), Listen: taken.Addr().String()}, "is the address taken"},
		{"small messages", embed.Options{StateDir: t.TempDir(), MaxPayload: 1000}, "message limit"},
		{"little may wait", embed.Options{StateDir: t.TempDir(), MaxPending: 1 << 20}, "message limit"},
	} {
		s, err := embed.Start(row.o)
		if err == nil {
			s.Shutdown()
		}
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want it to say %q", row.name, err, row.says)
		}
	}
	s := start(t, func(o *embed.Options) { o.Listen = "localhost:0" })
	if !strings.HasPrefix(s.URL(), "nats://127.0.0.1:") {
		t.Errorf("localhost is %s", s.URL())
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
