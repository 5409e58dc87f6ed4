package chaos

import (
	"context"
	"fmt"
	"time"

	"reins/protocol"
)

// bystands is how many clicks are made on one page of a bystander.
const bystands = 100

// Stood is what came of a bystander.
type Stood struct {
	Result
	Slowest time.Duration
}

// Bystander clicks on a page of its own, while others of the same browser are
// broken, until stop is closed or its page is used up. Nothing of what befalls
// the others may be felt here: all is applied, in the first generation and load.
func Bystander(ctx context.Context, client Client, l *Ledger, name string, stop <-chan struct{}) (r Stood) {
	began := time.Now()
	var calls []Call
	for i := range bystands {
		calls = append(calls, click(fmt.Sprintf("%s-%d", name, i)))
	}
	shut := Call{Operation: protocol.OperationID(name + "-close"), Method: protocol.MethodClose}
	w := newWorld(nil, l, name, "", append(calls, shut)...)
	w.client = client
	done := 0
	defer func() {
		w.finish(&r.Result, shut.Operation, done)
		if n := l.Loads(name); n != 1 {
			r.Violations = append(r.Violations, fmt.Sprintf("%s: it was loaded %d times", name, n))
		}
		r.Took = time.Since(began)
	}()
	if r.Err = w.open(ctx, l.Page(name, calls...)); r.Err != nil {
		return r
	}
	for _, c := range calls {
		select {
		case <-stop:
			r.Err = w.must(ctx, shut.Operation)
			return r
		default:
		}
		from := time.Now()
		if r.Err = w.must(ctx, c.Operation); r.Err != nil {
			return r
		}
		r.Slowest = max(r.Slowest, time.Since(from))
		done++
		if r.Err = pause(ctx, 100*time.Millisecond); r.Err != nil {
			return r
		}
	}
	r.Err = w.must(ctx, shut.Operation)
	return r
}
