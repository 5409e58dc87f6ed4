package index

import (
	"time"

	"reins/protocol"
)

// Key names an operation.
type Key struct {
	Owner protocol.OwnerID
	ID    protocol.OperationID
}

// Stored is what the store knows of an operation.
type Stored struct {
	Known   bool
	Hash    [32]byte
	Receipt *protocol.Receipt // nil: admitted, without an outcome
}

// Entry is an operation under way. Done is closed when Receipt is set.
type Entry struct {
	Hash     [32]byte
	Resource protocol.ResourceID
	Done     chan struct{}
	Receipt  protocol.Receipt
}

// Verdict says what to do with a request.
type Verdict int

// The verdicts.
const (
	New       Verdict = iota // run it; End must follow
	Wait                     // the same is under way: wait for Entry.Done
	Answered                 // Receipt is the answer
	Reused                   // the id was used for other content
	Overtaken                // its cancel came first
)

// Index is the state. The zero value is ready.
type Index struct {
	under     map[Key]*Entry
	kept      map[Key]*Entry // outcomes the store could not take
	cancelled map[Key]time.Time
	order     []remembered // of cancelled, the oldest first; some are over already
}

// remembered is when a cancel came that found nothing to cancel.
type remembered struct {
	key Key
	at  time.Time
}

// maxCancelled is how many such cancels are remembered; the oldest go first.
const maxCancelled = 4096

// Begin binds an id, or says what it is bound to. stored is what the store has
// for the key; it is asked for only when the id is not in memory.
func (x *Index) Begin(k Key, hash [32]byte, now time.Time, stored func() (Stored, error)) (Verdict, *Entry, error) {
	x.forget(now)
	if e := x.Find(k); e != nil {
		if e.Hash != hash {
			return Reused, e, nil
		}
		return Wait, e, nil
	}
	s, err := stored()
	if err != nil {
		return New, nil, err
	}
	if s.Known {
		if s.Hash != hash {
			return Reused, nil, nil
		}
		return Answered, &Entry{Receipt: Settled(k, s.Receipt)}, nil
	}
	if _, ok := x.cancelled[k]; ok {
		delete(x.cancelled, k)
		return Overtaken, nil, nil
	}
	if x.under == nil {
		x.under = map[Key]*Entry{}
	}
	e := &Entry{Hash: hash, Done: make(chan struct{})}
	x.under[k] = e
	return New, e, nil
}

// Find returns the operation under way, or one whose outcome could not be stored.
func (x *Index) Find(k Key) *Entry {
	if e := x.under[k]; e != nil {
		return e
	}
	return x.kept[k]
}

// End sets the answer of an operation that was New.
func (x *Index) End(k Key, r protocol.Receipt, recorded bool) {
	e := x.under[k]
	if e == nil {
		return
	}
	delete(x.under, k)
	e.Receipt = r
	if !recorded && dispatched(r.State) {
		if x.kept == nil {
			x.kept = map[Key]*Entry{}
		}
		x.kept[k] = e
	}
	close(e.Done)
}

// Cancel finds the operation under way; when there is none, and the store has
// none, the cancel is remembered.
func (x *Index) Cancel(k Key, now time.Time, stored func() (Stored, error)) (under *Entry, answered *protocol.Receipt, err error) {
	if e := x.Find(k); e != nil {
		return e, nil, nil
	}
	s, err := stored()
	if err != nil {
		return nil, nil, err
	}
	if s.Known {
		r := Settled(k, s.Receipt)
		return nil, &r, nil
	}
	x.remember(k, now)
	return nil, nil, nil
}

// UnderWay is how many operations are under way.
func (x *Index) UnderWay() int { return len(x.under) }

// dispatched reports whether a receipt is of an operation that may have had an
// effect: its id stays bound, whether the store took the outcome or not.
func dispatched(s protocol.State) bool {
	return s == protocol.StateApplied || s == protocol.StateFailed || s == protocol.StateUncertain
}

func (x *Index) remember(k Key, now time.Time) {
	if x.cancelled == nil {
		x.cancelled = map[Key]time.Time{}
	}
	x.cancelled[k] = now
	x.order = append(x.order, remembered{k, now})
	x.forget(now)
}

// forget drops the cancels that are too old, and the oldest where there are too many.
func (x *Index) forget(now time.Time) {
	for len(x.order) > 0 {
		r := x.order[0]
		if len(x.order) <= maxCancelled && now.Sub(r.at) <= protocol.CancelMemory {
			return
		}
		x.order = x.order[1:]
		if x.cancelled[r.key].Equal(r.at) { // else it came again later, or was used
			delete(x.cancelled, r.key)
		}
	}
}

// Settled is the receipt of what the store has, also where it has no outcome.
func Settled(k Key, r *protocol.Receipt) protocol.Receipt {
	if r != nil {
		return *r
	}
	return protocol.Receipt{OperationID: k.ID, State: protocol.StateUncertain, Reason: protocol.ReasonOutcomeNotStored,
		Message: protocol.ReasonOutcomeNotStored.Sentence(), ObserveRequired: true}
}
