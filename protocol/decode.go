package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// DecodeRequest reads one request for a write and checks everything that needs
// no look at the world: size, text, shape, names and ranges. On a problem the
// Request still has whatever well-formed ids could be read, so that the refusal
// can name them; nothing else in it may be used then.
func DecodeRequest(raw []byte) (Request, *Problem) {
	if p := checkMessage(raw, reflect.TypeFor[Request]()); p != nil {
		return idsOf(raw), p
	}
	var r Request
	if err := json.Unmarshal(raw, &r); err != nil {
		return idsOf(raw), problem(ReasonBadRequest, "The message is not a request: %v.", err)
	}
	if p := checkRequest(&r); p != nil {
		return idsOf(raw), p
	}
	return r, nil
}

// DecodeRead reads one request to look, as [DecodeRequest] does for writes.
func DecodeRead(raw []byte) (ReadRequest, *Problem) {
	refused := func(p *Problem) (ReadRequest, *Problem) {
		ids := idsOf(raw)
		return ReadRequest{Resource: ids.Resource, Generation: ids.Generation, Method: ids.Method}, p
	}
	if p := checkMessage(raw, reflect.TypeFor[ReadRequest]()); p != nil {
		return refused(p)
	}
	var r ReadRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return refused(problem(ReasonBadRequest, "The message is not a request to look: %v.", err))
	}
	if p := checkRead(&r); p != nil {
		return refused(p)
	}
	return r, nil
}

// Arguments decodes arguments that [DecodeRequest] or [DecodeRead] accepted.
// Empty ones are the zero value.
func Arguments[T any](raw json.RawMessage) (T, error) {
	var a T
	if len(raw) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("arguments were not validated before use: %w", err)
	}
	return a, nil
}

// checkMessage holds what is true of every message: bounded, text, strict JSON
// with the fields of t and no others.
func checkMessage(raw []byte, t reflect.Type) *Problem {
	if len(raw) > MaxRequestBytes {
		return problem(ReasonTooLarge, "The message has %d bytes; at most %d are taken. Send less, or in several operations.",
			len(raw), MaxRequestBytes)
	}
	if p := checkText(raw); p != nil {
		return p
	}
	if fault := strictJSON(raw, t, "", 0); fault != "" {
		return problem(ReasonBadRequest, "%s", fault)
	}
	return nil
}

func checkRequest(r *Request) *Problem {
	if p := checkID("operation_id", string(r.OperationID)); p != nil {
		return p
	}
	info, p := findMethod(r.Method, KindWrite)
	if p != nil {
		return p
	}
	if !info.NeedsResource && (r.Resource != "" || r.Generation != 0 || r.Observation != "") {
		return problem(ReasonBadRequest, "%s makes a new resource: leave out resource, generation and observation.", r.Method)
	}
	if info.NeedsResource {
		if p := checkID("resource", string(r.Resource)); p != nil {
			return p
		}
	}
	if info.NeedsGeneration && r.Generation < 1 {
		return problem(ReasonBadRequest, "generation is missing: a write names the incarnation it is meant for, from 1. Observe to learn it.")
	}
	if r.Observation != "" {
		if p := checkID("observation", string(r.Observation)); p != nil {
			return p
		}
	}
	if p := checkDeadline(r.DeadlineMS); p != nil {
		return p
	}
	f := &faults{path: "arguments"}
	checkArguments(info, r.Arguments, f)
	if f.first != nil {
		return f.first
	}
	if f.point && r.Observation == "" {
		return problem(ReasonTokenRequired, "%s", ReasonTokenRequired.Sentence())
	}
	return nil
}

func checkRead(r *ReadRequest) *Problem {
	info, p := findMethod(r.Method, KindRead)
	if p != nil {
		return p
	}
	if p := checkID("resource", string(r.Resource)); p != nil {
		return p
	}
	if p := checkDeadline(r.DeadlineMS); p != nil {
		return p
	}
	f := &faults{path: "arguments"}
	checkArguments(info, r.Arguments, f)
	return f.first
}

// checkArguments decodes the arguments of one method strictly and checks their ranges.
func checkArguments(info MethodInfo, raw json.RawMessage, f *faults) {
	raw = orEmpty(raw)
	if fault := strictJSON(raw, info.Arguments, f.path, requireFields); fault != "" {
		f.add("%s", fault)
		return
	}
	arguments := reflect.New(info.Arguments)
	if err := json.Unmarshal(raw, arguments.Interface()); err != nil {
		f.add("%s: %v.", f.path, err)
		return
	}
	if b, ok := arguments.Interface().(*BatchArguments); ok {
		checkBatch(b, f)
		return
	}
	info.check(arguments.Interface(), f)
}

// checkBatch is apart from the table's checks because it refers to the table.
func checkBatch(b *BatchArguments, f *faults) {
	f.between("primitives", len(b.Primitives), 1, MaxPrimitives, "primitives")
	if f.first != nil {
		return
	}
	for i, p := range b.Primitives {
		inner := f.in(fmt.Sprintf("primitives[%d]", i))
		info, unknown := findMethod(p.Method, KindWrite)
		switch {
		case unknown != nil:
			unknown.Message = inner.path + ".method: " + unknown.Message
			inner.first = unknown
		case !info.InBatch:
			inner.add("%s.method: %s cannot be one of several; send it by itself.", inner.path, p.Method)
		default:
			inner.path += ".arguments"
			checkArguments(info, p.Arguments, inner)
		}
		f.take(inner)
		if f.first != nil {
			return
		}
	}
}

// orEmpty reads absent and null arguments as none.
func orEmpty(raw json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}

func findMethod(m Method, kind MethodKind) (MethodInfo, *Problem) {
	info, ok := m.Info()
	if ok && info.Kind == kind {
		return info, nil
	}
	if ok {
		return info, problem(ReasonUnknownMethod, "%s is a %s, not a %s: send it as one.", m, info.Kind, kind)
	}
	var all []string
	for _, row := range methodTable {
		if row.Kind == kind {
			all = append(all, string(row.Method))
		}
	}
	if m == "" {
		return info, problem(ReasonUnknownMethod, "method is missing. There are: %s.", strings.Join(all, ", "))
	}
	if likely := near(string(m), all); len(likely) > 0 {
		return info, problem(ReasonUnknownMethod, "There is no method %s. Near it: %s.", quote(string(m)), strings.Join(likely, ", "))
	}
	return info, problem(ReasonUnknownMethod, "There is no method %s. There are: %s.", quote(string(m)), strings.Join(all, ", "))
}

// idsOf reads the ids of a message that is refused, as far as they can be read
// and are well-formed: a refusal echoes nothing else.
func idsOf(raw []byte) Request {
	var r Request
	d := json.NewDecoder(bytes.NewReader(raw[:min(len(raw), MaxRequestBytes)]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return r
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return r
		}
		switch key {
		case "operation_id":
			r.OperationID = OperationID(idIn(value))
		case "resource":
			r.Resource = ResourceID(idIn(value))
		case "method":
			r.Method = Method(idIn(value))
		case "generation":
			if json.Unmarshal(value, &r.Generation) != nil {
				r.Generation = 0
			}
		}
	}
	return r
}

func idIn(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil || checkID("", s) != nil {
		return ""
	}
	return s
}

func problem(reason Reason, format string, a ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, a...)}
}
