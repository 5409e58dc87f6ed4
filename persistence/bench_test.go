package persistence

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

// BenchmarkAdmitFinish is an operation's part in the store, beside two synced
// writes of as many bytes that go straight to the database.
func BenchmarkAdmitFinish(b *testing.B) {
	b.Run("store", func(b *testing.B) {
		s := mustOpen(b, b.TempDir(), Options{})
		for i := 0; b.Loop(); i++ {
			operate(b, s, fmt.Sprint("op", i))
		}
	})
	b.Run("raw", func(b *testing.B) {
		db, err := pebble.Open(b.TempDir(), &pebble.Options{Logger: &dbLog{log: Options{}.withDefaults().Logger, fatal: func(m string) { b.Error(m) }}})
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		admitted, finished := bytes.Repeat([]byte("a"), 300), bytes.Repeat([]byte("f"), 900)
		for i := 0; b.Loop(); i++ {
			key := []byte(fmt.Sprint("op", i))
			if err := db.Set(key, admitted, pebble.Sync); err != nil {
				b.Fatal(err)
			}
			if err := db.Set(key, finished, pebble.Sync); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("store, 16 at a time", func(b *testing.B) {
		s := mustOpen(b, b.TempDir(), Options{})
		var n atomic.Int64
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				operate(b, s, fmt.Sprint("op", n.Add(1)))
			}
		})
	})
}

func operate(b *testing.B, s *Store, id string) {
	m, err := s.Admit(admission("ann", id))
	if err != nil {
		b.Error(err)
		return
	}
	m.Set()
	if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
		b.Error(err)
	}
}
