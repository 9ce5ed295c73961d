package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"svc/internal/errs"
	"svc/internal/git/refstore"
	"svc/internal/limit"
)

// work is the purpose of a process. It determines the concurrency limit and the
// time limit.
type work int

const (
	reading  work = iota // answers a request
	writing              // changes the repository
	transfer             // sends or receives a pack or an archive at the speed of a client
	upkeep               // housekeeping; has its own concurrency limit
)

// command describes a git process.
type command struct {
	work      work
	args      []string // git command and its arguments
	env       []string // in addition to the common environment
	in        io.Reader
	limit     time.Duration // overrides the time limit of the kind of work
	ok        []int         // exit statuses other than 0 that are not errors
	checkTips *os.File      // lock file that the process inherits; may be nil
	says      io.Writer     // receives a copy of stderr; may be nil
}

// name returns the name of the git command.
func (c command) name() string {
	for i := 0; i+1 < len(c.args); i += 2 {
		if c.args[i] != "-c" {
			return c.args[i]
		}
	}
	return c.args[len(c.args)-1]
}

// errEnough is returned by readers of the output to stop the process without an
// error.
var errEnough = errors.New("enough")

// output runs a command and returns its whole output. Output of more than 8 MiB is
// ErrTooLarge.
func (r Repo) output(ctx context.Context, c command) ([]byte, error) {
	const maxOutput = 8 << 20
	var out bytes.Buffer
	err := r.run(ctx, c, func(p io.Reader) error {
		_, err := out.ReadFrom(io.LimitReader(p, maxOutput+1))
		if err == nil && out.Len() > maxOutput {
			return fmt.Errorf("git %s: %w", c.name(), ErrTooLarge)
		}
		return err
	})
	return out.Bytes(), err
}

// run starts the command and calls read with its output. Output that read leaves
// is discarded. If read returns an error, the process is killed and run returns
// the error; errEnough is not an error. The process ends with ctx and at its time
// limit.
//
// read must not start another process of the same kind of work: if all slots were
// held by such callers, none of them could continue.
func (r Repo) run(ctx context.Context, c command, read func(io.Reader) error) error {
	end, err := r.use(ctx)
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	defer end()
	seen := r.changes()
	release, err := r.engine.admit(ctx, c.work)
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	defer release()

	limit := c.limit
	if limit == 0 {
		limit = r.engine.timeLimit(c.work)
	}
	inner, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	cmd := r.prepare(inner, c.args, c.env)
	if refstore.Locks(c.name()) {
		lock, err := r.files.Hold(inner)
		if err != nil {
			return fmt.Errorf("git %s: %w", c.name(), err)
		}
		defer refstore.Unlock(lock)
		cmd.ExtraFiles = append(cmd.ExtraFiles, lock)
	}
	if c.checkTips != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.checkTips)
	}
	cmd.Stdin = c.in
	stderr := &tail{}
	cmd.Stderr = stderr
	if c.says != nil {
		cmd.Stderr = io.MultiWriter(stderr, c.says)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	if err := r.engine.start(cmd); err != nil {
		return r.whyMissing(ctx, seen, fmt.Errorf("git %s: %w", c.name(), err))
	}
	readErr := read(out)
	if readErr == nil {
		_, readErr = io.Copy(io.Discard, out)
	}
	if readErr != nil {
		_ = cmd.Cancel() // the rest of the output is not needed
	}
	waitErr := cmd.Wait()
	switch {
	case errors.Is(readErr, errEnough):
		return nil
	case inner.Err() != nil:
		return &Error{Kind: context.Cause(inner), Name: c.name(), Exit: -1, Stderr: stderr.String()}
	case readErr != nil:
		return readErr
	}
	return r.whyMissing(ctx, seen, outcome(c, waitErr, stderr))
}

// whyMissing returns the error of a process that did not find something: another one,
// if the caches were changed since there were so many changes.
func (r Repo) whyMissing(ctx context.Context, since int64, err error) error {
	for _, kind := range []error{ErrNotFound, ErrCorrupt, ErrNoRepository, fs.ErrNotExist} {
		if !errors.Is(err, kind) {
			continue
		}
		changed, failed := r.changed(ctx, since)
		if changed {
			failed = lost(err)
		}
		return cmp.Or(failed, err)
	}
	return err
}

// admit waits for a slot for a process. It returns errs.Busy, which wraps ErrBusy,
// if there is none in time.
func (e *Engine) admit(ctx context.Context, w work) (release func(), err error) {
	switch w {
	case transfer:
		return acquire(ctx, e.transfers)
	case upkeep:
		return func() {}, nil
	}
	return acquire(ctx, e.commands)
}

func acquire(ctx context.Context, s *limit.Share) (release func(), err error) {
	release, err = s.Acquire(ctx)
	if busy, ok := errors.AsType[*errs.Error](err); ok {
		err = busy.Because(ErrBusy)
	}
	return release, err
}

func (e *Engine) timeLimit(w work) time.Duration {
	switch w {
	case writing:
		return e.limits.Write
	case transfer, upkeep:
		return e.limits.Transfer
	}
	return e.limits.Read
}

// prepare returns a process that is killed, with all its children, when ctx ends.
func (r Repo) prepare(ctx context.Context, args, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.engine.program, args...)
	cmd.Dir = r.path
	cmd.Env = append(slices.Clip(r.engine.env), "GIT_DIR="+r.path)
	if len(r.borrowed) > 0 {
		cmd.Env = append(cmd.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(r.borrowed, string(filepath.ListSeparator)))
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			return err // the process has ended, and its PID may have been reused
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	// Do not wait forever for a pipe that a grandchild keeps open.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// start starts a process and limits its memory. Its children have the same limit
// each.
func (e *Engine) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil {
		limitMemory(cmd.Process.Pid, e.limits.Memory)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoRepository, cmd.Dir) // New has found the program, so the directory is missing
	}
	return err
}

// outcome converts the exit status of a process to an error.
func outcome(c command, err error, stderr *tail) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	failure := &Error{Name: c.name(), Exit: exit.ExitCode(), Stderr: stderr.String()}
	if failure.Exit < 0 {
		failure.Kind = ErrKilled
		return failure
	}
	if slices.Contains(c.ok, failure.Exit) {
		return nil
	}
	failure.Kind = kindOf(failure.Stderr)
	return failure
}
