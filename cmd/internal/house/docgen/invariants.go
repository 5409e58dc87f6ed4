package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"reins/cmd/internal/house"
)

// invariant is the first line of one, as doc.go files write them: I7  Text.
var invariant = regexp.MustCompile(`^\s*(I\d+)\s+(.*)$`)

// invariantsDocument collects the invariants of every package.
func invariantsDocument(t *house.Tree) (string, error) {
	var b strings.Builder
	b.WriteString("# Invariants\n\n" + generated)
	b.WriteString("What has to stay true, package by package. Tests name the invariant they hold.\n")
	packages := t.Packages()
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		for _, f := range packages[pkg] {
			if path.Base(f.Path) != "doc.go" || f.AST.Doc == nil {
				continue
			}
			list := invariantsIn(f.AST.Doc.Text())
			if len(list) == 0 {
				continue
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", pkg, firstSentence(f.AST.Doc.Text()))
			for _, i := range list {
				fmt.Fprintf(&b, "- %s\n", i)
			}
		}
	}
	return b.String(), nil
}

// invariantsIn returns the invariants of a package comment, each on one line.
func invariantsIn(text string) []string {
	_, text, found := strings.Cut(text, "Invariants")
	if !found {
		return nil
	}
	var list []string
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")
		switch m := invariant.FindStringSubmatch(line); {
		case m != nil:
			list = append(list, "**"+m[1]+"** "+strings.TrimSpace(m[2]))
		case indented && len(list) > 0:
			list[len(list)-1] += " " + strings.TrimSpace(line)
		case strings.TrimSpace(line) != "" && len(list) > 0:
			return list
		}
	}
	return list
}

// firstSentence is the first sentence of a comment, on one line.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '.' && text[i+1] == ' ' {
			return text[:i+1]
		}
	}
	return text
}
