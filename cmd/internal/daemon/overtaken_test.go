package daemon

import (
	"path/filepath"
	"sync"
	"testing"

	"reins/persistence"
	"reins/protocol"
)

// A record that was overtaken on its way to the store changes nothing there.
func TestOvertakenRecords(t *testing.T) {
	s, err := persistence.Open(filepath.Join(openTemp(t), "store"), persistence.Options{Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st := &store{Store: s, log: testLogger(t), running: &sync.WaitGroup{}}
	put := func(l protocol.Lifecycle, title string, changed protocol.Time, want string) {
		t.Helper()
		if err := st.PutRecord(protocol.Record{ID: "pg_1", Kind: protocol.KindPage, Lifecycle: l, Title: title, Changed: changed}); err != nil {
			t.Fatal(err)
		}
		all, err := s.Descriptors()
		if err != nil || len(all) != 1 || all[0].Record.Title != want {
			t.Fatalf("after %s %q: %s %v, want %q", l, title, show(all), err, want)
		}
	}
	put(protocol.LifecycleReady, "second", 20, "second")
	put(protocol.LifecycleReady, "first", 10, "second")
	put(protocol.LifecycleReady, "third", 30, "third")
	put(protocol.LifecycleClosed, "closed", 30, "closed")
	put(protocol.LifecycleReady, "viewport, late", 40, "closed")
}
