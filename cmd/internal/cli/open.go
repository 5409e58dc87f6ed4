package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reins/protocol"
)

func (a *app) openCommand() *cobra.Command {
	var o operation
	var quiet bool
	cmd := &cobra.Command{
		Use:     "open URL",
		Short:   "Open a Page in the background",
		Example: "  reins open https://example.org/\n  page=$(reins open -q https://example.org/)",
		Args:    exactly(1, "one URL"),
	}
	o.add(cmd)
	cmd.Flags().Lookup("generation").Hidden = true
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the id of the new resource")
	size := []short{
		{"width", "viewport.width", "width in CSS pixels"},
		{"height", "viewport.height", "height in CSS pixels"},
		{"scale", "viewport.scale", "device pixel ratio"},
	}
	addShort(cmd, size)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		b, err := newArguments(protocol.MethodOpen)
		if err != nil {
			return err
		}
		if err := b.set("kind", string(protocol.KindPage)); err != nil {
			return err
		}
		if err := b.set("url", words[0]); err != nil {
			return err
		}
		if err := b.take(cmd, size); err != nil {
			return err
		}
		if (b.tree["viewport"] != nil) && (!cmd.Flags().Changed("width") || !cmd.Flags().Changed("height")) {
			return usagef("a viewport needs both --width and --height")
		}
		args, err := b.raw()
		if err != nil {
			return err
		}
		r, err := o.request("", protocol.MethodOpen, args)
		if err != nil {
			return err
		}
		if quiet && !a.json {
			return a.openQuiet(cmd.Context(), r)
		}
		return a.write(cmd.Context(), r)
	}
	return cmd
}

// openQuiet prints nothing but the id of the new resource, for $(…).
func (a *app) openQuiet(ctx context.Context, r protocol.Request) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	receipt, err := send(ctx, s, r)
	if err != nil {
		return lost(r, err)
	}
	if receipt.Resource != "" {
		a.line(string(receipt.Resource))
	}
	if code := stateCode(receipt); code != exitOK {
		return &outcome{code, fmt.Errorf("%s %s: %s", receipt.State, receipt.Reason, receipt.Message)}
	}
	return nil
}

func (a *app) closeCommand() *cobra.Command {
	var o operation
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Close a target for good",
		Args:  exactly(1, "one ID"),
		RunE: func(cmd *cobra.Command, words []string) error {
			r, err := o.request(words[0], protocol.MethodClose, nil)
			if err != nil {
				return err
			}
			return a.write(cmd.Context(), r)
		},
	}
	o.add(cmd)
	return cmd
}
