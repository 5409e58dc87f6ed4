package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Rule is one thing that holds for the whole tree.
type Rule struct {
	Name string
	// Instead says what to do instead of breaking it.
	Instead string
	check   func(*Tree, *report)
}

// Finding is one place that breaks a rule.
type Finding struct {
	Rule    string
	Path    string
	Line    int
	Symbol  string // what allowances name: a function, an identifier or a call
	What    string
	Instead string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s [%s]\n\tinstead: %s", f.Path, f.Line, f.What, f.Rule, f.Instead)
}

// Rules lists all rules.
func Rules() []Rule {
	return slices.Concat(layoutRules, importRules, callRules, sizeRules, documentRules, wordRules)
}

// Check runs one rule and leaves out what the allowances permit.
func (r Rule) Check(t *Tree, allowed []Allowance) []Finding {
	rep := &report{tree: t, rule: r}
	r.check(t, rep)
	return slices.DeleteFunc(rep.findings, func(f Finding) bool {
		return slices.ContainsFunc(allowed, func(a Allowance) bool { return a.covers(f) })
	})
}

// Unneeded returns the allowances without a reason and those that nothing needs.
func Unneeded(t *Tree, allowed []Allowance) []Allowance {
	needed := make([]bool, len(allowed))
	for _, r := range Rules() {
		for _, f := range r.Check(t, nil) {
			for i, a := range allowed {
				needed[i] = needed[i] || a.covers(f)
			}
		}
	}
	var unneeded []Allowance
	for i, a := range allowed {
		if !needed[i] || a.Reason == "" {
			unneeded = append(unneeded, a)
		}
	}
	return unneeded
}

// report collects the findings of one rule.
type report struct {
	tree     *Tree
	rule     Rule
	findings []Finding
}

func (r *report) at(f *File, pos token.Pos, symbol, format string, a ...any) {
	line := 1
	if pos.IsValid() {
		line = r.tree.Fset.Position(pos).Line
	}
	r.add(f.Path, line, symbol, format, a...)
}

func (r *report) add(path string, line int, symbol, format string, a ...any) {
	r.findings = append(r.findings, Finding{
		Rule: r.rule.Name, Path: path, Line: line, Symbol: symbol, What: fmt.Sprintf(format, a...), Instead: r.rule.Instead,
	})
}

// importsOf maps the names under which a file knows packages to their paths.
func importsOf(f *File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.AST.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if spec.Name != nil {
			names[spec.Name.Name] = path
			continue
		}
		names[baseName(path)] = path
	}
	return names
}

// baseName guesses the name of a package from its path, as people do: the last
// element that is no version, without a go- or .go around it.
func baseName(path string) string {
	elements := strings.Split(path, "/")
	name := elements[len(elements)-1]
	if len(elements) > 1 && len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = elements[len(elements)-2]
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "go-"), ".go")
}

// within reports whether a package is one of the folders or below one.
func within(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return pkg == folder || strings.HasPrefix(pkg, folder+"/")
	})
}

// selected returns the path and name of a call or mention of the form package.Name.
func selected(n ast.Node, imports map[string]string) (path, name string, ok bool) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	path, ok = imports[x.Name]
	return path, sel.Sel.Name, ok
}
