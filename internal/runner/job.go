package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"svc/internal/durable"
)

// job is a job that is being executed.
type job struct {
	*assignment
	r    *Runner
	slot int
	root string // directory of the job; deleted at its end
	dir  string // the working tree
	mark string

	log  *trace
	out  *masker
	vars *variables
	base []string // environment that scripts inherit: see inherited

	// whole ends when the job must stop completely. main ends earlier if the job is
	// canceled, so that cleanup can still run.
	whole, main context.Context
	abort, stop context.CancelCauseFunc
}

// The reasons why a job is interrupted.
var (
	errTimeout  = errors.New("the job took longer than it may")
	errCanceled = errors.New("the job was canceled")
	errStopped  = errors.New("the runner was stopped")
)

// record is the stored state of a job. The next runner process uses it to report the
// job if the runner is killed.
type record struct {
	ID    int64  `json:"id"`
	Token string `json:"token"`
	Mark  string `json:"mark"`
}

const (
	recordFile = "job.json"
	logFile    = "log"
)

// runJob runs a job that the server assigned, and reports its result.
func (r *Runner) runJob(hard context.Context, a *assignment, slot int) {
	log := r.Log.With("job", a.ID, "project", a.JobInfo.ProjectFullPath)
	j, err := r.newJob(a, slot)
	if err != nil {
		// There is no job log to write the error to.
		log.Error("cannot start a job", "error", err)
		_, err := r.server.update(hard, a.ID, update{Token: a.Token, State: "failed", Reason: "runner_system_failure"})
		if err != nil {
			log.Error("cannot report a job that could not be started", "error", err)
		}
		return
	}
	defer j.cleanUp()
	if err := j.begin(hard); err != nil {
		log.Warn("job not started", "error", err)
		return
	}
	start := r.Now()
	log.Info("job started", "name", a.JobInfo.Name)
	err = j.complete(hard)
	log.Info("job finished", "name", a.JobInfo.Name, "duration", r.Now().Sub(start), "error", err)
}

// beginTime is how long the start of a job is retried while the server is
// unavailable. After that the server will have given the job to another runner.
const beginTime = time.Minute

// begin reports to the server that the job is running. The job may have been given
// to another runner.
func (j *job) begin(hard context.Context) error {
	ctx, cancel := context.WithTimeout(hard, beginTime)
	defer cancel()
	wait := backoff{first: j.r.Pace.Retry, most: 5 * time.Second}
	for {
		said, err := j.r.server.update(ctx, j.ID, update{Token: j.Token, State: "running"})
		switch {
		case err == nil && said.status == http.StatusOK:
			return nil
		case err == nil && said.status == http.StatusForbidden:
			return errOver
		case err == nil:
			err = fmt.Errorf("status %d", said.status)
		}
		if !wait.pause(ctx) {
			return err
		}
	}
}

// newJob creates the directory and the log of a job.
func (r *Runner) newJob(a *assignment, slot int) (*job, error) {
	j := &job{assignment: a, r: r, slot: slot, mark: random(16)}
	root, err := os.MkdirTemp(r.buildsDir(), strconv.FormatInt(a.ID, 10)+"-")
	if err != nil {
		return nil, err
	}
	j.root = root
	path := filepath.FromSlash(a.JobInfo.ProjectFullPath)
	if !filepath.IsLocal(path) {
		path = "project"
	}
	j.dir = filepath.Join(root, "project", path)
	text, err := json.Marshal(record{ID: a.ID, Token: a.Token, Mark: j.mark})
	if err == nil {
		err = durable.Replace(filepath.Join(root, recordFile), text)
	}
	for _, dir := range []string{j.dir, j.tempDir()} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	if err == nil {
		j.log, err = openTrace(filepath.Join(root, logFile))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	j.prepareVariables()
	j.out = newMasker(j.log, append(j.vars.secrets(), a.Token), a.Features.TokenMaskPrefixes)
	return j, nil
}

func (j *job) tempDir() string { return filepath.Join(j.root, "tmp") }

// prepareVariables adds the variables that the runner sets.
func (j *job) prepareVariables() {
	j.vars = newVariables(j.Variables)
	j.vars.add("CI_PROJECT_DIR", j.dir)
	j.vars.add("CI_BUILDS_DIR", j.root)
	j.vars.add("CI_CONCURRENT_ID", strconv.Itoa(j.slot))
	j.vars.add("CI_CONCURRENT_PROJECT_ID", strconv.Itoa(j.slot))
	j.vars.add("CI_SHARED_ENVIRONMENT", "yes")
	j.vars.add("CI_RUNNER_VERSION", j.r.Version.Version)
	j.vars.add("CI_RUNNER_REVISION", j.r.Version.Revision)
	j.vars.add("CI_RUNNER_EXECUTABLE_ARCH", platform())
	j.vars.add("CI_JOB_STATUS", "running")
	j.base = append(inherited(j.r.Environ), "TMPDIR="+j.tempDir(), markName+"="+j.mark)
}

// complete runs a job and reports its result to the server.
func (j *job) complete(hard context.Context) error {
	whole, abort := context.WithCancelCause(hard)
	defer abort(nil)
	limit := time.Duration(j.RunnerInfo.Timeout) * time.Second
	if limit > 0 {
		var cancel context.CancelFunc
		whole, cancel = context.WithTimeoutCause(whole, limit, errTimeout)
		defer cancel()
	}
	j.whole, j.abort = whole, abort
	j.main, j.stop = context.WithCancelCause(whole)
	defer j.stop(nil)

	s := &sender{
		server: j.r.server, id: j.ID, token: j.Token, log: j.log, debug: j.vars.is("CI_DEBUG_TRACE"), pace: j.r.Pace,
		onState: j.update, note: j.r.Log.With("job", j.ID),
	}
	// The log is sent until it is complete, even if the job is interrupted.
	following, quiet := context.WithCancel(context.WithoutCancel(hard))
	defer quiet()
	var follower sync.WaitGroup
	follower.Go(func() { s.follow(following) })

	err := j.execute()
	killMarked(j.mark)
	j.verdict(err)
	flush := j.out.Flush()
	quiet()
	follower.Wait()
	if errors.Is(err, errOver) {
		return err
	}
	// When the runner stops, there is a time limit for the last report.
	last, cancel := context.WithCancel(context.WithoutCancel(hard))
	defer cancel()
	defer context.AfterFunc(hard, func() { time.AfterFunc(j.r.Pace.Last, cancel) })()
	return errors.Join(err, flush, s.finish(last, outcome(err)))
}

// update handles a job state that the server returned.
func (j *job) update(state string) {
	switch state {
	case "canceling":
		j.stop(errCanceled)
	case "canceled", "failed", "success", "gone":
		j.abort(errOver)
	}
}

// outcome converts the error of a job to the update for the server.
func outcome(err error) update {
	u := update{State: "failed"}
	code := 0
	var exit *exitError
	switch {
	case err == nil:
		u.State = "success"
	case errors.Is(err, errTimeout):
		u.Reason = "job_execution_timeout"
		return u
	case errors.As(err, &exit):
		u.Reason, code = "script_failure", exit.code
	case errors.Is(err, errCanceled), errors.Is(err, errRefused):
		u.Reason = "script_failure"
		return u
	default:
		u.Reason = "runner_system_failure"
		return u
	}
	u.ExitCode = &code
	return u
}

// cleanUp deletes the files of the job.
func (j *job) cleanUp() {
	if err := errors.Join(j.log.Close(), removeAll(j.root)); err != nil {
		j.r.Log.Warn("cannot remove the directory of a job", "job", j.ID, "error", err)
	}
}

// removeAll deletes a directory, including directories in it that a job made
// read-only.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// The second attempt to delete reports the errors.
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// recoverJobs finishes the jobs of a runner that was killed: it kills their
// remaining processes and sends the rest of their logs.
func (r *Runner) recoverJobs(hard context.Context) {
	entries, err := os.ReadDir(r.buildsDir())
	if err != nil {
		r.Log.Error("cannot look for interrupted jobs", "error", err)
		return
	}
	for _, e := range entries {
		root := filepath.Join(r.buildsDir(), e.Name())
		r.jobs.Go(func() {
			if err := r.recoverJob(hard, root); err != nil {
				r.Log.Warn("cannot report an interrupted job", "dir", root, "error", err)
			}
			if err := removeAll(root); err != nil {
				r.Log.Warn("cannot remove the directory of a job", "dir", root, "error", err)
			}
		})
	}
}

func (r *Runner) recoverJob(hard context.Context, root string) error {
	text, err := os.ReadFile(filepath.Join(root, recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil // the job had not started
	}
	var was record
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err != nil {
		return err
	}
	killMarked(was.Mark)
	log, err := openTrace(filepath.Join(root, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "\n%s\n", red("ERROR: Job failed (system failure): the runner ended while the job ran"))
	s := &sender{
		server: r.server, id: was.ID, token: was.Token, log: log, pace: r.Pace, onState: func(string) {}, note: r.Log.With("job", was.ID),
	}
	err = s.finish(hard, update{State: "failed", Reason: "runner_system_failure"})
	if errors.Is(err, errOver) { // the server has already finished the job
		return nil
	}
	return err
}
