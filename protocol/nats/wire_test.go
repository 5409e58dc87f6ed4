package nats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// TestEnvelopeRoundTrip holds that what the client writes is what the daemon reads.
func TestEnvelopeRoundTrip(t *testing.T) {
	expires := time.UnixMilli(1_700_000_000_123)
	for turn, want := range map[string]string{"": "nonce", "turn-1": "turn-1"} {
		e, p := openEnvelope("alice", sealEnvelope("nonce", turn, expires), false)
		if p != nil || !e.expires.Equal(expires) || e.caller != (protocol.Caller{Owner: "alice", Connection: "nonce", UserTurn: want}) {
			t.Errorf("turn %q: %+v %v", turn, e, p)
		}
	}
}

// TestExpiryIsByTheDaemonsClock holds that a client whose clock is wrong still
// says when its requests expire in the daemon's time.
func TestExpiryIsByTheDaemonsClock(t *testing.T) {
	c := &Client{}
	l := &link{connection: "nonce", skew: -time.Hour}
	e, p := openEnvelope("alice", c.header(l, time.UnixMilli(7_200_000)), false)
	if p != nil || e.expires.UnixMilli() != 3_600_000 {
		t.Errorf("expires %v %v", e.expires, p)
	}
}

// FuzzEnvelope holds that headers give a caller of bounded words and an expiry, or a problem.
func FuzzEnvelope(f *testing.F) {
	f.Add("1", "nonce", "", "1700000000000")
	f.Add("2", "a b", "\x00", "-1")
	f.Add("1", strings.Repeat("x", 200), "turn", "99999999999999999999")
	f.Fuzz(func(t *testing.T, version, connection, turn, expires string) {
		h := gonats.Header{HeaderVersion: {version}, HeaderConnection: {connection}, HeaderUserTurn: {turn}, HeaderExpires: {expires}}
		e, p := openEnvelope("alice", h, false)
		switch {
		case p != nil && (p.Reason == "" || p.Message == ""):
			t.Fatalf("a problem without words: %+v", p)
		case p != nil:
		case e.caller.Owner != "alice" || len(e.caller.Connection) > protocol.MaxIDBytes || len(e.caller.UserTurn) > protocol.MaxIDBytes ||
			strings.ContainsAny(e.caller.Connection+e.caller.UserTurn, "\r\n \x00") || e.expires.UnixMilli() <= 0 || version != "1":
			t.Fatalf("taken: %+v", e)
		}
	})
}

// FuzzAnswer holds that an answer is parted into its JSON and a picture without
// losing or inventing a byte, and that decoding it never panics.
func FuzzAnswer(f *testing.F) {
	f.Add("", []byte(`{"state":"applied"}`))
	f.Add("2", []byte("{}\x89PNG"))
	f.Add("-1", []byte("{}"))
	f.Add("18446744073709551615", []byte("{}"))
	f.Add("3", []byte("{}"))
	f.Fuzz(func(t *testing.T, length string, data []byte) {
		h := gonats.Header{HeaderNow: {length}}
		if length != "" {
			h.Set(HeaderJSONLength, length)
		}
		body, image, err := splitAnswer(h, data)
		if err == nil && !bytes.Equal(append(bytes.Clone(body), image...), data) {
			t.Fatalf("%q parts into %q and %q", data, body, image)
		}
		if rc, _, err := decodeAnswer[protocol.Receipt](h, data); err != nil && rc.State != "" {
			t.Fatalf("an error with a receipt: %+v", rc)
		}
		_, _, _ = decodeAnswer[statusAnswer](h, data)
		_, _, _ = decodeAnswer[protocol.ReadReply](h, data)
		clockOf(h)
	})
}

// FuzzFrame holds that a frame's header names a resource that can be a subject, or is refused.
func FuzzFrame(f *testing.F) {
	f.Add(`{"resource":"pg_1","generation":1,"sequence":2}`)
	f.Add(`{"resource":"pg.*"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, header string) {
		h, err := decodeFrame(gonats.Header{HeaderFrame: {header}})
		if err == nil && !isToken(h.Resource) {
			t.Fatalf("taken: %q", h.Resource)
		}
	})
}

// FuzzSubject holds that the owner of a subject is the one whose name makes that
// subject, and that no reply outside of its inbox is taken.
func FuzzSubject(f *testing.F) {
	f.Add("reins.v1.alice.do", "_INBOX_alice.x")
	f.Add("reins.v1.cue.do", "_INBOX_cue.x")
	f.Add("reins.v1.a.b.do", "_INBOX_a.b.x")
	f.Add("reins.v1..do", "_INBOX_.x")
	f.Add("reins.v1.do", "")
	do := &verb{pattern: SubjectDo}
	f.Fuzz(func(t *testing.T, subject, reply string) {
		owner, ok := ownerOf(SubjectDo, subject)
		if !ok {
			return
		}
		if withOwner(SubjectDo, owner) != subject || CheckOwner(string(owner)) != nil {
			t.Fatalf("%q belongs to %q", subject, owner)
		}
		if mayAnswer(do, owner, reply) && !strings.HasPrefix(reply, "_INBOX_"+string(owner)+".") {
			t.Fatalf("%q may be answered at %q", owner, reply)
		}
	})
}

// FuzzCredentials holds that a file of credentials is whole or refused, and that
// the refusal does not repeat it.
func FuzzCredentials(f *testing.F) {
	secret := strings.Repeat("5e", passwordBytes)
	f.Add(fmt.Sprintf(`{"owner":"cli","user":"cli","password":%q}`, secret))
	f.Add(fmt.Sprintf(`{"owner":"cli","user":"bob","password":%q,"url":"nats://h:1"}`, secret))
	f.Add(fmt.Sprintf(`{"owner":"../x","user":"../x","password":%q}`, secret))
	f.Add(`{"owner":"cli","user":"cli","password":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decodeCredentials([]byte(text))
		if err != nil {
			if len(text) > 30 && strings.Contains(err.Error(), text[len(text)/2:]) {
				t.Fatalf("the error repeats the file: %v", err)
			}
			return
		}
		if CheckOwner(string(c.Owner)) != nil || c.User != string(c.Owner) || len(c.Password) < 64 {
			t.Fatalf("taken: %+v", c)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := decodeCredentials(again); err != nil || d != c {
			t.Fatalf("%+v comes back as %+v (%v)", c, d, err)
		}
	})
}

// FuzzAddress holds that where a daemon is, is one server without a password, or refused.
func FuzzAddress(f *testing.F) {
	f.Add(`{"url":"nats://127.0.0.1:4222","websocket_url":"ws://127.0.0.1:1","pid":7,"protocol":1}`)
	f.Add(`{"url":"nats://u:p@h:1","pid":7,"protocol":1}`)
	f.Add(`{"url":"nats://a:1,nats://b:2","protocol":1}`)
	f.Add(`{"url":"file:///x","protocol":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := decodeAddress([]byte(text))
		if err == nil && (checkBusURL(a.URL) != nil || a.Protocol < 1) {
			t.Fatalf("taken: %+v", a)
		}
	})
}
