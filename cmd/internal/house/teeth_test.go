package house

import (
	"fmt"
	"strings"
	"testing"
)

// TestTeeth holds I2: each rule finds what breaks it, in a tree that breaks it
// once, and finds nothing in the same tree put right.
func TestTeeth(t *testing.T) {
	const actor = "import \"github.com/asynkron/protoactor-go/actor\"\nvar _ actor.Actor\n"
	lines := strings.Repeat("\t_ = 0\n", maxFunctionLines)
	for _, c := range []struct {
		rule, path, bad, good string
	}{
		{"layout", "util/a.go", "package util", ""},
		{"layout", "main.go", "package main", ""},
		{"parses", "cmd/a.go", "package cmd\nfunc (", "package cmd"},
		{"layers", "protocol/a.go", "package protocol\nimport _ \"reins/persistence\"", "package protocol\nimport _ \"time\""},
		{"layers", "protocol/nats/a.go", "package nats\nimport _ \"reins/actors/scope\"", "package nats\nimport _ \"reins/protocol\""},
		{"layers", "protocol/nats/a.go", "package nats\nimport _ \"reins/protocol/mcp\"", ""},
		{"layers", "targets/page/a.go", "package page\nimport _ \"reins/targets/x11\"", "package page\nimport _ \"reins/targets/page/internal/cdp\""},
		{"layers", "targets/a.go", "package targets\nimport _ \"reins/targets/page\"", "package targets\nimport _ \"reins/protocol\""},
		{"layers", "actors/scope/a.go", "package scope\nimport _ \"reins/supervisors\"", "package scope\nimport _ \"reins/actors/target\""},
		{"layers", "actors/scope/a_test.go", "package scope\nimport _ \"reins/targets/page\"", "package scope\nimport _ \"reins/targets\""},
		{"layers", "cmd/internal/cli/a.go", "package cli\nimport _ \"reins/protocol/nats/embed\"", "package cli\nimport _ \"reins/protocol/nats\""},
		{"walls", "persistence/a.go", "package persistence\n" + actor, "package persistence\nimport _ \"github.com/cockroachdb/pebble/v2\""},
		{"walls", "protocol/nats/a.go", "package nats\nimport _ \"github.com/nats-io/nats-server/v2/server\"", "package nats\nimport _ \"github.com/nats-io/nats.go\""},
		{"walls", "actors/a.go", "package actors\nimport _ \"pgregory.net/rapid\"", ""},
		{"walls", "cmd/a.go", "package cmd\nimport _ \"example.org/new\"", "package cmd\nimport _ \"log/slog\""},
		{"dependencies", "go.mod", "require (\n\texample.org/a v1.0.0\n)", "require (\n\texample.org/a v1.0.0 // indirect\n)"},
		{"dependencies", "docs/dependencies.md", "| `example.org/gone` | x |", ""},
		{"sleep", "actors/a_test.go", "package actors\nimport \"time\"\nfunc f() { time.Sleep(1) }", "package actors\nimport \"time\"\nvar _ = time.NewTimer(1)"},
		{"sleep", "cmd/a.go", "package cmd\nimport t \"time\"\nfunc f() { t.Sleep(1) }", ""},
		{"skip", "cmd/a_test.go", "package cmd\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Skip() }", "package cmd\nimport \"testing\"\nfunc TestA(t *testing.T) {}"},
		{"print", "actors/a.go", "package actors\nimport \"fmt\"\nfunc f() { fmt.Println() }", "package main\nimport \"fmt\"\nfunc f() { fmt.Println() }"},
		{"print", "actors/a.go", "package actors\nimport \"log\"\nfunc f() { log.Printf(\"\") }", ""},
		{"print", "actors/a.go", "package actors\nfunc f() { println() }", ""},
		{"end", "actors/a.go", "package actors\nfunc f() { panic(1) }", "package actors\nimport \"net/http\"\nfunc f() { panic(http.ErrAbortHandler) }"},
		{"end", "actors/a.go", "package actors\nimport \"os\"\nfunc f() { os.Exit(1) }", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }"},
		{"end", "actors/a.go", "package actors\nimport \"log\"\nfunc f() { log.Fatalln() }", ""},
		{"futures", "actors/a.go", "package actors\n" + actor + "func f(c actor.Context) { c.RequestFuture(nil, nil, 0) }", "package actors\nfunc f(c interface{ RequestFuture() }) { c.RequestFuture() }"},
		{"futures", "actors/a.go", "package actors\n" + actor + "func f(c actor.Context) { c.ReenterAfter(nil, nil) }", ""},
		{"actors", "actors/a.go", "package actors\n" + actor + "func f(c actor.Context) { c.Stash() }", ""},
		{"actors", "actors/a.go", "package actors\n" + actor + "func f(c actor.Context) { c.SetReceiveTimeout(1) }", ""},
		{"actors", "actors/a.go", "package actors\n" + actor + "var d = actor.RestartDirective", "package actors\n" + actor + "var d = actor.StopDirective"},
		{"function size", "cmd/a.go", "package cmd\nfunc f() {\n" + lines + "}", "package cmd\nvar x = `" + lines + "`"},
		{"file size", "cmd/a.js", strings.Repeat("\n", maxFileLines+1), strings.Repeat("\n", maxFileLines)},
		{"gofmt", "cmd/a.go", "package cmd\nvar  x int\n", "package cmd\n\nvar x int\n"},
		{"package document", "cmd/doc.go", "package cmd", "// Package cmd.\n// Only main imports it.\npackage cmd"},
		{"package document", "cmd/doc.go", "// Package cmd is good.\npackage cmd", ""},
		{"package document", "cmd/a.go", "// Package cmd. Invariants: none.\npackage cmd", "// Command x.\npackage main"},
		{"exported", "cmd/a.go", "package cmd\nfunc F() {}", "package cmd\n// F is f.\nfunc F() {}"},
		{"exported", "cmd/a.go", "package cmd\ntype T int\n// M is m.\nfunc (T) M() {}", "package cmd\ntype t int\nfunc (t) M() {}"},
		{"exported", "cmd/a.go", "package cmd\n// T is t.\ntype T int\nfunc (*T) M() {}", "package cmd\n// T is t.\ntype T int\nfunc (*T) Error() {}"},
		{"exported", "cmd/a.go", "package cmd\nconst (\n\tA = 1 // one\n\tB = 2\n)", "package cmd\n// Numbers.\nconst (\n\tA = 1\n\tB = 2\n)"},
		{"exported", "cmd/a.go", "package cmd\nvar A = 1", "package cmd\ntype (\n\t// A and B are two.\n\tA int\n\tB int\n)"},
		{"reasons", "protocol/reason.go", "package protocol\nconst A Reason = \"a\"\nvar reasonDocs = []reasonDoc{}", "package protocol\nconst A Reason = \"a\"\nvar reasonDocs = []reasonDoc{{A, \"x\"}}"},
		{"reasons", "protocol/reason.go", "package protocol\nvar reasonDocs = []reasonDoc{{A, \"x\"}}", ""},
		{"reasons", "protocol/reason.go", "package protocol\nconst (\n\tA Reason = \"a\"\n\tB Reason = \"a\"\n)\nvar reasonDocs = []reasonDoc{{A, \"x\"}, {B, \"y\"}}", ""},
		{"unfinished", "cmd/a.js", "// TO" + "DO", "// todo list"},
		{"own machine", "docs/a.md", "see `/home/ada/x`", "see https://example.org/home/ada"},
	} {
		rule := ruleNamed(t, c.rule)
		if got := rule.Check(treeOf(c.path, c.bad), nil); len(got) != 1 {
			t.Errorf("%s: %d findings in\n%s\n%v", c.rule, len(got), c.bad, got)
		} else if text := got[0].String(); !strings.Contains(text, c.path) && c.rule != "layout" || !strings.Contains(text, "instead: ") {
			t.Errorf("%s: a finding that does not say where and what instead: %s", c.rule, text)
		}
		if c.good == "" {
			continue
		}
		if got := rule.Check(treeOf(c.path, c.good), nil); len(got) != 0 {
			t.Errorf("%s: findings in\n%s\n%v", c.rule, c.good, got)
		}
	}
}

// TestEveryRuleHasTeeth holds that no rule is missing in TestTeeth.
func TestEveryRuleHasTeeth(t *testing.T) {
	tree := loaded(t)
	var source string
	for _, f := range tree.Files {
		if strings.HasSuffix(f.Path, "house/teeth_test.go") {
			source = string(f.Source)
		}
	}
	for _, r := range Rules() {
		if !strings.Contains(source, fmt.Sprintf("{%q, ", r.Name)) {
			t.Errorf("TestTeeth has no tree that breaks %q", r.Name)
		}
	}
}

// TestAllowancesCover holds that an allowance permits what it names and nothing
// else, and that a needless one is found.
func TestAllowancesCover(t *testing.T) {
	tree := treeOf("actors/a.go", "package actors\nfunc f() { panic(1) }\nfunc g() { panic(1) }")
	allowed := []Allowance{{"end", "actors/a.go", "f", "why"}, {"end", "actors/a.go", "h", "why"}, {"end", "actors/a.go", "g", ""}}
	if got := ruleNamed(t, "end").Check(tree, allowed[:2]); len(got) != 1 || got[0].Symbol != "g" {
		t.Errorf("got %v", got)
	}
	if got := Unneeded(tree, allowed); len(got) != 2 || got[0].Symbol != "h" || got[1].Symbol != "g" {
		t.Errorf("got %v", got)
	}
}

func treeOf(path, source string) *Tree {
	t := NewTree()
	folder, _, deep := strings.Cut(path, "/")
	if deep {
		t.Folders = []string{folder}
	}
	t.Add(path, []byte(source))
	return t
}

func ruleNamed(t *testing.T, name string) Rule {
	t.Helper()
	for _, r := range Rules() {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no rule %q", name)
	return Rule{}
}
