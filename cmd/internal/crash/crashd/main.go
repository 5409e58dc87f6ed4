// Crashd is a daemon to be killed: it serves one state directory, says "ready"
// on its standard output, and stops on SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"reins/cmd/internal/daemon"
)

func main() {
	state := flag.String("state", "", "state directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	err := daemon.Run(ctx, daemon.Config{StateDir: *state, Writes: -1, URLs: -1, Logger: log}, func(*daemon.Daemon) {
		fmt.Fprintln(os.Stdout, "ready")
	})
	if err != nil {
		log.Error("the daemon ended", "error", err)
		os.Exit(1)
	}
}
