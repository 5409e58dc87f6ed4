package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"reins/protocol"
)

// Client is what the job needs of a connection to the daemon.
type Client interface {
	Do(context.Context, protocol.Request) (protocol.Receipt, error)
	Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, error)
	Resources(context.Context) ([]protocol.Record, error)
	Close()
}

// stepDeadline bounds each operation.
const stepDeadline = 20 * time.Second

// act sends one write and prints its receipt. The receipt must be applied.
// causes names the action that the shop sees once if it is.
func (j *job) act(ctx context.Context, what string, m protocol.Method, args any, causes ...Action) (protocol.Receipt, error) {
	return j.actWith(ctx, what, protocol.Request{Method: m, Generation: j.gen}, args, causes...)
}

func (j *job) actWith(ctx context.Context, what string, r protocol.Request, args any, causes ...Action) (protocol.Receipt, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r.OperationID, r.Resource, r.Arguments, r.DeadlineMS = j.say.nextID(), j.page, raw, stepDeadline.Milliseconds()
	receipt, err := j.client.Do(ctx, r)
	if err != nil {
		return receipt, fmt.Errorf("%s: %w", what, err)
	}
	j.say.receipt(what, receipt)
	if receipt.State != protocol.StateApplied {
		return receipt, fmt.Errorf("%s: %s %s %s", what, receipt.State, receipt.Reason, receipt.Message)
	}
	for _, a := range causes {
		j.expect[a]++
	}
	return receipt, nil
}

// look reads once and prints what came.
func (j *job) look(ctx context.Context, what string, m protocol.Method, args any) (protocol.ReadReply, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return protocol.ReadReply{}, err
	}
	began := time.Now()
	reply, err := j.client.Read(ctx, protocol.ReadRequest{Resource: j.page, Method: m, Arguments: raw})
	if err == nil && reply.Problem != nil {
		err = reply.Problem
	}
	if err == nil && reply.Verdict != nil && !reply.Verdict.Holds {
		err = fmt.Errorf("it does not hold: %s %s%s", reply.Verdict.Reason, reply.Verdict.Message, found(reply.Verdict))
	}
	if err != nil {
		return reply, fmt.Errorf("%s: %w", what, err)
	}
	j.say.read(what, m, time.Since(began))
	return reply, nil
}

func found(v *protocol.Verdict) string {
	if v.Actual == nil {
		return ""
	}
	return fmt.Sprintf(" (found %q)", *v.Actual)
}

func (j *job) waitFor(ctx context.Context, what string, args protocol.WaitArguments) error {
	_, err := j.look(ctx, what, protocol.MethodWait, args)
	return err
}

func (j *job) verify(ctx context.Context, what string, args protocol.VerifyArguments) error {
	_, err := j.look(ctx, what, protocol.MethodVerify, args)
	return err
}

// picture saves a screenshot.
func (j *job) picture(ctx context.Context, file string) (protocol.ReadReply, error) {
	reply, err := j.client.Read(ctx, protocol.ReadRequest{Resource: j.page, Method: protocol.MethodScreenshot})
	switch {
	case err != nil:
		return reply, err
	case reply.Problem != nil:
		return reply, reply.Problem
	case len(reply.ImageBytes) == 0:
		return reply, errors.New("the screenshot came without a picture")
	}
	return reply, os.WriteFile(file, reply.ImageBytes, 0o644)
}

// record reads the page's record.
func (j *job) record(ctx context.Context) (protocol.Record, error) {
	records, err := j.client.Resources(ctx)
	if err != nil {
		return protocol.Record{}, err
	}
	for _, r := range records {
		if r.ID == j.page {
			return r, nil
		}
	}
	return protocol.Record{}, fmt.Errorf("the daemon lists no resource %s", j.page)
}

// until asks again every 50 ms until done says so, the deadline passes or ctx ends.
func until(ctx context.Context, deadline time.Duration, what string, done func(context.Context) (bool, error)) error {
	ctx, stop := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("%s did not happen within %s", what, deadline))
	defer stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-again.C:
		}
	}
}
