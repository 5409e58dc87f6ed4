package protocol

import "time"

// Deadline says how long a write may wait in the queue, and how long it may take
// from the head of the queue. A deadline in the request covers everything from
// admission: the operation ends when either run or the request's own deadline,
// counted from admission, has passed. Without one queue + run is the whole.
func Deadline(r Request) (queue, run time.Duration) {
	if r.DeadlineMS > 0 {
		whole := time.Duration(r.DeadlineMS) * time.Millisecond
		return min(whole, QueueTimeout), whole
	}
	if info, ok := r.Method.Info(); ok && info.Kind == KindWrite {
		return QueueTimeout, info.Run
	}
	return QueueTimeout, WriteDeadline
}

// DeadlineOfRead says how long a request to look may take from its arrival.
func DeadlineOfRead(r ReadRequest) time.Duration {
	if r.DeadlineMS > 0 {
		return time.Duration(r.DeadlineMS) * time.Millisecond
	}
	if info, ok := r.Method.Info(); ok && info.Kind == KindRead {
		return info.Run
	}
	return ReadDeadline
}
