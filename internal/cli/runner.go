package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/app"
	"svc/internal/config"
	"svc/internal/runner"
)

// runnerGrace is how long jobs may go on when the runner is told to stop. A
// service manager should wait longer than that before it kills.
const runnerGrace = 60 * time.Second

func (c *command) runner() *cobra.Command {
	return &cobra.Command{
		Use:   "runner --runner-url URL --runner-token TOKEN",
		Short: "Run CI jobs of a server on this machine",
		Long: `Run CI jobs of a server on this machine until it is told to stop (SIGTERM or
Ctrl-C): then no more jobs are taken, those that run get a minute to end, and
what is left fails as a failure of the runner.

The token comes from POST /user/runners. Everyone on the machine can read the
flags of a process, so give it as SVC_RUNNER_TOKEN or in the configuration
file. Scripts run as the user who starts this command, in a shell and in a
directory that is removed afterwards: they can reach whatever that user can.

Builds and caches are kept in the runner's own directory (--runner-dir), which
two runners can not share. A runner that was killed tells the server so when
it is started again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), c.environ)
			if err != nil {
				return usageError{err}
			}
			if cfg.RunnerToken == "" {
				return usageError{errors.New("the runner needs a token: SVC_RUNNER_TOKEN, as POST /user/runners gives it")}
			}
			if cfg.RunnerURL == "" {
				cfg.RunnerURL = config.DefaultExternalURL(cfg.Addr)
			}
			forget()
			log := app.NewLog(cfg, c.errOut)
			r, err := runner.New(runner.Deps{
				URL: cfg.RunnerURL, Token: string(cfg.RunnerToken), Dir: cfg.RunnerDir, Concurrency: cfg.RunnerConcurrency, Environ: c.environ,
				Version: runner.Version{Version: config.Version(), Revision: config.Revision()}, Log: log, Now: time.Now,
				Pace: runner.Pace{Grace: runnerGrace},
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
