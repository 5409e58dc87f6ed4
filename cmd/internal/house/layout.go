package house

import "slices"

// topFolders is the layout: there is no other folder at the top.
var topFolders = []string{"cmd", "protocol", "persistence", "targets", "actors", "supervisors", "chaos", "docs"}

var layoutRules = []Rule{
	{
		Name:    "layout",
		Instead: "put it below one of cmd, protocol, persistence, targets, actors, supervisors, chaos, docs",
		check: func(t *Tree, r *report) {
			for _, folder := range t.Folders {
				if !slices.Contains(topFolders, folder) {
					r.add(folder, 1, folder, "there is no folder %s at the top of the tree", folder)
				}
			}
			for _, f := range t.Files {
				if f.Package() == "" {
					r.at(f, f.AST.Package, f.Path, "a Go file at the top of the tree")
				}
			}
		},
	},
	{
		Name:    "parses",
		Instead: "make it valid Go: the other rules see only what can be parsed",
		check: func(t *Tree, r *report) {
			for _, f := range t.Files {
				if f.Err != nil {
					r.at(f, 0, "", "%v", f.Err)
				}
			}
		},
	},
}
