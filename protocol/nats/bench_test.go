package nats_test

import (
	"context"
	"testing"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// BenchmarkDo is a write through client, bus and service to a handler that does
// nothing; BenchmarkRaw the same bytes through the bus alone.
func BenchmarkDo(b *testing.B) {
	w := newWorld(b)
	c := w.client("alice")
	w.handler.set(func() { w.handler.do = receiptOnly })
	ctx := b.Context()
	for b.Loop() {
		if _, err := c.Do(ctx, reload("op-1")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRaw(b *testing.B) {
	w := newWorld(b)
	answer := encoded(b, receiptOnly(b.Context(), protocol.Caller{}, nil))
	if _, err := w.bus.Subscribe("reins.v1.alice.raw", func(m *gonats.Msg) { _ = m.Respond(answer) }); err != nil {
		b.Fatal(err)
	}
	if err := w.bus.Flush(); err != nil {
		b.Fatal(err)
	}
	nc, _ := w.raw("alice")
	body := encoded(b, reload("op-1"))
	ctx := b.Context()
	for b.Loop() {
		if _, err := nc.RequestWithContext(ctx, "reins.v1.alice.raw", body); err != nil {
			b.Fatal(err)
		}
	}
}

func receiptOnly(context.Context, protocol.Caller, []byte) protocol.Receipt {
	return protocol.Receipt{OperationID: "op-1", Resource: "pg_1", Generation: 1, State: protocol.StateApplied, Effect: protocol.EffectDelivered}
}
