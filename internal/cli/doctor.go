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
		Short: "Check the data and the dependencies of the server",
		Long: `Check the data and the dependencies of the server: directories, free disk space,
database and schema, instance key and stored secrets, object storage, git. It
changes nothing, and exits with status 1 if any check fails. It also warns of a
Pages host that shares a domain with the instance; warnings don't change the exit
status.

With --repositories it also runs git fsck on every repository, which can take
hours, and compares the object stores of storages with the packs of their
repositories. The server may be running.`,
		Args: cobra.NoArgs,
		RunE: c.installed(func(cmd *cobra.Command, a *app.App, _ []string) error {
			failed := 0
			show := func(f app.Finding) {
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
				show(finding)
			}
			if repositories && failed == 0 { // the list of repositories is in the database
				for finding := range a.ExamineBuckets(cmd.Context()) {
					show(finding)
				}
				for finding := range a.ExamineRepositories(cmd.Context(), c.progress()) {
					show(finding)
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of the checks failed", failed)
			}
			return cmd.Context().Err()
		}),
	}
	cmd.Flags().BoolVar(&repositories, "repositories", false, "also run git fsck on every repository, and check storages in object stores")
	return cmd
}

// progress prints the progress every few seconds.
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
