package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"reins/cmd/internal/daemon"
	"reins/protocol"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show which reins this is",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string `json:"version"`
				Protocol int    `json:"protocol"`
				Go       string `json:"go"`
			}{buildVersion(), protocol.Version, runtime.Version()}
			if a.json {
				a.emit(v)
			} else {
				a.line("reins", v.Version, fmt.Sprintf("protocol %d", v.Protocol), v.Go)
			}
			return nil
		},
	}
}

// buildVersion is the daemon's version, with the commit where it was built from a checkout.
func buildVersion() string {
	v, dirty := daemon.Version, ""
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v += "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return v + dirty
}
