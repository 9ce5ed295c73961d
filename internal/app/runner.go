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
	"svc/internal/config"
	"svc/internal/errs"
	"svc/internal/runner"
)

// builtinName is the description of the runner inside the server.
const builtinName = "built-in"

// builtinKill is how long the processes of a job may take to end.
const builtinKill = 5 * time.Second

// builtinLast is how long it may take to tell the end of a job that was cut off.
const builtinLast = 5 * time.Second

// builtin is the runner inside the server while it runs.
type builtin struct {
	stop context.CancelFunc
	done chan struct{}
}

// newRunner makes the runner inside the server, nil when it is turned off. It
// speaks to the server as any other runner does.
func (s *Server) newRunner(ctx context.Context) (*runner.Runner, error) {
	if s.Config.Runner != "builtin" {
		return nil, nil
	}
	token, err := s.builtinToken(ctx)
	if err != nil {
		return nil, fmt.Errorf("built-in runner: %w", err)
	}
	at := loopback(s.listener.Addr())
	r, err := runner.New(runner.Deps{
		URL: at, CloneURL: at, Token: token, Dir: s.Config.RunnerDir, Concurrency: s.Config.RunnerConcurrency, Environ: os.Environ(),
		Version: runner.Version{Version: config.Version(), Revision: config.Revision()}, Log: s.Log, Now: s.now,
		Pace: runner.Pace{
			Grace: s.Config.ShutdownTimeout / 2, Kill: min(s.Config.ShutdownTimeout/4, builtinKill), Last: min(s.Config.ShutdownTimeout/8, builtinLast),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("built-in runner: %w", err)
	}
	return r, nil
}

// loopback is how the server reaches itself.
func loopback(addr net.Addr) string {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := at.Addr(); ip.IsUnspecified() { // on every address
		// An IPv6 listener on every address answers on those of IPv4 too, but
		// for systems that are told otherwise.
		host := "127.0.0.1"
		if ip.Is6() {
			host = "localhost"
		}
		return fmt.Sprintf("http://%s:%d", host, at.Port())
	}
	return "http://" + at.String()
}

// builtinToken is the token of the runner inside the server. The runner is
// made once; the token lies in the directory of the runner, which is for the
// server's eyes only. One that somebody has deleted is made anew.
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
		_, err := s.CI.VerifyRunner(ctx, ci.Contact{Token: token, SystemID: system})
		if !errs.Is(err, errs.KindForbidden) {
			return token, err
		}
	}
	name := builtinName
	r, err := s.CI.CreateRunner(ctx, actor.System(), ci.NewRunner{Kind: ci.InstanceRunner, RunnerChange: ci.RunnerChange{Description: &name}})
	if err != nil {
		return "", err
	}
	return r.Secret, runner.WriteFile(path, []byte(r.Secret+"\n"))
}

// startRunner lets the runner work until stopRunner.
func (s *Server) startRunner() {
	if s.runner == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.builtin = &builtin{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.builtin.done)
		if err := s.runner.Run(ctx); err != nil {
			s.Log.Error("the built-in runner does not work", "error", err)
		}
	}()
}

// stopRunner lets the jobs end that the runner has begun, for some time. They
// need the server for that.
func (s *Server) stopRunner() {
	if s.builtin == nil {
		return
	}
	s.builtin.stop()
	<-s.builtin.done
}
