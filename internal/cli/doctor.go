package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/app"
)

func (c *command) doctor() *cobra.Command {
	repositories := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything the server needs is there and whole",
		Long: `Check that everything the server needs is there and whole: directories, free
disk space, database and its schema, instance key and the secrets sealed under
it, object store, git. It changes nothing, and exits with status 1 if any check
fails. It also warns of a Pages host that shares a domain with the instance;
warnings don't change the exit status.

With --repositories git reads every object of every repository as well, which
may take hours; the server may be running meanwhile.`,
		Args: cobra.NoArgs,
		RunE: c.with(func(cmd *cobra.Command, a *app.App, _ []string) error {
			failed := 0
			tell := func(f app.Finding) {
				mark := "ok  "
				switch {
				case f.Err != nil:
					mark = "FAIL"
					failed++
				case f.Warning:
					mark = "WARN"
				}
				fmt.Fprintf(c.out, "%s  %-12s %s\n", mark, f.Part, f)
			}
			for finding := range a.Examine(cmd.Context()) {
				tell(finding)
			}
			if repositories && failed == 0 { // without a database there is no list of them
				for finding := range a.ExamineRepositories(cmd.Context(), c.progress()) {
					tell(finding)
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of the checks failed", failed)
			}
			return cmd.Context().Err()
		}),
	}
	cmd.Flags().BoolVar(&repositories, "repositories", false, "also have git check every repository")
	return cmd
}

// progress says now and then how far something has come.
func (c *command) progress() func(done int, path string) {
	last := time.Now()
	return func(done int, path string) {
		if time.Since(last) < 5*time.Second {
			return
		}
		last = time.Now()
		fmt.Fprintf(c.out, "...   %-12s %d checked, the last was %s\n", "repositories", done, path)
	}
}
