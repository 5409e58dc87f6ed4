package supervisors

import "time"

// Policy limits restarts: the backoff doubles from First to Last, and more than
// Max restarts within Period mean failed. The zero value takes the defaults.
type Policy struct {
	First  time.Duration // 100 ms
	Last   time.Duration // 10 s
	Max    int           // 5
	Period time.Duration // 60 s
}

func (p Policy) withDefaults() Policy {
	if p.First == 0 {
		p.First = 100 * time.Millisecond
	}
	if p.Last == 0 {
		p.Last = 10 * time.Second
	}
	if p.Max == 0 {
		p.Max = 5
	}
	if p.Period == 0 {
		p.Period = 60 * time.Second
	}
	return p
}

// restarts remembers when something was restarted.
type restarts struct{ at []time.Time }

// next counts a restart and returns how long to wait before it, or false when
// there were too many.
func (r *restarts) next(p Policy, now time.Time) (time.Duration, bool) {
	kept := r.at[:0]
	for _, t := range r.at {
		if now.Sub(t) < p.Period {
			kept = append(kept, t)
		}
	}
	r.at = append(kept, now)
	n := len(r.at)
	if n > p.Max {
		return 0, false
	}
	wait := p.First
	for i := 1; i < n && wait < p.Last; i++ {
		wait *= 2
	}
	return min(wait, p.Last), true
}

// undo takes the last restart back: it turned out to be another's.
func (r *restarts) undo() {
	if n := len(r.at); n > 0 {
		r.at = r.at[:n-1]
	}
}

func (r *restarts) forget() { r.at = nil }
