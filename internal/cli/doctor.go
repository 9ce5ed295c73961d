package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"svc/internal/app"
)

func (c *command) doctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything the server needs is there and whole",
		Long: `Check that everything the server needs is there and whole: directories, free
disk space, database and its schema, instance key and the secrets sealed under
it, object store, git. It changes nothing, and exits with 1 when it found
something to mend.`,
		Args: cobra.NoArgs,
		RunE: c.with(func(cmd *cobra.Command, a *app.App, _ []string) error {
			failed := 0
			for finding := range a.Examine(cmd.Context()) {
				mark := "ok  "
				if finding.Err != nil {
					mark = "FAIL"
					failed++
				}
				fmt.Fprintf(c.out, "%s  %-12s %s\n", mark, finding.Part, finding)
			}
			if failed > 0 {
				return fmt.Errorf("%d of the checks failed", failed)
			}
			return nil
		}),
	}
}
