package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

func TestContentHash(t *testing.T) {
	key := []byte("k")
	base := Request{OperationID: "a", Resource: "pg_1", Generation: 3, Method: MethodClick, Observation: "t",
		Arguments: json.RawMessage(`{"point":{"x":10,"y":2.5},"count":1,"modifiers":["Alt","Shift"],"button":"left"}`)}
	with := func(change func(*Request)) Request { r := base; change(&r); return r }
	arguments := func(s string) Request { return with(func(r *Request) { r.Arguments = json.RawMessage(s) }) }
	for name, r := range map[string]Request{
		"generation":    with(func(r *Request) { r.Generation = 4 }),
		"deadline":      with(func(r *Request) { r.DeadlineMS = 7 }),
		"operation id":  with(func(r *Request) { r.OperationID = "b" }),
		"key order":     arguments(`{"button":"left","count":1,"modifiers":["Alt","Shift"],"point":{"y":2.5,"x":10}}`),
		"white space":   arguments(" {\n\"point\": {\"x\":10,\"y\":2.5},\"count\":1,\"modifiers\":[\"Alt\" ,\"Shift\"],\"button\":\"left\"}"),
		"number":        arguments(`{"point":{"x":1e1,"y":2.50},"count":1,"modifiers":["Alt","Shift"],"button":"left"}`),
		"escapes, null": arguments(`{"point":{"x":10,"y":2.5},"count":1,"modifiers":["Alt","Shift"],"button":"\u006ceft","locator":null}`),
	} {
		if ContentHash(key, r) != ContentHash(key, base) {
			t.Errorf("%s changed the hash", name)
		}
	}
	for name, r := range map[string]Request{
		"resource":    with(func(r *Request) { r.Resource = "pg_2" }),
		"method":      with(func(r *Request) { r.Method = MethodHover }),
		"observation": with(func(r *Request) { r.Observation = "u" }),
		"moved byte":  with(func(r *Request) { r.Resource, r.Method = "pg_", "1click" }),
		"list order":  arguments(`{"point":{"x":10,"y":2.5},"count":1,"modifiers":["Shift","Alt"],"button":"left"}`),
		"value":       arguments(`{"point":{"x":10,"y":2.6},"count":1,"modifiers":["Alt","Shift"],"button":"left"}`),
		"none":        arguments(``),
	} {
		if ContentHash(key, r) == ContentHash(key, base) {
			t.Errorf("%s did not change the hash", name)
		}
	}
	if ContentHash([]byte("l"), base) == ContentHash(key, base) {
		t.Error("the key did not change the hash")
	}
	if ContentHash(key, arguments(``)) != ContentHash(key, arguments(` null`)) || ContentHash(key, arguments(``)) != ContentHash(key, arguments(`{}`)) {
		t.Error("no arguments are not one content")
	}
	if ContentHash(key, arguments(`{"a":9007199254740993}`)) == ContentHash(key, arguments(`{"a":9007199254740992}`)) {
		t.Error("two whole numbers became one")
	}
}

// FuzzContentHash holds that the order of keys and white space are not content,
// and that one changed value is.
func FuzzContentHash(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":{"c":[1,2,{"d":null,"e":"x"}],"f":1e3}}`, `{"text":"<&>","n":-0.0}`, `[]`, `x`, `{"a":1}{}`, ``} {
		f.Add([]byte(s), []byte("key"))
	}
	f.Fuzz(func(t *testing.T, raw, key []byte) {
		r := Request{Resource: "pg_1", Method: MethodClick, Arguments: raw}
		hash := ContentHash(key, r)
		if checkText(raw) != nil || strictJSON(raw, nil, "", 0) != "" {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		other := backwards(v)
		r.Arguments = other
		if ContentHash(key, r) != hash {
			t.Fatalf("%s and %s differ", raw, other)
		}
		r.Arguments = slices.Concat([]byte(`{"x":`), other, []byte(`}`))
		if ContentHash(key, r) == hash {
			t.Fatalf("%s and %s are the same", raw, r.Arguments)
		}
	})
}

// backwards encodes a value with its keys in reverse order and spaces between.
func backwards(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		slices.Reverse(keys)
		var parts [][]byte
		for _, k := range keys {
			parts = append(parts, slices.Concat(backwards(k), []byte(" :\t"), backwards(v[k])))
		}
		return slices.Concat([]byte("{ "), bytes.Join(parts, []byte(" ,\n")), []byte(" }"))
	case []any:
		var parts [][]byte
		for _, e := range v {
			parts = append(parts, backwards(e))
		}
		return slices.Concat([]byte("[ "), bytes.Join(parts, []byte(" , ")), []byte(" ]"))
	}
	out, _ := json.Marshal(v)
	return out
}
