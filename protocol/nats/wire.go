package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

// The bodies of requests that package protocol has no type for.
type (
	operationMessage struct {
		OperationID protocol.OperationID `json:"operation_id"`
	}
	resourceMessage struct {
		Resource protocol.ResourceID `json:"resource"`
	}
	noMessage struct{}
)

// The bodies of answers that package protocol has no type for.
type (
	problemAnswer struct {
		Problem *protocol.Problem `json:"problem,omitempty"`
	}
	resourcesAnswer struct {
		Resources []protocol.Record `json:"resources"`
		Problem   *protocol.Problem `json:"problem,omitempty"`
	}
	historyAnswer struct {
		History []protocol.HistoryEntry `json:"history"`
		Problem *protocol.Problem       `json:"problem,omitempty"`
	}
	statusAnswer struct {
		protocol.Status
		Problem *protocol.Problem `json:"problem,omitempty"`
	}
)

func problemOf(why protocol.Reason, format string, a ...any) *protocol.Problem {
	if format == "" {
		return &protocol.Problem{Reason: why, Message: why.Sentence()}
	}
	return &protocol.Problem{Reason: why, Message: fmt.Sprintf(format, a...)}
}

// envelope is what the headers of a request say.
type envelope struct {
	caller  protocol.Caller
	expires time.Time // zero for hello
}

// openEnvelope reads the headers of a request of an owner.
func openEnvelope(owner protocol.OwnerID, h gonats.Header, hello bool) (envelope, *protocol.Problem) {
	e := envelope{caller: protocol.Caller{Owner: owner}}
	if hello {
		return e, nil
	}
	if v := h.Get(HeaderVersion); v != strconv.Itoa(protocol.Version) {
		return e, problemOf(protocol.ReasonVersion, "The header %s is %.20q; this daemon speaks version %d. Use the client that belongs to it.",
			HeaderVersion, v, protocol.Version)
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{HeaderConnection, &e.caller.Connection}, {HeaderUserTurn, &e.caller.UserTurn}} {
		v := h.Get(f.name)
		if v != "" && protocol.CheckID(f.name, v) != nil {
			return e, problemOf(protocol.ReasonBadRequest, "The header %s must be 1 to %d bytes of printable ASCII without spaces.", f.name, protocol.MaxIDBytes)
		}
		*f.to = v
	}
	if e.caller.UserTurn == "" {
		e.caller.UserTurn = e.caller.Connection
	}
	ms, err := strconv.ParseInt(h.Get(HeaderExpires), 10, 64)
	if err != nil || ms <= 0 {
		return e, problemOf(protocol.ReasonBadRequest, "The header %s is missing or no number: say when the request is too late, in milliseconds since 1970.", HeaderExpires)
	}
	e.expires = time.UnixMilli(ms)
	return e, nil
}

// sealEnvelope writes the headers that openEnvelope reads.
func sealEnvelope(connection, turn string, expires time.Time) gonats.Header {
	h := gonats.Header{}
	h.Set(HeaderVersion, strconv.Itoa(protocol.Version))
	h.Set(HeaderConnection, connection)
	if turn != "" {
		h.Set(HeaderUserTurn, turn)
	}
	h.Set(HeaderExpires, strconv.FormatInt(expires.UnixMilli(), 10))
	return h
}

// errAnswer: an answer came and is none of ours.
var errAnswer = errors.New("the answer cannot be read; use the client that belongs to the daemon")

// splitAnswer parts an answer into its JSON and the bytes beside it.
func splitAnswer(h gonats.Header, data []byte) (body, image []byte, err error) {
	v := h.Get(HeaderJSONLength)
	if v == "" {
		return data, nil, nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil || n > uint64(len(data)) {
		return nil, nil, fmt.Errorf("%s is %.20q in a message of %d bytes: %w", HeaderJSONLength, v, len(data), errAnswer)
	}
	if int(n) == len(data) {
		return data, nil, nil
	}
	return data[:n:n], data[n:], nil
}

// decodeAnswer reads an answer into a value of its type. Fields that are not
// known are left out: a daemon may say more than its client understands.
func decodeAnswer[T any](h gonats.Header, data []byte) (answer T, image []byte, err error) {
	body, image, err := splitAnswer(h, data)
	if err != nil {
		return answer, nil, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		var none T
		return none, nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return answer, image, nil
}

// clockOf reads the daemon's clock out of an answer.
func clockOf(h gonats.Header) (time.Time, bool) {
	ms, err := strconv.ParseInt(h.Get(HeaderNow), 10, 64)
	return time.UnixMilli(ms), err == nil && ms > 0
}

// decodeFrame reads a preview frame.
func decodeFrame(h gonats.Header) (protocol.FrameHeader, error) {
	var f protocol.FrameHeader
	if err := json.Unmarshal([]byte(h.Get(HeaderFrame)), &f); err != nil {
		return protocol.FrameHeader{}, fmt.Errorf("the header of a frame cannot be read: %w", err)
	}
	if !isToken(f.Resource) {
		return protocol.FrameHeader{}, errors.New("the header of a frame names no resource")
	}
	return f, nil
}
