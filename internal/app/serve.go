package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"svc/internal/runner"
	"svc/internal/sshd"
	"svc/internal/user"
)

// Server is an App that listens.
type Server struct {
	*App
	gate     *gate
	listener net.Listener
	http     *http.Server
	stopping atomic.Bool

	sshListener net.Listener // nil if Git over SSH is disabled
	ssh         *sshd.Server

	runner  *runner.Runner // built-in runner; may be nil
	builtin *builtin
	// signUpOpen is whether sign-up was enabled at the last check of the runner.
	signUpOpen atomic.Bool

	pages pagesServer

	// SecretRoutes are the patterns of routes with a secret in the path, which the
	// log masks.
	SecretRoutes []string

	sampler      *sampler
	dependencies *dependencies
}

// Listen migrates the schema, creates the first administrator in an empty
// instance, starts the background jobs and opens the listener. Generated
// credentials are written to out, once.
func (a *App) Listen(ctx context.Context, out io.Writer) (*Server, error) {
	if err := a.claimData(); err != nil {
		return nil, err
	}
	a.clearTemp()
	if err := a.DB.Migrate(ctx); err != nil {
		return nil, err
	}
	if err := a.claimKey(ctx); err != nil {
		return nil, err
	}
	if err := a.listen(); err != nil {
		return nil, err
	}
	listener := a.listener
	a.listener = nil // the Server closes it from now on
	s := &Server{App: a}
	s.gate = newGate(s)
	s.listener = s.proxied(s.gate.listen(listener, true))
	if err := errors.Join(s.listenSSH(), s.listenPages()); err != nil {
		if s.sshListener != nil {
			err = errors.Join(err, s.sshListener.Close())
		}
		return nil, errors.Join(err, s.closePages(), listener.Close())
	}
	if err := s.start(ctx, out); err != nil {
		err = errors.Join(err, s.closePages())
		if s.sshListener != nil {
			err = errors.Join(err, s.sshListener.Close())
		}
		return nil, errors.Join(err, listener.Close())
	}
	return s, nil
}

// listen opens the listener, unless it is open.
func (a *App) listen() error {
	if a.listener != nil {
		return nil
	}
	var err error
	if a.listener, err = net.Listen("tcp", a.Config.Addr); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

func (s *Server) start(ctx context.Context, out io.Writer) error {
	if err := s.Notices.Start(ctx); err != nil {
		return err
	}
	if err := s.bootstrap(ctx, out); err != nil {
		return err
	}
	if !s.DB.Postgres() { // no other node can be receiving a push
		if err := s.Repos.Recover(ctx); err != nil {
			s.Log.Error("cannot recover interrupted pushes", "error", err)
		}
	}
	if err := s.Queue.Start(ctx); err != nil {
		return err
	}
	s.seedExample(ctx, out)
	var err error
	if s.runner, err = s.newRunner(ctx); err != nil {
		return err
	}
	metrics := newMetrics(s)
	s.sampler, s.dependencies = newSampler(s), newDependencies(s)
	if err := s.newSSH(metrics); err != nil {
		return err
	}
	if err := s.newPages(ctx, metrics); err != nil {
		return err
	}
	s.http = &http.Server{
		Handler:           s.handler(metrics),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          quietLog(s.Log),
		ConnContext:       connContext,
	}
	// Long polls of runners and event streams would otherwise delay the shutdown.
	s.http.RegisterOnShutdown(s.CI.JobQueue.Close)
	s.http.RegisterOnShutdown(s.Todos.Close)
	return nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves requests until ctx ends. Then it waits for running requests and
// background jobs, up to the shutdown timeout.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 4)
	go func() { failed <- s.http.Serve(s.listener) }()
	if s.ssh != nil {
		go func() { failed <- s.ssh.Serve(s.sshListener) }()
	}
	s.pages.run(failed)
	s.startRunner()
	watching, ended := s.sampler.start()
	checking, checked := s.dependencies.start()
	var cause error
	select {
	case cause = <-failed:
	case <-ctx.Done():
		cause = s.drain(failed)
	}
	watching()
	<-ended
	checking()
	<-checked
	return errors.Join(cause, s.stop())
}

// drain makes the readiness check fail and continues to serve requests until load
// balancers have noticed, because connections to a closed listener would fail. It
// returns the error of a listener that fails meanwhile.
func (s *Server) drain(failed <-chan error) error {
	s.stopping.Store(true)
	if s.Config.ShutdownDelay <= 0 {
		return nil
	}
	s.Log.Info("stopping: not ready, waiting for load balancers", "delay", s.Config.ShutdownDelay)
	timer := time.NewTimer(s.Config.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return err
	}
}

// stop stops the parts of the server in the order of their dependencies.
func (s *Server) stop() error {
	s.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.Config.ShutdownTimeout)
	defer cancel()
	s.stopRunner() // uses a part of the shutdown timeout
	var faults []error
	cut := make(chan error, 1)
	go func() { cut <- s.stopSSH(ctx) }()
	if err := s.http.Shutdown(ctx); err != nil {
		faults = append(faults, fmt.Errorf("some requests did not end within %v and were interrupted: %w", s.Config.ShutdownTimeout, err), s.http.Close())
	}
	faults = append(faults, s.pages.stop(ctx), <-cut)
	if err := s.Instance.ForgetNode(ctx); err != nil { // the node stays in the list, as lost
		s.Log.Warn("cannot remove this node from the list of nodes", "error", err)
	}
	faults = append(faults, s.Queue.Stop(ctx))
	s.Pages.StopACME()
	s.Notices.Stop()
	return errors.Join(faults...)
}

func (s *Server) stopSSH(ctx context.Context) error {
	if s.ssh == nil {
		return nil
	}
	if err := s.ssh.Shutdown(ctx); err != nil {
		return fmt.Errorf("some transfers over SSH did not end within %v and were interrupted: %w", s.Config.ShutdownTimeout, err)
	}
	return nil
}

// bootstrap creates the first administrator and prints their credentials, once.
func (s *Server) bootstrap(ctx context.Context, out io.Writer) error {
	root, err := s.Users.Bootstrap(ctx, string(s.Config.RootPassword), string(s.Config.RootToken))
	if err != nil || root == nil || *root == (user.Root{}) {
		return err
	}
	fmt.Fprintf(out, "\nCreated the administrator root. These credentials are shown only once:\n")
	if root.Password != "" {
		fmt.Fprintf(out, "  password: %s\n", root.Password)
	}
	if root.Token != "" {
		fmt.Fprintf(out, "  token:    %s\n", root.Token)
	}
	fmt.Fprintf(out, "Sign in and open %s/admin/setup to see what is left to set up.\n\n", s.Config.ExternalURL)
	return nil
}

// migratePost runs post-deployment migrations if they are due.
func (a *App) migratePost(ctx context.Context) error {
	_, err := a.DB.MigratePost(ctx, false)
	return err
}

// clearTemp removes old temporary files, which requests left behind when the process
// crashed. Files that another node with the same directory uses are less than a day
// old.
func (a *App) clearTemp() {
	entries, err := os.ReadDir(a.tempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && a.now().Sub(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(a.tempDir(), e.Name()))
		}
	}
}
