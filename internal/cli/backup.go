package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/app"
	"svc/internal/config"
)

func (c *command) backup() *cobra.Command {
	o := app.BackupOptions{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that the installation holds into one file",
		Long: `Write all that the installation holds into one new file: the database, the
repositories, the object store (also that in S3), the instance key, the host
keys of SSH, CI templates and the logs of running jobs. The configuration is not
in it.

The server may be running, and people may push meanwhile. The database is
written as it is at one moment, then what it names. The file is a tar file that
can be looked at by hand: tables are lines of JSON, repositories are bundles
that "git clone" reads. It is readable by its owner only, and whoever has it has
all secrets: keep it as safe as the server, or leave the instance key out with
--without-key and keep that elsewhere.

Large things are written to "tmp" of the data directory first, one at a time.`,
		Example: "  svc backup /backup/svc-2024-05-01.tar",
		Args:    cobra.ExactArgs(1),
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			o.File, o.Tell = args[0], c.telling()
			m, err := a.Backup(cmd.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s: %d entries, %d bytes, schema version %d.\n", o.File, m.Entries, m.Bytes, m.Schema)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&o.WithoutKey, "without-key", false, "leave the instance key out")
	return cmd
}

func (c *command) restore() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty installation from a backup",
		Long: `Fill an empty installation from a file of "svc backup". The data directory, all
storages, the database and the object store must be empty; no server may be
running on them. The whole file is checked first. When something goes wrong,
what was restored so far is removed again.

The installation may be another one than that of the backup: it may use SQLite
in place of PostgreSQL or the other way round, files in place of S3, and other
directories for the storages, of which all that the backup has must be named. A
backup of an older release is brought up to date.`,
		Example: "  SVC_DATA_DIR=/var/lib/svc svc restore /backup/svc-2024-05-01.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(cmd.Flags(), c.environ)
			if err != nil {
				return usageError{err}
			}
			m, err := app.Restore(cmd.Context(), cfg, args[0], c.telling())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "Restored the backup of %s: %d entries, %d bytes. Start the server with \"svc serve\".\n",
				m.CreatedAt.Format("2006-01-02 15:04:05 MST"), m.Entries, m.Bytes)
			return nil
		},
	}
}

// telling says now and then what is being done.
func (c *command) telling() func(format string, args ...any) {
	last := time.Now()
	return func(format string, args ...any) {
		if time.Since(last) < 2*time.Second {
			return
		}
		last = time.Now()
		fmt.Fprintf(c.out, "...   "+format+"\n", args...)
	}
}
