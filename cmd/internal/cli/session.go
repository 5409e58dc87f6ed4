package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reins/protocol"
)

// session is a connection to the daemon as an owner. [nats.Client] is the one that ships.
type session interface {
	Do(context.Context, protocol.Request) (protocol.Receipt, error)
	Cancel(context.Context, protocol.OperationID) (protocol.Receipt, error)
	Receipt(context.Context, protocol.OperationID) (protocol.Receipt, error)
	Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, error)
	Release(context.Context, protocol.ResourceID) error
	Restart(context.Context, protocol.ResourceID) error
	Resources(context.Context) ([]protocol.Record, error)
	History(context.Context, protocol.HistoryQuery) ([]protocol.HistoryEntry, error)
	Demand(context.Context, protocol.Demand) error
	Status(context.Context) (protocol.Status, error)
	Watch(context.Context, protocol.ResourceID, watcher) error
	Close()
}

// watcher is told what happens. Its functions are called one at a time.
type watcher struct {
	cue    func(protocol.Cue)
	frame  func(protocol.FrameHeader, []byte)
	record func(protocol.Record)
	up     func()                  // everything is subscribed to
	down   func(*protocol.Problem) // the connection broke; watching goes on by itself
}

// dialer connects to the daemon of a state directory.
type dialer func(ctx context.Context, state, owner, turn string) (session, error)

const (
	dialDeadline   = 10 * time.Second
	askDeadline    = 15 * time.Second
	cancelDeadline = 5 * time.Second
	// answerGrace is how much longer than the operation's own deadline its answer is waited for.
	answerGrace = 10 * time.Second
)

func (a *app) connect(ctx context.Context) (session, error) {
	ctx, stop := context.WithTimeout(ctx, dialDeadline)
	defer stop()
	return a.dial(ctx, a.state, a.owner, a.turn)
}

// write sends one write, once (I1), and prints its receipt.
func (a *app) write(ctx context.Context, r protocol.Request) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.Generation == 0 && r.Method != protocol.MethodOpen {
		if r.Generation, err = currentGeneration(ctx, s, r.Resource); err != nil {
			return err
		}
	}
	receipt, err := send(ctx, s, r)
	if err != nil {
		return lost(r, err)
	}
	a.receipt(receipt)
	return said(stateCode(receipt))
}

// send waits for the answer also after an interrupt: it then asks once that the
// operation stops, and the receipt tells what that came to.
func send(ctx context.Context, s session, r protocol.Request) (protocol.Receipt, error) {
	limit := protocol.QueueTimeout + protocol.WriteDeadline
	if r.DeadlineMS > 0 {
		limit = time.Duration(r.DeadlineMS) * time.Millisecond
	}
	whole, stop := context.WithTimeout(context.WithoutCancel(ctx), limit+answerGrace)
	defer stop()
	cancelled := make(chan struct{})
	detach := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		short, stop := context.WithTimeout(whole, cancelDeadline)
		defer stop()
		s.Cancel(short, r.OperationID) // the operation's own answer says whether it worked
	})
	receipt, err := s.Do(whole, r)
	if !detach() {
		<-cancelled
	}
	return receipt, err
}

// lost adds how to find out what became of an operation whose answer did not come.
func lost(r protocol.Request, err error) error {
	var p *protocol.Problem
	if codeOf(err) != exitUncertain || !errors.As(err, &p) {
		return err
	}
	more := *p
	more.Message = fmt.Sprintf("%s\nLook it up with: reins receipt %s", problemWords(p), r.OperationID)
	return &more
}

// currentGeneration reads the generation that a resource has now.
func currentGeneration(ctx context.Context, s session, id protocol.ResourceID) (protocol.Generation, error) {
	ctx, stop := context.WithTimeout(ctx, askDeadline)
	defer stop()
	records, err := s.Resources(ctx)
	if err != nil {
		return 0, err
	}
	for _, r := range records {
		if r.ID == id {
			return r.Generation, nil
		}
	}
	return 0, &protocol.Problem{
		Reason:  protocol.ReasonUnknownResource,
		Message: fmt.Sprintf("there is no resource %q; reins resources lists them, reins open URL makes one", clean(string(id))),
	}
}
