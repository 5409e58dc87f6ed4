package daemon

import (
	"bytes"
	"context"
	"image/jpeg"
	"sync"
	"testing"

	"reins/protocol"
	"reins/protocol/nats"
)

// Cues come in order and never carry what is typed; frames come only while
// somebody demands them.
func TestCuesAndFrames(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/watched")
	var mu sync.Mutex
	var cues []protocol.Cue
	frames := make(chan protocol.FrameHeader, 64)
	up, done := make(chan struct{}, 1), make(chan error, 1)
	got := make(chan struct{}, 64)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		done <- c.Watch(ctx, nats.Watching{Resource: id,
			Up: func() { up <- struct{}{} },
			Cue: func(q protocol.Cue) {
				if q.Method != protocol.MethodFill {
					return // the last word of the opening may come late
				}
				mu.Lock()
				cues = append(cues, q)
				mu.Unlock()
				got <- struct{}{}
			},
			Frame: func(h protocol.FrameHeader, image []byte) {
				if _, err := jpeg.Decode(bytes.NewReader(image)); err != nil {
					t.Errorf("a frame is no picture: %v", err)
				}
				select {
				case frames <- h:
				default:
				}
			}})
	}()
	<-up
	is(t, c.do(id, protocol.MethodFill, m{"locator": m{"label": "Name"}, "text": "hunter2-is-secret"}), protocol.StateApplied, "")
	for range 3 {
		<-got
	}
	mu.Lock()
	for i, phase := range []protocol.CuePhase{protocol.CueAttempted, protocol.CueDispatched, protocol.CueAcknowledged} {
		if cues[i].Phase != phase || cues[i].Method != protocol.MethodFill || cues[i].Generation != 1 {
			t.Errorf("cue %d is %s, want %s", i, show(cues[i]), phase)
		}
		if bytes.Contains([]byte(show(cues[i])), []byte("hunter2")) {
			t.Errorf("a cue carries what was typed: %s", show(cues[i]))
		}
	}
	mu.Unlock()
	select {
	case h := <-frames:
		t.Fatalf("a frame came though nobody demanded one: %s", show(h))
	default:
	}
	if err := c.Demand(ctx, protocol.Demand{Resource: id, Width: 320}); err != nil {
		t.Fatal(err)
	}
	h := <-frames
	if h.Resource != id || h.Generation != 1 || h.Sequence == 0 || h.Width > 320 || h.Width == 0 || h.Transform.A == 0 {
		t.Fatalf("the frame's header: %s", show(h))
	}
	cancel()
	<-done
}

// History tells what happened, by the receipts, without what was typed.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	id := c.opened(w.web.URL + "/page/history")
	is(t, c.do(id, protocol.MethodFill, m{"locator": m{"label": "Name"}, "text": "hunter2-is-secret"}), protocol.StateApplied, "")
	is(t, c.do(id, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	h, err := c.History(context.Background(), protocol.HistoryQuery{Resource: id})
	if err != nil {
		t.Fatal(err)
	}
	var methods []protocol.Method
	for _, e := range h {
		if e.Event == "receipt" {
			methods = append(methods, e.Method)
		}
	}
	if show(methods) != `["open","fill","click"]` || bytes.Contains([]byte(show(h)), []byte("hunter2")) {
		t.Fatalf("history: %s", show(h))
	}
}
