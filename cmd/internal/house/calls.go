package house

import (
	"go/ast"
	"slices"
	"strings"
)

const protoactor = "github.com/asynkron/protoactor-go"

var callRules = []Rule{
	{
		Name:    "sleep",
		Instead: "wait for the thing itself: a channel, a condition asked again on a ticker with a deadline, or testing/synctest",
		check: inCalls(func(c call) string {
			if c.path == "time" && c.name == "Sleep" && !within(c.file.Package(), "chaos") {
				return "time.Sleep hopes that something has happened"
			}
			return ""
		}),
	},
	{
		Name:    "skip",
		Instead: "make the test run everywhere, or fail with what has to be installed: a skipped test proves nothing and nobody sees it",
		check: inCalls(func(c call) string {
			if c.method && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, c.name) && importsPath(c.file, "testing") {
				return "a test is skipped"
			}
			return ""
		}),
	},
	{
		Name:    "print",
		Instead: "use log/slog, or write to an io.Writer that the caller gives",
		check: inCalls(func(c call) string {
			switch {
			case c.file.Main() || c.file.Test():
			case c.path == "fmt" && slices.Contains([]string{"Print", "Printf", "Println"}, c.name), c.path == "log",
				c.builtin && (c.name == "print" || c.name == "println"):
				return c.name + " writes where the process writes, which is not a library's to choose"
			}
			return ""
		}),
	},
	{
		Name:    "end",
		Instead: "return an error or an outcome: only main ends the process, and a panic takes every other target with it",
		check: inCalls(func(c call) string {
			switch {
			case c.file.Main() || c.file.Test():
			case c.path == "os" && c.name == "Exit", c.path == "log" && strings.HasPrefix(c.name, "Fatal"), c.builtin && c.name == "panic",
				c.path == "runtime" && c.name == "Goexit":
				if c.argument == "http.ErrAbortHandler" {
					return "" // this one is how a handler ends its own answer
				}
				return c.name + " ends more than this package owns"
			}
			return ""
		}),
	},
	{
		Name:    "futures",
		Instead: "send a message with generation and operation and take the answer as a message, or give a one-slot channel that the caller owns",
		check: inActors(func(name string) string {
			if strings.Contains(name, "Future") || name == "ReenterAfter" {
				return name + ": a future can give the second of two replies, and continuations overtake the queue"
			}
			return ""
		}),
	},
	{
		Name:    "actors",
		Instead: "keep queue, time and restarts in the step function: the scope holds the queue, a timer sends a message, a supervisor stops the child and starts one with a new name",
		check: inActors(func(name string) string {
			switch name {
			case "Stash", "UnstashAll":
				return name + " reverses the order and loses the sender"
			case "SetReceiveTimeout", "CancelReceiveTimeout":
				return name + " races with the mailbox"
			case "RestartDirective", "RestartingSupervisorStrategy", "NewRestartingStrategy", "DefaultDecider", "DefaultSupervisorStrategy",
				"NewExponentialBackoffStrategy", "NewOneForOneStrategy", "NewAllForOneStrategy":
				return name + " keeps the address and the queue, so that work admitted under one generation would run under the next"
			case "EscalateDirective", "WithGuardian":
				return name + " can end the process"
			case "Bounded", "BoundedDropping":
				return name + " spins its sender when it is full"
			}
			return ""
		}),
	},
}

// call is one call as far as syntax tells.
type call struct {
	file    *File
	path    string // of the package, of package.Name
	name    string
	method  bool // value.Name
	builtin bool // Name alone
	// argument is the only one, where it is of the form package.Name.
	argument string
}

// inCalls makes a check that looks at each call; its answer is what is wrong.
func inCalls(wrong func(call) string) func(*Tree, *report) {
	return func(t *Tree, r *report) {
		for _, f := range t.Files {
			imports := importsOf(f)
			eachFunction(f, func(symbol string, body ast.Node) {
				ast.Inspect(body, func(n ast.Node) bool {
					c, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if what := wrong(callOf(f, c, imports)); what != "" {
						r.at(f, c.Pos(), symbol, "%s", what)
					}
					return true
				})
			})
		}
	}
}

func callOf(f *File, c *ast.CallExpr, imports map[string]string) call {
	if path, name, ok := selected(c.Fun, imports); ok {
		return call{file: f, path: path, name: name}
	}
	switch fun := c.Fun.(type) {
	case *ast.SelectorExpr:
		return call{file: f, name: fun.Sel.Name, method: true}
	case *ast.Ident:
		made := call{file: f, name: fun.Name, builtin: true}
		if len(c.Args) == 1 {
			if path, name, ok := selected(c.Args[0], imports); ok {
				made.argument = baseName(path) + "." + name
			}
		}
		return made
	}
	return call{file: f}
}

// inActors makes a check of the names that files with protoactor mention.
func inActors(wrong func(name string) string) func(*Tree, *report) {
	return func(t *Tree, r *report) {
		for _, f := range t.Files {
			if !importsPath(f, protoactor) {
				continue
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if what := wrong(sel.Sel.Name); what != "" {
						r.at(f, sel.Pos(), sel.Sel.Name, "%s", what)
					}
				}
				return true
			})
		}
	}
}

// importsPath reports whether a file imports a package or one below it.
func importsPath(f *File, path string) bool {
	for _, imported := range importsOf(f) {
		if within(imported, path) {
			return true
		}
	}
	return false
}

// eachFunction calls do with each top-level declaration of a file and its name:
// of a group of variables the first one's.
func eachFunction(f *File, do func(symbol string, body ast.Node)) {
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			do(functionName(d), d)
		case *ast.GenDecl:
			symbol := ""
			if len(d.Specs) > 0 {
				if s, ok := d.Specs[0].(*ast.ValueSpec); ok {
					symbol = s.Names[0].Name
				}
			}
			do(symbol, d)
		}
	}
}

// functionName is Name or Receiver.Name.
func functionName(d *ast.FuncDecl) string {
	if receiver := receiverName(d); receiver != "" {
		return receiver + "." + d.Name.Name
	}
	return d.Name.Name
}

func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
