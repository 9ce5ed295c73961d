package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// namedJobs is a server whose jobs the test ends individually, by name.
type namedJobs struct {
	*bench
	held map[string]*assigned
}

func newNamedJobs(t testing.TB, s *apptest.Server, yaml string) *namedJobs {
	t.Helper()
	return &namedJobs{newBench(t, s, yaml), map[string]*assigned{}}
}

// push commits files to a branch and returns its latest pipeline, or 0 if there is
// none.
func (w *namedJobs) push(branch, message string, files map[string]string) int64 {
	w.t.Helper()
	return w.pushTo(w.project, branch, message, files)
}

func (w *namedJobs) pushTo(project int64, branch, message string, files map[string]string) int64 {
	w.t.Helper()
	type action struct {
		Action   string `json:"action"`
		FilePath string `json:"file_path"`
		Content  string `json:"content"`
	}
	body := struct {
		Branch  string   `json:"branch"`
		Start   string   `json:"start_branch,omitempty"`
		Message string   `json:"commit_message"`
		Actions []action `json:"actions"`
	}{Branch: branch, Message: message}
	at := fmt.Sprintf("/projects/%d", project)
	if a := w.s.Send(w.t, apptest.Call{Do: "GET " + at + "/repository/branches/" + branch, As: w.owner}); a.Status == 404 {
		body.Start = "main"
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		do := "create"
		if a := w.s.Send(w.t, apptest.Call{Do: "HEAD " + at + "/repository/files/" + strings.ReplaceAll(path, "/", "%2F") + "?ref=main", As: w.owner}); a.Status == 200 {
			do = "update"
		}
		body.Actions = append(body.Actions, action{do, path, files[path]})
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	var made struct{ ID string }
	w.s.Check(w.t, apptest.Call{Do: "POST " + at + "/repository/commits", As: w.owner, JSON: string(text), Status: 201}).JSON(w.t, &made)
	w.settled()
	var list []struct{ ID int64 }
	w.s.Check(w.t, apptest.Call{Do: "GET " + at + "/pipelines?sha=" + made.ID, As: w.owner, Status: 200}).JSON(w.t, &list)
	if len(list) == 0 {
		return 0
	}
	return list[0].ID
}

// statesIn returns the jobs of a pipeline, including trigger jobs, with their
// states, sorted by name: "a:success b:created".
func (w *namedJobs) statesIn(project, pipeline int64) string {
	w.t.Helper()
	var all []string
	for _, kind := range []string{"jobs", "bridges"} {
		var list []struct{ Name, Status string }
		w.s.Check(w.t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pipelines/%d/%s?per_page=100", project, pipeline, kind), As: w.owner, Status: 200}).JSON(w.t, &list)
		for _, j := range list {
			all = append(all, j.Name+":"+j.Status)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// see compares the state of the pipeline and the states of its jobs: "running |
// a:success b:created".
func (w *namedJobs) see(pipeline int64, want string) {
	w.t.Helper()
	w.seeIn(w.project, pipeline, want)
}

func (w *namedJobs) seeIn(project, pipeline int64, want string) {
	w.t.Helper()
	var p struct{ Status string }
	w.s.Check(w.t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pipelines/%d", project, pipeline), As: w.owner, Status: 200}).JSON(w.t, &p)
	if got := p.Status + " | " + w.statesIn(project, pipeline); got != want {
		w.t.Errorf("pipeline is\n\t%s, want\n\t%s", got, want)
	}
}

// job returns the ID of the latest job with a name in a pipeline.
func (w *namedJobs) job(pipeline int64, name string) int64 {
	w.t.Helper()
	var list []struct {
		ID   int64
		Name string
	}
	w.s.Check(w.t, apptest.Call{Do: w.at("GET", "/pipelines/%d/jobs?per_page=100", pipeline), As: w.owner, Status: 200}).JSON(w.t, &list)
	for _, j := range list {
		if j.Name == name {
			return j.ID
		}
	}
	w.t.Fatalf("pipeline %d has no job %s", pipeline, name)
	return 0
}

func (w *namedJobs) at(method, path string, args ...any) string {
	return method + " " + w.bench.at(path, args...)
}

// pick assigns all pending jobs to the runner.
func (w *namedJobs) pick() {
	w.t.Helper()
	for {
		a := w.s.Send(w.t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, w.runner)})
		if a.Status == 204 {
			return
		}
		if a.Status != 201 {
			w.t.Fatalf("request: %d %s", a.Status, a.Body)
		}
		j := &assigned{}
		a.JSON(w.t, j)
		w.held[j.JobInfo.Name] = j
	}
}

// end runs the pending jobs and ends the named ones with a state, "success" or
// "failed"; more has other JSON members.
func (w *namedJobs) end(state, more string, names ...string) {
	w.t.Helper()
	w.pick()
	for _, name := range names {
		j := w.held[name]
		if j == nil {
			w.t.Fatalf("job %s was not given to the runner", name)
		}
		delete(w.held, name)
		w.update(j, 200, fmt.Sprintf(`{"state":%q%s}`, state, more))
	}
	w.settled()
}

// act sends an action on a job.
func (w *namedJobs) act(job int64, action string, status int, want string) apptest.Answer {
	w.t.Helper()
	return w.s.Check(w.t, apptest.Call{Do: w.at("POST", "/jobs/%d/%s", job, action), As: w.owner, Status: status, Want: want})
}

// sweep does the periodic work of CI, such as timeouts.
func (w *namedJobs) sweep() {
	w.t.Helper()
	if err := w.s.CI.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.settled()
}

// variable returns the value of a variable of a job.
func (j *assigned) variable(key string) string {
	for _, v := range j.Variables {
		if v.Key == key {
			return v.Value
		}
	}
	return ""
}

// sha returns the head of a branch.
func (w *namedJobs) sha(branch string) string {
	w.t.Helper()
	var found struct{ Commit struct{ ID string } }
	w.s.Check(w.t, apptest.Call{Do: w.at("GET", "/repository/branches/%s", branch), As: w.owner, Status: 200}).JSON(w.t, &found)
	return found.Commit.ID
}
