package main

import (
	"strings"
	"testing"

	"reins/cmd/internal/house"
)

// TestDocumentsAreCurrent fails when a generated document is older than the source.
func TestDocumentsAreCurrent(t *testing.T) {
	tree := loaded(t)
	for name, write := range documents {
		want, err := write(tree)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := string(tree.Texts[name]); got != want {
			t.Errorf("%s is older than the source, from line %d on: run go run ./cmd/internal/house/docgen", name, firstDifference(got, want))
		}
	}
}

// TestLimitsAreExplained holds that docs/limits.md has a row with the right
// number for each limit of the protocol.
func TestLimitsAreExplained(t *testing.T) {
	tree := loaded(t)
	limits, err := limitRows(newSource(tree, "protocol"))
	if err != nil {
		t.Fatal(err)
	}
	if len(limits) < 20 {
		t.Fatalf("only %d limits were found", len(limits))
	}
	text := string(tree.Texts["docs/limits.md"])
	for _, l := range limits {
		if row := "| `" + l.name + "` | " + l.value + " |"; !strings.Contains(text, row) {
			t.Errorf("docs/limits.md has no row that begins with\n%s", row)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("docs/limits.md does not say what happens: %s", line)
			continue
		}
		checkLimit(t, tree, strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2]))
	}
}

// checkLimit compares a row of the form folder.Name with that constant.
func checkLimit(t *testing.T, tree *house.Tree, name, number string) {
	dot := strings.LastIndex(name, ".")
	pkg, constant := "protocol", name
	if dot >= 0 {
		pkg, constant = name[:dot], name[dot+1:]
	}
	for _, d := range newSource(tree, pkg).constants() {
		if d.name != constant {
			continue
		}
		value, duration, err := evaluate(d.value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := limitWords(constant, value, duration); got != number {
			t.Errorf("docs/limits.md says that %s is %s; it is %s", name, number, got)
		}
		return
	}
	t.Errorf("docs/limits.md has a row for %s, which the source does not have", name)
}

// TestDocumentReadsTheSource holds that a change of the source changes the document.
func TestDocumentReadsTheSource(t *testing.T) {
	tree := house.NewTree()
	tree.Add("protocol/limits.go", []byte("package protocol\nconst (\n\tMaxThingBytes = 3 << 10 // a thing\n\tWait = 2*time.Hour\n)\n"))
	tree.Add("protocol/words.go", []byte("package protocol\n// Thing is a thing.\ntype Thing struct {\n\tOf *Word `json:\"of,omitempty\"` // of what\n\tIn []string `json:\"in\"`\n}\n// Word is a word.\ntype Word string\nconst WordA Word = \"a|b\"\n"))
	tree.Add("protocol/nats/subjects.go", []byte("package nats\n// SubjectDo takes writes.\nconst SubjectDo = \"reins.v1.<owner>.do\"\n"))
	tree.Add("actors/doc.go", []byte("// Package actors acts. More.\n//\n// Invariants:\n//\n//\tI1  One\n//\t    and more.\n//\tI2  Two.\n//\n// Only cmd.\npackage actors\n"))
	got, err := protocolDocument(tree)
	if err == nil {
		var more string
		more, err = invariantsDocument(tree)
		got += more
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `MaxThingBytes` | 3 KiB | a thing |", "| `Wait` | 2 h |", "### Thing\n\nThing is a thing.",
		"| `of` | Word, optional | of what |", "| `in` | list of string |", "| Word | string | Word is a word. One of `a\\|b`. |",
		"| `reins.v1.<owner>.do` | SubjectDo | SubjectDo takes writes. |",
		"## actors\n\nPackage actors acts.\n\n- **I1** One and more.\n- **I2** Two.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func firstDifference(a, b string) int {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return i + 1
		}
	}
	return min(len(as), len(bs)) + 1
}

func loaded(t *testing.T) *house.Tree {
	t.Helper()
	root, err := house.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := house.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
