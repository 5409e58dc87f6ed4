package supervisors

import (
	"sort"

	"reins/protocol"
)

// RestoreWidth is how many targets are made at a time.
const RestoreWidth = 2

// RestoreState is the state of the coordinator of restores.
type RestoreState struct {
	width   int
	waiting []wish
	making  map[protocol.ResourceID]bool
	again   map[protocol.ResourceID]wish
	order   uint64
}

// wish is a target that wants to be made: wanted ones first (somebody waits or
// looks), then the most recently used, then by arrival.
type wish struct {
	resource protocol.ResourceID
	wanted   bool
	recent   protocol.Time
	order    uint64
}

// NewRestore makes the coordinator's state; width 0 is RestoreWidth.
func NewRestore(width int) RestoreState {
	if width == 0 {
		width = RestoreWidth
	}
	return RestoreState{width: width, making: map[protocol.ResourceID]bool{}, again: map[protocol.ResourceID]wish{}}
}

// RestoreEvent is what happens to the coordinator.
type RestoreEvent interface{ restoreEvent() }

type (
	// Wish asks for a turn. A second wish for a target that is being made leads to one more turn after it.
	Wish struct {
		Resource protocol.ResourceID
		Wanted   bool
		Recent   protocol.Time
	}
	// Made gives the turn back.
	Made struct{ Resource protocol.ResourceID }
	// Forget drops whatever the target wished.
	Forget struct{ Resource protocol.ResourceID }
)

func (Wish) restoreEvent()   {}
func (Made) restoreEvent()   {}
func (Forget) restoreEvent() {}

// RestoreStep advances the coordinator and returns whose turn it is now.
func RestoreStep(r *RestoreState, ev RestoreEvent) []protocol.ResourceID {
	switch e := ev.(type) {
	case Wish:
		r.order++
		w := wish{resource: e.Resource, wanted: e.Wanted, recent: e.Recent, order: r.order}
		if r.making[e.Resource] {
			w.wanted = w.wanted || r.again[e.Resource].wanted
			r.again[e.Resource] = w
			return nil
		}
		r.put(w)
	case Made:
		delete(r.making, e.Resource)
		if w, ok := r.again[e.Resource]; ok {
			delete(r.again, e.Resource)
			r.put(w)
		}
	case Forget:
		delete(r.making, e.Resource)
		delete(r.again, e.Resource)
		for i, w := range r.waiting {
			if w.resource == e.Resource {
				r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
				break
			}
		}
	}
	var turns []protocol.ResourceID
	for len(r.making) < r.width && len(r.waiting) > 0 {
		w := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.making[w.resource] = true
		turns = append(turns, w.resource)
	}
	return turns
}

// put queues a wish, or raises the one that is queued already.
func (r *RestoreState) put(w wish) {
	for i, old := range r.waiting {
		if old.resource == w.resource {
			r.waiting[i].wanted = old.wanted || w.wanted
			r.sort()
			return
		}
	}
	r.waiting = append(r.waiting, w)
	r.sort()
}

func (r *RestoreState) sort() {
	sort.SliceStable(r.waiting, func(i, j int) bool {
		a, b := r.waiting[i], r.waiting[j]
		if a.wanted != b.wanted {
			return a.wanted
		}
		if a.recent != b.recent {
			return a.recent > b.recent
		}
		return a.order < b.order
	})
}
