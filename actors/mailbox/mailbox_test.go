package mailbox

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The actor library's throttle of dead letters has no end; it is one a system.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

type message struct {
	n     int
	reply chan string // what became of it
}

// turnAway answers a message that was not received.
func turnAway(m any) {
	if m, ok := m.(message); ok {
		m.reply <- "turned away"
	}
}

var system = sync.OnceValue(func() *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	AnswerDeadLetters(s, turnAway)
	return s
})

// receiver panics at one message and answers the others.
type receiver struct{ at int }

func (r receiver) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(message); ok {
		if m.n == r.at {
			m.reply <- "received"
			panic("planted")
		}
		m.reply <- "received"
	}
}

// parent stops what fails.
type parent struct {
	child receiver
	pid   chan *actor.PID
}

func (p parent) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		p.pid <- ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return p.child }, actor.WithMailbox(Answering(turnAway))))
	}
}

func (p parent) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	sup.StopChildren(child)
}

// TestEveryMessageIsAnswered (I1, I2): however an actor ends and whenever a
// message comes, it is received or turned away, and after the first that is
// turned away none is received.
func TestEveryMessageIsAnswered(t *testing.T) {
	for name, end := range map[string]func(*actor.PID){
		"panic":  func(*actor.PID) {},
		"stop":   func(pid *actor.PID) { system().Root.Stop(pid) },
		"poison": func(pid *actor.PID) { system().Root.Poison(pid) },
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 50 {
				p := parent{child: receiver{at: -1}, pid: make(chan *actor.PID, 1)}
				if name == "panic" {
					p.child.at = 100
				}
				above := system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }))
				pid := <-p.pid
				const n = 400
				replies := make([]chan string, n)
				for i := range n {
					replies[i] = make(chan string, 2)
					if i == 100 {
						end(pid)
					}
					system().Root.Send(pid, message{n: i, reply: replies[i]})
				}
				over := false
				for i, ch := range replies {
					select {
					case got := <-ch:
						if over && got == "received" {
							t.Fatalf("round %d: message %d was received after one was turned away", round, i)
						}
						over = over || got == "turned away"
					case <-time.After(20 * time.Second):
						t.Fatalf("round %d: nobody answered message %d", round, i)
					}
				}
				stop(above)
				for i, ch := range replies {
					if len(ch) > 0 {
						t.Fatalf("message %d was answered twice", i)
					}
				}
			}
		})
	}
}

// stop ends an actor and waits until it has, with everything below it.
func stop(pid *actor.PID) {
	ended := make(chan struct{})
	watcher := system().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
			ctx.Stop(pid)
		case *actor.Terminated:
			close(ended)
		}
	}))
	<-ended
	system().Root.Stop(watcher)
}
