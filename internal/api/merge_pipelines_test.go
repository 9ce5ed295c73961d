package api_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

const mergeYAML = `
build:
  script: ["true"]
check:
  script: ["true"]
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: [work.txt]
`

func TestMergePipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, mergeYAML)
		at := fmt.Sprintf("/projects/%d", w.project)
		s.Check(t, apptest.Call{Do: "PUT " + at, As: w.owner, JSON: `{"only_allow_merge_if_pipeline_succeeds":true}`, Status: 200})
		w.push("work", "work", map[string]string{"work.txt": "work\n"})
		w.push("other", "other", map[string]string{"other.txt": "other\n"})
		work := requested(t, s, w.owner, w.project, "work", `,"description":"$HOME"`)
		other := requested(t, s, w.owner, w.project, "other", "")
		w.settled()
		s.Table(t, []apptest.Call{
			{Name: "its pipelines", Do: "GET " + work + "/pipelines", As: w.owner, Status: 200, Want: `[{"source":"merge_request_event","ref":"refs/merge-requests/1/head","status":"pending"},{"source":"push","ref":"work"}]`},
			{Name: "the one of its head", Do: "GET " + work, As: w.owner, Status: 200, Want: `{"head_pipeline":{"source":"merge_request_event","status":"pending"},"pipeline":{"source":"merge_request_event"},"detailed_merge_status":"ci_still_running"}`},
			{Name: "no job, no pipeline", Do: "GET " + other + "/pipelines", As: w.owner, Status: 200, Want: `[{"source":"push"}]`},
			{Name: "nor by hand", Do: "POST " + other + "/pipelines", As: w.owner, Status: 400},
			{Name: "not yet", Do: "PUT " + work + "/merge", As: w.owner, Status: 405},
			{Name: "in the list", Do: "GET " + at + "/merge_requests?source_branch=work", As: w.owner, Status: 200, Want: `[{"detailed_merge_status":"ci_still_running"}]`},
			{Name: "when it succeeds", Do: "PUT " + work + "/merge", As: w.owner, JSON: `{"auto_merge":true,"merge_commit_message":"Later"}`, Status: 200, Want: `{"state":"opened","merge_when_pipeline_succeeds":true,"merge_user":{"username":"alice"}}`},
			{Name: "not after all", Do: "POST " + work + "/cancel_merge_when_pipeline_succeeds", As: w.owner, Status: 201, Want: `{"status":"success"}`},
			{Name: "canceled", Do: "GET " + work, As: w.owner, Status: 200, Want: `{"merge_when_pipeline_succeeds":false,"merge_user":null}`},
			{Name: "twice", Do: "POST " + work + "/cancel_merge_when_pipeline_succeeds", As: w.owner, Status: 406, Want: `{"message":"Can't cancel the automatic merge"}`},
			{Name: "again", Do: "PUT " + work + "/merge", As: w.owner, JSON: `{"merge_when_pipeline_succeeds":true}`, Status: 200},
		})
		w.push("work", "more", map[string]string{"more.txt": "more\n"})
		s.Check(t, apptest.Call{Do: "GET " + work, As: w.owner, Status: 200, Want: `{"state":"opened","merge_when_pipeline_succeeds":false}`}) // it has another head
		s.Check(t, apptest.Call{Do: "PUT " + work + "/merge", As: w.owner, JSON: `{"auto_merge":true,"merge_commit_message":"Later"}`, Status: 200})
		seen := map[string]string{}
		for j := range w.taken() {
			if j.JobInfo.Name == "check" {
				for _, v := range j.Variables {
					seen[v.Key] = v.Value
				}
				if len(j.GitInfo.Refspecs) != 1 || !strings.HasPrefix(j.GitInfo.Refspecs[0], "+"+j.GitInfo.SHA) {
					t.Errorf("refspecs are %v", j.GitInfo.Refspecs)
				}
			}
			w.update(j, 200, `{"state":"success"}`)
		}
		for key, want := range map[string]string{
			"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "1", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "work", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
			"CI_MERGE_REQUEST_TITLE": "Take work", "CI_MERGE_REQUEST_DESCRIPTION": "$HOME", "CI_MERGE_REQUEST_PROJECT_PATH": "alice/code", "CI_COMMIT_REF_NAME": "work", "CI_COMMIT_BRANCH": "",
			"CI_MERGE_REQUEST_EVENT_TYPE": "detached", "CI_MERGE_REQUEST_REF_PATH": "refs/merge-requests/1/head",
		} {
			if seen[key] != want {
				t.Errorf("%s is %q, want %q", key, seen[key], want)
			}
		}
		w.settled()
		s.Table(t, []apptest.Call{
			{Name: "merged by itself", Do: "GET " + work, As: w.owner, Status: 200, Want: `{"state":"merged","merged_by":{"username":"alice"}}`},
			{Name: "as it was said", Do: "GET " + at + "/repository/branches/main", As: w.owner, Status: 200, Want: `{"commit":{"title":"Later"}}`},
			{Name: "the other could be now", Do: "GET " + other, As: w.owner, Status: 200, Want: `{"detailed_merge_status":"mergeable","head_pipeline":{"status":"success","source":"push"}}`},
		})
		// Pipelines of the source branch have a variable for the open merge request.
		w.push("other", "more", map[string]string{"x.txt": "x\n"})
		open := map[string]string{}
		for a := range w.taken() {
			vars := map[string]string{}
			for _, v := range a.Variables {
				vars[v.Key] = v.Value
			}
			open[vars["CI_COMMIT_BRANCH"]] = vars["CI_OPEN_MERGE_REQUESTS"]
		}
		if open["other"] != "alice/code!2" || open["main"] != "" {
			t.Errorf("open requests are %v", open)
		}
	})
}

// TestSkippedMergePipeline checks that [skip ci] applies to merge request pipelines, except
// those that a user starts.
func TestSkippedMergePipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, mergeYAML)
		w.push("work", "work [skip ci]", map[string]string{"work.txt": "work\n"})
		m := requested(t, s, w.owner, w.project, "work", "")
		w.settled()
		s.Table(t, []apptest.Call{
			{Do: "GET " + m + "/pipelines", As: w.owner, Status: 200, Want: `[{"source":"merge_request_event","status":"skipped"},{"source":"push","status":"skipped"}]`},
			{Do: "POST " + m + "/pipelines", As: w.owner, Status: 201, Want: `{"source":"merge_request_event","status":"pending"}`},
		})
	})
}

// TestMergePipelineFetchesBranches checks the refspecs without a limit of the depth.
func TestMergePipelineFetchesBranches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `
check:
  script: [x]
  variables: {GIT_DEPTH: 0}
  only: [merge_requests]
named:
  script: [x]
  only: [/refs/, refs/merge-requests/1/head]
`)
		w.push("work", "work", map[string]string{"work.txt": "work\n"})
		requested(t, s, w.owner, w.project, "work", "")
		w.settled()
		w.pick()
		j := w.held["check"]
		if got := j.GitInfo.Refspecs; len(got) != 3 || got[1] != "+refs/heads/*:refs/remotes/origin/*" || got[2] != "+refs/tags/*:refs/tags/*" {
			t.Errorf("refspecs are %q", got)
		}
		if got := j.variable("CI_OPEN_MERGE_REQUESTS"); got != "alice/code!1" {
			t.Errorf("CI_OPEN_MERGE_REQUESTS is %q", got)
		}
		if w.held["named"] != nil {
			t.Error("a pattern matches the ref of a merge request")
		}
	})
}

// TestChangesInChildPipelines checks that rules:changes of a child pipeline compare with
// the state before the push.
func TestChangesInChildPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "a: {script: [x]}\n")
		w.push("main", "files", map[string]string{
			".gitlab-ci.yml": "start: {trigger: {include: child.yml}}\n",
			"child.yml":      "touched: {script: [x], rules: [{changes: [x]}]}\nother: {script: [x], rules: [{changes: [y]}]}\n",
			"x":              "1", "y": "1",
		})
		w.pick()
		clear(w.held)
		w.push("main", "change", map[string]string{"x": "2"})
		w.settled()
		w.pick()
		if w.held["touched"] == nil || w.held["other"] != nil {
			t.Errorf("jobs of the child pipeline are %v", w.held)
		}
	})
}

// taken yields the pending jobs, each assigned to the runner.
func (b *bench) taken() iter.Seq[*assigned] {
	return func(yield func(*assigned) bool) {
		for {
			a := b.s.Send(b.t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, b.runner)})
			if a.Status != 201 {
				return
			}
			j := &assigned{}
			if a.JSON(b.t, j); !yield(j) {
				return
			}
		}
	}
}
