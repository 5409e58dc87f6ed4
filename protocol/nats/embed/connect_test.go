package embed

import (
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"
)

// TestTheDaemonsConnectionComesBack holds that the daemon goes on serving after
// the server cut its connection, as it does to one that takes nothing for a
// while, for example in a process that was stopped.
func TestTheDaemonsConnectionComesBack(t *testing.T) {
	s, err := Start(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	served, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := served.Subscribe("question", func(m *gonats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	asks, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	back := served.StatusChanged(gonats.CONNECTED)
	id, err := served.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ns.DisconnectClientByID(id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-back:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection did not come back")
	}
	if err := served.Flush(); err != nil {
		t.Fatal(err)
	}
	m, err := asks.Request("question", []byte("still there?"), 20*time.Second)
	if err != nil || string(m.Data) != "still there?" {
		t.Fatalf("got %v %v", m, err)
	}
}
