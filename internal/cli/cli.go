// Package cli is the command-line interface: it parses flags, calls the app and
// prints the result.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"svc/internal/app"
	"svc/internal/config"
)

// Main runs the command in args and returns the exit code of the program: 0, 1 if
// the command failed, 2 for wrong usage.
func Main(args, environ []string, in io.Reader, out, errOut io.Writer) int {
	program, err := os.Executable()
	if err != nil {
		program = "" // jobs need a release-cli of their own then
	}
	return mainWith(app.Options{Program: program}, args, environ, in, out, errOut)
}

func mainWith(o app.Options, args, environ []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &command{options: o, environ: environ, in: in, out: out, errOut: errOut}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(errOut, "svc:", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// Command returns the svc command with all its subcommands, for documentation.
func Command() *cobra.Command {
	c := &command{in: strings.NewReader(""), out: io.Discard, errOut: io.Discard}
	return c.root()
}

// usageError is the error of a command with invalid arguments or options.
type usageError struct{ error }

// command has the state that all commands share.
type command struct {
	options     app.Options
	environ     []string
	in          io.Reader
	out, errOut io.Writer
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "svc",
		Short: "A self-hosted Git forge with CI/CD",
		Long: `svc is a self-hosted Git forge with CI/CD, compatible with the GitLab v4 REST
API, CI YAML and runner protocol.

It needs no other service: "svc serve" starts on an embedded database in the
data directory. Every option can be given as a flag, as an environment variable
(SVC_DATA_DIR for --data-dir) and as a key of a configuration file.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nSee \"%s --help\"", err, cmd.CommandPath())}
	})
	config.Flags(root.PersistentFlags())
	root.AddCommand(c.serve(), c.runner(), c.migrate(), c.doctor(), c.backup(), c.restore(), c.admin(), c.config(), c.version(), c.release(), c.importFrom())
	return root
}

func (c *command) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it receives SIGTERM or Ctrl-C. Running requests are
finished first.

On first start it creates the administrator root and prints the password and a
token once, unless SVC_ROOT_PASSWORD and SVC_ROOT_TOKEN are set.`,
		Args: cobra.NoArgs,
		RunE: c.with(func(cmd *cobra.Command, a *app.App, _ []string) error {
			s, err := a.Listen(cmd.Context(), c.out)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "svc listens on http://%s (external address %s)\n", s.Addr(), s.Config.ExternalURL)
			if addr := s.SSHAddr(); addr != "" {
				fmt.Fprintf(c.out, "Git over SSH listens on %s\n", addr)
			}
			for _, addr := range []string{s.PagesAddr(), s.PagesTLSAddr()} {
				if addr != "" {
					fmt.Fprintf(c.out, "Pages listens on %s\n", addr)
				}
			}
			a.Log.Info("start", "version", config.Version(), "revision", config.Revision(), "config", a.Config)
			defer releaseStart()()
			err = s.Run(cmd.Context())
			a.Log.Info("stop")
			return err
		}),
	}
}

func (c *command) migrate() *cobra.Command {
	var post bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema",
		Long: `Migrate the database schema to the version of this release. "svc serve" does
this too; run it separately to watch a long migration before nodes start.

Post-deployment migrations run by themselves a day later, when no node of an
older release runs any more. With --post they run now.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			open := c.with
			if post {
				open = c.installed
			}
			return open(func(cmd *cobra.Command, a *app.App, _ []string) error {
				before, _, err := a.DB.Version(cmd.Context())
				if err != nil {
					return err
				}
				if err := a.DB.Migrate(cmd.Context()); err != nil {
					return err
				}
				after, _, err := a.DB.Version(cmd.Context())
				if err != nil {
					return err
				}
				if before == after {
					fmt.Fprintf(c.out, "The schema is up to date (version %d).\n", after)
				} else {
					fmt.Fprintf(c.out, "The schema was migrated from version %d to %d.\n", before, after)
				}
				return c.migratePost(cmd.Context(), a, post)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&post, "post", false, "run post-deployment migrations now, which older releases may not run beside")
	return cmd
}

// migratePost runs post-deployment migrations if now is true; otherwise it prints
// those that have not run.
func (c *command) migratePost(ctx context.Context, a *app.App, now bool) error {
	s, err := a.DB.Schema(ctx)
	if err != nil || len(s.Post) == 0 || s.Have > s.Know {
		return err
	}
	if !now {
		fmt.Fprintf(c.out, "Post-deployment migrations to run: %s.\n", strings.Join(s.Post, ", "))
		return nil
	}
	waiting, err := a.DB.MigratePost(ctx, true)
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		return fmt.Errorf("nodes of an older release are running, which cannot run beside %s: upgrade or stop them", strings.Join(waiting, ", "))
	}
	fmt.Fprintf(c.out, "Post-deployment migrations were run: %s.\n", strings.Join(s.Post, ", "))
	return nil
}

func (c *command) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.out, "svc %s (revision %s, API level %s)\n", config.Version(), config.Revision(), app.Compatibility)
			return err
		},
	}
}

// with returns a command function that loads the configuration and opens the app for
// run.
func (c *command) with(run func(cmd *cobra.Command, a *app.App, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := config.Load(cmd.Flags(), c.environ)
		if err != nil {
			return usageError{err}
		}
		log := app.NewLog(cfg, c.errOut)
		forget(log)
		if cmd.Name() != "serve" {
			// Commands print their results; only warnings and errors are logged.
			log = app.NewLog(quiet(cfg), c.errOut)
		}
		a, err := app.Open(cmd.Context(), cfg, log, c.options)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd, a, args), a.Close())
	}
}

// installed is with for commands on an existing instance. Without the right data
// directory they would create another one.
func (c *command) installed(run func(cmd *cobra.Command, a *app.App, args []string) error) func(*cobra.Command, []string) error {
	open := c.with(run)
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := config.Load(cmd.Flags(), c.environ)
		if err != nil {
			return usageError{err}
		}
		if err := app.Installed(cfg); err != nil {
			return err
		}
		return open(cmd, args)
	}
}

// forget removes the options from the environment of the process, so that jobs and
// other child processes do not inherit secrets and cannot read them in /proc.
func forget(log *slog.Logger) {
	names := config.EnvNames()
	if err := wipe(names); err != nil {
		log.Warn("cannot overwrite the environment: options stay readable in /proc", "error", err)
	}
	for _, name := range names {
		_ = os.Unsetenv(name) // fails only for invalid names
	}
}

func quiet(cfg config.Config) config.Config {
	cfg.LogLevel = max(cfg.LogLevel, slog.LevelWarn)
	return cfg
}
