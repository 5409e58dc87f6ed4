package protocol

import (
	"fmt"
	"strings"
	"testing"
)

// TestBadArguments holds that each argument's range and rule is checked and named.
func TestBadArguments(t *testing.T) {
	long := strings.Repeat("x", MaxTextBytes+1)
	name := strings.Repeat("x", MaxNameBytes+1)
	for _, c := range []struct {
		method, arguments string
		says              string
	}{
		{"open", `{}`, "arguments.kind is missing; it must be a string"},
		{"open", `{"kind":"window"}`, "only Pages"},
		{"open", `{"kind":"page","viewport":{"width":0,"height":1}}`, "arguments.viewport.width must be 1 to 16384"},
		{"navigate", `{}`, "arguments.url is missing"},
		{"click", `{}`, "exactly one of locator, point must be given, not 0"},
		{"click", `{"locator":{"css":"a"},"point":{"x":1,"y":1}}`, "not 2"},
		{"click", `{"locator":{}}`, "arguments.locator: exactly one of ref, role"},
		{"click", `{"locator":{"css":"a","text":"b"}}`, "arguments.locator: exactly one of"},
		{"click", `{"locator":{"css":"a","name":"b"}}`, "name goes with role"},
		{"click", `{"locator":{"css":"a","contains":true}}`, "contains goes with"},
		{"click", `{"locator":{"role":"Button"}}`, "lower case"},
		{"click", `{"locator":{"css":"` + name + `"}}`, "arguments.locator.css must be 0 to 4096 bytes"},
		{"click", `{"locator":{"ref":"` + strings.Repeat("x", 129) + `"}}`, "arguments.locator.ref"},
		{"click", `{"locator":{"css":"a"},"button":"first"}`, `left, right, middle, not "first"`},
		{"click", `{"locator":{"css":"a"},"count":4}`, "arguments.count must be 1 to 3, not 4"},
		{"click", `{"locator":{"css":"a"},"count":-1}`, "arguments.count must be 1 to 3"},
		{"click", `{"locator":{"css":"a"},"count":1.5}`, `must be a whole number, not "1.5"`},
		{"click", `{"locator":{"css":"a"},"count":"2"}`, "must be a whole number, not a string"},
		{"click", `{"locator":{"css":"a"},"count":99999999999999999999}`, "must be a whole number"},
		{"click", `{"locator":{"css":"a"},"modifiers":["Hyper"]}`, "Alt, Control, Meta, Shift"},
		{"click", `{"locator":{"css":"a"},"modifiers":["Alt","Alt"]}`, "each modifier once"},
		{"click", `{"locator":{"css":"a"},"modifiers":[""]}`, "each modifier once"},
		{"click", `{"locator":{"css":"a"},"modifiers":"Alt"}`, "a list, not a string"},
		{"click", `{"locator":[]}`, "an object, not a list"},
		{"click", `{"locater":{"css":"a"}}`, `"arguments.locater" is unknown; there is locator`},
		{"click", `{"point":{"x":1}}`, "arguments.point.y is missing"},
		{"click", `{"point":{"x":1000001,"y":0}}`, "arguments.point.x must be"},
		{"hover", `{}`, "exactly one of"},
		{"drag", `{"locator":{"css":"a"}}`, "exactly one of to_locator, to_point"},
		{"drag", `{"locator":{"css":"a"},"to_locator":{"css":"b"},"steps":101}`, "steps must be 1 to 100"},
		{"fill", `{"text":"x"}`, "arguments.locator is missing"},
		{"fill", `{"locator":null,"text":"x"}`, "arguments.locator is missing"},
		{"fill", `{"locator":{"css":"a"}}`, "arguments.text is missing"},
		{"fill", `{"locator":{"css":"a"},"text":null}`, "arguments.text is null"},
		{"fill", `{"locator":{"css":"a"},"text":"` + long + `"}`, "arguments.text must be 0 to 65536 bytes"},
		{"type", `{"text":""}`, "arguments.text must be 1 to"},
		{"press", `{"key":""}`, "arguments.key must be 1 to 64 bytes"},
		{"press", `{"key":"a\n"}`, "no control character"},
		{"scroll", `{"dy":5,"locator":{"css":"a"},"point":{"x":1,"y":1}}`, "exactly one of"},
		{"scroll", `{"locator":{"css":"a"}}`, "other than 0"},
		{"scroll", `{"locator":{"css":"a"},"dx":100001}`, "arguments.dx must be"},
		{"viewport", `{"width":16385,"height":1}`, "arguments.width must be 1 to 16384"},
		{"viewport", `{"width":1,"height":1,"scale":0.2}`, "arguments.scale must be 0.25 to 8"},
		{"dialog", `{}`, "arguments.accept is missing; it must be true or false"},
		{"dialog", `{"accept":false,"text":"x"}`, "goes with accept: true"},
		{"download", `{}`, "arguments.locator is missing"},
		{"batch", `{"primitives":[]}`, "arguments.primitives must be 1 to 50"},
		{"batch", `{"primitives":[` + strings.Repeat(`{"method":"back"},`, 50) + `{"method":"back"}]}`, "not 51"},
		{"batch", `{"primitives":[{"method":"back"},{"method":"batch","arguments":{"primitives":[{"method":"back"}]}}]}`, "arguments.primitives[1].method: batch cannot be"},
		{"batch", `{"primitives":[{"method":"open","arguments":{"kind":"page"}}]}`, "open cannot be"},
		{"batch", `{"primitives":[{"method":"close"}]}`, "close cannot be"},
		{"batch", `{"primitives":[{"method":"press","arguments":{}}]}`, "arguments.primitives[0].arguments.key is missing"},
		{"batch", `{"primitives":[{}]}`, "arguments.primitives[0].method is missing"},
	} {
		checkRefused(t, c.method, c.arguments, ReasonBadArguments, c.says)
	}
	checkRefused(t, "click", `{"point":{"x":1,"y":1}}`, ReasonTokenRequired, "token")
	checkRefused(t, "batch", `{"primitives":[{"method":"back"},{"method":"hover","arguments":{"point":{"x":1,"y":1}}}]}`, ReasonTokenRequired, "token")
	checkRefused(t, "batch", `{"primitives":[{"method":"clik"}]}`, ReasonUnknownMethod, "arguments.primitives[0].method: There is no method")
	checkRefused(t, "batch", `{"primitives":[{"method":"navigate","arguments":{"url":"file:///etc/passwd"}}]}`, ReasonURLNotAllowed, "arguments.primitives[0].arguments.url")
	checkRefused(t, "navigate", `{"url":"https://a:b@c"}`, ReasonURLCredentials, "arguments.url: ")
	checkRefused(t, "open", `{"kind":"page","url":"javascript:alert(1)"}`, ReasonURLNotAllowed, "arguments.url: ")
}

func checkRefused(t *testing.T, method, arguments string, reason Reason, says string) {
	t.Helper()
	cut := arguments[:min(len(arguments), 80)]
	_, p := DecodeRequest([]byte(request(method, arguments)))
	if p == nil || p.Reason != reason || !strings.Contains(p.Message, says) {
		t.Errorf("%s %s: got %v, want %s with %q", method, cut, p, reason, says)
	}
}

func TestBadReadArguments(t *testing.T) {
	for _, c := range []struct{ method, arguments, says string }{
		{"observe", `{"limit":5001}`, "arguments.limit must be 0 to 5000"},
		{"observe", `{"offset":-1}`, "arguments.offset must be"},
		{"observe", `{"image":"yes"}`, "true or false, not a string"},
		{"screenshot", `{"format":"gif"}`, "png, jpeg"},
		{"screenshot", `{"format":"jpeg","quality":101}`, "1 to 100"},
		{"screenshot", `{"quality":50}`, `goes with format "jpeg"`},
		{"wait", `{}`, "exactly one of text, locator, url"},
		{"wait", `{"text":"a","url":"b"}`, "not 2"},
		{"verify", `{}`, "arguments.assert is missing"},
		{"verify", `{"assert":""}`, "must be text, value"},
		{"verify", `{"assert":"looks good"}`, "must be text, value"},
		{"verify", `{"assert":"value","equals":"x"}`, "arguments.locator is missing"},
		{"verify", `{"assert":"text"}`, "exactly one of text, equals"},
		{"verify", `{"assert":"url","equals":"x","locator":{"css":"a"}}`, "means nothing"},
		{"verify", `{"assert":"present"}`, "exactly one of locator, text"},
		{"verify", `{"assert":"absent","text":"x","equals":"y"}`, "means nothing"},
		{"verify", `{"assert":"count","locator":{"css":"a"}}`, "arguments.count is missing"},
		{"verify", `{"assert":"count","count":1}`, "arguments.locator is missing"},
		{"verify", `{"assert":"count","locator":{"css":"a"},"count":-1}`, "arguments.count must be 0 to"},
		{"verify", `{"assert":"present","text":"a","count":1}`, "goes with assert: count"},
	} {
		_, p := DecodeRead([]byte(look(c.method, c.arguments)))
		if p == nil || p.Reason != ReasonBadArguments || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s %s: got %v, want %q", c.method, c.arguments, p, c.says)
		}
	}
}

func TestMethodsTable(t *testing.T) {
	count := map[MethodKind]int{}
	for m := range Methods {
		count[m.Kind]++
		if m.Doc == "" || m.Arguments == nil || m.Run <= 0 || m.check == nil {
			t.Errorf("%s is not whole: %+v", m.Method, m)
		}
		if m.Kind == KindRead && m.InBatch {
			t.Errorf("%s is a read in a batch", m.Method)
		}
	}
	if fmt.Sprint(count) != "map[read:4 write:17]" {
		t.Errorf("got %v", count)
	}
	for range Methods {
		break // a caller may stop early
	}
}
