package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/app"
	"svc/internal/config"
	"svc/internal/runner"
)

// runnerGrace is how long running jobs may take to finish when the runner stops. A
// service manager should wait longer before it kills the process.
const runnerGrace = 60 * time.Second

func (c *command) runner() *cobra.Command {
	return &cobra.Command{
		Use:   "runner --runner-url URL --runner-token TOKEN",
		Short: "Run CI/CD jobs of a server on this machine",
		Long: `Run CI/CD jobs of a server on this machine until SIGTERM or Ctrl-C. Then no more
jobs are accepted, running jobs have a minute to finish, and the rest fail with
runner_system_failure.

The token comes from POST /user/runners. All users of the machine can read the
flags of a process, so set it as SVC_RUNNER_TOKEN or in the configuration file.
Scripts run as the user that starts this command, in a shell and in a directory
that is removed afterwards, without isolation.

Builds and caches are kept in --runner-dir, which two runners cannot share. After
a crash the next start reports the interrupted jobs to the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), c.environ)
			if err != nil {
				return usageError{err}
			}
			if cfg.RunnerToken == "" {
				return usageError{errors.New("the runner needs a token: set SVC_RUNNER_TOKEN to a token from POST /user/runners")}
			}
			if cfg.RunnerURL == "" {
				cfg.RunnerURL = config.DefaultExternalURL(cfg.Addr)
			}
			log := app.NewLog(cfg, c.errOut)
			forget(log)
			r, err := runner.New(runner.Deps{
				URL: cfg.RunnerURL, Token: string(cfg.RunnerToken), Dir: cfg.RunnerDir, Concurrency: cfg.RunnerConcurrency, Environ: c.environ,
				Version: runner.Version{Version: config.Version(), Revision: config.Revision()}, Log: log, Now: time.Now,
				Pace: runner.Pace{Grace: runnerGrace}, Program: c.options.Program,
			})
			if err != nil {
				return err
			}
			err = r.Run(cmd.Context())
			log.Info("stop")
			return err
		},
	}
}
