package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"reins/cmd/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "demo", Short: "A small shop, and an order from it with the browser killed in the middle", Args: atMost(0)}
	cmd.AddCommand(a.demoServeCommand(), a.demoRunCommand())
	return cmd
}

func (a *app) demoServeCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the shop; its own account of what happened is at /ledger",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Serve(cmd.Context(), listen, func(url string) {
				if a.json {
					a.emit(map[string]string{"url": url})
					return
				}
				a.line("the shop is at", url, "and what it saw at", url+"ledger")
			})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address on 127.0.0.1; port 0 takes a free one")
	return cmd
}

func (a *app) demoRunCommand() *cobra.Command {
	c := demo.RunConfig{Out: a.out}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Order from the shop through reins, kill the browser in the middle, compare",
		Long: "Start the shop and a daemon on a temporary store, order from the shop through the public client,\n" +
			"kill the browser with SIGKILL in the middle, and compare the receipts with what the shop saw.\n" +
			"The exit code is 0 only if every action reached the shop exactly once.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("the path of this program is not known: %w", err)
			}
			c.Executable = self
			if cmd.Flags().Changed("state") {
				c.StateDir = a.state
			}
			if err := demo.Run(cmd.Context(), c); err != nil {
				return said(exitOther) // the job's last line said it
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&c.OutDir, "out", "out/run", "folder for the picture, the invoice, the receipts and the logs")
	cmd.Flags().StringVar(&c.Browser, "browser", "", "the browser's binary; found by itself by default")
	return cmd
}
