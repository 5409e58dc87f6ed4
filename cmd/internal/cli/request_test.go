package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"reins/protocol"
)

// Each command line becomes exactly this request, and one that the daemon's own decoder takes.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		line, stdin string
		want        string
	}{
		{line: "do pg_1 click --role button --name Save", want: `click {"locator":{"role":"button","name":"Save"}}`},
		{line: "do pg_1 click role=button name=Save", want: `click {"locator":{"role":"button","name":"Save"}}`},
		{line: "do pg_1 click locator.ref=e12 count=2", want: `click {"locator":{"ref":"e12"},"count":2}`},
		{line: "do pg_1 click --text Save --contains --frame payment", want: `click {"locator":{"text":"Save","contains":true,"frame":"payment"}}`},
		{line: "do pg_1 click --test-id total --button right --modifiers Control,Shift", want: `click {"locator":{"test_id":"total"},"button":"right","modifiers":["Control","Shift"]}`},
		{line: "do pg_1 click --point 10.5,-3 --observation tok", want: `click {"point":{"x":10.5,"y":-3}}`},
		{line: `do pg_1 click {"locator":{"css":"#a"}}`, want: `click {"locator":{"css":"#a"}}`},
		{line: `do pg_1 click {"locator":{"css":"#a"}} --count 2`, want: `click {"locator":{"css":"#a"},"count":2}`},
		{line: "do pg_1 hover --placeholder Search", want: `hover {"locator":{"placeholder":"Search"}}`},
		{line: "do pg_1 fill --label Name --value <Ada&Byron>", want: `fill {"locator":{"label":"Name"},"text":"<Ada&Byron>"}`},
		{line: "do pg_1 fill label=Name text=a=b", want: `fill {"locator":{"label":"Name"},"text":"a=b"}`},
		{line: "do pg_1 fill --label Code --value-stdin", stdin: "s3cret\n", want: `fill {"locator":{"label":"Code"},"text":"s3cret"}`},
		{line: "do pg_1 type --value hi", want: `type {"text":"hi"}`},
		{line: "do pg_1 press --key Control+A", want: `press {"key":"Control+A"}`},
		{line: "do pg_1 scroll --dy -300 --css main", want: `scroll {"locator":{"css":"main"},"dy":-300}`},
		{line: "do pg_1 drag --ref a --to-ref b --steps 5", want: `drag {"locator":{"ref":"a"},"to_locator":{"ref":"b"},"steps":5}`},
		{line: "do pg_1 drag --point 1,2 --to-point 3,4 --observation tok", want: `drag {"point":{"x":1,"y":2},"to_point":{"x":3,"y":4}}`},
		{line: "do pg_1 viewport --width 1280 --height 800 --scale 2", want: `viewport {"width":1280,"height":800,"scale":2}`},
		{line: "do pg_1 navigate --url https://example.org/?a=b&c", want: `navigate {"url":"https://example.org/?a=b&c"}`},
		{line: "do pg_1 navigate url=https://example.org/", want: `navigate {"url":"https://example.org/"}`},
		{line: "do pg_1 dialog --accept", want: `dialog {"accept":true}`},
		{line: "do pg_1 dialog --dismiss", want: `dialog {"accept":false}`},
		{line: "do pg_1 dialog --accept --answer yes", want: `dialog {"accept":true,"text":"yes"}`},
		{line: "do pg_1 download --role link --name Invoice", want: `download {"locator":{"role":"link","name":"Invoice"}}`},
		{line: "do pg_1 back", want: `back null`},
		{line: "do pg_1 reload", want: `reload null`},
		{line: "do pg_1 -", stdin: `[{"method":"back"},{"method":"press","arguments":{"key":"a"}}]` + "\n", want: `batch {"primitives":[{"method":"back"},{"method":"press","arguments":{"key":"a"}}]}`},
		{line: "close pg_1", want: `close null`},
		{line: "open https://example.org/", want: `open {"kind":"page","url":"https://example.org/"}`},
		{line: "open https://example.org/ --width 800 --height 600", want: `open {"kind":"page","url":"https://example.org/","viewport":{"width":800,"height":600}}`},
	} {
		t.Run(c.line, func(t *testing.T) {
			got := command(t, nil, c.stdin, strings.Split(c.line, " ")...)
			if got.code != exitOK || len(got.requests) != 1 {
				t.Fatalf("exit %d, %d requests, %s", got.code, len(got.requests), got.err)
			}
			q := got.requests[0]
			method, want, _ := strings.Cut(c.want, " ")
			if string(q.Method) != method || !sameJSON(t, string(q.Arguments), want) {
				t.Errorf("got %s %s, want %s", q.Method, q.Arguments, c.want)
			}
			if q.Method == protocol.MethodOpen != (q.Resource == "") {
				t.Errorf("resource %q", q.Resource)
			}
			if q.Method != protocol.MethodOpen && q.Generation != 3 {
				t.Errorf("generation %d, want the one that the resource has", q.Generation)
			}
			raw, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			if _, p := protocol.DecodeRequest(raw); p != nil {
				t.Errorf("the daemon would refuse it: %s", p)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	read := func(s string) (v any) {
		if s == "" {
			return nil
		}
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}

func TestRequestFlags(t *testing.T) {
	got := command(t, nil, "", "do", "pg_1", "back", "--id", "op-7", "--generation", "2", "--observation", "tok", "--deadline", "1500ms")
	want := protocol.Request{OperationID: "op-7", Resource: "pg_1", Generation: 2, Method: "back", Observation: "tok", DeadlineMS: 1500}
	if got.code != exitOK || len(got.requests) != 1 || !reflect.DeepEqual(got.requests[0], want) {
		t.Errorf("exit %d, got %+v, want %+v", got.code, got.requests, want)
	}
	a, b := command(t, nil, "", "do", "pg_1", "back"), command(t, nil, "", "do", "pg_1", "back")
	if a.requests[0].OperationID == b.requests[0].OperationID || a.requests[0].OperationID == "" {
		t.Errorf("two operations got the ids %q and %q", a.requests[0].OperationID, b.requests[0].OperationID)
	}
	if !strings.Contains(a.out, string(a.requests[0].OperationID)) {
		t.Errorf("the id that was made up is not printed: %q", a.out)
	}
}

func TestReads(t *testing.T) {
	for line, want := range map[string]string{
		"observe pg_1": `observe null`,
		"observe pg_1 --find sa --limit 5 --offset 10":         `observe {"find":"sa","limit":5,"offset":10}`,
		"wait pg_1 --text Thanks":                              `wait {"text":"Thanks"}`,
		"wait pg_1 --text Thanks --frame payment":              `wait {"locator":{"text":"Thanks","frame":"payment"}}`,
		"wait pg_1 --role progressbar --gone":                  `wait {"locator":{"role":"progressbar"},"gone":true}`,
		"wait pg_1 --url /orders/":                             `wait {"url":"/orders/"}`,
		"verify pg_1 text --has Thanks":                        `verify {"assert":"text","text":"Thanks"}`,
		"verify pg_1 value --label Name --equals Ada":          `verify {"assert":"value","locator":{"label":"Name"},"equals":"Ada"}`,
		"verify pg_1 url --has /orders/":                       `verify {"assert":"url","text":"/orders/"}`,
		"verify pg_1 count --role listitem --count 4":          `verify {"assert":"count","locator":{"role":"listitem"},"count":4}`,
		"verify pg_1 absent --text Sorry":                      `verify {"assert":"absent","locator":{"text":"Sorry"}}`,
		"verify pg_1 value --label Name --equals= --frame pay": `verify {"assert":"value","locator":{"label":"Name","frame":"pay"},"equals":""}`,
	} {
		t.Run(line, func(t *testing.T) {
			r := &recorder{reply: protocol.ReadReply{Verdict: &protocol.Verdict{Holds: true}, Observation: &protocol.Observation{}}}
			got := command(t, r, "", strings.Split(line, " ")...)
			if got.code != exitOK || len(got.reads) != 1 {
				t.Fatalf("exit %d, %d reads, %s", got.code, len(got.reads), got.err)
			}
			q := got.reads[0]
			method, args, _ := strings.Cut(want, " ")
			if string(q.Method) != method || !sameJSON(t, string(q.Arguments), args) {
				t.Errorf("got %s %s, want %s", q.Method, q.Arguments, want)
			}
			raw, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			if _, p := protocol.DecodeRead(raw); p != nil {
				t.Errorf("the daemon would refuse it: %s", p)
			}
		})
	}
}

// A wrong command line ends with 2, says what is wrong, and sends nothing.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"frobnicate":                          "no command",
		"do":                                  "ID and METHOD",
		"do pg_1":                             "ID and METHOD",
		"do pg_1 smash":                       "no method",
		"do pg_1 observe":                     "command of its own",
		"do pg_1 open":                        "command of its own",
		"do pg_1 click nonsense":              "neither key=value",
		"do pg_1 click colour=red":            "takes no colour",
		"do pg_1 click --key a":               "takes no key",
		"do pg_1 click count=two":             "no whole number",
		"do pg_1 click --count 1 count=2":     "given twice",
		"do pg_1 click --ref a locator.ref=b": "given twice",
		"do pg_1 click --point 3":             "write x,y",
		"do pg_1 click --point 3,NaN":         "no number",
		"do pg_1 click {}}":                   "no JSON object",
		"do pg_1 click [1]":                   "neither key=value",
		"do pg_1 back --deadline 20m":         "--deadline is",
		"do pg_1 back --deadline soon":        "invalid argument",
		"do pg_1 dialog":                      "--accept or --dismiss",
		"do pg_1 dialog --accept --dismiss":   "accept dismiss",
		"do pg_1 - extra":                     "nothing follows",
		"do pg_1 -":                           "no JSON list",
		"do pg_1 fill --label \xff --value a": "UTF-8",
		"do pg_1 fill label=a text=\xff":      "UTF-8",
		"do \xff back":                        "UTF-8",
		"open":                                "one URL",
		"open a b":                            "one URL",
		"open http://a/ --width 5":            "--height",
		"observe":                             "one ID",
		"observe pg_1 --limit many":           "no whole number",
		"watch a b":                           "too much",
		"watch --frames dir":                  "needs the ID",
		"watch pg_1 --keep 0":                 "--keep is",
		"history --limit 2000":                "--limit is",
		"serve --log-level loud":              "--log-level is",
		"serve --writes 0":                    "--writes",
		"owner bad":                           "no command",
		"owner add":                           "one NAME",
		"status now":                          "too much",
		"resources --nope":                    "unknown flag",
		"verify pg_1":                         "an assertion",
	} {
		t.Run(line, func(t *testing.T) {
			got := command(t, nil, "", strings.Split(line, " ")...)
			if got.code != exitUsage || !strings.Contains(got.err, want) {
				t.Errorf("exit %d, %q; want 2 and %q", got.code, got.err, want)
			}
			if len(got.requests)+len(got.reads)+len(got.asked) > 0 {
				t.Errorf("something was sent: %+v %+v %v", got.requests, got.reads, got.asked)
			}
		})
	}
}

// FuzzArguments: whatever the words, no panic, and what comes out is JSON that the
// daemon's decoder answers.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"click\nrole=button\nname=Save", "click\npoint=1,2", `fill` + "\n" + `{"locator":{"label":"a"},"text":"b"}`, "drag\nto_locator.ref=a\nsteps=3",
		"batch\nprimitives=[]", "click\nlocator={\"ref\":\"a\"}", "press\nkey=\xff", "viewport\nscale=1e400", "click\nlocator.x.y=1", "observe\nlimit=9",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words := strings.Split(s, "\n")
		b, err := newArguments(protocol.Method(words[0]))
		if err != nil {
			return
		}
		for _, w := range words[1:] {
			if err := b.word(w); err != nil {
				if codeOf(err) != exitUsage {
					t.Fatalf("%q is refused with exit %d: %v", w, codeOf(err), err)
				}
				return
			}
		}
		raw, err := b.raw()
		if err != nil {
			t.Fatalf("accepted words cannot be written: %v", err)
		}
		if len(raw) > 0 && !json.Valid(raw) {
			t.Fatalf("%q became %s, which is no JSON", s, raw)
		}
		whole, err := json.Marshal(protocol.Request{OperationID: "op", Resource: "pg_1", Generation: 1, Method: b.method, Arguments: raw})
		if err != nil {
			t.Fatal(err)
		}
		protocol.DecodeRequest(whole)
	})
}
