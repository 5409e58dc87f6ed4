package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"

	"reins/cmd/internal/house"
)

// source is one package as its declarations and comments say it.
type source struct {
	types map[string]*declared
	order []string // the exported types, as the source has them
	files []*house.File
}

// declared is an exported type or constant with its comment.
type declared struct {
	name, doc  string
	of         string // of a constant: the name of its type
	underlying string // of a type that is no struct: what it is on the wire
	fields     []*ast.Field
	value      ast.Expr
}

func newSource(t *house.Tree, pkg string) *source {
	s := &source{types: map[string]*declared{}}
	for _, f := range t.Packages()[pkg] {
		if f.Test() {
			continue
		}
		s.files = append(s.files, f)
		s.eachSpec(f, token.TYPE, func(d *ast.GenDecl, spec ast.Spec) {
			ts := spec.(*ast.TypeSpec)
			if !ts.Name.IsExported() {
				return
			}
			made := &declared{name: ts.Name.Name, doc: groupDoc(d, ts.Doc, ts.Comment)}
			switch of := ts.Type.(type) {
			case *ast.StructType:
				made.fields = of.Fields.List
			case *ast.Ident:
				made.underlying = scalarWords(of.Name)
			}
			s.types[made.name] = made
			s.order = append(s.order, made.name)
		})
	}
	return s
}

// constants are the constants of the package's own level, as the source has them.
func (s *source) constants() []*declared {
	var all []*declared
	for _, f := range s.files {
		s.eachSpec(f, token.CONST, func(d *ast.GenDecl, spec ast.Spec) {
			vs := spec.(*ast.ValueSpec)
			for i, name := range vs.Names {
				if i >= len(vs.Values) {
					continue
				}
				made := &declared{name: name.Name, doc: oneLine(vs.Doc, vs.Comment), value: vs.Values[i]}
				if len(d.Specs) == 1 && made.doc == "" {
					made.doc = oneLine(d.Doc)
				}
				if of, ok := vs.Type.(*ast.Ident); ok {
					made.of = of.Name
				}
				all = append(all, made)
			}
		})
	}
	return all
}

func (s *source) eachSpec(f *house.File, kind token.Token, do func(*ast.GenDecl, ast.Spec)) {
	for _, d := range f.AST.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == kind {
			for _, spec := range d.Specs {
				do(d, spec)
			}
		}
	}
}

// onWire reports whether a field of any message has this type.
func (s *source) onWire(name string) bool {
	for _, d := range s.types {
		for _, f := range jsonFields(d) {
			for _, word := range strings.Fields(f.of) {
				if word == name {
					return true
				}
			}
		}
	}
	return false
}

// literal is the value of a constant that is written as a string.
func (d *declared) literal() (string, bool) {
	lit, ok := d.value.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}

// groupDoc is the comment of a type; the group's only where it stands alone in it.
func groupDoc(d *ast.GenDecl, own ...*ast.CommentGroup) string {
	if text := oneLine(own...); text != "" || len(d.Specs) > 1 {
		return text
	}
	return oneLine(d.Doc)
}

// oneLine joins comments on one line.
func oneLine(groups ...*ast.CommentGroup) string {
	var words []string
	for _, g := range groups {
		words = append(words, strings.Fields(g.Text())...)
	}
	return strings.Join(words, " ")
}

// limit is one constant of limits.go with its value in words.
type limit struct{ name, value, doc string }

func limitRows(p *source) ([]limit, error) {
	var rows []limit
	for _, f := range p.files {
		if f.Path != "protocol/limits.go" {
			continue
		}
		only := &source{files: []*house.File{f}}
		for _, d := range only.constants() {
			if d.name == "Version" {
				continue // a number, and nothing to be reached
			}
			value, duration, err := evaluate(d.value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			rows = append(rows, limit{d.name, limitWords(d.name, value, duration), d.doc})
		}
	}
	return rows, nil
}

// evaluate works out a constant expression of numbers and durations.
func evaluate(e ast.Expr) (value constant.Value, duration bool, err error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), false, nil
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.SelectorExpr:
		units := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
		if unit, ok := units[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(unit)), true, nil
		}
	case *ast.BinaryExpr:
		x, a, err := evaluate(e.X)
		if err != nil {
			return nil, false, err
		}
		y, b, err := evaluate(e.Y)
		if err != nil {
			return nil, false, err
		}
		if e.Op == token.SHL || e.Op == token.SHR {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n)), a, nil
		}
		return constant.BinaryOp(x, e.Op, y), a || b, nil
	}
	return nil, false, fmt.Errorf("a limit has to be a number or a duration written out, not %T", e)
}

func limitWords(name string, value constant.Value, duration bool) string {
	n, _ := constant.Int64Val(value)
	switch {
	case duration:
		return durationWords(time.Duration(n))
	case strings.Contains(name, "Bytes") || slices.Contains([]string{"ObservationMax", "MaxPayload", "MaxPending"}, name):
		return byteWords(n)
	}
	return strconv.FormatInt(n, 10)
}

func durationWords(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d > 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d ms", d/time.Millisecond)
}

func byteWords(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
