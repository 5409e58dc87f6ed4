package chaos

import (
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"reins/protocol"
)

// orderWithin bounds the search for an order. With the ledger's positions it
// takes milliseconds; not knowing is a failure.
const orderWithin = 20 * time.Second

// effect is one operation as the search for an order sees it: where the ledger
// has it on its page, and under which generation it was.
type effect struct {
	operation  protocol.OperationID
	page       string
	generation protocol.Generation
	first, n   int // positions first to first+n−1 of the page
}

type laneState struct {
	generation protocol.Generation
	n          int
}

// lane is what one page may go through: one operation after the other, each in
// the ledger where those before it end, and no generation after a later one.
var lane = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, o := range all {
			page := o.Input.(effect).page
			by[page] = append(by[page], o)
		}
		out := make([][]porcupine.Operation, 0, len(by))
		for _, part := range by {
			out = append(out, part)
		}
		return out
	},
	Init: func() any { return laneState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, e := state.(laneState), input.(effect)
		if e.first != s.n || e.generation < s.generation {
			return false, state
		}
		return true, laneState{generation: e.generation, n: s.n + e.n}
	},
}

// order holds I10. What had no effect takes no place in the order.
func (c *checker) order() {
	position := map[string]int{}
	at := map[int]int{} // position in the ledger → position on its page
	for _, e := range c.entries {
		at[e.Position] = position[e.Page]
		position[e.Page]++
	}
	var ops []porcupine.Operation
	for i, call := range c.h.calls {
		entries := c.by[string(call.Operation)]
		if len(entries) == 0 {
			continue
		}
		e := effect{operation: call.Operation, page: entries[0].Page, generation: call.Generation, first: at[entries[0].Position], n: len(entries)}
		if last := at[entries[len(entries)-1].Position]; last != e.first+e.n-1 {
			c.add("%s: other operations are between its parts in the ledger, from [%s] to [%s]", call.Operation, entries[0], entries[len(entries)-1])
			return
		}
		ended := int64(math.MaxInt64) // nobody knows when an uncertain one ended
		told := c.h.toldOf(call.Operation)
		if t, ok := final(told); ok {
			e.generation = t.Receipt.Generation
			if t.Receipt.State != protocol.StateUncertain {
				ended = t.At.UnixNano()
			}
		}
		// Each operation is its own client: it may be asked for again by another.
		ops = append(ops, porcupine.Operation{ClientId: i, Input: e, Call: slices.MinFunc(call.Sent, time.Time.Compare).UnixNano(), Return: ended})
	}
	switch porcupine.CheckOperationsTimeout(lane, ops, orderWithin) {
	case porcupine.Illegal:
		c.add("there is no order of the operations that agrees with the ledger, the generations and the time they were asked and answered")
	case porcupine.Unknown:
		c.add("no order of the operations was found within %v", orderWithin)
	}
}
