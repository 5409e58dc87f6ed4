package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// The verdicts of a row.
const (
	rowOK   = "ok"
	rowNote = "note" // works without it, worse
	rowBad  = "bad"  // Pages cannot work
)

// row is one thing that reins needs.
type row struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Found   string `json:"found"`
	// Do is the way out; empty when there is nothing to do.
	Do string `json:"do,omitempty"`
}

const checkDeadline = 10 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	var browser string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything that Pages need is here",
		Long: "Look whether everything that Pages need is here, and say what to do about what is not.\n" +
			"Nothing is installed, changed or asked for. The exit code is 1 if something that is needed is missing.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows := a.examine(cmd.Context(), browser)
			if a.json {
				a.emit(rows)
			}
			code := exitOK
			for _, r := range rows {
				if r.Verdict == rowBad {
					code = exitOther
				}
				if !a.json {
					a.line(fmt.Sprintf("%-5s %-9s", r.Verdict, r.Name), clean(r.Found))
					if r.Do != "" {
						a.line("               do:", clean(r.Do))
					}
				}
			}
			return said(code)
		},
	}
	cmd.Flags().StringVar(&browser, "browser", "", "look at this browser instead of finding one")
	return cmd
}

func (a *app) examine(ctx context.Context, browser string) []row {
	ctx, stop := context.WithTimeout(ctx, 2*checkDeadline)
	defer stop()
	found := checkBrowser(ctx, browser)
	return []row{found, checkSandbox(ctx, found), checkShm(), checkFonts(ctx), checkState(a.state), a.checkDaemon(ctx)}
}

func (a *app) checkDaemon(ctx context.Context) row {
	s, err := a.connect(ctx)
	switch {
	case err != nil && codeOf(err) == exitUnreachable:
		return row{"daemon", rowNote, "none answers for " + a.state, "reins serve --state " + a.state}
	case err != nil:
		return row{"daemon", rowBad, err.Error(), "use the owner and the program that belong to this daemon"}
	}
	defer s.Close()
	st, err := s.Status(ctx)
	switch {
	case err != nil:
		return row{"daemon", rowBad, "it accepts connections and does not answer: " + err.Error(), "read its log; stop it and start it again"}
	case st.Store != "ok":
		return row{"daemon", rowBad, "process " + fmt.Sprint(st.Process) + ", store " + st.Store + " " + st.Message, "free space on the disk of " + a.state}
	}
	return row{Name: "daemon", Verdict: rowOK, Found: fmt.Sprintf("process %d, version %s, browser %s", st.Process, st.Version, st.Browser)}
}
