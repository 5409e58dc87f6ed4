package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// app is one run of the command line.
type app struct {
	in       io.Reader
	out, err io.Writer
	dial     dialer

	json  bool
	state string
	owner string
	turn  string
}

// Main runs one command line, without the program's own name, and returns its exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, err io.Writer) int {
	a := &app{in: in, out: out, err: err, dial: dialDaemon}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	var o *outcome
	if err != nil && !errors.As(err, &o) {
		err = &outcome{exitUsage, err} // cobra's own: flags that exclude one another
	}
	a.complain(err)
	return codeOf(err)
}

// complain says what went wrong, unless the command said it itself.
func (a *app) complain(err error) {
	var o *outcome
	if err == nil || errors.As(err, &o) && o.err == nil {
		return
	}
	var p *protocol.Problem
	if !errors.As(err, &p) {
		p = &protocol.Problem{Message: err.Error()}
	}
	if a.json {
		a.emit(map[string]any{"problem": p})
		return
	}
	fmt.Fprintln(a.err, "reins: "+problemLine(p))
	if codeOf(err) == exitUsage {
		fmt.Fprintln(a.err, "Help: reins help, or --help behind a command.")
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "reins",
		Short:         "Let programs and people share computers: every browser page an actor, every input accounted for",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.state, "state", stateDir(), "state directory of the daemon (REINS_STATE)")
	f.StringVar(&a.owner, "owner", fromEnv("REINS_OWNER", ""), "owner to act as (REINS_OWNER); by default the owner of the command line")
	f.StringVar(&a.turn, "turn", fromEnv("REINS_TURN", ""), "user turn whose budget is used (REINS_TURN); by default each command is its own")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%v", err) })
	root.AddGroup(&cobra.Group{ID: "use", Title: "Use targets:"}, &cobra.Group{ID: "know", Title: "Look after things:"}, &cobra.Group{ID: "run", Title: "Run reins:"})
	group := func(id string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	group("use", a.openCommand(), a.observeCommand(), a.doCommand(), a.waitCommand(), a.verifyCommand(),
		a.screenshotCommand(), a.watchCommand(), a.closeCommand())
	group("know", a.resourcesCommand(), a.historyCommand(), a.receiptCommand(), a.cancelCommand(), a.releaseCommand(), a.restartCommand())
	group("run", a.serveCommand(), a.statusCommand(), a.ownerCommand(), a.doctorCommand(), a.demoCommand(), a.benchCommand(), a.versionCommand())
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp()})
	wrapUsage(root)
	return root
}

// wrapUsage tells the errors of a command that ran from cobra's own complaints
// about the command line, and refuses a subcommand that does not exist.
func wrapUsage(c *cobra.Command) {
	if c.HasSubCommands() && c.RunE == nil {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error { return ran(run(cmd, args)) }
	}
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.HasSubCommands() && len(args) > 0 {
			return usagef("there is no command %q in %s", clean(args[0]), cmd.CommandPath())
		}
		if check == nil {
			return nil
		}
		return check(cmd, args)
	}
	for _, sub := range c.Commands() {
		wrapUsage(sub)
	}
}

// ran marks an error as that of a command which ran.
func ran(err error) error {
	var o *outcome
	if err == nil || errors.As(err, &o) {
		return err
	}
	return &outcome{codeOf(err), err}
}

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s: %s", cmd.CommandPath(), what, cmd.UseLine())
		}
		return nil
	}
}

func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usagef("%s needs %s: %s", cmd.CommandPath(), what, cmd.UseLine())
		}
		return nil
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%q is too much: %s", clean(args[n]), cmd.UseLine())
		}
		return nil
	}
}

// emit prints one JSON value on one line.
func (a *app) emit(v any) {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		fmt.Fprintln(a.err, "reins: the answer could not be printed:", err)
	}
}

// line prints one line for people.
func (a *app) line(parts ...string) {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	fmt.Fprintln(a.out, strings.Join(kept, " "))
}

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// stateDir is where the daemon keeps its state unless told otherwise.
func stateDir() string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "."
		}
		base = filepath.Join(home, ".local", "state")
	}
	return fromEnv("REINS_STATE", filepath.Join(base, "reins"))
}
