package daemon

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"reins/actors/index"
	"reins/actors/scope"
	"reins/persistence"
	"reins/protocol"
)

// store fits the one store to what each part asks of it.
type store struct {
	*persistence.Store
	log     *slog.Logger
	running *sync.WaitGroup
	records sync.Map // protocol.ResourceID → *stored: what of each was stored last
}

// stored is the record of a resource that was stored last.
type stored struct {
	mu   sync.Mutex
	last protocol.Record // guarded by mu
}

// Admit implements scope.Store.
func (s *store) Admit(op scope.Op, gen protocol.Generation, epoch, reserve protocol.Epoch) (scope.Mark, *protocol.Problem) {
	mark, err := s.Store.Admit(persistence.Admission{Owner: op.Key.Owner, Operation: op.Key.ID, Resource: op.Request.Resource, Generation: gen,
		Method: op.Request.Method, ContentHash: op.Hash, At: now(), Epoch: epoch, EpochReserve: reserve, UserTurn: op.UserTurn})
	if err != nil {
		return nil, storageProblem(err)
	}
	return mark, nil
}

func storageProblem(err error) *protocol.Problem {
	message := protocol.ReasonStorageUnavailable.Sentence()
	if !errors.Is(err, persistence.ErrStorageUnavailable) {
		message += " (" + err.Error() + ")"
	}
	return &protocol.Problem{Reason: protocol.ReasonStorageUnavailable, Message: message}
}

// Finish implements scope.Store.
func (s *store) Finish(op scope.Op, r protocol.Receipt) error {
	return s.Store.Finish(persistence.Ending{Owner: op.Key.Owner, Receipt: r, ContentHash: op.Hash, At: now()})
}

// Reserve implements scope.Store.
func (s *store) Reserve(r protocol.ResourceID, upTo protocol.Epoch) error {
	return s.ReserveEpoch(r, upTo)
}

// History implements scope.Store and supervisors.Store: it is not worth failing for.
func (s *store) History(h protocol.HistoryEntry) {
	s.running.Go(func() {
		if err := s.AppendHistory(h); err != nil {
			s.log.Debug("history not written", "error", err)
		}
	})
}

// Entries implements broker.Store.
func (s *store) Entries(q protocol.HistoryQuery) ([]protocol.HistoryEntry, error) {
	return s.Store.History(q)
}

// PutRecord implements supervisors.Store and broker.Store. Both store the same
// records: one that was overtaken on its way here is not stored any more, since
// the later one has all that it has, and closed stays closed.
func (s *store) PutRecord(r protocol.Record) error {
	v, _ := s.records.LoadOrStore(r.ID, &stored{})
	was := v.(*stored)
	was.mu.Lock()
	defer was.mu.Unlock()
	closed := was.last.Lifecycle == protocol.LifecycleClosed && r.Lifecycle != protocol.LifecycleClosed
	if closed || r.Lifecycle != protocol.LifecycleClosed && r.Changed < was.last.Changed {
		return nil
	}
	if err := s.PutDescriptor(persistence.Descriptor{Record: r}); err != nil {
		return err
	}
	was.last = r
	return nil
}

// Operation implements broker.Store.
func (s *store) Operation(o protocol.OwnerID, id protocol.OperationID) (index.Stored, error) {
	st, known, err := s.Store.Operation(o, id)
	return index.Stored{Known: known, Hash: st.ContentHash, Receipt: st.Receipt}, err
}

// cookies keeps one profile's cookies.
type cookies struct{ s *persistence.Store }

const profile = "default"

func (c cookies) Load() ([]byte, bool, error) { return c.s.Cookies(profile) }
func (c cookies) Save(b []byte) error         { return c.s.PutCookies(profile, b) }
func (c cookies) MarkClean(clean bool) error  { return c.s.MarkClean(profile, clean) }

func now() protocol.Time { return protocol.Time(time.Now().UnixMilli()) }
