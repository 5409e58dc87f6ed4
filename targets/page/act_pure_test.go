package page

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reins/protocol"
)

func TestScrub(t *testing.T) {
	long := strings.Repeat("0123456789", 5)
	for _, c := range []struct {
		name    string
		secrets []string
		in, out string
	}{
		{"nothing known", nil, "hunter2", "hunter2"},
		{"whole", []string{"hunter2"}, "hunter2", redacted},
		{"part", []string{"hunter2"}, "your hunter2!", "your " + redacted + "!"},
		{"twice", []string{"hunter2"}, "hunter2hunter2", redacted + redacted},
		{"short as the whole", []string{"abc"}, "abc", redacted},
		{"short as a part is common text", []string{"abc"}, "abcdef", "abcdef"},
		{"longest first", []string{"pass", "password1"}, "password1", redacted},
		{"json form", []string{`a"b\c`}, `{"v":"a\"b\\c"}`, `{"v":"` + redacted + `"}`},
		{"url form", []string{"p w&1"}, "https://x/?p=p+w%261", "https://x/?p=" + redacted},
		{"squeezed", []string{"two  spaces"}, "say two spaces now", "say " + redacted + " now"},
		{"cut prefix", []string{long}, "x " + long[:40] + "…", "x " + redacted + "…"},
		{"too short a prefix", []string{long}, "x " + long[:31], "x " + long[:31]},
		{"non-ASCII", []string{"pässwörd"}, "<pässwörd>", "<" + redacted + ">"},
	} {
		s := newSecrets()
		s.add(c.secrets...)
		if got := s.scrub(c.in); got != c.out {
			t.Errorf("%s: %q became %q, want %q", c.name, c.in, got, c.out)
		}
	}
}

// TestScrubLeavesNothing holds I5 of targets: no secret of four characters or
// more survives, in any of its forms, wherever it stands.
func TestScrubLeavesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(4, 60, 200).Draw(t, "secret")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		s := newSecrets()
		s.add(secret)
		for _, form := range formsOf(secret) {
			if len([]rune(form)) < secretPart {
				continue
			}
			if out := s.scrub(before + form + after); strings.Contains(strings.ReplaceAll(out, redacted, "\x00"), form) {
				t.Fatalf("%q is left in %q", form, out)
			}
		}
	})
}

func TestRefs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := protocol.Generation(rapid.Uint64Min(1).Draw(t, "generation"))
		node := rapid.IntRange(1, 1<<40).Draw(t, "node")
		r := makeRef(g, "abcdefghi", node)
		g2, doc, node2, ok := parseRef(r)
		if !ok || g2 != g || doc != "abcdefghi" || node2 != node {
			t.Fatalf("%s: %d %s %d %v", r, g2, doc, node2, ok)
		}
	})
	for _, bad := range []protocol.Ref{"", "e", "e1", "e1.x", "1.x.b", "e1..b", "e1.x.", "e1.x.a", "ex.x.b", "e1.x.b.c", "e1.x.bcdfghjklmnpqrst"} {
		if _, _, _, ok := parseRef(bad); ok {
			t.Errorf("%q is taken for a ref", bad)
		}
	}
}

func TestClusters(t *testing.T) {
	for in, want := range map[string][]string{
		"ab":                                {"a", "b"},
		"e\u0301x":                          {"e\u0301", "x"},
		"\U0001F468\u200D\U0001F469!":       {"\U0001F468\u200D\U0001F469", "!"},
		"\U0001F1EF\U0001F1F5a":             {"\U0001F1EF\U0001F1F5", "a"},
		"\u0939\u093F":                      {"\u0939\u093F"},
		"a\nb":                              {"a", "\n", "b"},
		"\U0001F44D\U0001F3FD \u2764\uFE0F": {"\U0001F44D\U0001F3FD", " ", "\u2764\uFE0F"},
	} {
		got := clusters(in)
		var texts []string
		for _, c := range got {
			texts = append(texts, c.text)
			if (c.key != nil) != (len(c.text) == 1 && c.text >= " ") {
				t.Errorf("%q: key of %q is %v", in, c.text, c.key)
			}
		}
		if show(texts) != show(want) {
			t.Errorf("%q became %q, want %q", in, texts, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "text")
		var b strings.Builder
		for _, c := range clusters(in) {
			b.WriteString(c.text)
		}
		if b.String() != strings.ToValidUTF8(in, "\uFFFD") && b.String() != string([]rune(in)) {
			t.Fatalf("%q became %q", in, b.String())
		}
	})
}

func TestChords(t *testing.T) {
	for in, want := range map[string]struct {
		key, code string
		bits      int64
	}{
		"Enter":                   {"Enter", "Enter", 0},
		"a":                       {"a", "KeyA", 0},
		"A":                       {"A", "KeyA", 8},
		"Control+A":               {"a", "KeyA", 2},
		"Control+a":               {"a", "KeyA", 2},
		"Control+Shift+A":         {"A", "KeyA", 10},
		"Control+Shift+ArrowLeft": {"ArrowLeft", "ArrowLeft", 10},
		"Alt+F4":                  {"F4", "F4", 1},
		"+":                       {"+", "Equal", 8},
		"Control++":               {"+", "Equal", 10},
		"?":                       {"?", "Slash", 8},
		"Space":                   {" ", "Space", 0},
		" ":                       {" ", "Space", 0},
		"Tab":                     {"Tab", "Tab", 0},
		"Delete":                  {"Delete", "Delete", 0},
		"Backspace":               {"Backspace", "Backspace", 0},
		"Escape":                  {"Escape", "Escape", 0},
		"PageDown":                {"PageDown", "PageDown", 0},
		"Home":                    {"Home", "Home", 0},
		"Shift":                   {"Shift", "ShiftLeft", 0},
	} {
		c, err := parseChord(in)
		if err != nil || c.key.key != want.key || c.key.code != want.code || c.bits != want.bits {
			t.Errorf("%q: %+v %v, want %+v", in, c, err, want)
		}
	}
	for _, bad := range []string{"", "NoKey", "Ctrl+A", "Control+", "Control+Control+A", "ab", "é", "Enter+A", "\n"} {
		if c, err := parseChord(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, c)
		}
	}
}

func TestExpected(t *testing.T) {
	at := func(v string, s, e int) field { return field{Value: v, Start: &s, End: &e} }
	for _, c := range []struct {
		before     field
		text, want string
	}{
		{at("", 0, 0), "x", "x"},
		{at("ab", 1, 1), "x", "axb"},
		{at("ab", 0, 2), "x", "x"},
		{at("\U0001F600b", 2, 3), "x", "\U0001F600x"},
		{field{Value: "ab"}, "x", "abx"},
		{at("ab", 9, 9), "x", "abx"},
	} {
		if got := expected(c.before, c.text); got != c.want {
			t.Errorf("%q into %+v gives %q, want %q", c.text, c.before, got, c.want)
		}
	}
	if !subsequence("1234", "12-34") || subsequence("1234", "1-34") || subsequence("ab", "ba") {
		t.Error("subsequence")
	}
}

// TestBudget holds that an observation fits, that controls come before text, and
// that what is left out is told.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 600).Draw(t, "controls")
		limit, offset := rapid.IntRange(0, 300).Draw(t, "limit"), rapid.IntRange(0, 700).Draw(t, "offset")
		var controls []protocol.Control
		for i := range n {
			controls = append(controls, protocol.Control{Ref: makeRef(1, "abcdefghi", i+1), Role: "button", Name: strings.Repeat("n", i%90)})
		}
		text := strings.Split(rapid.StringOfN(rapid.RuneFrom([]rune("ab \n")), 0, 3000, -1).Draw(t, "text"), "\n")
		o := &protocol.Observation{Controls: []protocol.Control{}}
		b := budget{o: o, limit: limit, offset: offset}
		b.fill(controls, text)
		o.Omitted = b.omitted(len(controls), len(text), nil)
		most := protocol.ObservationBytes
		if limit > 0 {
			most = protocol.ObservationMax
		}
		j, _ := json.Marshal(o)
		if len(j) > most {
			t.Fatalf("%d bytes", len(j))
		}
		if limit > 0 && len(o.Controls) > limit {
			t.Fatalf("%d controls, limit %d", len(o.Controls), limit)
		}
		if missing := len(controls) - len(o.Controls); missing > 0 && (o.Omitted == nil || o.Omitted.Controls != missing || o.Omitted.How == "") {
			t.Fatalf("%d left out and not told: %+v", missing, o.Omitted)
		}
		if offset == 0 && len(o.Text) > 0 && len(o.Controls) < len(controls) && limit == 0 && len(controls[len(o.Controls)].Name) < 10 {
			t.Log("text beside a shortened list")
		}
	})
}

func FuzzParseRef(f *testing.F) {
	f.Add("e3.abcdefghi.bcd")
	f.Add("e.é.zzzzzzzzzzzzzzz")
	f.Fuzz(func(t *testing.T, in string) {
		g, doc, node, ok := parseRef(protocol.Ref(in))
		if !ok {
			return
		}
		if g2, doc2, node2, ok := parseRef(makeRef(g, doc, node)); !ok || g2 != g || doc2 != doc || node2 != node {
			t.Fatalf("%q: %d %q %d", in, g, doc, node)
		}
	})
}

func FuzzParseChord(f *testing.F) {
	for _, s := range []string{"Enter", "Control+Shift+A", "++", "+", "Alt+", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if c, err := parseChord(in); err == nil && (c.key.key == "" || c.key.code == "" || len(c.modifiers) > 4) {
			t.Fatalf("%q: %+v", in, c)
		}
	})
}
