package cli

import (
	"context"
	"errors"

	"reins/protocol"
	"reins/protocol/nats"
)

// client fits the public client to what the commands ask for.
type client struct {
	*nats.Client
}

func dialDaemon(ctx context.Context, state, owner, turn string) (session, error) {
	c, err := nats.Dial(ctx, nats.ClientOptions{StateDir: state, Owner: protocol.OwnerID(owner), Name: "reins command line", UserTurn: turn})
	if err != nil {
		return nil, err
	}
	return client{c}, nil
}

// Watch tells a watcher what happens until ctx ends.
func (c client) Watch(ctx context.Context, id protocol.ResourceID, w watcher) error {
	return c.Client.Watch(ctx, nats.Watching{Resource: id, Cue: w.cue, Frame: w.frame, Record: w.record, Up: w.up, Down: w.down})
}

// addOwner makes credentials in a state directory and returns their file.
func addOwner(state, name string) (string, error) {
	file, err := nats.AddOwner(state, name)
	if errors.Is(err, nats.ErrOwner) {
		return "", &outcome{exitUsage, err}
	}
	return file, err
}
