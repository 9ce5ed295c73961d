package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/runner"
	"svc/internal/waittest"
)

// TestRunner runs jobs of a complete server.
func TestRunner(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		for name, test := range map[string]func(*testing.T, *apptest.Server){
			"pipeline": testPipeline, "stop": testStop, "shutdown": testShutdown, "token": testToken, "sources": testSources,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
}

// fixture is a server with a project and a runner for this project.
type fixture struct {
	t       *testing.T
	s       *apptest.Server
	project int64
	dir     string // where jobs write files that tests check
	halt    func() // stops the runner, and waits for it
}

// quick are times for tests.
func quick() runner.Pace {
	return runner.Pace{
		Poll: 50 * time.Millisecond, Ask: 50 * time.Millisecond, Kill: 300 * time.Millisecond, Grace: 100 * time.Millisecond,
		Finish: time.Minute, Last: time.Minute, Retry: 20 * time.Millisecond,
	}
}

// newFixture creates a project with a name, and a runner for this project only.
func newFixture(t *testing.T, s *apptest.Server, name string, files ...gittest.Change) *fixture {
	t.Helper()
	g := &fixture{t: t, s: s, dir: t.TempDir()}
	var made struct {
		ID    int64
		Token string
	}
	s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: fmt.Sprintf(`{"name":%q}`, name), Status: 201}).JSON(t, &made)
	g.project = made.ID
	s.Repository(t, g.project, gittest.Commit{Changes: files})
	s.Check(t, apptest.Call{
		Do: "POST /user/runners", As: apptest.RootToken, JSON: fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, g.project), Status: 201,
	}).JSON(t, &made)
	r, err := runner.New(runner.Deps{
		URL: s.URL, Token: made.Token, Dir: t.TempDir(), Concurrency: 4, Environ: append(os.Environ(), "SVC_ROOT_TOKEN=do-not-show"),
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Pace: quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	g.halt = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("runner: %v", err)
		}
	})
	t.Cleanup(g.halt)
	return g
}

func (g *fixture) at(path string, args ...any) string {
	return fmt.Sprintf("/projects/%d", g.project) + fmt.Sprintf(path, args...)
}

// pipeline starts a pipeline with variables and returns its ID.
func (g *fixture) pipeline(variables map[string]string) int64 {
	g.t.Helper()
	list := []map[string]string{{"key": "OUT", "value": g.dir}}
	for key, value := range variables {
		list = append(list, map[string]string{"key": key, "value": value})
	}
	body, err := json.Marshal(map[string]any{"ref": "main", "variables": list})
	if err != nil {
		g.t.Fatal(err)
	}
	var made struct{ ID int64 }
	g.s.Check(g.t, apptest.Call{Do: "POST " + g.at("/pipeline"), As: apptest.RootToken, JSON: string(body), Status: 201}).JSON(g.t, &made)
	if made.ID == 0 {
		g.t.FailNow()
	}
	return made.ID
}

// run is a job in the representation of the API.
type run struct {
	ID            int64
	Name          string
	Status        string
	FailureReason string `json:"failure_reason"`
	Artifacts     []struct {
		FileType string `json:"file_type"`
	}
}

// jobs returns the jobs of a pipeline by name, without retried jobs.
func (g *fixture) jobs(pipeline int64) map[string]run {
	g.t.Helper()
	var list []run
	g.s.Check(g.t, apptest.Call{Do: "GET " + g.at("/pipelines/%d/jobs", pipeline), As: apptest.RootToken, Status: 200}).JSON(g.t, &list)
	byName := map[string]run{}
	for _, j := range list {
		byName[j.Name] = j
	}
	return byName
}

// until waits until a condition is true.
func (g *fixture) until(what string, is func() bool) {
	g.t.Helper()
	waittest.For(g.t, what, is)
}

// await waits until a pipeline is finished, checks its status and returns its jobs.
func (g *fixture) await(pipeline int64, status string) map[string]run {
	g.t.Helper()
	var p struct{ Status string }
	over := []string{"success", "failed", "canceled", "manual"}
	g.until("pipeline", func() bool {
		g.s.Check(g.t, apptest.Call{Do: "GET " + g.at("/pipelines/%d", pipeline), As: apptest.RootToken, Status: 200}).JSON(g.t, &p)
		return slices.Contains(over, p.Status)
	})
	jobs := g.jobs(pipeline)
	if p.Status != status {
		g.t.Errorf("pipeline is %s, want %s: %+v", p.Status, status, jobs)
		for _, j := range jobs {
			g.t.Logf("%s:\n%s", j.Name, g.log(j.ID))
		}
	}
	return jobs
}

func (g *fixture) log(job int64) string {
	g.t.Helper()
	return string(g.s.Send(g.t, apptest.Call{Do: "GET " + g.at("/jobs/%d/trace", job), As: apptest.RootToken}).Body)
}

// wants checks that the log of a job contains texts. Texts that start with "!" must
// not occur.
func (g *fixture) wants(job run, texts ...string) {
	g.t.Helper()
	log := g.log(job.ID)
	for _, text := range texts {
		not, forbidden := strings.CutPrefix(text, "!")
		if strings.Contains(log, not) == forbidden {
			g.t.Errorf("log of %s, looking for %q:\n%s", job.Name, text, log)
		}
	}
}

func (g *fixture) wrote(name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	return strings.TrimSpace(string(text)), err == nil
}

const flowFile = `
stages: [build, test, end]
variables: {GREETING: "hello $NAME", NAME: world}
workflow: {rules: [{if: '$KIND == "flow"'}, {when: never}]}

build:
  stage: build
  cache: {key: "deps-$CI_COMMIT_REF_SLUG", paths: [deps/]}
  before_script: ["echo before > order"]
  script:
    - mkdir -p out deps && echo "$GREETING" > out/greeting && ln -s greeting out/link && echo skip > out/skip.tmp
    - echo cached >> deps/count
    - echo "VERSION=1.2.3" > build.env
    - |
      if true; then
        cat order
      fi
    - echo "$PASSWORD and ${PASSWORD%????} end"
    - cat "$CONFIG" && env | sort
    - echo "dir $CI_PROJECT_DIR status $CI_JOB_STATUS"
  after_script:
    - echo "after $CI_JOB_STATUS" && ls order && false
  artifacts:
    paths: [out/, "$NAME.txt"]
    exclude: ["out/*.tmp"]
    reports: {dotenv: build.env}

other: {stage: build, script: ["exit 3"], allow_failure: {exit_codes: [3]}}

flaky:
  stage: build
  retry: {max: 1, exit_codes: [7]}
  script: ["test -e $OUT/tried || { touch $OUT/tried; exit 7; }"]

container: {stage: build, image: ruby, services: [postgres], variables: {GIT_STRATEGY: none}, script: [ls -A, pwd]}

fallback:
  stage: test
  needs: [build]
  variables: {CACHE_FALLBACK_KEY: deps-main-protected}
  cache: {key: nothing, paths: [deps/], policy: pull}
  script: ["test ! -e deps"]

test:
  stage: test
  needs: [build]
  cache: {key: nothing, fallback_keys: ["deps-$CI_COMMIT_REF_SLUG"], paths: [deps/], policy: pull}
  script:
    - test "$(cat out/link)" = "hello world"
    - test ! -e out/skip.tmp
    - test "$VERSION" = 1.2.3
    - test "$(git rev-parse HEAD)" = "$CI_COMMIT_SHA"
    - cat deps/count
    - sh ./junit.sh > report.xml
    - exit 4
  artifacts: {when: on_failure, paths: [report.xml], reports: {junit: report.xml}}
`

const junitFile = `echo '<testsuite name="s"><testcase name="one"/><testcase name="two"><failure>no</failure></testcase></testsuite>'`

// testPipeline runs jobs that pass artifacts and caches to each other.
func testPipeline(t *testing.T, s *apptest.Server) {
	g := newFixture(t, s, "flow", gittest.Change{Path: ".gitlab-ci.yml", Content: flowFile}, gittest.Change{Path: "junit.sh", Content: junitFile})
	for _, v := range []string{
		`{"key":"PASSWORD","value":"correct-horse-battery","masked":true}`,
		`{"key":"CONFIG","value":"file content\n","variable_type":"file"}`,
	} {
		s.Check(t, apptest.Call{Do: "POST " + g.at("/variables"), As: apptest.RootToken, JSON: v, Status: 201})
	}
	s.Check(t, apptest.Call{Do: "POST " + g.at("/protected_branches"), As: apptest.RootToken, JSON: `{"name":"main"}`, Status: 201}) // for its caches
	first := g.pipeline(map[string]string{"KIND": "flow"})
	jobs := g.await(first, "failed")
	for name, want := range map[string]string{"build": "success", "other": "failed", "flaky": "success", "container": "success", "fallback": "success", "test": "failed"} {
		if jobs[name].Status != want {
			t.Errorf("%s is %s, want %s:\n%s", name, jobs[name].Status, want, g.log(jobs[name].ID))
		}
	}
	if reason := jobs["test"].FailureReason; reason != "script_failure" {
		t.Errorf("test failed for %s", reason)
	}
	g.wants(jobs["build"],
		"\x1b[32;1m$ echo before > order\x1b[0;m\n", "\x1b[32;1m$ if true; then # collapsed multi-line command\x1b[0;m\nbefore\n",
		"[MASKED] and correct-horse-bat end", "!correct-horse-battery", "file content", "CONFIG=/", "!do-not-show", "CI_JOB_TOKEN=[MASKED]",
		":step_script\r\x1b[0K", "section_end:", "status running", "after success\norder\n", "WARNING: after_script failed",
		"WARNING: world.txt: no matching files", "Job succeeded", "Cache deps-main-protected")
	g.wants(jobs["container"], "asks for the image ruby", "asks for the service postgres", "Job succeeded", "$ ls -A\x1b[0;m\n\x1b[32;1m$ pwd")
	g.wants(jobs["fallback"], "WARNING: CACHE_FALLBACK_KEY is ignored", "!Cache deps-main-protected")
	g.wants(jobs["other"], "ERROR: Job failed: exit status 3")
	g.wants(jobs["test"], "Downloading artifacts", "cached\n", "ERROR: Job failed: exit status 4", "Uploaded junit")
	var types []string
	for _, a := range jobs["test"].Artifacts {
		types = append(types, a.FileType)
	}
	if !slices.Contains(types, "archive") || !slices.Contains(types, "junit") {
		t.Errorf("artifacts of test: %v", types)
	}
	var tries []run
	s.Check(t, apptest.Call{Do: "GET " + g.at("/pipelines/%d/jobs?include_retried=true&scope[]=failed", first), As: apptest.RootToken, Status: 200}).JSON(t, &tries)
	if !slices.ContainsFunc(tries, func(j run) bool { return j.Name == "flaky" && j.FailureReason == "script_failure" }) {
		t.Errorf("flaky did not fail first: %+v", tries)
	}
	again := g.await(g.pipeline(map[string]string{"KIND": "flow"}), "failed")
	g.wants(again["test"], "cached\ncached\n") // the cache was restored
}

const stopFile = `
workflow: {rules: [{if: $KIND}]}
sleeper:
  rules: [{if: '$KIND == "cancel"'}]
  script:
    - sh -c 'trap "" TERM; echo $$ > $OUT/stubborn; while :; do sleep 1; done' &
    - setsid sh -c 'echo $$ > $OUT/away; sleep 300' &
    - sleep 300 & echo $! > $OUT/child; wait
  after_script: ['echo "$CI_JOB_STATUS" > $OUT/after']
slow:
  rules: [{if: '$KIND == "timeout"'}]
  timeout: 1 second
  script: ['sleep 300 & echo $! > $OUT/late; wait']
  after_script: ['touch $OUT/wrong']
`

// testStop stops running jobs and checks that none of their processes are left.
func testStop(t *testing.T, s *apptest.Server) {
	g := newFixture(t, s, "stop", gittest.Change{Path: ".gitlab-ci.yml", Content: stopFile})
	canceled, late := g.pipeline(map[string]string{"KIND": "cancel"}), g.pipeline(map[string]string{"KIND": "timeout"})
	names := []string{"stubborn", "away", "child"}
	g.until("processes", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { text, _ := g.wrote(name); return text == "" })
	})
	s.Check(t, apptest.Call{Do: "POST " + g.at("/jobs/%d/cancel", g.jobs(canceled)["sleeper"].ID), As: apptest.RootToken, Status: 201})
	j := g.await(canceled, "canceled")["sleeper"]
	g.until("the last line", func() bool { return strings.Contains(g.log(j.ID), "Job canceled") })
	if text, _ := g.wrote("after"); text != "canceled" {
		t.Errorf("after_script saw %q", text)
	}
	slow := g.await(late, "failed")["slow"]
	if slow.FailureReason != "job_execution_timeout" {
		t.Errorf("slow failed for %s", slow.FailureReason)
	}
	g.wants(slow, "ERROR: Job failed: execution took longer than 1s")
	for _, name := range append(names, "late") {
		text, _ := g.wrote(name)
		if name == "late" && text == "" {
			continue // on a busy machine the job timed out before its process started
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		g.until(name, func() bool { return !runner.Alive(pid) })
	}
	if _, there := g.wrote("wrong"); there {
		t.Error("after_script ran after the time was over")
	}
}

// testShutdown stops a runner while a job is running.
func testShutdown(t *testing.T, s *apptest.Server) {
	g := newFixture(t, s, "shutdown", gittest.Change{Path: ".gitlab-ci.yml", Content: `slow: {script: ["echo begun > $OUT/begun", "sleep 300"]}`})
	p := g.pipeline(nil)
	g.until("the job", func() bool { text, _ := g.wrote("begun"); return text != "" })
	g.halt()
	j := g.await(p, "failed")["slow"]
	if j.FailureReason != "runner_system_failure" {
		t.Errorf("it failed for %s", j.FailureReason)
	}
	g.wants(j, "$ sleep 300", "ERROR: Job failed (system failure): the runner was stopped")
}

// testToken checks that a runner with an invalid token does not run.
func testToken(t *testing.T, s *apptest.Server) {
	r, err := runner.New(runner.Deps{
		URL: s.URL, Token: "glrt-wrong", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Now: time.Now, Pace: quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, runner.ErrToken) {
		t.Errorf("got %v", err)
	}
}
