package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// strictMode says how strictJSON looks.
type strictMode int

// requireFields refuses an object that lacks a field whose tag has no omitempty.
const requireFields strictMode = 1

// checkText refuses what is not text: invalid UTF-8, NUL as a byte or as an
// escape, and half a surrogate pair, which a decoder would silently replace.
func checkText(raw []byte) *Problem {
	if !utf8.Valid(raw) {
		return problem(ReasonNotText, "The message is not valid UTF-8. Encode it as UTF-8.")
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return problem(ReasonNotText, "The message has a NUL byte at %d. Leave it out.", i)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			continue
		}
		i++ // past the escaped byte, so that \\u0000 is a backslash and four zeros
		if raw[i] != 'u' {
			continue
		}
		unit, ok := hexUnit(raw, i+1)
		switch {
		case !ok: // the JSON decoder says so
		case unit == 0:
			return problem(ReasonNotText, "The message has an escaped NUL at byte %d. Leave it out.", i-1)
		case unit >= 0xD800 && unit < 0xDC00 && isLowSurrogate(raw, i+5):
			i += 10
		case unit >= 0xD800 && unit < 0xE000:
			return problem(ReasonNotText, "The message has half a surrogate pair at byte %d. Write both halves, or the character itself.", i-1)
		}
	}
	return nil
}

func hexUnit(raw []byte, at int) (uint64, bool) {
	if at+4 > len(raw) {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(raw[at:at+4]), 16, 16)
	return unit, err == nil
}

func isLowSurrogate(raw []byte, at int) bool {
	if at+2 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
		return false
	}
	unit, ok := hexUnit(raw, at+2)
	return ok && unit >= 0xDC00 && unit < 0xE000
}

// strictJSON checks that raw is one JSON value of type t: no unknown, repeated
// or differently cased field, no null for what is not a pointer, no number that
// does not fit, no nesting over [MaxJSONDepth], nothing behind it. The answer is
// a sentence that names the field, as a path from base, or empty.
func strictJSON(raw []byte, t reflect.Type, base string, mode strictMode) string {
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Sprintf("The message is not JSON: %v (at byte %d).", err, syntax.Offset)
		}
		return fmt.Sprintf("The message is not JSON: %v.", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w := &walker{d: d, mode: mode}
	return w.value(t, base, 0)
}

// walker follows the tokens of a valid JSON text beside the type they are for.
type walker struct {
	d    *json.Decoder
	mode strictMode
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// value checks the next value against t; a nil t takes any.
func (w *walker) value(t reflect.Type, path string, depth int) string {
	token, err := w.d.Token()
	if err != nil {
		return fmt.Sprintf("%s: %v.", named(path), err)
	}
	optional := t == nil
	for t != nil && t.Kind() == reflect.Pointer {
		t, optional = t.Elem(), true
	}
	if t == rawMessage {
		t, optional = nil, true
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == MaxJSONDepth {
			return fmt.Sprintf("%s is nested deeper than %d levels.", named(path), MaxJSONDepth)
		}
		if token == '{' {
			return w.object(t, path, depth+1)
		}
		return w.array(t, path, depth+1)
	case nil:
		if !optional {
			return fmt.Sprintf("%s is null; it must be %s, or be left out.", named(path), wanted(t))
		}
	case string:
		return fits(t, path, "a string", t == nil || t.Kind() == reflect.String)
	case bool:
		return fits(t, path, "a boolean", t == nil || t.Kind() == reflect.Bool)
	case json.Number:
		return number(t, path, token)
	}
	return ""
}

func (w *walker) object(t reflect.Type, path string, depth int) string {
	if fault := fits(t, path, "an object", t == nil || t.Kind() == reflect.Struct); fault != "" {
		return fault
	}
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for w.d.More() {
		token, err := w.d.Token()
		if err != nil {
			return fmt.Sprintf("%s: %v.", named(path), err)
		}
		key := token.(string)
		at := join(path, key)
		if seen[key] {
			return fmt.Sprintf("%s is there twice.", at)
		}
		seen[key] = true
		var of reflect.Type
		if t != nil {
			field, ok := fields[key]
			if !ok {
				return unknownField(at, key, fields)
			}
			of = field.of
		}
		if fault := w.value(of, at, depth); fault != "" {
			return fault
		}
	}
	if w.mode&requireFields != 0 {
		for _, name := range sortedKeys(fields) {
			if fields[name].required && !seen[name] {
				return fmt.Sprintf("%s is missing; it must be %s.", join(path, name), wanted(fields[name].of))
			}
		}
	}
	return w.end(path)
}

func (w *walker) array(t reflect.Type, path string, depth int) string {
	if fault := fits(t, path, "a list", t == nil || t.Kind() == reflect.Slice); fault != "" {
		return fault
	}
	var of reflect.Type
	if t != nil {
		of = t.Elem()
	}
	for i := 0; w.d.More(); i++ {
		if fault := w.value(of, fmt.Sprintf("%s[%d]", path, i), depth); fault != "" {
			return fault
		}
	}
	return w.end(path)
}

// end takes the bracket that closes an object or list.
func (w *walker) end(path string) string {
	if _, err := w.d.Token(); err != nil {
		return fmt.Sprintf("%s: %v.", named(path), err)
	}
	return ""
}

// number checks that a number fits its field exactly: no rounding to a whole
// number, no overflow to infinity.
func number(t reflect.Type, path string, n json.Number) string {
	if t == nil || t.Kind() == reflect.Float64 {
		if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
			return fmt.Sprintf("%s is a number out of range.", named(path))
		}
		return ""
	}
	var err error
	switch {
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		_, err = strconv.ParseInt(n.String(), 10, t.Bits())
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		_, err = strconv.ParseUint(n.String(), 10, t.Bits())
	default:
		return fits(t, path, "a number", false)
	}
	if err != nil {
		return fmt.Sprintf("%s must be %s, not %s.", named(path), wanted(t), quote(n.String()))
	}
	return ""
}

func fits(t reflect.Type, path, what string, ok bool) string {
	if ok {
		return ""
	}
	return fmt.Sprintf("%s must be %s, not %s.", named(path), wanted(t), what)
}

// wanted says in words what JSON value a Go type takes.
func wanted(t reflect.Type) string {
	if t == nil {
		return "a value"
	}
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return wanted(t.Elem())
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.Float64:
		return "a number"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number from 0"
	case k >= reflect.Int && k <= reflect.Int64:
		return "a whole number"
	case k == reflect.Slice && t != rawMessage:
		return "a list"
	}
	return "an object"
}

type field struct {
	of       reflect.Type
	required bool
}

// fieldsOf maps the JSON names of a struct's fields. A scale may always be left
// out, as 0 keeps 1.
func fieldsOf(t reflect.Type) map[string]field {
	if t == nil {
		return nil
	}
	fields := make(map[string]field, t.NumField())
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = field{f.Type, options != "omitempty" && name != "scale"}
	}
	return fields
}

func unknownField(at, key string, fields map[string]field) string {
	names := sortedKeys(fields)
	if len(names) == 0 {
		return fmt.Sprintf("%s is unknown; no field is taken here.", quote(at))
	}
	if likely := near(key, names); len(likely) > 0 {
		names = likely
	}
	return fmt.Sprintf("%s is unknown; there is %s.", quote(at), strings.Join(names, ", "))
}

func sortedKeys(fields map[string]field) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func named(path string) string {
	if path == "" {
		return "The message"
	}
	return path
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
