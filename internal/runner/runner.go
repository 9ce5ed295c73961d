// Package runner executes CI jobs: it requests them from a server with the runner
// protocol, runs their scripts in a shell, and sends back log, artifacts and
// result. It uses the server only over HTTP.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Deps are the dependencies of a runner.
type Deps struct {
	URL string // of the server, as in http://127.0.0.1:8080
	// CloneURL replaces the URL of the server when repositories are fetched. It is
	// empty if that URL is reachable.
	CloneURL    string
	Token       string // of the runner
	Dir         string // directory for builds and caches, for exclusive use
	Concurrency int    // concurrent jobs; 0 means DefaultConcurrency
	Environ     []string
	Version     Version
	Log         *slog.Logger
	Now         func() time.Time
	Pace        Pace
	// Program is the path of this program, which provides release-cli to jobs; may be
	// empty.
	Program string
}

// Version is the version that the runner reports.
type Version struct{ Version, Revision string }

// Pace are the intervals and time limits of a runner. Zero values mean the
// defaults.
type Pace struct {
	Poll   time.Duration // between two requests for a job that were not held
	Hold   time.Duration // for the server to hold a request for a job
	Call   time.Duration // for the server to respond to any other call
	Ask    time.Duration // between two checks whether a job was canceled
	Kill   time.Duration // for processes to end before they are killed
	Grace  time.Duration // for running jobs when the runner stops
	Finish time.Duration // for reporting the end of a job while the server is unavailable
	Last   time.Duration // for reporting the end of a job when the runner stops
	Retry  time.Duration // before the first retry of a request; it increases with each retry
}

func (p Pace) withDefaults() Pace {
	set := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	set(&p.Poll, 3*time.Second)
	set(&p.Hold, 20*time.Second)
	set(&p.Call, 10*time.Second)
	set(&p.Ask, 3*time.Second)
	set(&p.Kill, 10*time.Second)
	set(&p.Grace, 15*time.Second)
	set(&p.Finish, time.Hour) // after that the server has failed the job
	set(&p.Last, 5*time.Second)
	set(&p.Retry, 500*time.Millisecond)
	return p
}

// DefaultConcurrency returns the default number of concurrent jobs: one per CPU,
// at most 8 because of shared disks.
func DefaultConcurrency() int { return min(runtime.NumCPU(), 8) }

// ErrToken means that the server rejected the runner token.
var ErrToken = errors.New("the server does not know the token of the runner")

// Runner runs jobs.
type Runner struct {
	Deps
	server *client
	shell  shell
	slots  chan int // free slots for jobs
	jobs   sync.WaitGroup
}

// New returns a runner and creates its directory.
func New(d Deps) (*Runner, error) {
	d.Pace = d.Pace.withDefaults()
	if d.Concurrency <= 0 {
		d.Concurrency = DefaultConcurrency()
	}
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return nil, fmt.Errorf("runner directory: %w", err)
	}
	d.Dir = dir
	r := &Runner{Deps: d, slots: make(chan int, d.Concurrency)}
	for i := range d.Concurrency {
		r.slots <- i
	}
	for _, dir := range []string{r.buildsDir(), r.cacheDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("runner directory: %w", err)
		}
	}
	if r.shell, err = findShell(); err != nil {
		return nil, err
	}
	id, err := SystemID(d.Dir)
	if err != nil {
		return nil, err
	}
	r.server, err = newClient(d, id, r.shell.name)
	return r, err
}

func (r *Runner) buildsDir() string { return filepath.Join(r.Dir, "builds") }
func (r *Runner) cacheDir() string  { return filepath.Join(r.Dir, "cache") }

// Run requests and runs jobs until ctx ends. Then it takes no more jobs, lets
// running ones continue for a while, and fails the rest as runner failures. It
// returns ErrToken if the server rejects the token.
func (r *Runner) Run(ctx context.Context) error {
	lock, err := r.claim()
	if err != nil {
		return err
	}
	defer func() {
		// A child process that is being started may still have the file open.
		_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		_ = lock.Close()
	}()
	hard, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	r.recoverJobs(hard)
	r.pruneCache()
	err = r.verify(ctx)
	if err == nil {
		r.poll(ctx, hard)
	}
	r.await(abort)
	return err
}

// claim locks the directory, so that no other process uses it: that process would
// treat the running jobs as interrupted.
func (r *Runner) claim() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.Dir, "runner.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the runner directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another runner works in %s", r.Dir)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// verify checks the token, with retries while the server is unavailable.
func (r *Runner) verify(ctx context.Context) error {
	wait := backoff{first: r.Pace.Retry, most: 30 * time.Second}
	for {
		status, err := r.server.verify(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case status == http.StatusOK:
			r.Log.Info("runner ready", "url", r.URL, "concurrency", r.Concurrency, "shell", r.shell.name, "dir", r.Dir)
			return nil
		case status == http.StatusForbidden || status == http.StatusUnauthorized:
			return ErrToken
		case err == nil:
			err = fmt.Errorf("status %d", status)
		}
		r.Log.Warn("the server does not respond to the runner", "url", r.URL, "error", err)
		if !wait.pause(ctx) {
			return nil
		}
	}
}

// poll requests jobs while there are free slots.
func (r *Runner) poll(ctx, hard context.Context) {
	wait := backoff{first: r.Pace.Retry, most: 30 * time.Second}
	pruned := r.Now()
	for {
		if now := r.Now(); now.Sub(pruned) > 24*time.Hour {
			pruned = now
			r.pruneCache()
		}
		var slot int
		select {
		case slot = <-r.slots:
		case <-ctx.Done():
			return
		}
		j, again, err := r.server.request(ctx)
		if j != nil {
			wait.reset()
			r.jobs.Go(func() {
				defer func() { r.slots <- slot }()
				r.runJob(hard, j, slot)
			})
			continue
		}
		r.slots <- slot
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Log.Warn("the server did not respond to a job request", "error", err)
			if !wait.pause(ctx) {
				return
			}
		case again: // long polling
			wait.reset()
		default:
			wait.reset()
			if !pause(ctx, r.Pace.Poll) {
				return
			}
		}
	}
}

// await waits for running jobs, and aborts them after Pace.Grace.
func (r *Runner) await(abort context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		r.jobs.Wait()
		close(done)
	}()
	late := time.NewTimer(r.Pace.Grace)
	defer late.Stop()
	select {
	case <-done:
		return
	case <-late.C:
	}
	r.Log.Warn("aborting jobs that did not end in time", "after", r.Pace.Grace)
	abort(errStopped)
	<-done
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff waits longer each time.
type backoff struct {
	first, most time.Duration
	next        time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// pause waits; false when ctx ended first.
func (b *backoff) pause(ctx context.Context) bool {
	b.next = min(max(b.first, 2*b.next), b.most)
	return pause(ctx, b.next)
}
