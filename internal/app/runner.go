package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/ci/runners"
	"svc/internal/config"
	"svc/internal/durable"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/runner"
)

// builtinName is the description of the runner inside the server.
const builtinName = "built-in"

// builtinKill is the time between SIGTERM and SIGKILL for the processes of a job.
const builtinKill = 5 * time.Second

// builtinLast is the time limit for reporting the end of an interrupted job.
const builtinLast = 5 * time.Second

// builtin is the built-in runner while it runs.
type builtin struct {
	stop context.CancelFunc
	done chan struct{}
}

// newRunner returns the built-in runner, or nil if it is disabled. It uses the
// same API as other runners.
func (s *Server) newRunner(ctx context.Context) (*runner.Runner, error) {
	if s.Config.Runner != "builtin" {
		return nil, nil
	}
	if reason, err := s.runnerClosed(ctx); reason != "" || err != nil {
		return nil, fmt.Errorf("built-in runner: %w", errors.Join(err, errorText(reason)))
	}
	token, err := s.builtinToken(ctx)
	if err != nil {
		return nil, fmt.Errorf("built-in runner: %w", err)
	}
	s.Log.Warn("the built-in runner runs jobs as the user of the server, without isolation: a job can read and change all data of the server",
		"projects", s.Config.RunnerProjects, "tags", s.Config.RunnerTags, "open_signup", s.Config.RunnerOpenSignUp)
	if err := hideProcess(); err != nil {
		s.Log.Warn("jobs of the built-in runner can read the environment of the server", "error", err)
	}
	if os.Geteuid() == 0 { // root can read the memory of all processes
		s.Log.Warn("the server runs as root: jobs of the built-in runner run as root too, and can read the environment with which the server was started")
	}
	at := loopback(s.listener.Addr())
	r, err := runner.New(runner.Deps{
		URL: at, CloneURL: at, Token: token, Dir: s.Config.RunnerDir, Concurrency: s.Config.RunnerConcurrency, Environ: os.Environ(),
		Version: runner.Version{Version: config.Version(), Revision: config.Revision()}, Log: s.Log, Now: s.now, Program: s.program,
		Pace: runner.Pace{
			Grace: s.Config.ShutdownTimeout / 2, Kill: min(s.Config.ShutdownTimeout/4, builtinKill), Last: min(s.Config.ShutdownTimeout/8, builtinLast),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("built-in runner: %w", err)
	}
	return r, nil
}

// loopback returns the address at which the server connects to itself.
func loopback(addr net.Addr) string {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := at.Addr(); ip.IsUnspecified() { // the listener accepts connections to all addresses
		// An IPv6 listener for all addresses also accepts IPv4, unless the system is
		// configured otherwise.
		host := "127.0.0.1"
		if ip.Is6() {
			host = "localhost"
		}
		return fmt.Sprintf("http://%s:%d", host, at.Port())
	}
	return "http://" + at.String()
}

// builtinToken returns the token of the built-in runner. The runner is created once;
// its token is stored in the directory of the runner, which only the server can
// read. A runner that was deleted is created again.
func (s *Server) builtinToken(ctx context.Context) (string, error) {
	system, err := runner.SystemID(s.Config.RunnerDir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Config.RunnerDir, "token")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if token := strings.TrimSpace(string(text)); token != "" {
		r, err := s.CI.Runners.Verify(ctx, runners.Contact{Token: token, SystemID: system})
		if err == nil && len(s.Config.RunnerTags) > 0 {
			r, err = s.CI.Runners.Update(ctx, actor.System(), r.ID, s.runnerTags())
		}
		if err == nil {
			s.limitRunner(r)
		}
		if !errs.Is(err, errs.KindForbidden) {
			return token, err
		}
	}
	name := builtinName
	change := s.runnerTags()
	change.Description = &name
	r, err := s.CI.Runners.Create(ctx, actor.System(), runners.NewRunner{Type: runners.InstanceType, Change: change})
	if err != nil {
		return "", err
	}
	s.limitRunner(r)
	return r.Secret, durable.Replace(path, []byte(r.Secret+"\n"))
}

// runnerTags returns the change that sets the tags of the runner from the
// configuration. If none are configured, the runner keeps its tags.
func (s *Server) runnerTags() runners.Change {
	if len(s.Config.RunnerTags) == 0 {
		return runners.Change{}
	}
	untagged := false
	return runners.Change{Tags: &s.Config.RunnerTags, RunUntagged: &untagged}
}

// limitRunner restricts the runner to jobs of members in the configured projects.
func (s *Server) limitRunner(r *runners.Runner) {
	s.CI.LimitRunner(r.ID, ci.RunnerLimit{Within: s.Config.RunnerProjects, Role: project.Developer, Closed: s.runnerClosed})
}

// runnerClosed returns why the runner must not take jobs now, or an empty string.
// Sign-up can be enabled while the server runs.
func (s *Server) runnerClosed(ctx context.Context) (string, error) {
	if s.Config.RunnerOpenSignUp {
		return "", nil
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return "", err
	}
	if settings.SignUpEnabled != s.signUpOpen.Swap(settings.SignUpEnabled) && s.runner != nil {
		s.Log.Warn("sign-up was changed: the built-in runner takes jobs only while sign-up is off", "signup_enabled", settings.SignUpEnabled)
	}
	if !settings.SignUpEnabled {
		return "", nil
	}
	return "The built-in runner takes no jobs while anyone can sign up, because jobs run as the user of the server. " +
		"Turn sign-up off (signup_enabled), use another runner (SVC_RUNNER=off), or set SVC_RUNNER_OPEN_SIGNUP=true.", nil
}

// errorText returns an error with a text, or nil if it is empty.
func errorText(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// startRunner starts the runner, which runs until stopRunner.
func (s *Server) startRunner() {
	if s.runner == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.builtin = &builtin{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.builtin.done)
		if err := s.runner.Run(ctx); err != nil {
			s.Log.Error("the built-in runner cannot start", "error", err)
		}
	}()
}

// stopRunner stops the runner and waits for its running jobs, with a time limit. The
// jobs need the server, so it must still be running.
func (s *Server) stopRunner() {
	if s.builtin == nil {
		return
	}
	s.builtin.stop()
	<-s.builtin.done
}
