package cli

import (
	"context"

	"github.com/spf13/cobra"

	"reins/protocol"
)

func (a *app) receiptCommand() *cobra.Command {
	return a.aboutOperation("receipt OPERATION", "Show the recorded receipt of an operation", session.Receipt)
}

func (a *app) cancelCommand() *cobra.Command {
	return a.aboutOperation("cancel OPERATION", "Ask that an operation stops, and print what became of it", session.Cancel)
}

// aboutOperation is a command that names an operation and prints a receipt.
func (a *app) aboutOperation(use, short string, question func(session, context.Context, protocol.OperationID) (protocol.Receipt, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1, "one operation id"),
		RunE: func(cmd *cobra.Command, words []string) error {
			r, err := ask(cmd.Context(), a, func(ctx context.Context, s session) (protocol.Receipt, error) {
				return question(s, ctx, protocol.OperationID(words[0]))
			})
			if err != nil {
				return err
			}
			a.receipt(r)
			return said(stateCode(r))
		},
	}
}

func (a *app) releaseCommand() *cobra.Command {
	return a.aboutResource("release ID", "Give up the right to write to a Page", "released", session.Release)
}

func (a *app) restartCommand() *cobra.Command {
	return a.aboutResource("restart ID", "Start a target anew, as its next generation", "restarting", session.Restart)
}

// aboutResource is a command that names a resource and is answered with yes or a problem.
func (a *app) aboutResource(use, short, done string, act func(session, context.Context, protocol.ResourceID) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1, "one ID"),
		RunE: func(cmd *cobra.Command, words []string) error {
			_, err := ask(cmd.Context(), a, func(ctx context.Context, s session) (struct{}, error) {
				return struct{}{}, act(s, ctx, protocol.ResourceID(words[0]))
			})
			if err != nil {
				return err
			}
			if a.json {
				a.emit(map[string]string{"resource": words[0], "done": done})
			} else {
				a.line(done, clean(words[0]))
			}
			return nil
		},
	}
}
