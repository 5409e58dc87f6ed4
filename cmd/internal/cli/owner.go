package cli

import "github.com/spf13/cobra"

func (a *app) ownerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "owner", Short: "Manage the owners that may connect", Args: atMost(0)}
	cmd.AddCommand(&cobra.Command{
		Use:   "add NAME",
		Short: "Make credentials for an owner",
		Long: "Make credentials for an owner. Requests made with them belong to that owner, whatever they say.\n" +
			"Use them with --owner NAME or REINS_OWNER.",
		Args: exactly(1, "one NAME"),
		RunE: func(_ *cobra.Command, words []string) error {
			file, err := addOwner(a.state, words[0])
			if err != nil {
				return err
			}
			if a.json {
				a.emit(map[string]string{"owner": words[0], "credentials": file})
			} else {
				a.line("added", clean(words[0])+", credentials in", clean(file))
			}
			return nil
		},
	})
	return cmd
}
