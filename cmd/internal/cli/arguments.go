package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reins/protocol"
)

// arguments collects the arguments of one method from words of the command
// line. The method's own argument type decides what each word may be.
type arguments struct {
	method protocol.Method
	shape  reflect.Type
	tree   map[string]any
	// whole is a JSON object as it was written; it goes out untouched when it is all there is.
	whole string
	mixed bool
}

func newArguments(m protocol.Method) (*arguments, error) {
	info, ok := m.Info()
	if !ok {
		return nil, usagef("there is no method %q; the methods are %s", m, strings.Join(methodNames(), ", "))
	}
	return &arguments{method: m, shape: info.Arguments, tree: map[string]any{}}, nil
}

func methodNames() []string {
	var names []string
	for m := range protocol.Methods {
		if m.Kind == protocol.KindWrite && m.Method != protocol.MethodOpen {
			names = append(names, string(m.Method))
		}
	}
	return names
}

// word takes one positional word: key=value, or a whole JSON object.
func (a *arguments) word(w string) error {
	if strings.HasPrefix(w, "{") {
		return a.object(w)
	}
	key, value, ok := strings.Cut(w, "=")
	if !ok || key == "" {
		return usagef("%q is neither key=value nor a JSON object", clean(w))
	}
	return a.set(a.place(key), value)
}

// object takes a JSON object; its members must not be given elsewhere too.
func (a *arguments) object(text string) error {
	if !utf8.ValidString(text) {
		return usagef("the JSON object is not UTF-8")
	}
	members, err := oneValue[map[string]any](text)
	if err != nil {
		return usagef("that is no JSON object: %v", err)
	}
	a.mixed = a.mixed || len(a.tree) > 0 || a.whole != ""
	a.whole = text
	for key, value := range members {
		if _, twice := a.tree[key]; twice {
			return usagef("%s is given twice", clean(key))
		}
		a.tree[key] = value
	}
	return nil
}

// place finds where a short key belongs: an argument of the method itself, else
// a part of its locator.
func (a *arguments) place(key string) string {
	if strings.Contains(key, ".") {
		return key
	}
	if _, ok := field(a.shape, key); ok {
		return key
	}
	locator, ok := field(a.shape, "locator")
	if !ok {
		return key
	}
	if _, ok := field(locator, key); ok {
		return "locator." + key
	}
	return key
}

// set puts a value at a dotted path.
func (a *arguments) set(path, text string) error {
	if !utf8.ValidString(text) || !utf8.ValidString(path) {
		return usagef("the value of %s is not UTF-8", clean(path))
	}
	a.mixed = true
	at, shape := a.tree, a.shape
	parts := strings.Split(path, ".")
	for i, part := range parts {
		t, ok := field(shape, part)
		if !ok {
			return usagef("%s takes no %s; %s", a.method, clean(path), a.takes())
		}
		if i == len(parts)-1 {
			return a.leaf(at, t, path, part, text)
		}
		inner, ok := at[part].(map[string]any)
		if !ok {
			if _, taken := at[part]; taken {
				return usagef("%s is given twice", clean(path))
			}
			inner = map[string]any{}
			at[part] = inner
		}
		at, shape = inner, t
	}
	return nil
}

func (a *arguments) leaf(at map[string]any, t reflect.Type, path, part, text string) error {
	if _, twice := at[part]; twice {
		return usagef("%s is given twice", clean(path))
	}
	v, err := convert(t, text)
	if err != nil {
		return usagef("%s of %s: %v", clean(path), a.method, err)
	}
	at[part] = v
	return nil
}

// takes lists what the method takes.
func (a *arguments) takes() string {
	var names []string
	for i := range a.shape.NumField() {
		names = append(names, jsonName(a.shape.Field(i)))
	}
	if len(names) == 0 {
		return "it takes no arguments"
	}
	slices.Sort(names)
	return "it takes " + strings.Join(names, ", ")
}

// raw returns the arguments as they go into a request; nil for none.
func (a *arguments) raw() (json.RawMessage, error) {
	switch {
	case a.whole != "" && !a.mixed:
		return json.RawMessage(a.whole), nil
	case len(a.tree) == 0:
		return nil, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(a.tree); err != nil {
		return nil, usagef("the arguments cannot be written as JSON: %v", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// field returns the type of the member of this JSON name, pointers taken off.
func field(t reflect.Type, name string) (reflect.Type, bool) {
	t = bare(t)
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); jsonName(f) == name {
			return bare(f.Type), true
		}
	}
	return nil, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func bare(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// convert reads one value as the type wants it. Ranges are the daemon's to check.
func convert(t reflect.Type, text string) (any, error) {
	switch {
	case t == reflect.TypeFor[protocol.Point]() && !strings.HasPrefix(text, "{"):
		return point(text)
	case t.Kind() == reflect.String:
		return text, nil
	case t.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", clean(text))
		}
		return b, nil
	case t.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", clean(text))
		}
		return n, nil
	case t.Kind() == reflect.Float64:
		return number(text)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return strings.Split(text, ","), nil
	}
	v, err := oneValue[any](text)
	if err != nil {
		return nil, fmt.Errorf("it is written as JSON here: %v", err)
	}
	return v, nil
}

// oneValue reads exactly one JSON value and leaves its numbers as they were written.
func oneValue[T any](text string) (T, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v T
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	if _, err := d.Token(); err != io.EOF {
		return v, errors.New("something follows it")
	}
	return v, nil
}

func number(text string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, fmt.Errorf("%q is no number", clean(text))
	}
	return f, nil
}

// point reads "x,y".
func point(text string) (any, error) {
	xs, ys, ok := strings.Cut(text, ",")
	if !ok {
		return nil, fmt.Errorf("%q is no point; write x,y", clean(text))
	}
	x, err := number(xs)
	if err != nil {
		return nil, err
	}
	y, err := number(ys)
	if err != nil {
		return nil, err
	}
	return map[string]any{"x": x, "y": y}, nil
}
