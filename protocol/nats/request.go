package nats

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// mayAnswer reports whether an answer would go to the inbox of the request's
// owner. The server checks what a connection publishes on, not what it names as
// the reply subject: that is done here (I1).
func mayAnswer(v *verb, owner protocol.OwnerID, reply string) bool {
	if reply == "" {
		return v.quiet
	}
	return strings.HasPrefix(reply, InboxPrefix(owner)+".")
}

// handle runs one request and answers it. A panic of the handler becomes an answer.
func (s *Service) handle(v *verb, owner protocol.OwnerID, m *gonats.Msg) {
	s.respond(m.Reply, s.guarded(
		func() answer { return s.answer(v, owner, m) },
		func() answer { return v.broken(m.Data) }))
}

// guarded turns a panic into an answer.
func (s *Service) guarded(do, broken func() answer) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			s.counts.panics.Add(1)
			s.Logger.Error("a request panicked", "panic", r, "stack", string(debug.Stack()))
			a = broken()
		}
	}()
	return do()
}

// answer checks what is true of every request, then calls the handler.
func (s *Service) answer(v *verb, owner protocol.OwnerID, m *gonats.Msg) answer {
	if len(m.Data) > protocol.MaxRequestBytes {
		return v.refuse(m.Data, problemOf(protocol.ReasonTooLarge, "The message has %d bytes; at most %d are taken. Send less, or in several operations.",
			len(m.Data), protocol.MaxRequestBytes))
	}
	e, p := openEnvelope(owner, m.Header, v.hello)
	if p != nil {
		return v.refuse(m.Data, p)
	}
	now := time.Now()
	end := now.Add(connectWithin)
	if !v.hello {
		if !now.Before(e.expires) {
			s.counts.late.Add(1)
			return v.refuse(m.Data, problemOf(protocol.ReasonDeadline, "The request came %d ms after it expired. Nothing happened; look, and decide again.",
				now.Sub(e.expires).Milliseconds()))
		}
		end = e.expires.Add(v.margin)
	}
	if last := now.Add(protocol.MaxDeadline + protocol.QueueTimeout); end.After(last) {
		end = last
	}
	ctx, cancel := context.WithDeadline(s.base, end)
	defer cancel()
	s.counts.requests.Add(1)
	return v.call(ctx, s.handler, e.caller, m.Data)
}

// respond sends an answer. One that does not fit into a message becomes a
// problem that says so; a receipt always fits.
func (s *Service) respond(reply string, a answer) {
	if reply == "" {
		return
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		s.Logger.Error("an answer cannot be written as JSON", "error", err)
		s.counts.lost.Add(1)
		return // silence: the caller's client says that the answer was lost, which is so
	}
	if int64(len(body)+len(a.image)) > s.limit {
		why := problemOf(protocol.ReasonTooLarge, "The answer has %d bytes; at most %d can be sent. Ask for less.", len(body)+len(a.image), s.limit)
		if len(a.image) > 0 {
			why = problemOf(protocol.ReasonImageTooLarge, "The picture has %d bytes; at most %d can be sent. Ask for jpeg or a smaller viewport.", len(a.image), s.limit)
		}
		a = refuseAny(nil, why)
		if body, err = json.Marshal(a.body); err != nil {
			s.counts.lost.Add(1)
			return
		}
	}
	m := &gonats.Msg{Subject: reply, Header: gonats.Header{}, Data: body}
	m.Header.Set(HeaderNow, strconv.FormatInt(time.Now().UnixMilli(), 10))
	if len(a.image) > 0 {
		m.Header.Set(HeaderJSONLength, strconv.Itoa(len(body)))
		m.Data = append(body, a.image...)
	}
	if err := s.nc.PublishMsg(m); err != nil {
		s.counts.lost.Add(1)
		s.Logger.Debug("an answer could not be sent", "reply", reply, "error", err)
	}
}
