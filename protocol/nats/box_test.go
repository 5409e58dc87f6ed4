package nats

import (
	"testing"

	"reins/protocol"
)

// TestBoxIsBounded holds I5 at the bounds: the oldest cues go, of a resource the
// latest stays, and each that went is counted.
func TestBoxIsBounded(t *testing.T) {
	b := newBox()
	for i := range MaxCuesWaiting + 10 {
		b.putCue(protocol.Cue{Sequence: uint64(i)})
	}
	for i := range 10 {
		b.putFrame(protocol.FrameHeader{Resource: "pg_1", Sequence: uint64(i)}, nil)
		b.putRecord(protocol.Record{ID: "pg_1", Generation: protocol.Generation(i)})
	}
	for i := range MaxFramesWaiting {
		b.putFrame(protocol.FrameHeader{Resource: protocol.ResourceID(rune('a' + i))}, nil)
	}
	if d, want := b.counts(), (Dropped{Cues: 10, Frames: 9 + 1}); d != want {
		t.Errorf("dropped %+v, want %+v", d, want)
	}
	for i := range MaxCuesWaiting {
		if got, ok := b.take(); !ok || got.cue == nil || got.cue.Sequence != uint64(i+10) {
			t.Fatalf("cue %d is %+v", i, got)
		}
	}
	if got, ok := b.take(); !ok || got.record == nil || got.record.Generation != 9 {
		t.Errorf("the record is %+v, want the latest", got.record)
	}
	n := 0
	for got, ok := b.take(); ok; got, ok = b.take() {
		if got.frame == nil || got.frame.header.Resource == "pg_1" {
			t.Fatalf("got %+v, want a frame of those that came last", got)
		}
		n++
	}
	if n != MaxFramesWaiting {
		t.Errorf("%d frames waited, want %d", n, MaxFramesWaiting)
	}
	b.close()
	b.putCue(protocol.Cue{})
	if _, ok := b.take(); ok {
		t.Error("a closed box took something in")
	}
}

// TestLatestKeepsItsPlace holds that a resource that changes all the time
// neither overtakes the others nor waits behind them.
func TestLatestKeepsItsPlace(t *testing.T) {
	l := latest[int]{limit: 3}
	for _, p := range []struct {
		id   protocol.ResourceID
		v    int
		want placed
	}{{"a", 1, added}, {"b", 2, added}, {"a", 3, replaced}, {"c", 4, added}, {"d", 5, overflowed}} {
		if got := l.put(p.id, p.v); got != p.want {
			t.Errorf("putting %s: %d, want %d", p.id, got, p.want)
		}
	}
	for _, want := range []int{2, 4, 5} {
		if got, ok := l.take(); !ok || got != want {
			t.Errorf("took %d, want %d", got, want)
		}
	}
}
