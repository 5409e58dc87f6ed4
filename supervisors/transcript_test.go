package supervisors

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"reins/protocol"
)

// script drives a target's supervisor, a host's or the coordinator, whichever
// the transcript made last. The clock moves only by wait.
type script struct {
	t       *testing.T
	now     time.Time
	kind    string
	target  Target
	host    HostState
	restore RestoreState
}

var began = time.Unix(1_700_000_000, 0)

// TestTranscripts prints what the supervisors want done after each event.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{now: began}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

func (s *script) run(d *datadriven.TestData) string {
	var out []string
	switch d.Cmd {
	case "new-target":
		planted := map[protocol.Bug]bool{protocol.Bug(word(d, "bug", "")): true}
		s.kind, s.target = "target", NewTarget(protocol.Generation(number(d, "gen", 0)), Policy{}, planted)
		s.target.hostUp = d.HasArg("up")
	case "new-host":
		s.kind, s.host = "host", NewHost(Policy{})
	case "new-restore":
		s.kind, s.restore = "restore", NewRestore(number(d, "width", 0))
	case "wait":
		s.now = s.now.Add(duration(s.t, d.CmdArgs[0].Key))
	case "state":
		if s.kind == "host" {
			return string(s.host.Phase()) + "\n"
		}
		return fmt.Sprintf("%s g%d\n", s.target.Phase(), s.target.Generation())
	default:
		switch s.kind {
		case "host":
			for _, c := range HostStep(&s.host, s.now, s.hostEvent(d)) {
				out = append(out, showHost(c))
			}
		case "restore":
			for _, r := range RestoreStep(&s.restore, s.restoreEvent(d)) {
				out = append(out, "turn of "+string(r))
			}
		default:
			for _, c := range Step(&s.target, s.now, s.targetEvent(d)) {
				out = append(out, show(c))
			}
		}
	}
	return strings.Join(append(out, ""), "\n")
}

func (s *script) targetEvent(d *datadriven.TestData) TargetEvent {
	gen := protocol.Generation(number(d, "gen", int(s.target.Generation())))
	ok := !d.HasArg("fail")
	switch d.Cmd {
	case "start":
		return Start{}
	case "host-up":
		return HostUp{}
	case "host-down":
		return HostDown{}
	case "host-failed":
		return HostFailed{Reason: protocol.ReasonBackendUnavailable, Message: "no browser"}
	case "slot":
		return SlotGranted{}
	case "persisted":
		return Persisted{Gen: protocol.Generation(number(d, "gen", int(s.target.Generation())+1)), OK: ok}
	case "revoked":
		return Revoked{Gen: protocol.Generation(number(d, "gen", int(s.target.Generation())-1))}
	case "settled":
		return Settled{Gen: gen}
	case "attached":
		return Attached{Gen: gen, OK: ok, Loaded: d.HasArg("loaded"), Reason: protocol.ReasonCouldNotRestore, Message: "no answer"}
	case "passed":
		return Passed{Gen: gen, OK: ok}
	case "destroyed":
		return Destroyed{Gen: gen, OK: ok}
	case "crash":
		return Crash{Gen: gen, Reason: protocol.Reason(word(d, "reason", string(protocol.ReasonRendererCrashed))), Message: "gone"}
	case "gone":
		return Gone{Gen: gen}
	case "restart":
		return Restart{}
	case "looked":
		return Looked{}
	case "close":
		return WantShut{}
	case "shut":
		return Shut{OK: ok}
	case "woke":
		return Woke{Timer: uint64(number(d, "timer", int(s.target.timer)))}
	}
	s.t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	return nil
}

func (s *script) hostEvent(d *datadriven.TestData) HostEvent {
	life := uint64(number(d, "life", int(s.host.life)))
	switch d.Cmd {
	case "needed":
		return Needed{Anew: d.HasArg("anew")}
	case "started":
		return Started{Life: life, OK: !d.HasArg("fail"), Message: "no browser"}
	case "ended":
		return Ended{Life: life}
	case "woke":
		return HostWoke{Timer: uint64(number(d, "timer", int(s.host.timer)))}
	case "stop":
		return StopHost{}
	}
	s.t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	return nil
}

func (s *script) restoreEvent(d *datadriven.TestData) RestoreEvent {
	id := protocol.ResourceID(d.CmdArgs[0].Key)
	switch d.Cmd {
	case "wish":
		return Wish{Resource: id, Wanted: d.HasArg("wanted"), Recent: protocol.Time(number(d, "recent", 0))}
	case "made":
		return Made{Resource: id}
	case "forget":
		return Forget{Resource: id}
	}
	s.t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	return nil
}

func show(c TargetCommand) string {
	switch c := c.(type) {
	case CloseAdmission:
		return "close-admission " + string(c.Reason)
	case PersistGeneration:
		return "persist"
	case RevokeOld:
		return fmt.Sprintf("revoke g%d", c.Gen)
	case SettleOld:
		return "settle" + opt(c.Final, " final")
	case AskSlot:
		return "ask-slot" + opt(c.Wanted, " wanted")
	case FreeSlot:
		return "free-slot"
	case NeedHost:
		return "need-host" + opt(c.Anew, " anew")
	case AttachNew:
		return fmt.Sprintf("attach g%d%s", c.Gen, opt(c.Fresh, " fresh"))
	case PassBarrier:
		return fmt.Sprintf("barrier g%d", c.Gen)
	case Destroy:
		return fmt.Sprintf("destroy g%d", c.Gen)
	case OpenAdmission:
		return fmt.Sprintf("open-admission g%d%s", c.Gen, opt(c.Restarted, " restarted"))
	case ShutTarget:
		return fmt.Sprintf("shut g%d", c.Gen)
	case Wake:
		return fmt.Sprintf("wake %s%s", c.After, opt(c.Jitter, "+jitter"))
	case Tell:
		return fmt.Sprintf("tell %s g%d%s", c.Lifecycle, c.Gen, opt(c.Reason != "", " "+string(c.Reason)))
	}
	return fmt.Sprintf("%T", c)
}

func showHost(c HostCommand) string {
	switch c := c.(type) {
	case StartHost:
		return fmt.Sprintf("start life=%d", c.Life)
	case TellUp:
		return "tell-up"
	case TellDown:
		return "tell-down"
	case TellFailed:
		return fmt.Sprintf("tell-failed %s %q", c.Reason, c.Message)
	case WakeHost:
		return fmt.Sprintf("wake %s", c.After)
	case HaltHost:
		return "halt"
	}
	return fmt.Sprintf("%T", c)
}

func opt(on bool, text string) string {
	if on {
		return text
	}
	return ""
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
		d.Fatalf(&testing.T{}, "%s is no number", name)
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
