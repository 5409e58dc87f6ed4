package cli

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reins/cmd/internal/daemon"
	"reins/protocol"
)

// unlimited is the daemon's word for no budget.
const unlimited = -1

func (a *app) serveCommand() *cobra.Command {
	var c daemon.Config
	var headless, noBudget, logJSON bool
	var level string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon until SIGINT or SIGTERM",
		Long: "Run the daemon until SIGINT or SIGTERM.\n\nIt listens on the loopback address only, with credentials that it makes at its first start.\n" +
			"Everything that has to come back is listed before it says that it is ready; the targets return in the background.",
		Args: atMost(0),
	}
	f := cmd.Flags()
	f.StringVar(&c.Browser, "browser", "", "the browser's binary; found by itself by default")
	f.StringVar(&c.ProfileDir, "profiles", "", "folder of the browser's profiles; STATE/profiles by default, for root one that the browser's user may enter")
	f.StringVar(&c.DownloadDir, "downloads", "", "folder for finished downloads; STATE/downloads by default")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:0", "loopback address to listen at; port 0 takes a free one")
	f.BoolVar(&headless, "headless", true, "run the browser without a display")
	f.StringArrayVar(&c.Flags, "browser-flag", nil, "one more flag for the browser; may be given several times")
	f.IntVar(&c.MaxPages, "max-pages", protocol.MaxPages, "how many Pages may be open at once")
	f.IntVar(&c.Writes, "writes", protocol.BudgetWrites, "budget of writes for each user turn")
	f.IntVar(&c.URLs, "urls", protocol.BudgetURLs, "budget of distinct addresses for each Page and user turn")
	f.BoolVar(&noBudget, "no-budget", false, "count no budgets")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&logJSON, "log-json", false, "write the log as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.MaxPages < 1 || c.Writes < 1 || c.URLs < 1 {
			return usagef("--max-pages, --writes and --urls are 1 or more; --no-budget lifts the budgets")
		}
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return usagef("--log-level is debug, info, warn or error, not %q", clean(level))
		}
		c.StateDir, c.Headful = a.state, !headless
		if noBudget {
			c.Writes, c.URLs = unlimited, unlimited
		}
		c.Logger = a.logger(l, logJSON)
		return daemon.Run(cmd.Context(), c, a.serving)
	}
	return cmd
}

func (a *app) logger(l slog.Level, asJSON bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: l}
	if asJSON {
		return slog.New(slog.NewJSONHandler(a.err, o))
	}
	return slog.New(slog.NewTextHandler(a.err, o))
}

// serving says that the daemon is ready, and where.
func (a *app) serving(d *daemon.Daemon) {
	if a.json {
		a.emit(map[string]any{"url": d.URL(), "process": os.Getpid(), "state": a.state, "recovered": len(d.Recovered())})
		return
	}
	a.line("reins", buildVersion(), "serves", clean(a.state), "at", d.URL(), fmt.Sprintf("(process %d)", os.Getpid()))
	for _, r := range d.Recovered() {
		a.line("the last end left", clean(string(r.OperationID)), string(r.State), strings.TrimSpace(string(r.Reason)))
	}
}
