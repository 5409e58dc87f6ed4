package broker

import "reins/protocol"

// keepViewport notes the size that an applied request gave its Page, so that a
// later incarnation has it, too.
func (b *Broker) keepViewport(r protocol.Request) {
	for _, p := range primitives(r) {
		if p.Method != protocol.MethodViewport {
			continue
		}
		a, err := protocol.Arguments[protocol.ViewportArguments](p.Arguments)
		if err != nil {
			continue
		}
		v := &protocol.Viewport{Width: a.Width, Height: a.Height, Scale: a.Scale}
		if v.Scale == 0 {
			v.Scale = 1
		}
		record := b.Directory.Update(r.Resource, func(e *Entry) { e.Record.Viewport = v })
		if err := b.Store.PutRecord(record); err != nil {
			b.Logger.Warn("a viewport is not stored; the Page returns in its old size", "resource", r.Resource, "error", err)
		}
	}
}

// primitives are the single steps of a request: itself, or what its list holds.
func primitives(r protocol.Request) []protocol.Primitive {
	if r.Method != protocol.MethodBatch {
		return []protocol.Primitive{{Method: r.Method, Arguments: r.Arguments}}
	}
	batch, err := protocol.Arguments[protocol.BatchArguments](r.Arguments)
	if err != nil {
		return nil
	}
	return batch.Primitives
}
