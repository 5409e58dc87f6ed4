package persistence

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"reins/protocol"
)

// keptModel is a model of what the store has to know of an owner's operations.
type keptModel struct {
	s       *Store
	fs      *vfs.MemFS
	now     time.Time                // the clock
	elapsed time.Duration            // real time since the beginning
	outcome map[string][]keptOutcome // by owner, in their order
	open    map[string]string        // owner of each operation under way, by id
	next    int
	jumped  bool // the clock went back: times in the store are in the future
}

type keptOutcome struct {
	id    string
	state protocol.State
	at    time.Duration
	free  bool // a sweep was allowed to forget it
}

const modelKept = 5

func (m *keptModel) fresh() string {
	m.next++
	return fmt.Sprint("op", m.next)
}

func (m *keptModel) reopen(t *rapid.T) {
	if m.s != nil {
		if err := m.s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, id := range slices.Sorted(maps.Keys(m.open)) { // recovery goes by the order of keys
			owner := m.open[id]
			m.outcome[owner] = append(m.outcome[owner], keptOutcome{id: id, state: protocol.StateUncertain, at: m.elapsed})
			delete(m.open, id)
		}
	}
	s, err := Open("store", Options{FS: m.fs, kept: modelKept, Now: func() time.Time { return m.now }})
	if err != nil {
		t.Fatal(err)
	}
	m.s = s
}

func (m *keptModel) finish(t *rapid.T, owner, id string) {
	state := rapid.SampledFrom([]protocol.State{protocol.StateApplied, protocol.StateFailed, protocol.StateCancelled, protocol.StateUncertain}).Draw(t, "state")
	if err := m.s.Finish(ending(owner, id, state)); err != nil {
		t.Fatal(err)
	}
	m.outcome[owner] = append(m.outcome[owner], keptOutcome{id: id, state: state, at: m.elapsed})
	delete(m.open, id)
}

// check holds I8, and that nothing is kept for ever.
func (m *keptModel) check(t *rapid.T, swept bool) {
	for owner, all := range m.outcome {
		for i, o := range all {
			st, known, err := m.s.Operation(protocol.OwnerID(owner), protocol.OperationID(o.id))
			if err != nil {
				t.Fatal(err)
			}
			must := len(all)-i <= modelKept || m.elapsed-o.at <= protocol.ReceiptsAge
			all[i].free = o.free || swept && !must
			switch {
			case must && !known && !o.free:
				t.Fatalf("%s of %s, %d before the last, %v old, is forgotten", o.id, owner, len(all)-i, m.elapsed-o.at)
			case known && (st.Receipt == nil || st.Receipt.State != o.state):
				t.Fatalf("%s of %s is %+v, not %s", o.id, owner, st.Receipt, o.state)
			case swept && !must && known && !m.jumped:
				t.Fatalf("%s of %s is still kept", o.id, owner)
			}
		}
	}
	for id, owner := range m.open {
		if st, known, err := m.s.Operation(protocol.OwnerID(owner), protocol.OperationID(id)); err != nil || !known || st.Receipt != nil {
			t.Fatalf("%s under way is %+v %v %v", id, st, known, err)
		}
	}
}

// TestRetention compares dedupe index and sweep with a model.
func TestRetention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &keptModel{fs: vfs.NewMem(), now: time.UnixMilli(1_800_000_000_000), outcome: map[string][]keptOutcome{}, open: map[string]string{}}
		m.reopen(t)
		defer func() {
			if err := m.s.Close(); err != nil {
				t.Error(err)
			}
		}()
		owners := rapid.SampledFrom([]string{"ann", "an", "n", "bob\x00", "", "\xff\xff"})
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				owner, id := owners.Draw(t, "owner"), m.fresh()
				if _, err := m.s.Admit(admission(owner, id)); err != nil {
					t.Fatal(err)
				}
				m.open[id] = owner
			},
			"run": func(t *rapid.T) {
				owner := owners.Draw(t, "owner")
				for range rapid.IntRange(1, 2*modelKept).Draw(t, "operations") {
					m.finish(t, owner, m.fresh())
				}
			},
			"finish": func(t *rapid.T) {
				if ids := slices.Sorted(maps.Keys(m.open)); len(ids) > 0 {
					m.finish(t, m.open[ids[0]], ids[0])
				}
			},
			"time": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(0, 40).Draw(t, "hours")) * time.Hour
				m.now, m.elapsed = m.now.Add(d), m.elapsed+d
			},
			"clock set back": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "often") == 0 {
					m.now, m.jumped = m.now.Add(-50*time.Hour), true
				}
			},
			"sweep": func(t *rapid.T) {
				m.s.Sweep(m.now)
				m.check(t, true)
			},
			"reopen": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "often") == 0 {
					m.reopen(t)
				}
			},
			"": func(t *rapid.T) { m.check(t, false) },
		})
		if err := m.s.Check(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRetentionInNumbers holds the real numbers: 2,048 receipts an owner, and
// all of the last 24 hours; what the clock says of the future ages too.
func TestRetentionInNumbers(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	put := func(owner string, n int, at time.Time) {
		r := s.do(&job{build: func(tx *tx) error {
			for i := range n {
				id := operationID{protocol.OwnerID(owner), protocol.OperationID(fmt.Sprint(at.Unix(), "-", i))}
				rec := operation{Hash: make([]byte, 32), Finished: protocol.Time(at.UnixMilli()), Receipt: &protocol.Receipt{State: protocol.StateApplied}}
				if err := tx.finish(id, rec, "receipt"); err != nil {
					return err
				}
			}
			return nil
		}})
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	count := func(prefix byte, owner protocol.OwnerID) (n int) {
		h, err := s.borrow()
		if err != nil {
			t.Fatal(err)
		}
		defer s.giveBack(h)
		if err := scan(h.db, ownerPrefix(prefix, owner), nil, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	put("old", 100, now.Add(-25*time.Hour))
	put("old", 2040, now.Add(-25*time.Hour-time.Minute))
	put("young", 2100, now.Add(-23*time.Hour))
	put("future", 2060, now.Add(1000*time.Hour))
	for range 5 {
		s.Sweep(now)
	}
	for owner, want := range map[protocol.OwnerID]int{"old": 2048, "young": 2100, "future": 2060} {
		if got, order := count(keyOperation, owner), count(keyTurn, owner); got != want || order != want {
			t.Errorf("%s has %d receipts and %d places, not %d", owner, got, order, want)
		}
	}
	for range 5 {
		s.Sweep(now.Add(25 * time.Hour))
	}
	for _, owner := range []protocol.OwnerID{"old", "young", "future"} {
		if got := count(keyOperation, owner); got != 2048 {
			t.Errorf("a day later %s has %d receipts", owner, got)
		}
	}
	if err := s.Check(io.Discard); err != nil {
		t.Error(err)
	}
}

// TestHistoryIsBounded holds the bounds of age and size.
func TestHistoryIsBounded(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	fs := vfs.NewMem()
	s := mustOpen(t, "store", Options{FS: fs, HistoryBytes: 10_000, HistoryAge: 10 * time.Hour})
	length := func() (n int, oldest protocol.Time) {
		all, err := s.History(protocol.HistoryQuery{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 {
			oldest = all[0].At
		}
		return len(all), oldest
	}
	put := func(n int, at time.Time) {
		for range n {
			if err := s.AppendHistory(protocol.HistoryEntry{At: protocol.Time(at.UnixMilli()), Event: "late", Resource: "pg_1", Message: "0123456789"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(20, now.Add(-11*time.Hour))
	put(30, now)
	s.Sweep(now)
	if n, oldest := length(); n != 30 || oldest != protocol.Time(now.UnixMilli()) {
		t.Errorf("by age: %d, the oldest of %d", n, oldest)
	}
	put(200, now)
	s.Sweep(now)
	n, _ := length()
	v, _ := encode(protocol.HistoryEntry{At: protocol.Time(now.UnixMilli()), Event: "late", Resource: "pg_1", Message: "0123456789"})
	if want := 10_000 / len(v); n != want {
		t.Errorf("by size: %d, not %d", n, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, "store", Options{FS: fs, HistoryBytes: 10_000, HistoryAge: 10 * time.Hour})
	put(1, now.Add(20*time.Hour))
	s.Sweep(now.Add(20 * time.Hour))
	if n, _ := length(); n != 1 {
		t.Errorf("after a restart: %d", n)
	}
	s.Sweep(now.Add(40 * time.Hour))
	put(2, now.Add(40*time.Hour))
	if n, _ := length(); n != 2 {
		t.Errorf("after all was swept: %d", n)
	}
}
