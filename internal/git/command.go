package git

import (
	"bytes"
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

// work is what a process is for; it decides which others it is counted with
// and how long it may take.
type work int

const (
	reading  work = iota // answers a request
	writing              // changes the repository
	transfer             // moves a pack or an archive at the pace of a client
	upkeep               // housekeeping, which has its place already
)

// command is one git process.
type command struct {
	work  work
	args  []string // the git command and its arguments
	env   []string // beside that of every process
	in    io.Reader
	limit time.Duration // in place of that of the work
	ok    []int         // statuses beside 0 that are answers
	holds *os.File      // a lock that the process shares; nil if there is none
	says  io.Writer     // gets what git says on stderr, beside the error
}

// name is the git command.
func (c command) name() string {
	for i := 0; i+1 < len(c.args); i += 2 {
		if c.args[i] != "-c" {
			return c.args[i]
		}
	}
	return c.args[len(c.args)-1]
}

// errEnough ends a process whose further answer no one needs.
var errEnough = errors.New("enough")

// output runs a command whose answer is small and gives it whole. An answer
// over 8 MiB is ErrTooLarge.
func (r Repo) output(ctx context.Context, c command) ([]byte, error) {
	const most = 8 << 20
	var out bytes.Buffer
	err := r.run(ctx, c, func(p io.Reader) error {
		_, err := out.ReadFrom(io.LimitReader(p, most+1))
		if err == nil && out.Len() > most {
			return fmt.Errorf("git %s: %w", c.name(), ErrTooLarge)
		}
		return err
	})
	return out.Bytes(), err
}

// run starts the command and hands its output to read. What read leaves is
// discarded; when read returns an error the process is killed, and the error
// is that of run, but errEnough is none. The process ends with ctx and at its
// time limit.
//
// A caller must not start a second process of the same work from within read:
// with all places taken by such callers no one would go on.
func (r Repo) run(ctx context.Context, c command, read func(io.Reader) error) error {
	defer r.engine.uses.begin(r.dirs())()
	release, err := r.engine.admit(ctx, c.work)
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	defer release()

	limit := c.limit
	if limit == 0 {
		limit = r.engine.timeOf(c.work)
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
	if c.holds != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.holds)
	}
	cmd.Stdin = c.in
	said := &tail{}
	cmd.Stderr = said
	if c.says != nil {
		cmd.Stderr = io.MultiWriter(said, c.says)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	if err := r.engine.start(cmd); err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	readErr := read(out)
	if readErr == nil {
		_, readErr = io.Copy(io.Discard, out)
	}
	if readErr != nil {
		_ = cmd.Cancel() // whatever it has left to say is not needed
	}
	waitErr := cmd.Wait()
	switch {
	case errors.Is(readErr, errEnough):
		return nil
	case inner.Err() != nil:
		return &Error{Kind: context.Cause(inner), Name: c.name(), Exit: -1, Stderr: said.String()}
	case readErr != nil:
		return readErr
	}
	return outcome(c, waitErr, said)
}

// admit waits for a slot among the processes of the work. It returns errs.Busy,
// which is ErrBusy as well, when there is none in time.
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

func (e *Engine) timeOf(w work) time.Duration {
	switch w {
	case writing:
		return e.limits.Write
	case transfer, upkeep:
		return e.limits.Transfer
	}
	return e.limits.Read
}

// prepare makes a process that is killed, with all that it started, when ctx
// ends.
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
			return err // it has ended: its number may belong to another by now
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	// A pipe that something else keeps open must not hold us up.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// start starts a process and limits its memory. Processes that it starts have
// the same limit each.
func (e *Engine) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil {
		limitMemory(cmd.Process.Pid, e.limits.Memory)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoRepository, cmd.Dir) // the program is there: New found it
	}
	return err
}

// outcome says what the end of a process that was left to itself means.
func outcome(c command, err error, said *tail) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	failure := &Error{Name: c.name(), Exit: exit.ExitCode(), Stderr: said.String()}
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
