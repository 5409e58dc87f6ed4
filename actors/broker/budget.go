package broker

import (
	"fmt"
	"sync"
	"time"

	"reins/protocol"
)

// budgets counts what each user turn has spent. A refusal spends nothing back:
// a write counts when it is asked for.
type budgets struct {
	writes, urls int // −1: none

	mu sync.Mutex
	by map[turn]*spent // guarded by mu
}

type turn struct {
	owner protocol.OwnerID
	name  string
}

type spent struct {
	writes int
	urls   map[protocol.ResourceID]map[string]bool
	last   time.Time
}

// turnMemory is how long an unused turn's budget is remembered.
const turnMemory = 24 * time.Hour

// spend takes a request's share of its turn's budget.
func (b *budgets) spend(c protocol.Caller, r protocol.Request) *protocol.Problem {
	name := c.UserTurn
	if name == "" {
		name = c.Connection
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[turn]*spent{}
	}
	k := turn{c.Owner, name}
	s := b.by[k]
	if s == nil {
		s = &spent{urls: map[protocol.ResourceID]map[string]bool{}}
		b.by[k] = s
	}
	s.last = time.Now()
	n := 1
	if r.Method == protocol.MethodBatch {
		if args, err := protocol.Arguments[protocol.BatchArguments](r.Arguments); err == nil {
			n = len(args.Primitives)
		}
	}
	if b.writes >= 0 && s.writes+n > b.writes {
		return &protocol.Problem{Reason: protocol.ReasonBudget, Message: fmt.Sprintf("This user turn has spent %d of its %d writes. A new message of the person opens a new budget.", s.writes, b.writes)}
	}
	if r.Method == protocol.MethodNavigate && b.urls >= 0 {
		args, err := protocol.Arguments[protocol.NavigateArguments](r.Arguments)
		if err == nil {
			seen := s.urls[r.Resource]
			u := withoutFragment(args.URL)
			if !seen[u] && len(seen) >= b.urls {
				return &protocol.Problem{Reason: protocol.ReasonBudget, Message: fmt.Sprintf("This user turn has opened %d distinct addresses on this Page, which is its budget. A new message of the person opens a new one.", len(seen))}
			}
			if seen == nil {
				seen = map[string]bool{}
				s.urls[r.Resource] = seen
			}
			seen[u] = true
		}
	}
	s.writes += n
	return nil
}

func withoutFragment(u string) string {
	for i := range u {
		if u[i] == '#' {
			return u[:i]
		}
	}
	return u
}

func (b *budgets) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.by {
		if now.Sub(s.last) > turnMemory {
			delete(b.by, k)
		}
	}
}
