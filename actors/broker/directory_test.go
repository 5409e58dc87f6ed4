package broker

import (
	"testing"

	"reins/protocol"
)

// The times of a record's changes only grow, and one that comes from the store
// keeps its own: it decides who is brought back first.
func TestDirectoryTimesOfChange(t *testing.T) {
	const future = protocol.Time(1 << 45) // as after a clock that was set back
	d := NewDirectory(func(protocol.Record) {})
	loaded := d.Update("pg_1", func(e *Entry) { e.Record = protocol.Record{ID: "pg_1", Changed: future} })
	if loaded.Changed != future {
		t.Errorf("a record from the store has %d, want its own %d", loaded.Changed, future)
	}
	next := d.Update("pg_1", func(e *Entry) { e.Record.Title = "another" })
	same := d.Update("pg_1", func(e *Entry) { e.Record.Title = "another" })
	if next.Changed <= future || same.Changed != next.Changed {
		t.Errorf("changed at %d, then unchanged %d, after %d", next.Changed, same.Changed, future)
	}
	if fresh := d.Update("pg_2", func(e *Entry) { e.Record = protocol.Record{ID: "pg_2"} }); fresh.Changed == 0 {
		t.Error("a new record has no time")
	}
}
