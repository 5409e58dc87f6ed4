package protocol

import (
	"testing"
	"time"
)

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		method     Method
		ms         int64
		queue, run time.Duration
	}{
		{MethodClick, 0, 120 * time.Second, 45 * time.Second},
		{MethodBatch, 0, 120 * time.Second, 45 * time.Second},
		{MethodOpen, 0, 120 * time.Second, 45 * time.Second},
		{MethodNavigate, 0, 120 * time.Second, 20 * time.Second},
		{MethodReload, 0, 120 * time.Second, 20 * time.Second},
		{"none", 0, 120 * time.Second, 45 * time.Second},
		{MethodClick, 500, 500 * time.Millisecond, 500 * time.Millisecond},
		{MethodNavigate, 600_000, 120 * time.Second, 600 * time.Second},
	} {
		queue, run := Deadline(Request{Method: c.method, DeadlineMS: c.ms})
		if queue != c.queue || run != c.run {
			t.Errorf("%s %d ms: got %v %v, want %v %v", c.method, c.ms, queue, run, c.queue, c.run)
		}
	}
}

func TestDeadlineOfRead(t *testing.T) {
	for _, c := range []struct {
		method Method
		ms     int64
		want   time.Duration
	}{
		{MethodObserve, 0, 6 * time.Second}, {MethodScreenshot, 0, 6 * time.Second}, {MethodVerify, 0, 6 * time.Second},
		{MethodWait, 0, 30 * time.Second}, {MethodWait, 250, 250 * time.Millisecond},
	} {
		if got := DeadlineOfRead(ReadRequest{Method: c.method, DeadlineMS: c.ms}); got != c.want {
			t.Errorf("%s %d ms: got %v, want %v", c.method, c.ms, got, c.want)
		}
	}
}
