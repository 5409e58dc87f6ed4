package supervisors

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(exit{m},
		// The actor library's dead-letter throttle has no end; it is one a system.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// exit keeps failures of rapid out of the source tree.
type exit struct{ *testing.M }

func (e exit) Run() int {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		os.Exit(1)
	}
	return e.M.Run()
}
