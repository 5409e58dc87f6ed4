package persistence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"reins/protocol"
)

// disk is a small disk that can be filled.
type disk struct {
	dir  string
	opts Options
	// fill leaves so many bytes free; negative: everything that was filled is given back.
	fill func(leave int64) error
}

const diskBytes = 16 << 20

// TestDiskFull holds I1, I3, I6 and I9 on a disk that is counted by the test.
func TestDiskFull(t *testing.T) {
	if err := diskFull(countedDisk(t.TempDir())); err != nil {
		t.Fatal(err)
	}
}

func countedDisk(dir string) disk {
	q := newQuotaFS(newRealFS(), diskBytes)
	var taken int64
	return disk{dir: dir, opts: Options{FS: q, Free: q.free}, fill: func(leave int64) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.used -= taken
		taken = 0
		if leave >= 0 {
			taken = max(0, q.total-q.used-leave)
			q.used += taken
		}
		return nil
	}}
}

// fullRun is a run of diskFull.
type fullRun struct {
	disk
	s    *Store
	want map[string]string
}

// diskFull fills the disk in steps, and looks at what the store still does.
func diskFull(d disk) (err error) {
	d.opts.poll = 10 * time.Millisecond
	r := &fullRun{disk: d, want: map[string]string{"refused": ""}}
	if r.s, err = Open(d.dir, d.opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.s.Close()) }()
	const under = 400
	for i := range under {
		if _, err := r.s.Admit(admission("ann", fmt.Sprint("op", i))); err != nil {
			return err
		}
		r.want[fmt.Sprint("op", i)] = "open"
	}
	for _, step := range []func() error{r.belowReserve, func() error { return r.noneLeft(under) }, r.openElsewhere, r.spaceReturns} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := r.s.Close(); err != nil {
		return err
	}
	for id, state := range r.want {
		// Marks are only mapped on the real file system; none was set.
		if state == "open" && d.opts.FS == nil {
			r.want[id] = "cancelled/recovered"
		} else if state == "open" {
			r.want[id] = "uncertain/recovered"
		}
	}
	if r.s, err = Open(d.dir, d.opts); err != nil {
		return err
	}
	return errors.Join(r.states("after a restart"), r.s.Check(io.Discard))
}

// states compares every operation with what is known of it.
func (r *fullRun) states(when string) error {
	for id, want := range r.want {
		st, known, err := r.s.Operation("ann", protocol.OperationID(id))
		got := ""
		switch {
		case err != nil:
			return fmt.Errorf("%s: look up %s: %w", when, id, err)
		case known && st.Receipt == nil:
			got = "open"
		case known:
			got = string(st.Receipt.State) + "/" + string(st.Receipt.Reason)
		}
		if got != want {
			return fmt.Errorf("%s: %s is %q, not %q", when, id, got, want)
		}
	}
	_, err := r.s.Descriptors()
	return err
}

// belowReserve: admissions end, everything else goes on.
func (r *fullRun) belowReserve() error {
	if err := r.fill(diskBytes / 40); err != nil {
		return err
	}
	if err := soon("the store notices", func() bool { reason, _ := r.s.Health(); return reason != "" }); err != nil {
		return err
	}
	if _, err := r.s.Admit(admission("ann", "refused")); !errors.Is(err, ErrStorageUnavailable) {
		return fmt.Errorf("below the reserve an admission ends with %v", err)
	}
	if err := r.states("below the reserve"); err != nil {
		return err
	}
	r.want["op0"] = "applied/"
	_, generation := r.s.RaiseGeneration("pg_1")
	if err := errors.Join(r.s.Finish(ending("ann", "op0", protocol.StateApplied)), generation,
		r.s.PutDescriptor(Descriptor{Record: protocol.Record{ID: "pg_1"}}), r.s.ReserveEpoch("pg_1", 9000)); err != nil {
		return fmt.Errorf("below the reserve: %w", err)
	}
	if err := r.s.PutCookies("default", []byte("x")); !errors.Is(err, ErrStorageUnavailable) {
		return fmt.Errorf("cookies took the space of outcomes: %v", err)
	}
	return r.states("below the reserve")
}

// noneLeft: the ballast lets some outcomes be stored; the others are remembered.
func (r *fullRun) noneLeft(under int) error {
	stored, remembered := 0, 0
	for i := 1; i < under-50; i++ {
		if i%100 == 1 {
			if err := r.fill(0); err != nil {
				return err
			}
		}
		id := fmt.Sprint("op", i)
		e := ending("ann", id, protocol.StateApplied)
		e.Receipt.Message = string(make([]byte, 2000))
		switch err := r.s.Finish(e); {
		case err == nil:
			stored, r.want[id] = stored+1, "applied/"
		case errors.Is(err, ErrStorageUnavailable):
			remembered, r.want[id] = remembered+1, "uncertain/outcome_not_stored"
		default:
			return fmt.Errorf("no space left: %w", err)
		}
	}
	if _, err := r.s.Admit(admission("ann", "refused")); !errors.Is(err, ErrStorageUnavailable) {
		return fmt.Errorf("no space left, and an admission ends with %v", err)
	}
	if stored == 0 || remembered == 0 {
		return fmt.Errorf("no space left: %d outcomes stored, %d remembered: the ballast or the end of it shows nothing", stored, remembered)
	}
	if reason, _ := r.s.Health(); reason != protocol.ReasonStorageUnavailable {
		return fmt.Errorf("no space left, and it is said to be well")
	}
	return r.states("no space left")
}

// openElsewhere: opening on a full disk ends, with a word on why.
func (r *fullRun) openElsewhere() error {
	s, err := Open(filepath.Join(filepath.Dir(r.dir), "other"), r.opts)
	if err == nil {
		err = s.Close()
	}
	if !errors.Is(err, ErrStorageUnavailable) {
		return fmt.Errorf("a store was opened on a full disk: %v", err)
	}
	return nil
}

// spaceReturns: the same process goes on, and nothing that was told changes.
func (r *fullRun) spaceReturns() error {
	if err := r.fill(-1); err != nil {
		return err
	}
	if err := soon("an admission is taken", func() bool {
		_, err := r.s.Admit(admission("ann", "after"))
		return err == nil
	}); err != nil {
		return err
	}
	r.want["after"] = "open"
	if err := soon("it is well and the ballast is back", func() bool {
		reason, _ := r.s.Health()
		_, err := r.s.space.fs.Stat(r.s.space.ballast)
		return reason == "" && err == nil
	}); err != nil {
		return err
	}
	if err := soon("what is owed is paid", func() bool { r.s.mu.Lock(); defer r.s.mu.Unlock(); return len(r.s.owed) == 0 }); err != nil {
		return err
	}
	if err := r.s.Finish(ending("ann", "op390", protocol.StateApplied)); err != nil {
		return err
	}
	r.want["op390"] = "applied/"
	return errors.Join(r.states("with space again"), r.s.Check(io.Discard))
}

// soon asks again until it holds.
func soon(what string, holds func() bool) error {
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("it did not come to: %s", what)
		}
	}
	return nil
}
