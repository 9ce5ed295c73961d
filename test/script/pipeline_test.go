package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"svc/internal/app/apptest"
)

// TestPipelines runs the CI/CD scenarios: real pushes, and jobs that a simulated
// runner runs with the API of runners.
func TestPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) { run(t, s, "testdata/ci") }, apptest.SSH)
}

// runnerOf returns the runner of a script.
func runnerOf(ts *testscript.TestScript) *runner {
	r, _ := ts.Value("runner").(*runner)
	if r == nil || r.token == "" {
		ts.Fatalf("there is no runner: use the command runner first")
	}
	return r
}

// runner PROJECT... creates a runner for the jobs of the projects, as the user that
// the command "as" has selected.
func (c command) runner(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: runner PROJECT...")
	}
	r := ts.Value("runner").(*runner)
	var made struct {
		ID    int64
		Token string
	}
	c.ask(ts, "POST /user/runners", fmt.Sprintf(`{"runner_type":"project_type","project_id":%d,"run_untagged":true,"tag_list":["shell"]}`, c.projectID(ts, args[0])), &made)
	for _, more := range args[1:] {
		c.ask(ts, "POST /projects/"+url.PathEscape(more)+"/runners", fmt.Sprintf(`{"runner_id":%d}`, made.ID), nil)
	}
	r.url, r.token, r.dir, r.seen = c.URL+"/api/v4", made.Token, ts.MkAbs(ts.Getenv("WORK")), map[string]*work{}
}

// take requests all pending jobs, which are running then.
func (c command) take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: take")
	}
	c.settle(ts)
	ts.Check(runnerOf(ts).takeJobs())
}

// work [NAME...] requests all pending jobs and runs the named ones; without names,
// it runs all jobs, including following ones, until none is pending.
func (c command) work(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: work [NAME...]")
	}
	r := runnerOf(ts)
	c.take(ts, false, nil)
	for _, name := range args {
		j := r.drop(name)
		if j == nil {
			ts.Fatalf("job %s was not given to the runner", name)
		}
		ts.Check(r.run(j))
	}
	for len(args) == 0 && len(r.held) > 0 {
		ts.Check(r.run(r.drop(r.held[0].JobInfo.Name)))
		if len(r.held) == 0 {
			c.take(ts, false, nil)
		}
	}
	c.settle(ts)
}

// fail NAME REASON requests all pending jobs and ends one of them with a failure
// reason, without running its script. With "!" the server must reject the failure.
func (c command) fail(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] fail NAME REASON")
	}
	r := runnerOf(ts)
	c.take(ts, false, nil)
	j := r.drop(args[0])
	if j == nil {
		ts.Fatalf("job %s was not given to the runner", args[0])
	}
	err := r.finish(j, "", 1, args[1])
	if neg {
		if err == nil || !strings.Contains(err.Error(), "status 403") {
			ts.Fatalf("the end of %s was taken: %v", args[0], err)
		}
		err = nil
	}
	ts.Check(err)
	c.settle(ts)
}

// variable JOB KEY prints a variable as the runner received it: its value, then its
// flags.
func (c command) variable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: variable JOB KEY")
	}
	j := runnerOf(ts).seen[args[0]]
	if j == nil {
		ts.Fatalf("job %s was not given to the runner", args[0])
	}
	for _, v := range j.Variables {
		if v.Key != args[1] {
			continue
		}
		fmt.Fprint(ts.Stdout(), v.Value)
		for _, flag := range []struct {
			on   bool
			name string
		}{{v.Public, "public"}, {v.File, "file"}, {v.Masked, "masked"}, {v.Raw, "raw"}} {
			if flag.on {
				fmt.Fprint(ts.Stdout(), " ", flag.name)
			}
		}
		fmt.Fprintln(ts.Stdout())
	}
}

// pipeline PROJECT QUERY WANT compares the newest pipeline in the list with a query
// with "status | job:status …", with jobs and trigger jobs ordered by name, or with
// "none". It sets $pipeline to the ID of the pipeline, and $job_NAME to the ID of
// each job.
func (c command) pipeline(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pipeline PROJECT QUERY WANT")
	}
	c.settle(ts)
	at := "/projects/" + url.PathEscape(args[0])
	var found []struct {
		ID     int64
		Status string
	}
	c.ask(ts, "GET "+at+"/pipelines?per_page=1&"+args[1], "", &found)
	got := "none"
	if len(found) == 1 {
		var jobs []string
		for _, kind := range []string{"jobs", "bridges"} {
			var list []struct {
				ID           int64
				Name, Status string
			}
			c.ask(ts, fmt.Sprintf("GET %s/pipelines/%d/%s?per_page=100", at, found[0].ID, kind), "", &list)
			for _, j := range list {
				jobs = append(jobs, j.Name+":"+j.Status)
				ts.Setenv("job_"+strings.Map(letters, j.Name), strconv.FormatInt(j.ID, 10))
			}
		}
		slices.Sort(jobs)
		got = strings.TrimSpace(found[0].Status + " | " + strings.Join(jobs, " "))
		ts.Setenv("pipeline", strconv.FormatInt(found[0].ID, 10))
		ts.Setenv("project", args[0])
	}
	if got != args[2] {
		ts.Fatalf("the pipeline is\n\t%s, want\n\t%s", got, args[2])
	}
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '_'
}

// log NAME prints the log of a job of the last compared pipeline.
func (c command) log(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: log NAME")
	}
	id := ts.Getenv("job_" + strings.Map(letters, args[0]))
	c.api(ts, false, []string{ts.Getenv("me"), "GET /projects/" + url.PathEscape(ts.Getenv("project")) + "/jobs/" + id + "/trace", "200"})
}

// tick PROJECT DURATION makes the timestamps of a project older and runs what is
// due. It does not move the clock, because other scripts use it.
func (c command) tick(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tick PROJECT DURATION")
	}
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	id := c.projectID(ts, args[0])
	for _, query := range []string{
		`UPDATE jobs SET scheduled_at = scheduled_at - ? WHERE project_id = ? AND scheduled_at IS NOT NULL`,
		`UPDATE environments SET auto_stop_at = auto_stop_at - ? WHERE project_id = ? AND auto_stop_at IS NOT NULL`,
	} {
		_, err := c.DB.ExecContext(context.Background(), query, d.Microseconds(), id)
		ts.Check(err)
	}
	ts.Check(c.CI.Sweep(context.Background()))
	c.settle(ts)
}

// settle waits until the background jobs have run.
func (c command) settle(ts *testscript.TestScript) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ts.Check(c.Queue.Idle(ctx))
}

// let NAME PATH sets a variable to a value of the JSON that was printed last, such
// as 0.id.
func (c command) let(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: let NAME PATH")
	}
	ts.Setenv(args[0], valueAt(ts, args[1]))
}

// is PATH VALUE compares a value in the JSON that was printed last: strings and
// numbers as text, everything else as JSON.
func (c command) is(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: is PATH VALUE")
	}
	if got := valueAt(ts, args[0]); (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

func valueAt(ts *testscript.TestScript, path string) string {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	var at any
	if err := d.Decode(&at); err != nil {
		ts.Fatalf("no JSON was printed: %v", err)
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			if step == "length" {
				at = len(v)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: no element %s in %v", path, step, v)
			}
			at = v[i]
		default:
			ts.Fatalf("%s: nothing below %v", path, at)
		}
	}
	switch v := at.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	text, err := json.Marshal(at)
	ts.Check(err)
	return string(text)
}

var done = regexp.MustCompile(`^20[0-9]$`)

// ask sends a request as the user that the command "as" has selected.
func (c command) ask(ts *testscript.TestScript, do, body string, into any) {
	status, text := c.exchange(ts, ts.Getenv("me"), do, body)
	if !done.MatchString(strconv.Itoa(status)) {
		ts.Fatalf("%s: status %d: %s", do, status, text)
	}
	if into != nil {
		ts.Check(json.Unmarshal(text, into))
	}
}

func (c command) projectID(ts *testscript.TestScript, path string) int64 {
	var p struct{ ID int64 }
	c.ask(ts, "GET /projects/"+url.PathEscape(path), "", &p)
	return p.ID
}
