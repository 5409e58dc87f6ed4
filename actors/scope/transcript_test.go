package scope

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"reins/protocol"
	"reins/targets"
)

// script drives one scope by the commands of a transcript. The clock starts at
// zero and moves only by wait and tick.
type script struct {
	t      *testing.T
	st     State
	now    time.Time
	ops    map[protocol.OperationID]Op
	looked Looked
	tries  map[protocol.OperationID]uint64
	cues   bool
	asks   uint64
}

var began = time.Unix(1_700_000_000, 0)

// TestTranscripts prints what a scope wants done after each event.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

func (s *script) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		s.fresh(d)
		return ""
	case "state":
		next := "-"
		if n := s.st.NextDeadline(); !n.IsZero() {
			next = n.Sub(s.now).String()
		}
		return fmt.Sprintf("g%d epoch=%d holder=%s waiting=%d next=%s\n", s.st.Generation(), s.st.Epoch(), or(string(s.st.Holder()), "-"), s.st.Waiting(), next)
	case "wait":
		s.now = s.now.Add(duration(s.t, d.CmdArgs[0].Key))
		return ""
	case "tick":
		if len(d.CmdArgs) > 0 {
			s.now = s.now.Add(duration(s.t, d.CmdArgs[0].Key))
		}
		return s.step(Tick{})
	}
	return s.step(s.event(d))
}

func (s *script) fresh(d *datadriven.TestData) {
	reserve := protocol.Epoch(number(d, "reserve", 0))
	planted := map[protocol.Bug]bool{}
	if d.HasArg("bug") {
		planted[protocol.Bug(word(d, "bug", ""))] = true
	}
	*s = script{t: s.t, now: began, ops: map[protocol.OperationID]Op{}, tries: map[protocol.OperationID]uint64{}, cues: d.HasArg("cues"),
		st: New("pg_1", reserve, d.HasArg("opening"), Limits{Queue: number(d, "queue", 0)}, planted)}
	if !d.HasArg("ask") { // the first reservation is granted before the transcript begins
		for _, c := range Step(&s.st, s.now, Tick{}) {
			Step(&s.st, s.now, Reserved{UpTo: c.(Reserve).UpTo, OK: true})
		}
	}
}

func (s *script) event(d *datadriven.TestData) Event {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	gen := protocol.Generation(number(d, "gen", int(s.st.Generation())))
	owner := protocol.OwnerID(word(d, "owner", "a"))
	switch d.Cmd {
	case "open":
		return Open{Gen: protocol.Generation(atoi(s.t, strings.TrimPrefix(first, "g"))), Restarted: d.HasArg("restarted")}
	case "submit":
		return Submit{Op: s.op(d, protocol.OperationID(first), gen, owner)}
	case "cancel":
		return Cancel{Key: s.key(first)}
	case "claim":
		s.asks++
		return Claim{Owner: protocol.OwnerID(first), Ask: s.asks}
	case "release":
		s.asks++
		return Release{Owner: protocol.OwnerID(first), Ask: s.asks}
	case "lost":
		return OwnerLost{Owner: protocol.OwnerID(first)}
	case "back":
		return OwnerBack{Owner: protocol.OwnerID(first)}
	case "resolved":
		return Resolved{Key: s.key(first), Gen: gen, Problem: problem(d),
			Try: uint64(number(d, "try", int(s.tries[protocol.OperationID(first)])))}
	case "stored":
		return AdmissionStored{Key: s.key(first), Problem: problem(d)}
	case "ran":
		return s.ran(d, first, gen)
	case "ended":
		return EndingStored{Key: s.key(first), OK: !d.HasArg("fail")}
	case "fence":
		why := protocol.Reason(or(first, string(protocol.ReasonRestoring)))
		return Fence{Reason: why, Message: why.Sentence()}
	case "settle":
		return Settle{Final: first == "final"}
	case "look":
		s.asks++
		return Look{Ask: s.asks}
	case "seen":
		s.asks++
		return Seen{Ask: s.asks, Owner: owner, Gen: gen, Token: protocol.Token(first), Geometry: word(d, "geometry", ""),
			Epoch: protocol.Epoch(number(d, "epoch", int(s.looked.Epoch)))}
	case "disturbed":
		return Disturbed{Gen: gen, Document: word(d, "doc", "")}
	case "reserved":
		return Reserved{UpTo: protocol.Epoch(atoi(s.t, first)), OK: !d.HasArg("fail")}
	}
	s.t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	return nil
}

func (s *script) op(d *datadriven.TestData, id protocol.OperationID, gen protocol.Generation, owner protocol.OwnerID) Op {
	op := Op{Key: Key{Owner: owner, ID: id}, RunFor: 45 * time.Second, QueueUntil: s.now.Add(120 * time.Second), Request: protocol.Request{
		OperationID: id, Resource: "pg_1", Generation: gen, Method: protocol.Method(word(d, "method", "click")), Observation: protocol.Token(word(d, "token", ""))}}
	if until := word(d, "until", ""); until != "" {
		op.Until = s.now.Add(duration(s.t, until))
	}
	s.ops[id] = op
	return op
}

func (s *script) ran(d *datadriven.TestData, id string, gen protocol.Generation) Ran {
	o := targets.Outcome{State: protocol.State(d.CmdArgs[1].Key), Reason: protocol.Reason(word(d, "reason", "")), LastDone: number(d, "last", 0),
		Begun: number(d, "begun", 1), Unanswered: d.HasArg("unanswered"), Navigated: d.HasArg("navigated"), ObserveRequired: d.HasArg("observe"),
		Geometry: word(d, "geometry", "")}
	if doc := word(d, "doc", ""); doc != "" {
		o.Page = &protocol.Page{Document: doc}
	}
	return Ran{Key: s.key(id), Gen: gen, Outcome: o, Token: protocol.Token(word(d, "token", "after-"+id))}
}

func (s *script) key(id string) Key {
	if op, ok := s.ops[protocol.OperationID(id)]; ok {
		return op.Key
	}
	return Key{Owner: "a", ID: protocol.OperationID(id)}
}

func (s *script) step(ev Event) string {
	var b strings.Builder
	for _, c := range Step(&s.st, s.now, ev) {
		switch c := c.(type) {
		case Looked:
			s.looked = c
		case Resolve:
			s.tries[c.Op.Key.ID] = c.Try
		}
		if _, cue := c.(Tell); cue && !s.cues {
			continue
		}
		fmt.Fprintln(&b, show(c))
	}
	return b.String()
}

// show prints a command compactly; what is zero is left out.
func show(c Command) string {
	switch c := c.(type) {
	case Answer:
		return "answer " + showReceipt(c.Key.ID, c.Receipt) + opt(c.Recorded, " recorded")
	case Told:
		return fmt.Sprintf("told %d %s", c.Ask, showProblem(c.Problem))
	case Looked:
		return fmt.Sprintf("looked %d g%d epoch=%d%s", c.Ask, c.Gen, c.Epoch, opt(c.Open, " open"))
	case Tokened:
		return fmt.Sprintf("tokened %d%s", c.Ask, opt(c.Stale, " stale"))
	case Resolve:
		return fmt.Sprintf("resolve %s g%d%s", c.Op.Key.ID, c.Gen, opt(c.Geometry != "", " geometry="+c.Geometry))
	case StoreAdmission:
		return fmt.Sprintf("store-admission %s g%d epoch=%d%s", c.Op.Key.ID, c.Gen, c.Epoch, opt(c.Reserve != 0, fmt.Sprintf(" reserve=%d", c.Reserve)))
	case Run:
		return fmt.Sprintf("run %s g%d epoch=%d%s", c.Op.Key.ID, c.Gen, c.Epoch, opt(c.Geometry != "", " geometry="+c.Geometry))
	case Revoke:
		return fmt.Sprintf("revoke %s %s", c.Key.ID, c.Reason)
	case StoreEnding:
		return "store-ending " + showReceipt(c.Op.Key.ID, c.Receipt)
	case Settled:
		return "settled"
	case Suspect:
		return fmt.Sprintf("suspect g%d %s", c.Gen, c.Reason)
	case Tell:
		return fmt.Sprintf("cue %s %s g%d %q%s", c.Cue.Phase, c.Cue.OperationID, c.Cue.Generation, c.Cue.Words, opt(c.Cue.State != "", " "+string(c.Cue.State)))
	case Late:
		return fmt.Sprintf("late %s g%d %s", c.Key.ID, c.Gen, c.Outcome.State)
	case Reserve:
		return fmt.Sprintf("reserve %d", c.UpTo)
	case Held:
		return "held " + or(string(c.Owner), "-")
	}
	return fmt.Sprintf("%T", c)
}

func showReceipt(id protocol.OperationID, r protocol.Receipt) string {
	last := "null"
	if r.LastAppliedIndex != nil {
		last = strconv.Itoa(*r.LastAppliedIndex)
	}
	out := fmt.Sprintf("%s g%d %s%s last=%s", id, r.Generation, r.State, opt(r.Reason != "", "/"+string(r.Reason)), last)
	out += opt(r.HeldBy != "", " by="+string(r.HeldBy)) + opt(r.ObservationToken != "", " token="+string(r.ObservationToken))
	return out + opt(r.ObserveRequired, " observe_required")
}

func showProblem(p *protocol.Problem) string {
	if p == nil {
		return "ok"
	}
	return string(p.Reason) + opt(p.HeldBy != "", " by="+string(p.HeldBy))
}

func opt(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func problem(d *datadriven.TestData) *protocol.Problem {
	if why := word(d, "problem", ""); why != "" {
		return &protocol.Problem{Reason: protocol.Reason(why), Message: protocol.Reason(why).Sentence()}
	}
	return nil
}

func word(d *datadriven.TestData, name, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return otherwise
}

func number(d *datadriven.TestData, name string, otherwise int) int {
	n, err := strconv.Atoi(word(d, name, strconv.Itoa(otherwise)))
	if err != nil {
		return otherwise
	}
	return n
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
