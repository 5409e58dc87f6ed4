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
	n := len(primitives(r))
	if b.writes >= 0 && s.writes+n > b.writes {
		return &protocol.Problem{Reason: protocol.ReasonBudget, Message: fmt.Sprintf("This user turn has spent %d of its %d writes. A new message of the person opens a new budget.", s.writes, b.writes)}
	}
	if p := b.spendURLs(s, r); p != nil {
		return p
	}
	s.writes += n
	return nil
}

// spendURLs counts the distinct addresses that a request opens on its Page.
func (b *budgets) spendURLs(s *spent, r protocol.Request) *protocol.Problem {
	if b.urls < 0 {
		return nil
	}
	seen := s.urls[r.Resource]
	fresh := map[string]bool{}
	for _, u := range addresses(r) {
		if u = withoutFragment(u); !seen[u] {
			fresh[u] = true
		}
	}
	if len(fresh) > 0 && len(seen)+len(fresh) > b.urls {
		return &protocol.Problem{Reason: protocol.ReasonBudget, Message: fmt.Sprintf("This user turn has opened %d distinct addresses on this Page, and its budget is %d. A new message of the person opens a new one.", len(seen), b.urls)}
	}
	if seen == nil {
		seen = map[string]bool{}
		s.urls[r.Resource] = seen
	}
	for u := range fresh {
		seen[u] = true
	}
	return nil
}

// addresses are the URLs that a request names; those of a list, too.
func addresses(r protocol.Request) []string {
	var all []string
	for _, p := range primitives(r) {
		if p.Method != protocol.MethodNavigate {
			continue
		}
		if a, err := protocol.Arguments[protocol.NavigateArguments](p.Arguments); err == nil {
			all = append(all, a.URL)
		}
	}
	return all
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
