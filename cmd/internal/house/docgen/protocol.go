package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"reins/cmd/internal/house"
	"reins/protocol"
)

// protocolDocument describes the wire: what a client in another language needs.
func protocolDocument(t *house.Tree) (string, error) {
	p := newSource(t, "protocol")
	limits, err := limitRows(p)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The protocol, version %d\n\n%s", protocol.Version, generated)
	b.WriteString(`Messages are JSON objects in UTF-8. A receiver refuses a field it does not know, a key
that is there twice, a number that does not fit and anything over the limits; a sender leaves a
field out where it has nothing to say. Images travel beside the JSON, never inside it.

- [Subjects](#subjects) · [Methods](#methods) · [Arguments](#arguments) · [Messages](#messages)
- [Words](#words) · [Reason codes](#reason-codes) · [Limits](#limits)
`)
	writeSubjects(&b, newSource(t, "protocol/nats"))
	writeMethods(&b)
	writeArguments(&b, p)
	writeMessages(&b, p)
	writeWords(&b, p)
	b.WriteString("\n## Reason codes\n\n| code | what it means and what to do |\n|---|---|\n")
	for code, doc := range protocol.Reasons {
		row(&b, "`"+string(code)+"`", doc)
	}
	b.WriteString("\n## Limits\n\nWhat happens when each is reached is in [limits.md](limits.md).\n\n| limit | value | |\n|---|---|---|\n")
	for _, l := range limits {
		row(&b, "`"+l.name+"`", l.value, l.doc)
	}
	return b.String(), nil
}

func row(b *strings.Builder, cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "|", `\|`)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func writeSubjects(b *strings.Builder, nats *source) {
	b.WriteString("\n## Subjects\n\n")
	rows := 0
	for _, d := range nats.constants() {
		value, ok := d.literal()
		if !ok || !strings.HasPrefix(value, "reins.") {
			continue
		}
		if rows == 0 {
			b.WriteString("Over NATS. `<owner>` is the name of the credential: a connection can publish only under its own.\n\n| subject | constant | |\n|---|---|---|\n")
		}
		rows++
		row(b, "`"+value+"`", d.name, d.doc)
	}
	if rows == 0 {
		b.WriteString("Each transport names its own; its package says how.\n")
	}
}

func writeMethods(b *strings.Builder) {
	b.WriteString("\n## Methods\n\nA write names resource and generation; `open` neither. `page` marks what asks for another document, `list` what may be a primitive of a `batch`.\n\n")
	b.WriteString("| method | kind | page | list | default time | what it does |\n|---|---|---|---|---|---|\n")
	for m := range protocol.Methods {
		row(b, "`"+string(m.Method)+"`", string(m.Kind), mark(m.NavigatesPage), mark(m.InBatch), m.Run.String(), m.Doc)
	}
}

func mark(yes bool) string {
	if yes {
		return "✓"
	}
	return ""
}

func writeArguments(b *strings.Builder, p *source) {
	b.WriteString("\n## Arguments\n\n" + `An argument that is not optional has to be there. Where a method takes both locator and point, exactly one of them is given (scroll can do without), and a point needs the token of the observation it was read from.
`)
	for m := range protocol.Methods {
		fmt.Fprintf(b, "\n### %s\n\n%s", m.Method, m.Doc)
		d := p.types[m.Arguments.Name()]
		if d == nil || m.Arguments.NumField() == 0 {
			b.WriteString(" It takes no arguments.\n")
			continue
		}
		if d.doc != "" {
			fmt.Fprintf(b, " %s", withoutName(d.doc, d.name))
		}
		b.WriteString("\n\n")
		writeFields(b, d, false)
	}
}

// writeMessages describes every struct of the wire that is no method's arguments.
func writeMessages(b *strings.Builder, p *source) {
	b.WriteString("\n## Messages\n")
	arguments := map[string]bool{"EmptyArguments": true}
	for m := range protocol.Methods {
		arguments[m.Arguments.Name()] = true
	}
	for _, name := range p.order {
		d := p.types[name]
		if arguments[name] || d.fields == nil || len(jsonFields(d)) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n", name, d.doc)
		writeFields(b, d, true)
	}
}

// writeFields is the table of a struct; nulls says that pointers may be null in it.
func writeFields(b *strings.Builder, d *declared, nulls bool) {
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, f := range jsonFields(d) {
		of := f.of
		if f.optional || !nulls {
			of = strings.TrimSuffix(of, orNull)
		}
		if f.optional {
			of += ", optional"
		}
		row(b, "`"+f.name+"`", of, f.doc)
	}
}

// writeWords describes the named strings and numbers, and the values of those
// that have only some.
func writeWords(b *strings.Builder, p *source) {
	b.WriteString("\n## Words\n\n| word | is | |\n|---|---|---|\n")
	constants := p.constants()
	for _, name := range p.order {
		d := p.types[name]
		if d.fields != nil || d.underlying == "" || !p.onWire(name) {
			continue
		}
		var values []string
		for _, c := range constants {
			if value, ok := c.literal(); ok && c.of == name && name != "Reason" && name != "Method" {
				values = append(values, "`"+value+"`")
			}
		}
		doc := d.doc
		if len(values) > 0 {
			doc += " One of " + strings.Join(values, ", ") + "."
		}
		row(b, name, d.underlying, doc)
	}
	b.WriteString("\n")
	for _, c := range constants {
		if value, ok := c.literal(); ok && slices.Contains([]string{"State", "Effect", "Lifecycle"}, c.of) {
			fmt.Fprintf(b, "- `%s`: %s\n", value, withoutName(c.doc, c.name))
		}
	}
}

// withoutName drops the name of a constant from the beginning of its comment.
func withoutName(doc, name string) string {
	rest, found := strings.CutPrefix(doc, name+": ")
	if !found || rest == "" {
		return doc
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// jsonField is one field as it is on the wire.
type jsonField struct {
	name, of, doc string
	optional      bool
}

func jsonFields(d *declared) []jsonField {
	var fields []jsonField
	for _, f := range d.fields {
		if f.Tag == nil {
			continue
		}
		name, options, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, jsonField{name, typeWords(f.Type), oneLine(f.Doc, f.Comment), options == "omitempty"})
	}
	return fields
}

// orNull is what a pointer adds: null says that there is none.
const orNull = " or null"

// typeWords says in words what JSON value a Go type is.
func typeWords(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeWords(e.X) + orNull
	case *ast.ArrayType:
		if e.Len != nil {
			if n, ok := e.Len.(*ast.BasicLit); ok && n.Kind == token.INT {
				return n.Value + " × " + typeWords(e.Elt)
			}
		}
		return "list of " + typeWords(e.Elt)
	case *ast.MapType:
		return "object from " + typeWords(e.Key) + " to " + typeWords(e.Value)
	case *ast.SelectorExpr:
		if e.Sel.Name == "RawMessage" {
			return "object"
		}
		return e.Sel.Name
	case *ast.Ident:
		return scalarWords(e.Name)
	}
	return "value"
}

func scalarWords(name string) string {
	switch name {
	case "string":
		return "string"
	case "bool":
		return "boolean"
	case "float64":
		return "number"
	case "int", "int64":
		return "whole number"
	case "uint64":
		return "whole number from 0"
	}
	return name
}
