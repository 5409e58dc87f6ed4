package supervisors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"reins/actors/broker"
	"reins/actors/scope"
	"reins/actors/target"
	"reins/protocol"
	"reins/targets"
)

// tell writes what the supervisor knows into the record, and has it stored.
func (a *targetActor) tell(c Tell) {
	a.Directory.Update(a.id, func(e *broker.Entry) {
		r := &e.Record
		r.Lifecycle, r.Reason, r.Message, r.Preview = c.Lifecycle, c.Reason, c.Message, c.Lifecycle == protocol.LifecycleReady
		if c.Lifecycle == protocol.LifecycleReady {
			e.Incarnation, e.Gen, r.Generation = a.live, c.Gen, c.Gen
			r.Dialog = nil
			if a.live != nil {
				a.confirm(r, a.live.Snapshot())
			}
		}
	})
	event := map[protocol.Lifecycle]string{protocol.LifecycleReady: "opened", protocol.LifecycleFailed: "failed",
		protocol.LifecycleClosed: "closed", protocol.LifecycleRestoring: "fence"}[c.Lifecycle]
	if event != "" {
		a.Store.History(protocol.HistoryEntry{At: protocol.Time(time.Now().UnixMilli()), Event: event, Resource: a.id,
			Generation: c.Gen, Reason: c.Reason, Message: c.Message})
	}
	a.unsaved = true
	a.save()
}

// confirm takes a confirmed URL and title over into the record; they always agree.
func (a *targetActor) confirm(r *protocol.Record, p protocol.Page) {
	r.Dialog = p.Dialog
	if p.URL == "" {
		return
	}
	r.URL, r.URLRedacted = protocol.SanitiseURL(p.URL)
	r.Origin, r.Title = protocol.Origin(r.URL), p.Title
}

// save stores the record, one write at a time, the newest last.
func (a *targetActor) save() {
	if a.saving || !a.unsaved || a.st.Phase() == PhaseClosing {
		return // the end of what is under way leads here again
	}
	e, ok := a.Directory.Get(a.id)
	if !ok {
		return
	}
	a.saving, a.unsaved = true, false
	a.work("storing the record", func() any {
		err := a.Store.PutRecord(e.Record)
		if err != nil {
			a.Logger.Warn("record not stored", "resource", a.id, "error", err)
		}
		return saved{ok: err == nil}
	}, func(string) any { return saved{} })
}

// happened takes what the target did by itself.
func (a *targetActor) happened(ctx actor.Context, m target.Happened) {
	if m.Gen != a.st.Generation() {
		return
	}
	switch m.Event.Kind {
	case targets.EventCrashed:
		a.step(ctx, Crash{Gen: m.Gen, Reason: m.Event.Reason, Message: m.Event.Message})
		return
	case targets.EventGone:
		a.step(ctx, Gone{Gen: m.Gen})
		return
	case targets.EventNavigated:
		ctx.Send(a.scope, scope.Disturbed{Gen: m.Gen, Document: m.Event.Page.Document})
	}
	before, _ := a.Directory.Get(a.id)
	now := a.Directory.Update(a.id, func(e *broker.Entry) { a.confirm(&e.Record, m.Event.Page) })
	if now.URL != before.Record.URL || now.Title != before.Record.Title {
		a.unsaved = true
		a.save()
	}
}

// shut stores that the target is closed, and then closes it.
func (a *targetActor) shut(c ShutTarget) {
	if a.saving {
		a.shutting = &c // after it: what is being stored says that the target is open
		return
	}
	inc, id := a.live, a.id
	e, _ := a.Directory.Get(id)
	record := e.Record
	record.Lifecycle, record.Reason, record.Message, record.HeldBy, record.Dialog = protocol.LifecycleClosed, "", "", "", nil
	done := a.closings
	a.closings = nil
	a.work("closing", func() any {
		o := closed()
		ok := a.Store.PutRecord(record) == nil
		if ok {
			c2, cancel := context.WithTimeout(context.Background(), closeWithin)
			defer cancel()
			if inc != nil {
				if err := inc.Close(c2); err != nil && a.Host.Destroy(c2, id) != nil {
					a.Logger.Warn("the page did not close in time; it ends with its browser", "resource", id, "error", err)
				}
			}
		} else {
			o = targets.Outcome{State: protocol.StateFailed, Reason: protocol.ReasonStorageUnavailable, LastDone: -1,
				Message: "That it is closed could not be stored, so it stays open."}
		}
		for _, d := range done {
			d(o)
		}
		return Shut{OK: ok}
	}, func(string) any { return Shut{} })
}
