package persistence

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// job is a write that waits. build adds it to the batch: it does so after
// everything that can fail, so that a job that is refused adds nothing.
type job struct {
	build func(*tx) error
	// synced: the answer means that it survives the machine.
	synced bool
	// optional: refused while space is below the reserve.
	optional bool
	answer   chan result // has room for one
}

// result of a job. tried: it was in a batch that was given to the database, so
// that an error leaves open whether it is on the disk.
type result struct {
	err   error
	tried bool
}

// write is the writer: the only goroutine that writes. It ends on quit.
func (h *handle) write() {
	defer close(h.done)
	for {
		select {
		case <-h.quit:
			h.refuseRest()
			return
		case j := <-h.queue:
			h.commit(h.gather(j))
		}
	}
}

// gather takes what else waits, so that it shares the sync.
func (h *handle) gather(first *job) []*job {
	group := []*job{first}
	for len(group) < groupMost {
		select {
		case j := <-h.queue:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

func (h *handle) refuseRest() {
	for {
		select {
		case j := <-h.queue:
			j.answer <- result{err: errStopped}
		default:
			return
		}
	}
}

// commit stores a group of jobs in one batch, and answers each.
func (h *handle) commit(group []*job) {
	answered := 0 // of the jobs left in group
	tried := false
	defer func() {
		if r := recover(); r != nil {
			h.fs.freeze(fmt.Errorf("the writer panicked: %v", r))
			h.opts.Logger.Error("the writer of the store panicked", "panic", r, "stack", string(debug.Stack()))
			for _, j := range group[answered:] {
				j.answer <- result{err: unavailable(h.fs.cause()), tried: tried}
			}
		}
	}()
	group = h.admit(group)
	t := h.newTx()
	built, synced := group[:0:0], false
	for answered < len(group) {
		j := group[answered]
		if err := j.build(t); err != nil {
			j.answer <- result{err: err}
		} else {
			built, synced = append(built, j), synced || j.synced
		}
		answered++
	}
	group, answered, tried = built, 0, true
	err := t.store(synced)
	for answered < len(group) {
		group[answered].answer <- result{err: err, tried: true}
		answered++
	}
}

// admit refuses what the disk does not allow, and returns the rest.
func (h *handle) admit(group []*job) []*job {
	var refuse error
	if cause := h.fs.cause(); cause != nil {
		refuse = unavailable(cause)
	}
	h.space.look(0) // a disk can fill up within milliseconds, and asking costs microseconds
	message, low := h.space.isLow()
	rest := make([]*job, 0, len(group))
	for _, j := range group {
		switch {
		case refuse != nil:
			j.answer <- result{err: refuse}
		case low && j.optional:
			j.answer <- result{err: fmt.Errorf("%w (%s)", ErrStorageUnavailable, message)}
		default:
			rest = append(rest, j)
		}
	}
	return rest
}

// errStopped is the answer of a writer that ends to what it did not take.
var errStopped = errors.New("the writer has ended")

var errSlow = errors.New("a write did not end in time")

// do has a job done by the writer and waits for its answer. A disk that does not
// answer in time is a failing one: the store freezes.
func (s *Store) do(j *job) result {
	s.mu.Lock()
	h := s.handle
	s.mu.Unlock()
	if h == nil {
		return result{err: ErrClosed}
	}
	j.answer = make(chan result, 1)
	timer := time.NewTimer(s.opts.deadline)
	defer timer.Stop()
	select {
	case h.queue <- j:
	case <-h.done:
		return s.ended()
	case <-timer.C:
		h.fs.freeze(errSlow)
		return result{err: unavailable(errSlow)}
	}
	select {
	case r := <-j.answer:
		return s.translate(r)
	case <-h.done:
		select {
		case r := <-j.answer:
			return s.translate(r)
		default:
			return s.ended()
		}
	case <-timer.C:
		h.fs.freeze(errSlow)
		return result{err: unavailable(errSlow), tried: true}
	}
}

// translate says of a writer that has ended why.
func (s *Store) translate(r result) result {
	if errors.Is(r.err, errStopped) {
		return s.ended()
	}
	return r
}

// ended is the answer of a writer that has ended before it took the job.
func (s *Store) ended() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return result{err: ErrClosed}
	}
	return result{err: unavailable(errReopening)}
}
