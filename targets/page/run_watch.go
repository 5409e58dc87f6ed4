package page

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// sighting is how often one kind of trusted event came, and how often it met
// the intended element.
type sighting struct {
	N       int     `json:"n"`
	Hit     int     `json:"hit"`
	Same    bool    `json:"same"` // without an intended element: met the same one as the first
	On      *sketch `json:"on"`   // what the last one met instead
	Stopped bool    `json:"stopped"`
	First   *sketch `json:"first"` // without an intended element: what it met
}

// evidence is what was seen of one piece of input.
type evidence struct {
	Seen      map[string]sighting `json:"seen"`
	There     bool                `json:"there"` // the element is still there and visible
	Over      bool                `json:"over"`  // the pointer is over the element
	lost      bool                // the document went away before it could be asked
	elsewhere *sketch             // what input met in a frame above
}

func (e evidence) hit(kind string) bool { return e.Seen[kind].Hit > 0 }

// any reports whether any trusted event of these kinds came at all.
func (e evidence) any(kinds ...string) bool {
	for _, k := range kinds {
		if e.Seen[k].N > 0 {
			return true
		}
	}
	return false
}

// watch looks for trusted events on an element of a frame, in it and in the
// frames above, which show what went elsewhere.
type watch struct {
	r       *run
	frame   *frame
	id      string
	above   map[*frame]string
	reports <-chan bindingCall
	stop    func()
	stopped bool
}

// cancel ends the watch's subscription. It may be called twice.
func (w *watch) cancel() {
	if !w.stopped {
		w.stopped = true
		w.stop()
	}
}

// watch begins to look. h is the element's handle; 0 means any element.
func (r *run) watch(f *frame, h int) (*watch, error) {
	w := &watch{r: r, frame: f, above: map[*frame]string{}}
	w.reports, w.stop = r.p.subscribeBinding()
	if err := f.world(r.ctx, "watch", &w.id, h); err != nil {
		w.cancel()
		return nil, r.seenTrouble(err)
	}
	if w.id == "" {
		w.cancel()
		return nil, errFrameGone
	}
	others := r.p.frames() // without an intended element it may be in any frame
	if h != 0 {
		others = nil
		for g := f.parent; g != nil; g = g.parent {
			others = append(others, g)
		}
	}
	for _, g := range others {
		var id string
		if g == f {
			continue
		}
		if err := g.world(r.ctx, "watch", &id, 0); err == nil {
			w.above[g] = id
		}
	}
	return w, nil
}

// seenTrouble keeps the cause of a read that failed because of a dialog.
func (r *run) seenTrouble(err error) error {
	if dialogCut(r.ctx, err) {
		return errDialog
	}
	return err
}

// end asks what was seen: by a round trip behind the input, or, where the
// document went away meanwhile, by what its world reported on the way, up to the
// event that the input leads to.
func (w *watch) end(ctx context.Context, until ...string) evidence {
	defer w.cancel()
	var e *evidence
	err := w.frame.world(ctx, "seenBy", &e, w.id, false)
	if err == nil && e != nil {
		for g, id := range w.above {
			var up *evidence
			if g.world(ctx, "seenBy", &up, id, false) == nil && up != nil {
				e.merge(*up)
			}
		}
		return *e
	}
	return w.told(until...)
}

// merge takes in what another frame saw.
func (e *evidence) merge(o evidence) {
	for k, s := range o.Seen {
		if s.N == 0 || k == "mousemove" || k == "pointermove" {
			continue
		}
		e.elsewhere = &sketch{Tag: "in another frame", Role: "an element"}
		if s.First != nil {
			e.elsewhere = s.First
		}
		if _, ok := e.Seen[k]; !ok {
			s.Hit = 0
			e.Seen[k] = s
		}
	}
}

// toldMost is how long the reports of a world that ended may still be on their way.
const toldMost = 100 * time.Millisecond

// told gathers what the world reported before it ended or stood still, up to the
// event that the input leads to.
func (w *watch) told(until ...string) evidence {
	e := evidence{Seen: map[string]sighting{}, lost: true}
	timer := time.NewTimer(toldMost)
	defer timer.Stop()
	for {
		select {
		case c, ok := <-w.reports:
			if !ok {
				return e
			}
			var rep report
			if json.Unmarshal([]byte(c.payload), &rep) != nil || rep.Watch != w.id {
				continue
			}
			s := e.Seen[rep.Type]
			s.N++
			if rep.Hit {
				s.Hit++
			}
			e.Seen[rep.Type] = s
			if slices.Contains(until, rep.Type) {
				return e
			}
		case <-timer.C:
			return e
		}
	}
}

// met names what took the input instead of the intended element.
func (e evidence) met(kinds ...string) string {
	for _, k := range kinds {
		if s := e.Seen[k]; s.On != nil {
			return s.On.words()
		}
	}
	if e.elsewhere != nil {
		return e.elsewhere.words()
	}
	return "something else"
}
