package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/project"
	"svc/internal/repo/storagemove"
)

func (c *command) moveRepositories() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "move-repositories {--from STORAGE | PROJECT...} [--to STORAGE]",
		Short: "Move repositories to another storage",
		Long: `Move the repositories of projects with their wikis, or all repositories of a
storage: those of projects, group wikis and snippets. Running servers move them in
the background. A repository can be read all the time; it is read-only while it is
copied.`,
		Example: `  svc admin move-repositories --from default --to bucket
  svc admin move-repositories group/project --to second`,
		Args: func(_ *cobra.Command, args []string) error {
			if (from == "") == (len(args) == 0) {
				return errors.New("either --from or at least one project is required")
			}
			return nil
		},
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			if from != "" {
				for _, kind := range []storagemove.Kind{storagemove.Project, storagemove.Group, storagemove.Snippet} {
					if err := a.Moves.MoveAll(cmd.Context(), actor.System(), kind, from, to); err != nil {
						return err
					}
				}
				fmt.Fprintf(c.out, "All repositories of the storage %s will be moved.\n", from)
			}
			for _, path := range args {
				p, err := a.Projects.Require(cmd.Context(), actor.System(), project.Ref(path), project.NoAccess)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				m, err := a.Moves.Move(cmd.Context(), actor.System(), storagemove.Project, p.ID, to)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				fmt.Fprintf(c.out, "%s will be moved from %s to %s.\n", p.FullPath, m.Source, m.Destination)
			}
			fmt.Fprintln(c.out, "The page /admin/storages shows the progress.")
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "move all repositories of this storage")
	cmd.Flags().StringVar(&to, "to", "", "storage to move to (default: the one with the most free space)")
	return cmd
}
