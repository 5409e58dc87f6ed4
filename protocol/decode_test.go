package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// request is a write with the given method and arguments, valid otherwise.
func request(method, arguments string) string {
	if method == "open" {
		return fmt.Sprintf(`{"operation_id":"op-1","method":"open","arguments":%s}`, arguments)
	}
	return fmt.Sprintf(`{"operation_id":"op-1","resource":"pg_1","generation":3,"method":%q,"arguments":%s}`, method, arguments)
}

// seen is request with the token of an observation.
func seen(method, arguments string) string {
	return strings.Replace(request(method, arguments), `"generation":3`, `"generation":3,"observation":"tok"`, 1)
}

func look(method, arguments string) string {
	return fmt.Sprintf(`{"resource":"pg_1","method":%q,"arguments":%s}`, method, arguments)
}

// TestBadMessages holds I2: each kind of bad input has its reason code, and the
// refusal names what is wrong and the ids that could be read.
func TestBadMessages(t *testing.T) {
	big := request("fill", `{"locator":{"css":"a"},"text":"`+strings.Repeat("x", 8<<20)+`"}`)
	deep := request("click", strings.Repeat(`{"a":`, 20)+"1"+strings.Repeat("}", 20))
	for name, c := range map[string]struct {
		raw    string
		reason Reason
		says   string
		id     OperationID
	}{
		"8 MB argument":          {big, ReasonTooLarge, "1048576", "op-1"},
		"one byte over":          {request("back", `{}`) + strings.Repeat(" ", MaxRequestBytes), ReasonTooLarge, "at most", "op-1"},
		"invalid UTF-8":          {request("fill", "{\"locator\":{\"css\":\"a\"},\"text\":\"\xff\"}"), ReasonNotText, "UTF-8", "op-1"},
		"overlong NUL":           {request("fill", "{\"locator\":{\"css\":\"a\"},\"text\":\"\xc0\x80\"}"), ReasonNotText, "UTF-8", "op-1"},
		"NUL byte":               {request("fill", "{\"locator\":{\"css\":\"a\"},\"text\":\"\x00\"}"), ReasonNotText, "NUL", "op-1"},
		"escaped NUL":            {request("fill", `{"locator":{"css":"a"},"text":"\u0000"}`), ReasonNotText, "NUL", "op-1"},
		"escaped NUL in a key":   {request("fill", `{"a\u0000":1}`), ReasonNotText, "NUL", "op-1"},
		"half a surrogate":       {request("fill", `{"locator":{"css":"a"},"text":"\ud83d"}`), ReasonNotText, "surrogate", "op-1"},
		"low surrogate first":    {request("fill", `{"locator":{"css":"a"},"text":"\ude00\ud83d"}`), ReasonNotText, "surrogate", "op-1"},
		"empty":                  {"", ReasonBadRequest, "not JSON", ""},
		"cut off":                {`{"operation_id":"op-1","method":"ba`, ReasonBadRequest, "not JSON", "op-1"},
		"trailing data":          {request("back", `{}`) + "{}", ReasonBadRequest, "not JSON", "op-1"},
		"a list":                 {`[1]`, ReasonBadRequest, "an object, not a list", ""},
		"a null":                 {`null`, ReasonBadRequest, "null", ""},
		"comment":                {`{"operation_id":"op-1" /* x */}`, ReasonBadRequest, "not JSON", "op-1"},
		"too deep":               {deep, ReasonBadRequest, "deeper than 16", "op-1"},
		"very deep":              {strings.Repeat("[", 200_000), ReasonBadRequest, "not JSON", ""},
		"unknown field":          {`{"operation_id":"op-1","ressource":"pg_1"}`, ReasonBadRequest, `"ressource" is unknown; there is resource`, "op-1"},
		"other case":             {`{"operation_id":"op-1","Method":"back"}`, ReasonBadRequest, `"Method" is unknown; there is method`, "op-1"},
		"key twice":              {`{"operation_id":"op-1","method":"back","method":"back"}`, ReasonBadRequest, "method is there twice", "op-1"},
		"inner key twice":        {request("fill", `{"text":"a","text":"b"}`), ReasonBadRequest, "arguments.text is there twice", "op-1"},
		"infinite number":        {request("scroll", `{"dx":1e999}`), ReasonBadRequest, "arguments.dx is a number out of range", "op-1"},
		"id of wrong type":       {`{"operation_id":7,"method":"back"}`, ReasonBadRequest, "operation_id must be a string, not a number", ""},
		"null id":                {`{"operation_id":null,"method":"back"}`, ReasonBadRequest, "operation_id is null", ""},
		"no id":                  {`{"method":"back"}`, ReasonBadRequest, "operation_id is missing", ""},
		"id with a space":        {`{"operation_id":"a b","method":"back"}`, ReasonBadRequest, "printable ASCII", ""},
		"id with an umlaut":      {`{"operation_id":"ä","method":"back"}`, ReasonBadRequest, "printable ASCII", ""},
		"long id":                {`{"operation_id":"` + strings.Repeat("a", 129) + `"}`, ReasonBadRequest, "129 bytes", ""},
		"unknown method":         {request("clik", `{}`), ReasonUnknownMethod, "Near it: click", "op-1"},
		"very unknown method":    {request("evaluate_script", `{}`), ReasonUnknownMethod, "There are: open, close", "op-1"},
		"no method":              {`{"operation_id":"op-1"}`, ReasonUnknownMethod, "method is missing", "op-1"},
		"read sent as a write":   {request("observe", `{}`), ReasonUnknownMethod, "observe is a read", "op-1"},
		"no resource":            {`{"operation_id":"op-1","generation":1,"method":"back"}`, ReasonBadRequest, "resource is missing", "op-1"},
		"no generation":          {`{"operation_id":"op-1","resource":"pg_1","method":"back"}`, ReasonBadRequest, "generation is missing", "op-1"},
		"negative generation":    {`{"operation_id":"op-1","resource":"pg_1","generation":-1,"method":"back"}`, ReasonBadRequest, "generation must be a whole number from 0", "op-1"},
		"broken generation":      {`{"operation_id":"op-1","resource":"pg_1","generation":1.5,"method":"back"}`, ReasonBadRequest, "generation must be a whole number", "op-1"},
		"huge generation":        {`{"operation_id":"op-1","resource":"pg_1","generation":18446744073709551616,"method":"back"}`, ReasonBadRequest, "generation must be", "op-1"},
		"open with a resource":   {`{"operation_id":"op-1","resource":"pg_1","method":"open","arguments":{"kind":"page"}}`, ReasonBadRequest, "makes a new resource", "op-1"},
		"token with a space":     {strings.Replace(seen("back", `{}`), "tok", "t k", 1), ReasonBadRequest, "observation must be", "op-1"},
		"late deadline":          {strings.Replace(request("back", `{}`), `"op-1"`, `"op-1","deadline_ms":600001`, 1), ReasonBadRequest, "deadline_ms must be 1 to 600000", "op-1"},
		"negative deadline":      {strings.Replace(request("back", `{}`), `"op-1"`, `"op-1","deadline_ms":-1`, 1), ReasonBadRequest, "deadline_ms", "op-1"},
		"arguments of back":      {request("back", `{"x":1}`), ReasonBadArguments, `"arguments.x" is unknown; no field`, "op-1"},
		"arguments are a string": {request("back", `"x"`), ReasonBadArguments, "arguments must be an object", "op-1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, p := DecodeRequest([]byte(c.raw))
			if p == nil {
				t.Fatalf("accepted")
			}
			if p.Reason != c.reason || !strings.Contains(p.Message, c.says) {
				t.Errorf("got %v, want %s with %q", p, c.reason, c.says)
			}
			if got.OperationID != c.id {
				t.Errorf("operation id %q, want %q", got.OperationID, c.id)
			}
			if len(p.Message) > 600 {
				t.Errorf("a message of %d bytes", len(p.Message))
			}
		})
	}
}

func TestRefusalNamesAllIDs(t *testing.T) {
	got, p := DecodeRequest([]byte(request("fill", `{"locator":7}`)))
	want := Request{OperationID: "op-1", Resource: "pg_1", Generation: 3, Method: MethodFill}
	if p == nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v %v, want %+v", got, p, want)
	}
	read, p := DecodeRead([]byte(look("observe", `{"limit":-1}`)))
	if p == nil || read.Resource != "pg_1" || read.Method != MethodObserve {
		t.Fatalf("got %+v %v", read, p)
	}
}

func TestBadReads(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		reason Reason
		says   string
	}{
		"write sent as a read": {look("click", `{}`), ReasonUnknownMethod, "click is a write"},
		"near method":          {look("screenshoot", `{}`), ReasonUnknownMethod, "Near it: screenshot"},
		"operation id":         {`{"operation_id":"a","resource":"pg_1","method":"observe"}`, ReasonBadRequest, `"operation_id" is unknown`},
		"no resource":          {`{"method":"observe"}`, ReasonBadRequest, "resource is missing"},
		"deadline":             {`{"resource":"pg_1","method":"observe","deadline_ms":700000}`, ReasonBadRequest, "deadline_ms"},
		"not JSON":             {`x`, ReasonBadRequest, "not JSON"},
		"NUL":                  {look("observe", `{"find":"\u0000"}`), ReasonNotText, "NUL"},
		"too large":            {look("observe", `{"find":"`+strings.Repeat("x", MaxRequestBytes)+`"}`), ReasonTooLarge, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, p := DecodeRead([]byte(c.raw)); p == nil || p.Reason != c.reason || !strings.Contains(p.Message, c.says) {
				t.Errorf("got %v, want %s with %q", p, c.reason, c.says)
			}
		})
	}
}

// TestEveryMethodIsAccepted decodes one good request for each row of the table,
// as bytes and again as the Go types encode it.
func TestEveryMethodIsAccepted(t *testing.T) {
	good := map[Method]string{
		MethodOpen:       request("open", `{"kind":"page","url":"https://example.org","viewport":{"width":800,"height":600}}`),
		MethodClose:      request("close", `{}`),
		MethodNavigate:   request("navigate", `{"url":"http://127.0.0.1:8080/a?b=c#d"}`),
		MethodBack:       request("back", `null`),
		MethodForward:    `{"operation_id":"op-1","resource":"pg_1","generation":1,"method":"forward"}`,
		MethodReload:     request("reload", ` { } `),
		MethodClick:      seen("click", `{"point":{"x":-3,"y":1.5},"button":"right","count":2,"modifiers":["Shift","Alt"]}`),
		MethodHover:      request("hover", `{"locator":{"role":"button","name":"Save","contains":true}}`),
		MethodDrag:       seen("drag", `{"locator":{"text":"a"},"to_point":{"x":1,"y":2},"steps":100}`),
		MethodFill:       request("fill", `{"locator":{"label":"Name"},"text":""}`),
		MethodType:       request("type", `{"text":"\ud83d\ude00 \\u0000"}`),
		MethodPress:      request("press", `{"key":"Control+Shift+ArrowLeft","locator":{"test_id":"x"}}`),
		MethodScroll:     request("scroll", `{"dy":-100000}`),
		MethodViewport:   request("viewport", `{"width":1,"height":16384,"scale":0.25}`),
		MethodDialog:     request("dialog", `{"accept":true,"text":"x"}`),
		MethodDownload:   request("download", `{"locator":{"ref":"pg_1/3/7/12"}}`),
		MethodBatch:      request("batch", `{"primitives":[{"method":"press","arguments":{"key":"a"}},{"method":"back"}]}`),
		MethodObserve:    look("observe", `{"find":"x","limit":5000,"offset":3,"image":true}`),
		MethodScreenshot: look("screenshot", `{"format":"jpeg","quality":100}`),
		MethodWait:       look("wait", `{"url":"/done","gone":true}`),
		MethodVerify:     look("verify", `{"assert":"value","locator":{"placeholder":"p","frame":"f"},"equals":""}`),
	}
	for m := range Methods {
		raw, ok := good[m.Method]
		if !ok {
			t.Errorf("%s has no good request here", m.Method)
			continue
		}
		t.Run(string(m.Method), func(t *testing.T) {
			if m.Kind == KindRead {
				sameReadAgain(t, []byte(raw))
			} else {
				sameRequestAgain(t, []byte(raw))
			}
		})
	}
}

// sameRequestAgain holds that an accepted request, encoded, is accepted as the same.
func sameRequestAgain(t *testing.T, raw []byte) {
	t.Helper()
	r, p := DecodeRequest(raw)
	if p != nil {
		t.Fatalf("refused: %v", p)
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, p := DecodeRequest(encoded)
	if p != nil && len(encoded) > MaxRequestBytes {
		return // Marshal escapes <, > and &, which can take it over the limit
	}
	if p != nil {
		t.Fatalf("refused when encoded again: %v\n%s", p, encoded)
	}
	if ContentHash(nil, r) != ContentHash(nil, again) || !bytes.Equal(canonical(r.Arguments), canonical(again.Arguments)) {
		t.Fatalf("content changed: %s, %s", r.Arguments, again.Arguments)
	}
	r.Arguments, again.Arguments = nil, nil
	if !reflect.DeepEqual(r, again) {
		t.Fatalf("got %+v, want %+v", again, r)
	}
}

func sameReadAgain(t *testing.T, raw []byte) {
	t.Helper()
	r, p := DecodeRead(raw)
	if p != nil {
		t.Fatalf("refused: %v", p)
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, p := DecodeRead(encoded)
	if p != nil && len(encoded) > MaxRequestBytes {
		return
	}
	if p != nil {
		t.Fatalf("refused when encoded again: %v\n%s", p, encoded)
	}
	if !bytes.Equal(canonical(r.Arguments), canonical(again.Arguments)) {
		t.Fatalf("content changed: %s, %s", r.Arguments, again.Arguments)
	}
	r.Arguments, again.Arguments = nil, nil
	if !reflect.DeepEqual(r, again) {
		t.Fatalf("got %+v, want %+v", again, r)
	}
}

func TestArguments(t *testing.T) {
	a, err := Arguments[ClickArguments](json.RawMessage(`{"point":{"x":1,"y":2},"count":3}`))
	if err != nil || a.Count != 3 || *a.Point != (Point{1, 2}) {
		t.Fatalf("got %+v %v", a, err)
	}
	if a, err := Arguments[ClickArguments](nil); err != nil || !reflect.DeepEqual(a, ClickArguments{}) {
		t.Fatalf("got %+v %v", a, err)
	}
	if _, err := Arguments[ClickArguments](json.RawMessage(`{"count":"x"}`)); err == nil {
		t.Fatal("took a string for a count")
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, raw := range []string{
		``, `{}`, `null`, `[`, `{"operation_id":"op-1"`, request("navigate", `{"url":"https://example.org"}`),
		seen("click", `{"point":{"x":1e3,"y":-0.5}}`), request("fill", `{"locator":{"css":"a>b&c"},"text":"\ud83d\ude00\n"}`),
		request("batch", `{"primitives":[{"method":"press","arguments":{"key":"a"}},{"method":"back","arguments":null}]}`),
		request("open", `{"kind":"page"}`), request("dialog", `{"accept":false}`), request("fill", `{"text":"\u0000"}`),
		request("click", strings.Repeat(`{"a":`, 20)), request("scroll", `{"dx":1e999}`), "\xff\x00",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, p := DecodeRequest(raw)
		if p == nil {
			sameRequestAgain(t, raw)
			return
		}
		if p.Reason.Sentence() == "" || p.Message == "" || strings.ContainsAny(p.Message, "\n\x00") {
			t.Fatalf("a problem without words: %+v", p)
		}
		if r.OperationID != "" && checkID("", string(r.OperationID)) != nil || r.Arguments != nil {
			t.Fatalf("a refused request echoes %+v", r)
		}
	})
}

func FuzzDecodeRead(f *testing.F) {
	for _, raw := range []string{
		``, look("observe", `{}`), look("wait", `{"text":"x"}`), look("verify", `{"assert":"count","locator":{"css":"li"},"count":0}`),
		look("screenshot", `{"format":"jpeg","quality":7}`), `{"resource":"pg_1","method":"observe","deadline_ms":600000}`, "\xff",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, p := DecodeRead(raw)
		if p == nil {
			sameReadAgain(t, raw)
			return
		}
		if p.Reason.Sentence() == "" || p.Message == "" || strings.ContainsAny(p.Message, "\n\x00") || r.Arguments != nil {
			t.Fatalf("a problem without words: %+v", p)
		}
	})
}
