package house

import (
	"slices"
	"strconv"
	"strings"
)

// layer is a row of the layers: packages of it may import the ones in may, and
// each other inside one unit (a folder; for transports and adapters each its own).
type layer struct {
	name string
	may  []string
	why  string
}

// layers are in an order in which each imports only what stands above it.
var layers = []layer{
	{"protocol", nil, "everybody has to be able to import the words, so they import nobody"},
	{"transports", []string{"protocol"}, "a transport carries messages to a Handler; it knows no actor and no other transport"},
	{"persistence", []string{"protocol"}, "the store is below those who decide what to keep"},
	{"targets", []string{"protocol"}, "the contract of adapters has to be readable without any adapter"},
	{"adapters", []string{"protocol", "targets"}, "an adapter gives input and looks; it decides nothing, stores nothing and knows no other kind"},
	{"actors", []string{"protocol", "persistence", "targets"}, "actors know adapters by the contract only, so that a new kind changes none of them"},
	{"supervisors", []string{"protocol", "persistence", "targets", "actors"}, "supervisors start actors; no actor knows who restarts it"},
	{"chaos", []string{"protocol"}, "the checker has its own small System, so that it cannot share a fault with what it checks"},
	{"cmd", []string{"protocol", "transports", "persistence", "targets", "adapters", "actors", "supervisors", "chaos"}, "cmd wires everything and is the only one that knows everybody"},
}

// wall keeps a library inside the packages that are meant to know it.
type wall struct {
	library string   // import path or its beginning, up to a slash
	inside  []string // packages of ours, with what is below them
	tests   bool     // only in files of tests
	why     string
}

// walls name each library that is imported at all. The first that fits counts.
var walls = []wall{
	{"github.com/asynkron/protoactor-go", []string{"actors", "supervisors"}, false, "its traps are known and fenced in by the shells there"},
	{"github.com/cockroachdb/pebble", []string{"persistence"}, false, "only the store knows how things are kept"},
	{"github.com/nats-io/nats-server", []string{"protocol/nats/embed"}, false, "a client must not carry a server"},
	{"github.com/nats-io", []string{"protocol/nats"}, false, "no actor and no command knows by which wire a request came"},
	{"github.com/chromedp", []string{"targets/page"}, false, "the browser's protocol is the Page adapter's own business"},
	{"github.com/go-json-experiment/json", []string{"targets/page"}, false, "it is the type of cdproto's raw values; elsewhere encoding/json is used"},
	{"github.com/spf13", []string{"cmd"}, false, "only the command line has commands and flags"},
	{"golang.org/x/sys", []string{"cmd", "persistence", "targets", "chaos"}, false, "the decisions need no system calls"},
	{"github.com/anishathalye/porcupine", []string{"chaos"}, false, "it checks histories and is part of nothing that makes them"},
	{"github.com/cockroachdb/datadriven", topFolders, true, "transcripts are tests"},
	{"pgregory.net/rapid", topFolders, true, "properties are tests"},
	{"go.uber.org/goleak", topFolders, true, "it looks at the goroutines of a test"},
}

// importers names packages of ours that only some may import.
var importers = []wall{
	{Module + "/protocol/nats/embed", []string{"protocol/nats", "cmd/internal/daemon"}, false, "only the daemon carries a server"},
	{Module + "/cmd/internal/house", []string{"cmd/internal/house"}, false, "the rules of the source are no part of the product"},
}

var importRules = []Rule{
	{
		Name:    "layers",
		Instead: "let the lower package define a small interface and the higher one, or cmd, supply it",
		check:   checkLayers,
	},
	{
		Name:    "walls",
		Instead: "ask for what you need from the package that has the library, in our own words; a new library needs a row in walls and in docs/dependencies.md",
		check:   checkWalls,
	},
	{
		Name:    "dependencies",
		Instead: "give each direct dependency a row in docs/dependencies.md with its reason, and remove rows of what is gone",
		check:   checkDependencies,
	},
}

func eachImport(t *Tree, do func(f *File, path string, pos int)) {
	for _, f := range t.Files {
		for i, spec := range f.AST.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				do(f, path, i)
			}
		}
	}
}

func checkLayers(t *Tree, r *report) {
	eachImport(t, func(f *File, path string, i int) {
		pos := f.AST.Imports[i].Pos()
		for _, w := range importers {
			if within(path, w.library) && !within(f.Package(), w.inside...) {
				r.at(f, pos, path, "%s imports %s: %s", f.Package(), path, w.why)
			}
		}
		imported, ours := strings.CutPrefix(path, Module+"/")
		if !ours {
			return
		}
		from, to := layerOf(f.Package()), layerOf(imported)
		if unitOf(f.Package()) == unitOf(imported) || slices.Contains(from.may, to.name) {
			return
		}
		r.at(f, pos, path, "%s (%s) imports %s (%s): %s", f.Package(), from.name, imported, to.name, from.why)
	})
}

// layerOf finds the layer of a package of ours.
func layerOf(pkg string) layer {
	name, below, _ := strings.Cut(pkg, "/")
	switch {
	case name == "protocol" && below != "":
		name = "transports"
	case name == "targets" && below != "":
		name = "adapters"
	}
	for _, l := range layers {
		if l.name == name {
			return l
		}
	}
	return layer{name: name, why: "it stands in no layer"}
}

// unitOf is the folder inside which packages may import each other.
func unitOf(pkg string) string {
	elements := strings.SplitN(pkg, "/", 3)
	if len(elements) > 1 && (elements[0] == "protocol" || elements[0] == "targets") {
		return elements[0] + "/" + elements[1]
	}
	return elements[0]
}

func checkWalls(t *Tree, r *report) {
	eachImport(t, func(f *File, path string, i int) {
		first, _, _ := strings.Cut(path, "/")
		if !strings.Contains(first, ".") || first == Module {
			return
		}
		pos := f.AST.Imports[i].Pos()
		at := slices.IndexFunc(walls, func(w wall) bool { return within(path, w.library) })
		switch {
		case at < 0:
			r.at(f, pos, path, "%s is a library that no wall names", path)
		case !within(f.Package(), walls[at].inside...):
			r.at(f, pos, path, "%s imports %s: %s", f.Package(), path, walls[at].why)
		case walls[at].tests && !f.Test():
			r.at(f, pos, path, "%s imports %s outside of its tests: %s", f.Package(), path, walls[at].why)
		}
	})
}

// checkDependencies compares the direct requirements of go.mod with the first
// column of the table in docs/dependencies.md.
func checkDependencies(t *Tree, r *report) {
	const table = "docs/dependencies.md"
	rows := map[string]int{}
	for i, line := range strings.Split(string(t.Texts[table]), "\n") {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(cell, "`")
			rows[name] = i + 1
		}
	}
	for i, line := range strings.Split(string(t.Texts["go.mod"]), "\n") {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) != 2 || !strings.HasPrefix(words[1], "v") {
			continue // an indirect one, or no requirement
		}
		if _, ok := rows[words[0]]; !ok {
			r.add("go.mod", i+1, words[0], "%s has no row in %s", words[0], table)
		}
		delete(rows, words[0])
	}
	for name, line := range rows {
		r.add(table, line, name, "%s is no direct dependency", name)
	}
}
