package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// An empty variable of a script must not turn into "any": with a random id the
// same write would act twice.
func TestEmptyIsNotLeftOut(t *testing.T) {
	for _, flag := range []string{"--id=", "--observation=", "--generation=0"} {
		var o operation
		cmd := &cobra.Command{}
		o.add(cmd)
		if err := cmd.ParseFlags([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if r, err := o.request("pg_1", protocol.MethodReload, nil); err == nil {
			t.Errorf("%s is taken, as %+v", flag, r)
		}
	}
}
