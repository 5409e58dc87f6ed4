package house

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	ownMachine = regexp.MustCompile(`(^|[\s"'(` + "`" + `=])/(root|home)/[a-z]`)
)

var wordRules = []Rule{
	{
		Name:    "unfinished",
		Instead: "finish it, or leave it out and say in docs what is not there",
		check: inLines(func(_ string, line []byte) string {
			if unfinished.Match(line) {
				return "a mark of unfinished work"
			}
			return ""
		}),
	},
	{
		Name:    "own machine",
		Instead: "take the path from a flag, the environment or t.TempDir()",
		check: inLines(func(path string, line []byte) string {
			if ownMachine.Match(line) && !strings.HasSuffix(path, "_test.go") {
				return "a path of somebody's own machine"
			}
			return ""
		}),
	},
}

// inLines makes a check that looks at each line that people wrote.
func inLines(wrong func(path string, line []byte) string) func(*Tree, *report) {
	return func(t *Tree, r *report) {
		sources := maps.Clone(t.Texts)
		for _, f := range t.Files {
			sources[f.Path] = f.Source
		}
		for _, path := range slices.Sorted(maps.Keys(sources)) {
			if strings.HasPrefix(path, "LICENSE") {
				continue
			}
			line := 0
			for text := range bytes.Lines(sources[path]) {
				line++
				if what := wrong(path, text); what != "" {
					r.add(path, line, "", "%s", what)
				}
			}
		}
	}
}
