package runner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// getSources fetches the commit of the job into the working tree. The directory is
// new for each job, so the strategies "clone" and "fetch" are the same.
func (j *job) getSources() error {
	for _, h := range j.Hooks {
		if h.Name == "pre_get_sources_script" {
			if err := j.runLines(j.main, h.Name, h.Script); err != nil {
				return err
			}
		}
	}
	switch strategy := j.vars.get("GIT_STRATEGY"); strategy {
	case "none", "empty":
		j.say("No source is fetched: GIT_STRATEGY is %s", strategy)
		return nil
	case "", "fetch", "clone":
	default:
		return fmt.Errorf("GIT_STRATEGY %q is none of clone, fetch, none, empty", strategy)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return fmt.Errorf("look for git: %w", err)
	}
	return j.attempt(j.vars.attempts("GET_SOURCES_ATTEMPTS", 3), func() error { return j.fetch(git) })
}

// attempt calls do until it succeeds, at most the given number of times. It does not
// retry errRefused.
func (j *job) attempt(times int, do func() error) error {
	wait := backoff{first: 2 * j.r.Pace.Retry, most: 8 * time.Second}
	for n := 1; ; n++ {
		err := do()
		if err == nil || n >= times || j.main.Err() != nil || errors.Is(err, errRefused) {
			return err
		}
		j.warn("%v; trying again", err)
		if !wait.pause(j.main) {
			return context.Cause(j.main)
		}
	}
}

func (j *job) fetch(git string) error {
	env, err := j.vars.environ(j.base, j.dir+".tmp")
	if err != nil {
		return err
	}
	address, err := j.cloneURL()
	if err != nil {
		return err
	}
	env = append(env, j.gitEnv(address)...)
	run := func(args ...string) error {
		p := program{path: git, args: args, dir: j.dir, env: env, out: j.out, mark: j.mark, kill: j.r.Pace.Kill}
		err := p.run(j.main)
		if exit, ok := errors.AsType[*exitError](err); ok { // not an exit status of the script
			return fmt.Errorf("git: %s", exit)
		}
		return err
	}
	if err := j.initialize(run, address); err != nil {
		return err
	}
	depth := j.GitInfo.Depth
	if n, err := strconv.Atoi(j.vars.get("GIT_DEPTH")); err == nil && n >= 0 {
		depth = n
	}
	flags := strings.Fields(j.vars.get("GIT_FETCH_EXTRA_FLAGS"))
	if len(flags) == 0 {
		flags = []string{"--prune", "--quiet"}
	}
	args := append([]string{"fetch", "--no-recurse-submodules", "--no-auto-maintenance"}, flags...)
	if depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth))
		j.say("Fetching changes with a depth of %d", depth)
	} else {
		j.say("Fetching changes")
	}
	if err := run(append(append(args, "origin"), j.GitInfo.Refspecs...)...); err != nil {
		return err
	}
	if checkout := j.vars.get("GIT_CHECKOUT"); checkout != "" && !j.vars.is("GIT_CHECKOUT") {
		j.say("Nothing is checked out: GIT_CHECKOUT is %s", checkout)
	} else {
		j.say("Checking out %.8s as detached HEAD (ref is %s)", j.GitInfo.SHA, j.GitInfo.Ref)
		if err := run("-c", "advice.detachedHead=false", "checkout", "--force", "--quiet", "--detach", j.GitInfo.SHA); err != nil {
			return err
		}
	}
	if err := j.submodules(run, depth); err != nil {
		return err
	}
	return j.largeFiles(run)
}

// largeFiles replaces Git LFS pointers with their files, if git-lfs is installed.
// The filters stay configured, so that the files count as unchanged.
func (j *job) largeFiles(run func(...string) error) error {
	if _, err := exec.LookPath("git-lfs"); err != nil || j.vars.is("GIT_LFS_SKIP_SMUDGE") {
		return nil
	}
	if run("grep", "--quiet", "-e", "filter=lfs", "--", ":(glob)**/.gitattributes") != nil {
		return nil // no file is tracked
	}
	j.say("Fetching LFS objects")
	if err := run("lfs", "install", "--local", "--skip-repo"); err != nil {
		return err
	}
	if err := run("lfs", "pull"); err != nil {
		return err
	}
	if strategy := j.vars.get("GIT_SUBMODULE_STRATEGY"); strategy == "normal" || strategy == "recursive" {
		return run("submodule", "--quiet", "foreach", "--recursive", "git lfs pull")
	}
	return nil
}

// initialize creates the repository. The URL of its origin contains the token, so
// it is written to a file and not passed as an argument, which other users can
// read.
func (j *job) initialize(run func(...string) error, address string) error {
	if _, err := os.Lstat(filepath.Join(j.dir, ".git")); err == nil { // left by a failed attempt
		if err := errors.Join(removeAll(j.dir), os.MkdirAll(j.dir, 0o700)); err != nil {
			return err
		}
	}
	args := []string{"-c", "init.defaultBranch=none", "init", "--quiet", "--template="}
	if j.GitInfo.RepoObjectFormat != "" {
		args = append(args, "--object-format="+j.GitInfo.RepoObjectFormat)
	}
	if err := run(args...); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(j.dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("set the origin: %w", err)
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	_, err = fmt.Fprintf(f, "[remote \"origin\"]\n\turl = \"%s\"\n", escape.Replace(address))
	return errors.Join(err, f.Close())
}

// cloneURL returns the URL from which the repository is fetched.
func (j *job) cloneURL() (string, error) {
	if j.r.CloneURL == "" {
		return j.GitInfo.RepoURL, nil
	}
	from, err := url.Parse(j.GitInfo.RepoURL)
	if err != nil {
		return "", errors.New("the address of the repository is none") // err may contain the token
	}
	at, err := url.Parse(j.r.CloneURL)
	if err != nil {
		return "", fmt.Errorf("clone URL: %w", err)
	}
	// If the instance has a relative URL, the path of the repository starts with it.
	if own, err := url.Parse(j.vars.get("CI_SERVER_URL")); err == nil {
		from.Path = strings.TrimPrefix(from.Path, strings.TrimSuffix(own.Path, "/"))
	}
	from.Scheme, from.Host, from.Path = at.Scheme, at.Host, strings.TrimSuffix(at.Path, "/")+from.Path
	from.RawPath = ""
	return from.String(), nil
}

// gitEnv returns the git configuration for the fetch as environment variables.
// Arguments could be read by other users: submodules on the same server are
// fetched with the token.
func (j *job) gitEnv(address string) []string {
	env := []string{"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "GCM_INTERACTIVE=never"}
	n, err := strconv.Atoi(j.vars.get("GIT_CONFIG_COUNT"))
	if err != nil || n < 0 {
		n = 0
	}
	set := func(key, value string) {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
		n++
	}
	set("credential.helper", "") // the token must not be stored
	if at, err := url.Parse(address); err == nil && at.User != nil {
		with := url.URL{Scheme: at.Scheme, User: at.User, Host: at.Host, Path: "/"}
		without := url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/"}
		set("url."+with.String()+".insteadOf", without.String())
		if own := j.vars.get("CI_SERVER_URL"); own != "" && own+"/" != without.String() {
			set("url."+with.String()+".insteadOf", strings.TrimSuffix(own, "/")+"/")
		}
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}

func (j *job) submodules(run func(...string) error, depth int) error {
	strategy := j.vars.get("GIT_SUBMODULE_STRATEGY")
	var recursive []string
	switch strategy {
	case "", "none":
		return nil
	case "recursive":
		recursive = []string{"--recursive"}
	case "normal":
	default:
		return fmt.Errorf("GIT_SUBMODULE_STRATEGY %q is none of none, normal, recursive", strategy)
	}
	j.say("Updating submodules")
	if n, err := strconv.Atoi(j.vars.get("GIT_SUBMODULE_DEPTH")); err == nil && n >= 0 {
		depth = n
	}
	if err := run(append([]string{"submodule", "--quiet", "sync"}, recursive...)...); err != nil {
		return err
	}
	args := append([]string{"submodule", "--quiet", "update", "--init"}, recursive...)
	if depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth))
	}
	args = append(args, strings.Fields(j.vars.get("GIT_SUBMODULE_UPDATE_FLAGS"))...)
	if paths := strings.Fields(j.vars.get("GIT_SUBMODULE_PATHS")); len(paths) > 0 {
		args = append(append(args, "--"), paths...)
	}
	return run(args...)
}
