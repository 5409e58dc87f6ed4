package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"reins/cmd/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	o := bench.Options{Out: a.out}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure reins beside a raw browser, in one run",
		Long: "Measure reins beside a raw browser, in one run, on a temporary store, and print both sides and their ratio.\n" +
			"It takes some minutes. The figures mean something only on a machine that does nothing else.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Clicks < 1 || o.Pages < 1 {
				return usagef("--clicks and --pages are 1 or more")
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("the path of this program is not known: %w", err)
			}
			o.Binary = self
			return bench.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Browser, "browser", "", "the browser's binary; found by itself by default")
	cmd.Flags().IntVar(&o.Clicks, "clicks", 200, "how many clicks on each side")
	cmd.Flags().IntVar(&o.Pages, "pages", 50, "how many Pages to open")
	return cmd
}
