package house

import (
	"bytes"
	"go/ast"
	"go/format"
)

const (
	maxFunctionLines     = 80
	maxTestFunctionLines = 160 // a table is part of its test
	maxFileLines         = 600
)

var sizeRules = []Rule{
	{
		Name:    "function size",
		Instead: "split it where a comment would begin; ifs go up, loops go down",
		check: func(t *Tree, r *report) {
			for _, f := range t.Files {
				limit := maxFunctionLines
				if f.Test() {
					limit = maxTestFunctionLines
				}
				eachFunction(f, func(symbol string, n ast.Node) {
					lines := r.tree.Fset.Position(n.End()).Line - r.tree.Fset.Position(n.Pos()).Line + 1
					if _, ok := n.(*ast.FuncDecl); ok && lines > limit {
						r.at(f, n.Pos(), symbol, "%s has %d lines, more than %d", symbol, lines, limit)
					}
				})
			}
		},
	},
	{
		Name:    "file size",
		Instead: "give each thing its own file, named after it",
		check: func(t *Tree, r *report) {
			sources := map[string][]byte{}
			for _, f := range t.Files {
				sources[f.Path] = f.Source
			}
			for name, source := range t.Texts {
				if within(name, topFolders[:len(topFolders)-1]...) {
					sources[name] = source
				}
			}
			for name, source := range sources {
				if lines := bytes.Count(source, []byte("\n")); lines > maxFileLines {
					r.add(name, 1, name, "%d lines, more than %d", lines, maxFileLines)
				}
			}
		},
	},
	{
		Name:    "gofmt",
		Instead: "run gofmt -w",
		check: func(t *Tree, r *report) {
			for _, f := range t.Files {
				if formatted, err := format.Source(f.Source); err == nil && !bytes.Equal(formatted, f.Source) {
					r.at(f, 0, "", "it is not formatted")
				}
			}
		},
	},
}
