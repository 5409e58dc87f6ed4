package house

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

var documentRules = []Rule{
	{
		Name:    "package document",
		Instead: "write a doc.go: what the package is for, its numbered Invariants, and who may import it",
		check:   checkPackages,
	},
	{
		Name:    "exported",
		Instead: "write a comment that says what it is for, with units, ranges and errors; a group of constants can share one",
		check:   checkExported,
	},
	{
		Name:    "reasons",
		Instead: "declare each reason code once in protocol/reason.go, and give it one row in reasonDocs",
		check:   checkReasons,
	},
}

// checkPackages asks of each package but main ones a doc.go that has invariants
// or says who imports it, and of main ones a comment.
func checkPackages(t *Tree, r *report) {
	packages := t.Packages()
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		files := slices.DeleteFunc(slices.Clone(packages[pkg]), (*File).Test)
		if len(files) == 0 {
			continue
		}
		text, in := "", files[0]
		for _, f := range files {
			if f.AST.Doc != nil {
				text, in = f.AST.Doc.Text(), f
			}
		}
		name := files[0].AST.Name.Name
		switch {
		case text == "":
			r.at(in, 0, pkg, "package %s has no comment", pkg)
		case name == "main":
		case path.Base(in.Path) != "doc.go":
			r.at(in, 0, pkg, "the comment of package %s is not in doc.go", pkg)
		case !strings.Contains(text, "Invariants") && !strings.Contains(text, "import"):
			r.at(in, 0, pkg, "the comment of package %s has no Invariants and does not say who imports it", pkg)
		}
	}
}

// selfEvident are methods whose meaning is fixed by an interface everybody knows.
var selfEvident = []string{
	"Error", "String", "Unwrap", "Is", "As", "ServeHTTP", "Receive", "Len", "Less", "Swap", "Read", "Write",
	"Enabled", "Handle", "WithAttrs", "WithGroup", "LogValue",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "RoundTrip", "HandleFailure",
}

func checkExported(t *Tree, r *report) {
	for _, f := range t.Files {
		if f.Test() || f.Main() {
			continue
		}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				checkFunction(f, d, r)
			case *ast.GenDecl:
				shared := groupText(f, d)
				for _, s := range d.Specs {
					checkSpec(f, d, s, shared, r)
				}
			}
		}
	}
}

// groupText is all comments inside a group: one often tells of its neighbours too.
func groupText(f *File, d *ast.GenDecl) string {
	var b strings.Builder
	for _, c := range f.AST.Comments {
		if c.Pos() > d.Pos() && c.End() < d.End() {
			b.WriteString(c.Text())
		}
	}
	return b.String()
}

func checkFunction(f *File, d *ast.FuncDecl, r *report) {
	receiver := receiverName(d)
	if !d.Name.IsExported() || d.Doc != nil || receiver != "" && !ast.IsExported(receiver) {
		return
	}
	if receiver != "" && slices.Contains(selfEvident, d.Name.Name) {
		return
	}
	r.at(f, d.Pos(), functionName(d), "%s has no comment", functionName(d))
}

func checkSpec(f *File, d *ast.GenDecl, s ast.Spec, shared string, r *report) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil && s.Comment == nil && !mentions(shared, s.Name.Name) {
			r.at(f, s.Pos(), s.Name.Name, "%s has no comment", s.Name.Name)
		}
	case *ast.ValueSpec:
		if s.Doc != nil || d.Doc != nil || s.Comment != nil {
			return
		}
		for _, name := range s.Names {
			if name.IsExported() && !mentions(shared, name.Name) {
				r.at(f, name.Pos(), name.Name, "%s has no comment", name.Name)
			}
		}
	}
}

func mentions(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), name)
}

// checkReasons compares the constants of type Reason with the rows of reasonDocs.
func checkReasons(t *Tree, r *report) {
	codes, rows, values := map[string]*File{}, map[string]bool{}, map[string]string{}
	pos := map[string]token.Pos{}
	for _, f := range t.Files {
		if f.Package() != "protocol" || f.Test() {
			continue
		}
		for _, d := range f.AST.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range d.Specs {
				s, ok := s.(*ast.ValueSpec)
				switch {
				case !ok:
				case d.Tok == token.VAR && s.Names[0].Name == "reasonDocs":
					for _, name := range reasonRows(s) {
						if rows[name] {
							r.at(f, s.Pos(), name, "%s has two rows in reasonDocs", name)
						}
						rows[name] = true
					}
				case d.Tok == token.CONST && isNamed(s.Type, "Reason"):
					value := s.Values[0].(*ast.BasicLit).Value
					name := s.Names[0].Name
					if other, taken := values[value]; taken {
						r.at(f, s.Pos(), name, "%s and %s are the same code %s", name, other, value)
					}
					codes[name], values[value], pos[name] = f, name, s.Pos()
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(codes)) {
		if !rows[name] {
			r.at(codes[name], pos[name], name, "%s has no row in reasonDocs", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if codes[name] == nil {
			r.add("protocol/reason.go", 1, name, "reasonDocs has a row for %s, which is no constant of type Reason", name)
		}
	}
}

// reasonRows are the first elements of the rows of reasonDocs.
func reasonRows(s *ast.ValueSpec) []string {
	var names []string
	table, ok := s.Values[0].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, row := range table.Elts {
		if row, ok := row.(*ast.CompositeLit); ok && len(row.Elts) > 0 {
			if name, ok := row.Elts[0].(*ast.Ident); ok {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
