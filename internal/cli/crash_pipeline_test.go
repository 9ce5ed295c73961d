package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/repo"
	"svc/internal/waittest"
)

// crashCI has stages and needs, a job that is retried, a job that is allowed to
// fail, and artifacts that another job downloads.
const crashCI = `
stages: [build, test, deploy]
compile: {stage: build, script: [x], artifacts: {paths: [out.txt]}}
warn: {stage: build, script: [x], allow_failure: {exit_codes: 3}}
unit: {stage: test, needs: [compile], script: [x]}
flaky: {stage: test, script: [x], dependencies: [], retry: 1}
deploy: {stage: deploy, script: [x], dependencies: [compile]}
`

// The expected ends of a pipeline: its status, and its jobs with all retries,
// ordered by name.
const (
	goodEnd = "success | compile:success deploy:success flaky:failed flaky:success unit:success warn:failed"
	badEnd  = "failed | compile:success deploy:skipped flaky:failed flaky:success unit:failed warn:failed"
)

const (
	crashPipelines = 50
	crashRunners   = 6
	crashAnswers   = 35 // approximate number of responses per successful pipeline
)

// TestKilledPipelines kills the server at random times while runners run fifty
// pipelines. Every job must end in the right state with a complete log, no job may
// run twice, and no data may be left over. SVC_TEST_SEED repeats the random choices
// of a run, SVC_TEST_KILLS makes it longer.
func TestKilledPipelines(t *testing.T) {
	t.Parallel()
	seed, kills := number("SVC_TEST_SEED", time.Now().UnixNano()), int(number("SVC_TEST_KILLS", 5))
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		t.Logf("SVC_TEST_SEED=%d SVC_TEST_KILLS=%d", seed, kills)
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		data := t.TempDir()
		env := []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + src.URL}
		address, process := serve(t, env)
		d := source(src, env).Open(t)
		c := newCrash(d)
		c.want = crashPipelines
		c.lives(address)
		c.losing.Store(true)
		c.prepare(t, address)

		ctx, stop := context.WithCancel(t.Context())
		var busy, makers sync.WaitGroup
		for n := range crashRunners {
			busy.Go(func() { c.work(ctx, n) })
		}
		for n := range 2 {
			makers.Go(func() { c.make(ctx, n) })
		}
		for kill := range kills {
			// A random time in this kill's share of all responses.
			at := int64((float64(kill) + random.Float64()) * crashPipelines * crashAnswers / float64(kills))
			waittest.For(t, "the number of responses for the next kill", func() bool { return c.answers.Load() >= at || c.open(t) == 0 })
			c.losing.Store(kill < kills-1) // lost jobs are expired after the next kill
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = process.Wait()
			c.letPass(t)
			address, process = serve(t, env)
			c.lives(address)
		}
		makers.Wait()
		c.drain(t, data)
		stop()
		busy.Wait()
		c.check(t, address)
		kept := c.count(t, `SELECT count(*) FROM job_artifacts`)
		cut := filesBelow(t, filepath.Join(data, "blobs", "objects", "ci")) - kept
		t.Logf("%d jobs of %d pipelines, %d responses, %d log chunks resent although stored, %d files kept and %d orphaned",
			len(c.runs), c.pipelines(t), c.answers.Load(), c.resent, kept, cut)
		if listed := c.count(t, `SELECT count(*) FROM job_uploads`); cut > listed {
			t.Errorf("%d orphaned files, but only %d will be deleted", cut, listed)
		}
		end(t, process)
	})
}

func number(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func end(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// crash is a project whose pipelines are created by the test and run by the fleet.
type crash struct {
	*fleet
	db        *db.DB
	projectID int64
	project   string // API path of the project

	makes sync.Mutex
	made  map[string]bool // branches by name; whether the push was acknowledged
	asked int
	want  int  // number of pipelines to create
	more  bool // want will be increased
	live  bool // do not wait until logs are packed, which takes two minutes
}

func newCrash(d *db.DB) *crash {
	return &crash{fleet: &fleet{runs: map[int64]*jobRun{}, first: map[int64]int64{}}, db: d, made: map[string]bool{}}
}

// prepare creates the project, its CI/CD configuration and the runner.
func (c *crash) prepare(t *testing.T, address string) {
	t.Helper()
	c.projectID = makeProject(t, address, "busy")
	c.project = fmt.Sprintf("/projects/%d", c.projectID)
	api := address + "/api/v4"
	file, err := json.Marshal(map[string]any{"branch": "main", "commit_message": "[skip ci]", "actions": []any{
		map[string]string{"action": "create", "file_path": ".gitlab-ci.yml", "content": crashCI},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t.Context(), "POST", api+c.project+"/repository/commits", string(file)); status != http.StatusCreated {
		t.Fatalf("commit: %d %s", status, text)
	}
	status, text := ask(t.Context(), "POST", api+"/user/runners", `{"runner_type":"instance_type"}`)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("runner: %d %s %v", status, text, err)
	}
	c.token = made.Token
}

// next waits until another pipeline is wanted. It reports false when no more are
// wanted.
func (c *crash) next(ctx context.Context) bool {
	for ; ctx.Err() == nil; waittest.Pause() {
		c.makes.Lock()
		found, over := c.asked < c.want, !c.more
		if found {
			c.asked++
		}
		c.makes.Unlock()
		if found || over {
			return found
		}
	}
	return false
}

// make creates pipelines, four of five with the API and the fifth with a push, until
// the wanted number is acknowledged. One in three pipelines fails.
func (c *crash) make(ctx context.Context, number int) {
	for i := 0; c.next(ctx); i++ {
		for try := 0; ctx.Err() == nil; try++ {
			fate := []string{"good", "good", "bad"}[i%3]
			path, body := "/pipeline", fmt.Sprintf(`{"ref":"main","variables":[{"key":"FATE","value":%q}]}`, fate)
			branch := ""
			if i%5 == 4 {
				branch = fmt.Sprintf("m%d-%d-%d-%s", number, i, try, fate)
				path, body = "/repository/commits", fmt.Sprintf(`{"branch":%q,"start_branch":"main","commit_message":"go","actions":[{"action":"create","file_path":"f","content":"x"}]}`, branch)
			}
			status, text := ask(ctx, "POST", *c.address.Load()+"/api/v4"+c.project+path, body)
			if status == http.StatusCreated {
				c.makes.Lock()
				c.made[branch] = true
				c.makes.Unlock()
				break
			}
			if status != 0 && status < 500 && ctx.Err() == nil {
				c.fault("make a pipeline: %d %s", status, text)
				return
			}
			waittest.Pause()
		}
	}
}

// letPass simulates that the server was down for five minutes: assignments whose
// response was lost have expired, and nodes consider it dead.
func (c *crash) letPass(t *testing.T) {
	t.Helper()
	const away = 5 * time.Minute
	statements := []string{
		fmt.Sprintf(`UPDATE jobs SET claimed_at = claimed_at - %d WHERE claimed_at IS NOT NULL`, away.Microseconds()),
		`UPDATE river_job SET scheduled_at = datetime(scheduled_at, '-5 minutes') WHERE state IN ('scheduled', 'retryable')`,
	}
	if c.db.Postgres() {
		statements[1] = `UPDATE river_job SET scheduled_at = scheduled_at - INTERVAL '5 minutes' WHERE state IN ('scheduled', 'retryable')`
		statements = append(statements,
			`UPDATE river_client SET updated_at = updated_at - INTERVAL '5 minutes'`,
			`UPDATE river_leader SET elected_at = elected_at - INTERVAL '5 minutes', expires_at = expires_at - INTERVAL '5 minutes'`)
	}
	for _, text := range statements {
		if err := c.db.Tx(t.Context(), func(tx *db.Tx) error { _, err := tx.ExecContext(t.Context(), text); return err }); err != nil {
			t.Fatal(err)
		}
	}
}

// open counts the pipelines that are running or have yet to be created.
func (c *crash) open(t *testing.T) int {
	t.Helper()
	c.makes.Lock()
	n := c.want - c.asked
	c.makes.Unlock()
	return n + c.count(t, `SELECT count(*) FROM pipelines WHERE finished_at IS NULL`)
}

func (c *crash) pipelines(t *testing.T) int { return c.count(t, `SELECT count(*) FROM pipelines`) }

func (c *crash) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := c.db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// drain waits until no pipelines, background jobs and live logs are left at the same
// time, because each may create another.
func (c *crash) drain(t *testing.T, data string) {
	t.Helper()
	// PostgreSQL may commit a transaction of a dead server after letPass. The claim
	// of that transaction then expires after two minutes.
	var left map[string]int
	defer func() {
		if len(left) > 0 {
			t.Logf("not finished: %v", left)
			c.state(t)
		}
	}()
	waittest.For(t, "all pipelines, background jobs and live logs end", func() bool {
		c.interrupt(t)
		left = map[string]int{
			"pipelines that go on": c.open(t),
			"jobs in the queue":    c.count(t, `SELECT count(*) FROM job_queue`),
			"pushes not recorded":  c.count(t, `SELECT count(*) FROM pushes`),
			"claims":               c.count(t, `SELECT count(*) FROM jobs WHERE claimed_at IS NOT NULL AND status = 'pending'`),
			"work":                 c.count(t, `SELECT count(*) FROM river_job WHERE kind <> 'queue.every' AND state NOT IN ('completed', 'cancelled')`),
			"pieces of live logs":  c.count(t, `SELECT count(*) FROM log_chunks`),
			"files of live logs":   filesBelow(t, filepath.Join(data, "logs")),
		}
		if c.live {
			delete(left, "pieces of live logs")
			delete(left, "files of live logs")
		}
		maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
		return len(left) == 0
	})
}

// state logs unfinished background jobs and pipelines, for a test that does not end.
func (c *crash) state(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	t.Logf("errors of runners: %q", c.faults)
	c.mu.Unlock()
	work, err := db.All(context.WithoutCancel(t.Context()), c.db, func(s db.Scanner) (text string, err error) {
		var kind, state, args string
		err = s.Scan(&kind, &state, &args)
		return kind + " is " + state + ": " + args, err
	}, `SELECT kind, CAST(state AS TEXT), CAST(args AS TEXT) FROM river_job WHERE kind <> 'queue.every' AND state NOT IN ('completed', 'cancelled')`)
	t.Logf("background jobs: %q, %v", work, err)
	jobs, err := db.All(context.WithoutCancel(t.Context()), c.db, func(s db.Scanner) (text string, err error) {
		var pipeline int64
		var job, runner, claimed, heard *int64
		var status string
		var name, state *string
		err = s.Scan(&pipeline, &status, &job, &name, &state, &runner, &claimed, &heard)
		shown, _ := json.Marshal([]any{job, name, state, "runner", runner, "claimed", claimed, "heard", heard})
		return fmt.Sprintf("pipeline %d is %s: %s", pipeline, status, shown), err
	}, `SELECT p.id, p.status, j.id, j.name, j.status, j.runner_id, j.claimed_at, j.heard_at
		FROM pipelines p LEFT JOIN jobs j ON j.pipeline_id = p.id WHERE p.finished_at IS NULL ORDER BY p.id, j.id`)
	t.Logf("pipelines at %d: %q, %v", time.Now().UnixMicro(), jobs, err)
}

// interrupt makes pushes that were started more than a minute ago ten minutes older.
// Their clients are gone, and if no ref has moved, nodes wait that long before they
// drop them.
func (c *crash) interrupt(t *testing.T) {
	t.Helper()
	err := c.db.Tx(t.Context(), func(tx *db.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE pushes SET created_at = created_at - ? WHERE created_at <= ?`, repo.SettleAge.Microseconds(), time.Now().Add(-time.Minute))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func filesBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check compares the results of all pipelines with the expected ones.
func (c *crash) check(t *testing.T, address string) {
	t.Helper()
	for _, fault := range c.faults {
		t.Error(fault)
	}
	rows, err := db.All(t.Context(), c.db, scanCrashed, `
		SELECT p.id, p.ref, p.status, j.id, j.name, j.status FROM pipelines p LEFT JOIN jobs j ON j.pipeline_id = p.id WHERE p.status <> 'skipped' AND p.project_id = ? ORDER BY p.id, j.name, j.id`, c.projectID)
	if err != nil {
		t.Fatal(err)
	}
	ends, refs := map[int64]string{}, map[string]int{}
	for _, r := range rows {
		if ends[r.pipeline] == "" {
			ends[r.pipeline] = r.status + " |"
			refs[r.ref]++
		}
		ends[r.pipeline] += " " + r.name + ":" + r.state
		c.checkJob(t, address, r)
	}
	for id, got := range ends {
		if got != goodEnd && got != badEnd {
			t.Errorf("pipeline %d ended as\n\t%s", id, got)
		}
	}
	for branch := range c.made {
		if branch != "" && refs[branch] != 1 {
			t.Errorf("%d pipelines were created for the push to %s", refs[branch], branch)
		}
	}
	if refs["main"] < c.want*4/5 {
		t.Errorf("%d pipelines for main", refs["main"])
	}
	known := make([]int64, 0, len(rows))
	for _, r := range rows {
		known = append(known, r.job)
	}
	for id, run := range c.runs {
		if run.project == c.projectID && !slices.Contains(known, id) {
			t.Errorf("job %d %s does not exist any more", id, run.name)
		}
	}
}

type crashed struct {
	pipeline, job            int64
	ref, status, name, state string
}

func scanCrashed(s db.Scanner) (r crashed, err error) {
	err = s.Scan(&r.pipeline, &r.ref, &r.status, &r.job, &r.name, &r.state)
	return r, err
}

// checkJob compares a job and its log with what the server acknowledged to its
// runner.
func (c *crash) checkJob(t *testing.T, address string, r crashed) {
	t.Helper()
	run := c.runs[r.job]
	if r.state == "skipped" {
		if run != nil {
			t.Errorf("job %d %s was run but has the status skipped", r.job, r.name)
		}
		return
	}
	if run == nil || run.state != r.state {
		t.Errorf("job %d %s is %s, but its runner has recorded %+v", r.job, r.name, r.state, run)
		return
	}
	at := fmt.Sprintf("%s/api/v4%s/jobs/%d", address, c.project, r.job)
	if status, text := ask(t.Context(), "GET", at+"/trace", ""); status != http.StatusOK || text != run.log {
		t.Errorf("log of job %d %s: %d, %d bytes of %d", r.job, r.name, status, len(text), len(run.log))
	}
	if r.name != "compile" {
		return
	}
	if status, text := ask(t.Context(), "GET", at+"/artifacts/out.txt", ""); status != http.StatusOK || strings.TrimSpace(text) != artifactOf(r.job) {
		t.Errorf("artifacts of job %d: %d %q", r.job, status, text)
	}
}
