package persistence

import (
	"bytes"
	"errors"
	"testing"

	"reins/protocol"
)

// Each decoder of what is stored takes any bytes without a panic: an error is
// ErrCorrupt, and what is accepted is written again as what it was.

func FuzzOperation(f *testing.F) {
	whole := operation{Resource: "pg_1", Hash: make([]byte, 32), Slot: &slotRef{Life: 1, Index: 2, Seq: 3}, Receipt: &protocol.Receipt{State: protocol.StateApplied}}
	b, err := encode(whole)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{b, []byte("{}"), []byte(`{"hash":""}`), []byte(`{"receipt":{"state":"refused"}}`), []byte(`{"slot":{"index":-1}}`), nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeOperation(operationID{"ann", "op"}, b)
		if checkDecoded(t, err) {
			again, err := encode(r)
			if err != nil {
				t.Fatal(err)
			}
			r2, err := decodeOperation(operationID{"ann", "op"}, again)
			if err != nil || !bytes.Equal(r2.Hash, r.Hash) || (r2.Receipt == nil) != (r.Receipt == nil) {
				t.Errorf("%s became %s: %v", b, again, err)
			}
			old := oldMarks{life: 1, words: make([]uint64, slots)}
			old.of(r.Slot)
			r.stored()
		}
	})
}

func FuzzDescriptor(f *testing.F) {
	f.Add([]byte(`{"record":{"id":"pg_1"}}`))
	f.Add([]byte(`{"record":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := decodeDescriptor("pg_1", b); checkDecoded(t, err) && d.Record.ID != "pg_1" {
			t.Errorf("%s is accepted as %+v", b, d)
		}
	})
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"at":1,"event":"late","resource":"pg_1","generation":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := decodeHistory(b)
		checkDecoded(t, err)
	})
}

func FuzzCounter(f *testing.F) {
	f.Add(encodeCounter(1 << 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := decodeCounter(b); checkDecoded(t, err) && !bytes.Equal(encodeCounter(n), b) {
			t.Errorf("%x is %d", b, n)
		}
	})
}

// FuzzKey takes every kind of key apart.
func FuzzKey(f *testing.F) {
	f.Add(operationKey(keyOperation, "ann", "op"))
	f.Add(turnKey("ann", 7, 8))
	f.Add(historyKey(9, 10))
	f.Add([]byte("o\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, k []byte) {
		if id, err := splitOperation(k); checkDecoded(t, err) {
			if again, err := splitOperation(operationKey(k[0], id.Owner, id.ID)); err != nil || again != id {
				t.Errorf("%x is %+v, then %+v %v", k, id, again, err)
			}
		}
		if o, n, at, err := splitTurn(k); checkDecoded(t, err) {
			if o2, n2, at2, err := splitTurn(turnKey(o, n, at)); err != nil || o2 != o || n2 != n || at2 != at {
				t.Errorf("%x is %q %d %d", k, o, n, at)
			}
		}
		if n, at, err := splitHistory(k); checkDecoded(t, err) && !bytes.Equal(historyKey(n, at)[1:], k[1:]) {
			t.Errorf("%x is %d %d", k, n, at)
		}
		if end := after(k); end != nil && bytes.Compare(k, end) >= 0 {
			t.Errorf("%x does not lie behind %x", end, k)
		}
	})
}

func FuzzMarks(f *testing.F) {
	whole := make([]byte, marksBytes)
	copy(whole, marksHead("boot", 5))
	f.Add(whole[:64], 0)
	f.Add(whole[:64], marksBytes)
	f.Add([]byte(marksMagic+"12345678\xff\xff"), marksBytes)
	f.Fuzz(func(t *testing.T, head []byte, size int) {
		b := make([]byte, min(max(size, len(head)), marksBytes))
		copy(b, head)
		old := decodeMarks(b, "boot")
		if _, known := old.of(&slotRef{Life: old.life, Index: 3, Seq: 77}); known {
			t.Error("an empty slot proves something")
		}
	})
}

// FuzzOwnKey holds that no two operations have one key.
func FuzzOwnKey(f *testing.F) {
	f.Add("ann", "op", "an", "nop")
	f.Fuzz(func(t *testing.T, o1, id1, o2, id2 string) {
		k1 := operationKey(keyOperation, protocol.OwnerID(o1), protocol.OperationID(id1))
		k2 := operationKey(keyOperation, protocol.OwnerID(o2), protocol.OperationID(id2))
		if bytes.Equal(k1, k2) != (o1 == o2 && id1 == id2) {
			t.Errorf("%q %q and %q %q", o1, id1, o2, id2)
		}
	})
}

func checkDecoded(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Errorf("the error is %v", err)
	}
	return err == nil
}
