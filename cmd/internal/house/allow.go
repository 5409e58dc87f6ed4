package house

// Allowance permits one finding, with the reason.
type Allowance struct {
	Rule   string
	Path   string // the file
	Symbol string // what the finding names; empty: every finding of the rule in this file
	Reason string
}

func (a Allowance) covers(f Finding) bool {
	return a.Rule == f.Rule && a.Path == f.Path && (a.Symbol == "" || a.Symbol == f.Symbol)
}

// Allowances are what may break a rule.
var Allowances = []Allowance{
	{"end", "actors/preview/actor.go", "shell.Receive", injected},
	{"end", "actors/scope/actor.go", "shell.Receive", injected},
	{"end", "actors/target/target.go", "incarnation.Receive", injected},
	{"end", "supervisors/target.go", "targetActor.Receive", injected},
	{"end", "supervisors/tree.go", "hostActor.Receive", injected},
	{"end", "cmd/internal/demo/app.go", "NewApp", embedded},
	{"end", "targets/page/world.go", "worldScript", embedded},
	{"futures", "supervisors/tree.go", "StopFuture", stopped},
	{"futures", "actors/scope/shell_test.go", "StopFuture", waited},
	{"futures", "actors/broker/broker_test.go", "StopFuture", waited},
}

const (
	injected = "the message Panic is the fault that tests ask for; what was recovered to answer the queue goes on to the supervisor"
	stopped  = "outside of any actor, at the daemon's end: the one way to know that the actors have ended"
	waited   = "outside of any actor, at the end of a test: the one way to know that an actor has ended"
	embedded = "the files are part of the binary, so that only a broken build gets there, and it does so when it starts"
)
