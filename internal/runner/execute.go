package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// afterTime is the time limit of after_script.
const afterTime = 5 * time.Minute

// say writes a line to the job log. Write errors are detected when the log is sent.
func (j *job) say(format string, args ...any) { fmt.Fprintf(j.out, format+"\n", args...) }

func (j *job) warn(format string, args ...any) {
	j.say("%s", yellow("WARNING: "+fmt.Sprintf(format, args...)))
}

// section runs one part of a job as a collapsible section of the log.
func (j *job) section(name, title string, do func() error) error {
	if j.Features.TraceSections {
		fmt.Fprintf(j.out, "section_start:%d:%s\r\x1b[0K", j.r.Now().Unix(), name)
	}
	j.say("%s", cyan(title))
	err := do()
	if j.Features.TraceSections {
		fmt.Fprintf(j.out, "section_end:%d:%s\r\x1b[0K", j.r.Now().Unix(), name)
	}
	return err
}

// execute runs all parts of a job.
func (j *job) execute() error {
	j.say("Running with svc-runner %s (%s)", j.r.Version.Version, j.r.Version.Revision)
	j.say("  on machine %s, at most %d jobs at a time", j.r.server.system, j.r.Concurrency)
	if err := j.prepare(); err != nil {
		return cause(j.main, err)
	}
	err := j.section("step_script", "Executing the job's script", func() error { return j.runScript() })
	if fatal := context.Cause(j.whole); fatal != nil {
		return fatal
	}
	err = errors.Join(err, j.after(err))
	failed := err != nil
	if e := j.saveCaches(failed); e != nil && err == nil {
		err = e
	}
	if e := j.uploadArtifacts(failed); e != nil && err == nil {
		err = e
	}
	return cause(j.whole, err)
}

// cause returns the reason why the job was interrupted, if it was, instead of err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && err != nil {
		return why
	}
	return err
}

// prepare runs all parts of a job before the script.
func (j *job) prepare() error {
	err := j.section("prepare_executor", `Preparing the "shell" executor`, func() error {
		j.say("Using %s on this machine; jobs are not isolated", j.r.shell.name)
		if j.Image != nil && j.Image.Name != "" {
			j.warn("the job asks for the image %s: this runner has no containers, and runs the script as it is", j.Image.Name)
		}
		for _, s := range j.Services {
			j.warn("the job asks for the service %s: this runner has no containers, and does not start it", s.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	parts := []struct {
		name, title string
		do          func() error
		skip        bool
	}{
		{name: "prepare_script", title: "Preparing the environment", do: j.greet},
		{name: "get_sources", title: "Getting the source from the Git repository", do: j.getSources},
		{name: "restore_cache", title: "Restoring the cache", do: j.restoreCaches, skip: len(j.Cache) == 0},
		{name: "download_artifacts", title: "Downloading artifacts", do: j.downloadArtifacts, skip: len(j.Dependencies) == 0},
	}
	for _, p := range parts {
		if p.skip {
			continue
		}
		if err := context.Cause(j.main); err != nil {
			return err
		}
		if err := j.section(p.name, p.title, p.do); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) greet() error {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	j.say("Running on %s", host)
	return nil
}

// runScript runs before_script and script, which the server sends as one step.
func (j *job) runScript() error {
	ctx, cancel := context.WithCancel(j.main)
	defer cancel()
	if d := j.vars.duration("RUNNER_SCRIPT_TIMEOUT", 0); d > 0 {
		ctx, cancel = context.WithTimeoutCause(j.main, d, errTimeout)
		defer cancel()
	}
	for _, s := range j.Steps {
		if s.Name == afterStep {
			continue
		}
		if err := j.runLines(ctx, s.Name, s.Script); err != nil {
			return err
		}
	}
	return nil
}

// after runs after_script, regardless of the result of the script. If it fails, the
// result does not change, unless the job is configured so.
func (j *job) after(before error) error {
	for _, s := range j.Steps {
		if s.Name != afterStep || len(s.Script) == 0 {
			continue
		}
		j.vars.add("CI_JOB_STATUS", status(before))
		ignore := j.vars.get("AFTER_SCRIPT_IGNORE_ERRORS")
		fatal := before == nil && ignore != "" && !j.vars.is("AFTER_SCRIPT_IGNORE_ERRORS")
		err := j.section("after_script", "Running after_script", func() error {
			limit := j.vars.duration("RUNNER_AFTER_SCRIPT_TIMEOUT", afterTime)
			ctx, cancel := context.WithTimeoutCause(j.whole, limit, fmt.Errorf("after_script took longer than %v", limit))
			defer cancel()
			err := j.runLines(ctx, s.Name, s.Script)
			if err != nil && !fatal && j.whole.Err() == nil {
				j.warn("after_script failed, but the job goes on: %v", err)
			}
			return err
		})
		if err != nil && fatal {
			return err
		}
	}
	return nil
}

// status returns the value of CI_JOB_STATUS for after_script.
func status(err error) string {
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, errCanceled):
		return "canceled"
	}
	return "failed"
}

// runLines runs lines of a script in a new shell.
func (j *job) runLines(ctx context.Context, name string, lines []string) error {
	env, err := j.vars.environ(j.base, j.dir+".tmp")
	if err != nil {
		return err
	}
	if name == releaseStep {
		if env, err = j.releaseProgram(env); err != nil {
			return err
		}
	}
	path := filepath.Join(j.root, name+".sh")
	if err := os.WriteFile(path, []byte(j.r.shell.script(lines, j.vars.is("CI_DEBUG_TRACE"))), 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	p := program{path: j.r.shell.path, args: []string{path}, dir: j.dir, env: env, out: j.out, mark: j.mark, kill: j.r.Pace.Kill}
	return p.run(ctx)
}

// verdict writes the result of the job as the last line of the log.
func (j *job) verdict(err error) {
	switch u := outcome(err); {
	case err == nil:
		j.say("%s", green("Job succeeded"))
	case errors.Is(err, errCanceled), errors.Is(err, errOver):
		j.say("%s", yellow("Job canceled"))
	case errors.Is(err, errTimeout):
		limit := time.Duration(j.RunnerInfo.Timeout) * time.Second
		if j.whole.Err() == nil {
			limit = j.vars.duration("RUNNER_SCRIPT_TIMEOUT", limit)
		}
		j.say("%s", red(fmt.Sprintf("ERROR: Job failed: execution took longer than %v", limit)))
	case u.Reason == "runner_system_failure":
		j.say("%s", red(fmt.Sprintf("ERROR: Job failed (system failure): %v", err)))
	default:
		j.say("%s", red(fmt.Sprintf("ERROR: Job failed: %v", err)))
	}
}
