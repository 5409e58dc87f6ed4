package broker

import (
	"testing"
	"time"

	"reins/actors/scope"
	"reins/protocol"
)

// TestConnections: an owner is here as long as one of its connections lives; a
// nonce belongs to the owner it was given to; silence is an end.
func TestConnections(t *testing.T) {
	var events []string
	c := connections{changed: func(o protocol.OwnerID, here bool) {
		if here {
			events = append(events, string(o)+" came")
		} else {
			events = append(events, string(o)+" went")
		}
	}}
	now := time.Now()
	expect := func(want ...string) {
		t.Helper()
		if len(events) != len(want) {
			t.Fatalf("%v, want %v", events, want)
		}
		for i := range want {
			if events[i] != want[i] {
				t.Fatalf("%v, want %v", events, want)
			}
		}
		events = nil
	}
	one := protocol.Caller{Owner: "a", Connection: c.open("a", now)}
	two := protocol.Caller{Owner: "a", Connection: c.open("a", now)}
	if one.Connection == two.Connection || !c.known(one) || c.known(protocol.Caller{Owner: "b", Connection: one.Connection}) {
		t.Fatal("a nonce is of one connection and one owner")
	}
	expect("a came", "a came")
	c.close(protocol.Caller{Owner: "b", Connection: one.Connection}) // not its own
	c.close(one)
	c.close(one)
	expect()
	if c.known(one) {
		t.Fatal("a closed connection is known")
	}
	c.close(two)
	expect("a went")

	c.open("a", now)
	c.open("b", now.Add(-time.Hour))
	expect("a came", "b came")
	c.sweep(now.Add(ConnectionSilence))
	expect("b went")
	c.sweep(now.Add(ConnectionSilence + time.Second))
	expect("a went")
	c.sweep(now.Add(2 * time.Hour))
	expect()
}

// TestOwnerChanged: every scope is told that an owner came or went.
func TestOwnerChanged(t *testing.T) {
	s := newStand(t)
	s.page("pg_1")
	c := s.hello("b")
	if e := sent[scope.OwnerBack](s); e.Owner != "b" {
		t.Fatalf("%+v", e)
	}
	s.b.Alive(c)
	s.b.Bye(c)
	if e := sent[scope.OwnerLost](s); e.Owner != "b" {
		t.Fatalf("%+v", e)
	}
	if r := s.b.Hello(t.Context(), "b", protocol.Hello{Version: protocol.Version + 1}); r.Problem == nil || r.Connection != "" {
		t.Fatalf("another version is served: %+v", r)
	}
}
