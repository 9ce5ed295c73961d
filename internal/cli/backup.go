package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/app"
	"svc/internal/backup"
	"svc/internal/config"
)

func (c *command) backup() *cobra.Command {
	var withoutKey, verify bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the instance into one file",
		Long: `Back up the instance into one new file, or with "-" to standard output: the
database, the repositories, the object storage (also S3), the instance key, the
SSH host keys, CI/CD templates and the logs of running jobs. The configuration is
not included. Give the command the same options as the server, and run it as the
same user.

The server may be running. The backup contains the database as of one moment and
everything it refers to. While the file is written its name ends in ".partial".

It is a tar file: tables are lines of JSON, repositories are bundles that "git
clone" reads. It is readable by its owner only and contains all secrets: keep it
as safe as the server, or use --without-key and keep the instance key elsewhere.

With --verify nothing is written: an existing file is checked.`,
		Example: `  svc backup /backup/svc-2030-05-01.tar
  svc backup - | zstd | ssh backup.example.org 'cat > svc.tar.zst'
  svc backup --verify /backup/svc-2030-05-01.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if verify {
				return c.verifyBackup(args[0])
			}
			return c.installed(func(cmd *cobra.Command, a *app.App, args []string) error {
				return c.writeBackup(cmd, a, args[0], withoutKey)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&withoutKey, "without-key", false, "do not include the instance key")
	cmd.Flags().BoolVar(&verify, "verify", false, "check an existing backup")
	return cmd
}

func (c *command) writeBackup(cmd *cobra.Command, a *app.App, name string, withoutKey bool) error {
	begun := time.Now()
	o := app.BackupOptions{Out: c.out, Temp: os.TempDir(), WithoutKey: withoutKey}
	say := c.errOut
	var file *backup.File
	if name != "-" {
		var err error
		if file, err = backup.Create(name); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		defer file.Abort()
		// The directory of the backup has enough space for temporary files; the disk
		// of the data directory might become full.
		o.Out, o.Temp, say = file, filepath.Dir(name), c.out
	}
	p := newProgress(say)
	o.Progress = p.print
	m, err := a.Backup(cmd.Context(), o)
	p.end()
	if err != nil {
		return interrupted(cmd, err, "backup: interrupted; the file was removed")
	}
	if file != nil {
		if err := file.Commit(); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	if err := a.Instance.RecordBackup(cmd.Context(), m.CreatedAt, m.Bytes); err != nil {
		fmt.Fprintf(c.errOut, "The backup is complete, but could not be recorded in the database: %v\n", err)
	}
	fmt.Fprintf(say, "%s contains the instance as of %s:\n", nameOf(name), moment(m.CreatedAt))
	c.printParts(say, m)
	took := time.Since(begun)
	fmt.Fprintf(say, "%s in %s.\n", app.ByteSize(m.Bytes), took.Round(time.Millisecond))
	return nil
}

// interrupted returns an error with the text if the context of the command has
// ended.
func interrupted(cmd *cobra.Command, err error, text string) error {
	if cmd.Context().Err() != nil && errors.Is(err, cmd.Context().Err()) {
		return errors.New(text)
	}
	return err
}

func nameOf(name string) string {
	if name == "-" {
		return "The backup"
	}
	return name
}

func moment(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }

// printParts prints the number and size of the entries per directory, and what is
// missing.
func (c *command) printParts(say io.Writer, m *backup.Manifest) {
	w := tabwriter.NewWriter(say, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, part := range slices.Sorted(maps.Keys(m.Parts)) {
		p := m.Parts[part]
		noun := "entries"
		if p.Entries == 1 {
			noun = "entry"
		}
		fmt.Fprintf(w, "  %s\t%d %s\t%s\t\n", part, p.Entries, noun, app.ByteSize(p.Bytes))
	}
	_ = w.Flush() // write errors are ignored, as below
	for _, what := range m.Missing {
		fmt.Fprintf(say, "  not included, because it was deleted in the meantime: %s\n", what)
	}
	if m.MissingMore > 0 {
		fmt.Fprintf(say, "  and %d more\n", m.MissingMore)
	}
}

func (c *command) verifyBackup(name string) error {
	p := newProgress(c.out)
	in, err := backup.Open(name, app.BackupParts(), func(done, size int64) {
		p.print("checking: %s of %s", app.ByteSize(done), app.ByteSize(size))
	})
	p.end()
	if err != nil {
		return err
	}
	m := in.Manifest
	fmt.Fprintf(c.out, "%s is complete. It contains an instance as of %s (%s, schema version %d, svc %s):\n",
		name, moment(m.CreatedAt), m.Database, m.Schema, m.Program)
	c.printParts(c.out, &m)
	if !m.Key {
		fmt.Fprintln(c.out, "The instance key is not included.")
	}
	return in.Close()
}

func (c *command) restore() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty instance",
		Long: `Restore a backup into an empty instance. The data directory, all storages, the
database and the object storage must be empty, and no server may be running on
them. Run it as the user of the server. The whole file is checked before anything
is written. If the restore fails, everything that was restored is removed again.

The target can differ from the source: PostgreSQL instead of SQLite or the
reverse, S3 instead of files, other directories for the storages. All storages
of the backup must be configured. A backup of an older release is migrated, one
of a newer release is refused.`,
		Example: `  SVC_DATA_DIR=/var/lib/svc svc restore /backup/svc-2030-05-01.tar
  SVC_DATABASE_URL=postgres://svc@db.example.org/svc svc restore svc.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			begun := time.Now()
			cfg, err := config.Load(cmd.Flags(), c.environ)
			if err != nil {
				return usageError{err}
			}
			p := newProgress(c.out)
			m, err := app.Restore(cmd.Context(), cfg, args[0], p.print)
			p.end()
			if err != nil {
				return interrupted(cmd, err, "restore: interrupted; everything that was restored was removed again")
			}
			fmt.Fprintf(c.out, "Restored the instance as of %s:\n", moment(m.CreatedAt))
			c.printParts(c.out, m)
			took := time.Since(begun)
			fmt.Fprintf(c.out, "%s in %s. Start it with \"svc serve\".\n", app.ByteSize(m.Bytes), took.Round(time.Millisecond))
			return nil
		},
	}
}

// progress prints the progress of a command: on a terminal in one line that is
// updated, otherwise as a line every few seconds.
type progress struct {
	out      io.Writer
	terminal bool
	every    time.Duration
	last     time.Time
	shown    bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, terminal: app.Terminal(out), every: 10 * time.Second, last: time.Now()}
	if p.terminal {
		p.every = 200 * time.Millisecond
	}
	return p
}

func (p *progress) print(format string, args ...any) {
	if time.Since(p.last) < p.every {
		return
	}
	p.last = time.Now()
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		p.shown = true
		return
	}
	fmt.Fprintf(p.out, "...   %s\n", text)
}

// end clears the line of the terminal.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
