package persistence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reins/protocol"
)

// TestOperation walks one operation from admission to receipt, over a restart.
func TestOperation(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	if got := stateOf(t, s, "ann", "op"); got != "" {
		t.Errorf("before: %s", got)
	}
	m, err := s.Admit(admission("ann", "op"))
	if err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, s, "ann", "op"); got != "open" {
		t.Errorf("admitted: %s", got)
	}
	if _, err := s.Admit(admission("ann", "op")); !errors.Is(err, ErrRecorded) {
		t.Errorf("admitted twice: %v", err)
	}
	m.Set()
	if err := s.Finish(ending("ann", "op", protocol.StateApplied)); err != nil {
		t.Fatal(err)
	}
	m.Set() // late: changes nothing
	if err := s.Finish(ending("ann", "op", protocol.StateFailed)); !errors.Is(err, ErrRecorded) {
		t.Errorf("finished twice: %v", err)
	}
	if _, err := s.Admit(admission("ann", "op")); !errors.Is(err, ErrRecorded) {
		t.Errorf("admitted after its end: %v", err)
	}
	if got := stateOf(t, s, "bob", "op"); got != "" {
		t.Errorf("another owner's: %s", got)
	}
	if err := s.Finish(ending("ann", "other", protocol.StateRefused)); err == nil {
		t.Error("a refusal was stored as an outcome")
	}
	if err := s.Finish(ending("ann", "never admitted", protocol.StateCancelled)); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(admission("ann", "late")); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if _, _, err := s.Operation("ann", "op"); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	s = mustOpen(t, dir, Options{})
	if got := stateOf(t, s, "ann", "op") + stateOf(t, s, "ann", "never admitted"); got != "applied/cancelled/" {
		t.Errorf("after a restart: %s", got)
	}
	if got := s.Recovered(); len(got) != 0 {
		t.Errorf("recovered %+v", got)
	}
}

// TestTwoSyncs holds I2: an operation syncs the log twice.
func TestTwoSyncs(t *testing.T) {
	counting := &syncCounter{FS: newRealFS()}
	s := mustOpen(t, t.TempDir(), Options{FS: counting})
	before := counting.syncs.Load()
	const n = 20
	for i := range n {
		id := fmt.Sprint("op", i)
		if _, err := s.Admit(admission("ann", id)); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
			t.Fatal(err)
		}
		if err := s.AppendHistory(protocol.HistoryEntry{Event: "late", Resource: "pg_1"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := counting.syncs.Load() - before; got != 2*n {
		t.Errorf("%d operations cost %d syncs", n, got)
	}
}

// TestGenerations holds I5.
func TestGenerations(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				g, err := s.RaiseGeneration("pg_1")
				if _, twice := all.LoadOrStore(g, true); err != nil || twice {
					t.Errorf("%d, twice %v: %v", g, twice, err)
				}
			}
		})
	}
	wg.Wait()
	record := protocol.Record{ID: "pg_1", Kind: protocol.KindPage, Title: "A", Generation: 4, Lifecycle: protocol.LifecycleReady}
	steps := []Descriptor{{Record: record, EpochReserve: 500}, {Record: record, EpochReserve: 20, ObserveRequired: true}}
	for _, d := range steps {
		if err := s.PutDescriptor(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []protocol.Epoch{400, 900, 3} {
		if err := s.ReserveEpoch("pg_1", e); err != nil {
			t.Fatal(err)
		}
	}
	a := admission("ann", "op")
	a.EpochReserve = 850
	if _, err := s.Admit(a); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		all, err := s.Descriptors()
		if err != nil || len(all) != 1 || all[0].Record.Generation != 80 || all[0].EpochReserve != 900 || !all[0].ObserveRequired || all[0].Record.Title != "A" {
			t.Errorf("%+v %v", all, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir, Options{})
	}
	if g, err := s.RaiseGeneration("pg_1"); g != 81 || err != nil {
		t.Errorf("%d %v", g, err)
	}
	record.Generation = 100
	if err := s.PutDescriptor(Descriptor{Record: record}); err != nil {
		t.Fatal(err)
	}
	if g, err := s.RaiseGeneration("pg_1"); g != 101 || err != nil {
		t.Errorf("%d %v", g, err)
	}
	if g, err := s.RaiseGeneration("pg_2"); g != 1 || err != nil {
		t.Errorf("the first is %d %v", g, err)
	}
}

func TestHistory(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	for i := range 250 {
		e := protocol.HistoryEntry{At: protocol.Time(i), Event: "late", Resource: protocol.ResourceID(fmt.Sprint("pg_", i%3)), Owner: protocol.OwnerID([]string{"ann", "b<b"}[i%2])}
		if err := s.AppendHistory(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		q           protocol.HistoryQuery
		n           int
		first, last protocol.Time
	}{
		{protocol.HistoryQuery{}, 100, 150, 249},
		{protocol.HistoryQuery{Limit: 5000}, 250, 0, 249},
		{protocol.HistoryQuery{Limit: 2}, 2, 248, 249},
		{protocol.HistoryQuery{Resource: "pg_1", Limit: 3}, 3, 241, 247},
		{protocol.HistoryQuery{Owner: "b<b", Limit: 2}, 2, 247, 249},
		{protocol.HistoryQuery{Owner: "ann", Resource: "pg_0", Limit: 1000}, 42, 0, 246},
		{protocol.HistoryQuery{Since: 240}, 10, 240, 249},
		{protocol.HistoryQuery{Resource: "pg"}, 0, 0, 0},
	} {
		got, err := s.History(c.q)
		if err != nil || len(got) != c.n || c.n > 0 && (got[0].At != c.first || got[c.n-1].At != c.last) {
			t.Errorf("%+v: %d entries, %v", c.q, len(got), err)
		}
	}
}

func TestCookies(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	if b, clean, err := s.Cookies("default"); b != nil || clean || err != nil {
		t.Error(b, clean, err)
	}
	big := bytes.Repeat([]byte("cookie "), 400<<10) // larger than what the database holds in memory
	for _, err := range []error{s.PutCookies("default", big), s.MarkClean("default", true), s.PutCookies("other", []byte("x")), s.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, dir, Options{})
	if b, clean, err := s.Cookies("default"); !bytes.Equal(b, big) || !clean || err != nil {
		t.Error(len(b), clean, err)
	}
	if err := s.MarkClean("default", false); err != nil {
		t.Fatal(err)
	}
	if _, clean, _ := s.Cookies("default"); clean {
		t.Error("still clean")
	}
	if b, clean, err := s.Cookies("other"); string(b) != "x" || clean || err != nil {
		t.Error(string(b), clean, err)
	}
}

// TestExport holds that no secret leaves, and that what leaves is whole.
func TestExport(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	e := ending("ann", "op", protocol.StateApplied)
	e.Receipt.ObservationToken = "ob_secret"
	for _, err := range []error{s.PutCookies("default", []byte("secret cookie")), s.Finish(e),
		s.PutDescriptor(Descriptor{Record: protocol.Record{ID: "pg_1", Generation: 2}, EpochReserve: 5})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := s.Export(&out); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for text := range strings.Lines(out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		kinds = append(kinds, l.What)
	}
	if want := []string{"store", "resource", "operation", "history"}; !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds)
	}
	if strings.Contains(out.String(), "secret") || bytes.Contains(out.Bytes(), s.HashKey()) {
		t.Errorf("a secret left: %s", &out)
	}
	out.Reset()
	if err := s.Check(&out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestCheckFindsWhatIsWrong breaks one thing at a time.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*tx){
		"an outcome that is lost":       func(t *tx) { t.delete(operationKey(keyOperation, "ann", "op")) },
		"an order that is lost":         func(t *tx) { t.delete(turnKey("ann", 1, 5)) },
		"a generation that is lost":     func(t *tx) { t.delete(named(keyGeneration, "pg_1")) },
		"an operation nobody recovers":  func(t *tx) { t.delete(operationKey(keyPending, "ann", "open")) },
		"a counter that is too short":   func(t *tx) { t.set(named(keyEpoch, "pg_1"), []byte{1}) },
		"a record of another resource":  func(t *tx) { t.set(named(keyRecord, "pg_2"), []byte(`{"record":{"id":"pg_1"}}`)) },
		"an operation that is not JSON": func(t *tx) { t.set(operationKey(keyOperation, "ann", "op"), []byte("{")) },
		"a history that is not JSON":    func(t *tx) { t.set(historyKey(0, 5), []byte("x")) },
		"a key without an owner":        func(t *tx) { t.set([]byte("o\xff"), nil) },
		"a key of no kind":              func(t *tx) { t.set([]byte("z"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, t.TempDir(), Options{})
			e := ending("ann", "op", protocol.StateApplied)
			e.At = 5
			_, err := s.Admit(admission("ann", "open"))
			for _, err := range []error{err, s.Finish(e), s.PutDescriptor(Descriptor{Record: protocol.Record{ID: "pg_1", Generation: 2}})} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Check(t.Output()); err != nil {
				t.Fatal(err)
			}
			if r := s.do(&job{build: func(t *tx) error { spoil(t); return nil }}); r.err != nil {
				t.Fatal(r.err)
			}
			if err := s.Check(t.Output()); !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestUnfitReceipt holds I3 for a receipt that cannot be written at all.
func TestUnfitReceipt(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	if _, err := s.Admit(admission("ann", "op")); err != nil {
		t.Fatal(err)
	}
	e := ending("ann", "op", protocol.StateApplied)
	e.Receipt.Candidates = []protocol.Control{{Bounds: [4]float64{math.NaN()}}}
	if err := s.Finish(e); err == nil {
		t.Error("no error")
	}
	if got := stateOf(t, s, "ann", "op"); got != "uncertain/outcome_not_stored" {
		t.Error(got)
	}
}

// TestSlots holds that the number of operations under way is bounded, and that
// slots come back.
func TestSlots(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	var taken []slotRef
	for {
		slot, ok := s.marks.take()
		if !ok {
			break
		}
		taken = append(taken, slot)
	}
	if len(taken) != slots {
		t.Errorf("%d slots", len(taken))
	}
	for range 2 {
		if _, err := s.Admit(admission("ann", "op")); !errors.Is(err, ErrStorageUnavailable) {
			t.Errorf("got %v", err)
		}
		if got := stateOf(t, s, "ann", "op"); got != "" {
			t.Error(got)
		}
		s.marks.release(taken[0])
		taken = taken[1:]
		if _, err := s.Admit(admission("ann", "other"+fmt.Sprint(len(taken)))); err != nil {
			t.Error(err)
		}
	}
	s.marks.release(taken[0])
	for i := range 3 {
		id := fmt.Sprint("op", i)
		if _, err := s.Admit(admission("ann", id)); err != nil {
			t.Error(err)
		}
		if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
			t.Error(err)
		}
	}
}

// TestFileModes holds that nobody else can read the store.
func TestFileModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	s := mustOpen(t, dir, Options{})
	if _, err := s.Admit(admission("ann", "op")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case path == dir && info.Mode().Perm() != 0o700:
			t.Errorf("the folder has mode %v", info.Mode())
		case filepath.Ext(path) == ".log" && info.Mode().Perm() != 0o600:
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHashKey holds that the key is random, and the same for the life of the store.
func TestHashKey(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	key := s.HashKey()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := mustOpen(t, dir, Options{}).HashKey(); len(key) != 32 || !bytes.Equal(key, again) {
		t.Errorf("%x, then %x", key, again)
	}
	if other := mustOpen(t, t.TempDir(), Options{}).HashKey(); bytes.Equal(key, other) {
		t.Error("two stores have one key")
	}
}

// TestConcurrentUse runs everything at once; the race detector judges.
func TestConcurrentUse(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Seams: protocol.Seams{Planted: map[protocol.Bug]bool{protocol.BugNoSync: true}}})
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 40 {
				id := fmt.Sprint(w, "-", i)
				m, err := s.Admit(admission("ann", id))
				if err != nil {
					t.Error(err)
					return
				}
				m.Set()
				if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
					t.Error(err)
				}
				if got := stateOf(t, s, "ann", id); got != "applied/" {
					t.Error(got)
				}
				if _, err := s.RaiseGeneration("pg_1"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			s.Sweep(time.Now())
			s.Health()
			if _, err := s.History(protocol.HistoryQuery{Limit: 50}); err != nil {
				t.Error(err)
			}
			if err := s.Check(new(bytes.Buffer)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}
