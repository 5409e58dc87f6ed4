package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"reins/protocol"
)

// RunDeadline bounds the whole job.
const RunDeadline = 120 * time.Second

// RunConfig says how the job is run.
type RunConfig struct {
	// Executable is the reins binary that the job starts for the shop and the daemon.
	Executable string
	// StateDir is the daemon's; it must be new. Empty makes one that is removed afterwards.
	StateDir string
	// OutDir keeps what the job leaves: the picture, the invoice, the receipts, the ledger, the daemon's log.
	OutDir string
	// Browser names the browser's binary; empty lets the daemon find one.
	Browser string
	// Out is told each step as it happens.
	Out io.Writer
}

// job is one run of the order.
type job struct {
	cfg    RunConfig
	say    *report
	shop   *process
	daemon *process
	url    string // of the shop's first page
	client Client
	page   protocol.ResourceID
	gen    protocol.Generation
	// expect is how often each action must have reached the shop, by the receipts.
	expect map[Action]int
	// loads is how often each document must have been asked for.
	loads map[string]int
	added time.Time // when the basket got its cookie
}

// Run places an order through reins with the browser killed in the middle. It
// returns nil only if the shop's ledger agrees with the receipts (I3).
func Run(ctx context.Context, cfg RunConfig) (err error) {
	ctx, stop := context.WithTimeoutCause(ctx, RunDeadline, fmt.Errorf("the job did not end within %s", RunDeadline))
	defer stop()
	if err := os.MkdirAll(cfg.OutDir, 0o755); err != nil {
		return fmt.Errorf("the folder for what the job leaves cannot be made: %w", err)
	}
	if cfg.StateDir == "" {
		dir, err := temporary()
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		cfg.StateDir = filepath.Join(dir, "state")
	}
	j := &job{cfg: cfg, expect: map[Action]int{}, loads: map[string]int{}}
	if j.say, err = newReport(cfg); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, j.say.close())
		j.say.verdict(err)
	}()
	err = j.run(ctx)
	// The processes end also when ctx is over: cleaning up has its own deadline (I5).
	clean, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer done()
	return errors.Join(err, j.end(clean))
}

// temporary makes a folder that the browser's user may pass through: a root
// daemon gives the browser an ordinary uid.
func temporary() (string, error) {
	dir, err := os.MkdirTemp("", "reins-run-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		return "", fmt.Errorf("no temporary folder: %w", err)
	}
	return dir, nil
}

func (j *job) run(ctx context.Context) error {
	parts := []func(context.Context) error{j.start, j.choose, j.fillIn, j.kill, j.fillInAgain, j.buy, j.fetch, j.compare}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = errors.Join(cause, err)
			}
			j.failurePicture(ctx)
			return err
		}
	}
	return nil
}

// start brings up the shop and the daemon, each as a process of its own.
func (j *job) start(ctx context.Context) (err error) {
	j.say.part("Starting the shop and the daemon")
	if j.shop, err = startProcess(j.cfg.Executable, []string{"demo", "serve", "--listen", "127.0.0.1:0", "--json"}, filepath.Join(j.cfg.OutDir, "shop.log")); err != nil {
		return fmt.Errorf("the shop did not start: %w", err)
	}
	if j.url, err = j.shop.address(ctx); err != nil {
		return fmt.Errorf("the shop did not start: %w", err)
	}
	j.say.note("shop    process %d at %s", j.shop.pid(), j.url)
	args := []string{"serve", "--state", j.cfg.StateDir}
	if j.cfg.Browser != "" {
		args = append(args, "--browser", j.cfg.Browser)
	}
	if j.daemon, err = startProcess(j.cfg.Executable, args, filepath.Join(j.cfg.OutDir, "daemon.log")); err != nil {
		return fmt.Errorf("the daemon did not start: %w", err)
	}
	if j.client, err = dialUntil(ctx, j.cfg.StateDir, j.daemon); err != nil {
		return err
	}
	j.say.note("daemon  process %d, its log is %s", j.daemon.pid(), filepath.Join(j.cfg.OutDir, "daemon.log"))
	return nil
}

// end closes the client and ends every process of the job (I5).
func (j *job) end(ctx context.Context) error {
	var browsers []int
	if j.daemon != nil {
		browsers = descendants(j.daemon.pid())
	}
	if j.client != nil {
		j.client.Close()
	}
	err := errors.Join(j.daemon.stop(ctx), gone(ctx, browsers), j.shop.stop(ctx))
	if err == nil {
		j.say.note("the shop, the daemon and the browser have ended")
	}
	return err
}

// failurePicture keeps what the page looked like when the job failed.
func (j *job) failurePicture(ctx context.Context) {
	if j.client == nil || j.page == "" || ctx.Err() != nil {
		return
	}
	file := filepath.Join(j.cfg.OutDir, "failure.png")
	if _, err := j.picture(ctx, file); err == nil {
		j.say.note("the page as it was then: %s", file)
	}
}
