package demo

import (
	"context"
	"fmt"
	"time"

	"reins/protocol/nats"
)

// startDeadline is how long the daemon may take to serve.
const startDeadline = 30 * time.Second

// dialUntil connects to the daemon of a state directory as soon as it serves.
func dialUntil(ctx context.Context, state string, daemon *process) (Client, error) {
	var c *nats.Client
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	err := until(ctx, startDeadline, "the start of the daemon", func(ctx context.Context) (_ bool, err error) {
		select {
		case <-daemon.ended:
			giveUp(fmt.Errorf("the daemon ended instead of serving: %v; %s says why", daemon.err, daemon.log))
			return false, nil
		default:
		}
		c, err = nats.Dial(ctx, nats.ClientOptions{StateDir: state, Name: "reins demo"})
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
