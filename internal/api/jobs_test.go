package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestJobList(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first\n\nWith words.", map[string]string{".gitlab-ci.yml": `
stages: [one, two]
a: {stage: one, script: [x], tags: [b, a], coverage: '/covered (\d+)%/'}
b: {stage: one, script: [x]}
c: {stage: two, script: [x]}
bridge: {stage: two, trigger: {include: none.yml}}
`})
		w.pick()
		j := w.held["a"]
		w.patch(j, 0, "covered 42%\n", 202)
		s.Clock.Move(90 * time.Second)
		w.end("success", "", "a")
		at := w.bench.at("/jobs")
		job := w.job(p, "a")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET %s/%d", at, job), As: w.owner, Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"a","stage":"one","status":"success","ref":"main","tag":false,
				"coverage":42,"allow_failure":false,"archived":false,"erased_at":null,"created_at":"<any>","started_at":"<any>","finished_at":"<any>",
				"duration":"<any>","queued_duration":"<any>","tag_list":["b","a"],"web_url":"%s/alice/code/-/jobs/%d",
				"commit":{"id":"<any>","short_id":"<any>","title":"first","message":"first\n\nWith words.","author_name":"alice","author_email":"<any>","created_at":"<any>"},
				"pipeline":{"id":%d,"project_id":%d,"ref":"main","sha":"<any>","status":"running"},"runner":{"runner_type":"instance_type"},
				"project":{"ci_job_token_scope_enabled":false},"user":{"username":"alice","bot":false,"bio":""}}`, job, s.URL, job, p, w.project),
				Not: []string{"failure_reason", "artifacts_file"}},
			{Do: "GET " + at, As: w.owner, Status: 200, Want: `[{"name":"c","queued_duration":null,"runner":null,"started_at":null},{"name":"b"},{"name":"a"}]`, WantHeader: map[string]string{"X-Total": "3"}},
			{Do: "GET " + at + "?scope=running", As: w.owner, Status: 200, Want: `[{"name":"b","duration":"<any>"}]`},
			{Do: "GET " + at + "?scope[]=created&scope[]=success", As: w.owner, Status: 200, Want: `[{"name":"c"},{"name":"a"}]`, WantHeader: map[string]string{"X-Total": "2"}},
			{Do: "GET " + at + "?scope[]=created&scope[]=success&per_page=1&page=2", As: w.owner, Status: 200, Want: `[{"name":"a"}]`, WantHeader: map[string]string{"X-Total": "2", "X-Next-Page": ""}},
			{Do: "GET " + at + "?scope[]=created&scope[]=success&per_page=1", As: w.owner, Status: 200, Want: `[{"name":"c"}]`, WantHeader: map[string]string{"X-Total": "2", "X-Next-Page": "2"}},
			{Do: "GET " + at + "?scope[]=created&scope[]=created", As: w.owner, Status: 200, Want: `[{"name":"c"}]`},
			{Do: "GET " + at + "?scope[]=nonsense", As: w.owner, Status: 400},
			{Do: "GET " + at + "?pagination=keyset&order_by=id&sort=asc", As: w.owner, Status: 405},
			{Do: "GET " + at + "?page=30000", As: w.owner, Status: 405},
			{Do: "GET " + at + "/999999", As: w.owner, Status: 404, Want: `{"message":"404 Job Not Found"}`},
			{Do: "GET /job", Header: map[string]string{"JOB-TOKEN": w.held["b"].Token}, Status: 200, Want: `{"name":"b","status":"running"}`},
			{Do: "GET /job", Header: map[string]string{"JOB-TOKEN": j.Token}, Status: 401},
		})
		// With keyset pagination, with and without states.
		for _, scope := range []string{"", "&scope[]=created&scope[]=running&scope[]=success", "&scope=success"} {
			next, names := "GET "+at+"?pagination=keyset&per_page=1&order_by=id&sort=desc"+scope, ""
			for range 4 {
				a := s.Check(t, apptest.Call{Do: next, As: w.owner, Status: 200})
				var list []struct{ Name string }
				a.JSON(t, &list)
				for _, one := range list {
					names += one.Name
				}
				link, _, ok := strings.Cut(strings.TrimPrefix(a.Header.Get("Link"), "<"+s.URL+"/api/v4"), ">")
				if !ok {
					break
				}
				next = "GET " + link
			}
			want := "cba"
			if scope == "&scope=success" {
				want = "a"
			}
			if names != want {
				t.Errorf("pages of %q are %s", scope, names)
			}
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d", p), As: w.owner, Status: 200, Want: `{"status":"running","started_at":"<any>","coverage":null}`})
		w.end("success", "", "b")
		w.end("success", "", "c")
		w.settled()
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d", p), As: w.owner, Status: 200, Want: `{"status":"failed","finished_at":"<any>","duration":"<any>","coverage":"42.00"}`})
	})
}

// TestJobsEndAtOnce ends all jobs of a stage concurrently, stage after stage. The
// last one must see that the others have ended, or the pipeline hangs.
func TestJobsEndAtOnce(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		const stages, jobs = 12, 4
		names, parts := []string{}, ""
		for i := range stages {
			names = append(names, fmt.Sprint("s", i))
			parts += fmt.Sprintf("j%d: {stage: s%d, script: [x], parallel: %d}\n", i, i, jobs)
		}
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": "stages: [" + strings.Join(names, ", ") + "]\n" + parts})
		for i := range stages {
			w.pick()
			if len(w.held) != jobs {
				t.Fatalf("%d jobs of stage %d can run", len(w.held), i)
			}
			gate := make(chan struct{})
			var all sync.WaitGroup
			for name, j := range w.held {
				delete(w.held, name)
				all.Go(func() {
					<-gate
					w.update(j, 200, `{"state":"success"}`)
				})
			}
			close(gate)
			all.Wait()
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d", p), As: w.owner, Status: 200, Want: `{"status":"success"}`})
	})
}

func TestJobTimes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
long: {script: [x], timeout: 20 minutes}
silent: {script: [x], timeout: 10 hours}
stuck: {script: [x], tags: [nobody]}
`})
		w.pick()
		s.Clock.Move(20 * time.Minute) // the runner enforces this timeout, so the server waits a little longer
		w.sweep()
		w.see(p, "running | long:running silent:running stuck:pending")
		s.Clock.Move(6 * time.Minute)
		w.sweep()
		w.see(p, "running | long:failed silent:running stuck:pending")
		s.Clock.Move(40 * time.Minute)
		w.sweep()
		w.see(p, "running | long:failed silent:failed stuck:pending")
		s.Clock.Move(24 * time.Hour)
		w.sweep()
		w.see(p, "failed | long:failed silent:failed stuck:failed")
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/jobs", p), As: w.owner, Status: 200,
			Want: `[{"name":"stuck","failure_reason":"stuck_or_timeout_failure"},{"name":"silent","failure_reason":"stuck_or_timeout_failure"},{"name":"long","failure_reason":"job_execution_timeout"}]`})

		// A job is taken from a runner that does not start it.
		w.act(w.job(p, "long"), "retry", 201, "")
		two := `,"info":{"features":{"two_phase_job_commit":true,"cancel_gracefully":true}}`
		first := w.take(w.runner, 201, two)
		w.see(p, "running | long:pending silent:failed stuck:failed")
		s.Clock.Move(3 * time.Minute)
		w.sweep()
		second := w.take(w.runner, 201, two)
		if first.ID != second.ID || first.Token == second.Token {
			t.Errorf("jobs %d and %d", first.ID, second.ID)
		}
		w.update(first, 403, `{"state":"running"}`)
		w.update(second, 200, `{"state":"running"}`)
		w.see(p, "running | long:running silent:failed stuck:failed")

		// A runner can finish a canceled job; the job stays canceled.
		w.act(second.ID, "cancel", 201, `{"status":"canceled"}`)
		if a := w.patch(second, 0, "tidy up\n", 202); a.Header.Get("Job-Status") != "canceling" {
			t.Errorf("the runner is told %q", a.Header.Get("Job-Status"))
		}
		w.update(second, 200, `{"state":"success"}`)
		w.update(second, 403, `{"state":"success"}`)
		w.see(p, "failed | long:canceled silent:failed stuck:failed")
	})
}

// TestCancelingJobs checks that a canceled job whose runner goes on without an end
// gives up its token and its resource group: on request, and after an hour.
func TestCancelingJobs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": "a: {script: [x], parallel: 3, resource_group: box}\n"})
		cancel := func() *assigned {
			t.Helper()
			j := w.take(w.runner, 201, `,"info":{"features":{"cancel_gracefully":true}}`)
			if j == nil {
				t.FailNow()
			}
			w.act(j.ID, "cancel", 201, `{"status":"canceled"}`)
			w.patch(j, 0, "tidy up\n", 202)
			w.settled()
			w.take(w.runner, 204, "") // the resource group is in use
			return j
		}
		j := cancel()
		w.act(j.ID, "cancel", 201, `{"status":"canceled"}`)
		w.patch(j, 8, "more\n", 202)
		w.act(j.ID, "cancel?force=true", 201, `{"status":"canceled"}`)
		w.patch(j, 13, "more\n", 403)
		w.settled()

		j = cancel()
		for i := range 6 {
			s.Clock.Move(9 * time.Minute)
			w.sweep()
			w.patch(j, 8+5*i, "more\n", 202)
		}
		s.Clock.Move(9 * time.Minute)
		w.sweep()
		w.patch(j, 38, "more\n", 403)
		w.run()
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/jobs?scope[]=running", p), As: w.owner, Status: 200, Want: `[{}]`})
	})
}

func TestLint(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "include: [parts.yml]\na: {script: [x], rules: [{if: $CI_COMMIT_BRANCH == 'main'}]}\n")
		at := w.bench.at("/ci/lint")
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: w.owner, Status: 200, Want: `{"valid":false,"errors":["<any>"],"warnings":[]}`},
			{Do: w.at("POST", "/repository/files/parts.yml"), As: w.owner, JSON: `{"branch":"main","commit_message":"m","content":"b: {script: [y]}"}`, Status: 201},
			{Do: "GET " + at, As: w.owner, Status: 200, Want: `{"valid":true,"errors":[],"merged_yaml":"<any>","includes":[{"type":"local","location":"parts.yml","context_project":"alice/code","blob":"<any>"}]}`},
			{Do: "GET " + at + "?include_jobs=true&dry_run=true&dry_run_ref=main", As: w.owner, Status: 200, Want: `{"valid":true,"jobs":[{"name":"b","stage":"test","script":["y"],"when":"on_success","needs":[]},{"name":"a"}]}`},
			{Do: "GET " + at + "?content_ref=nowhere", As: w.owner, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Do: "GET " + at + "?dry_run=true&dry_run_ref=nowhere", As: w.owner, Status: 200, Want: `{"valid":false,"errors":["Reference not found"]}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"content":"a: {script: [x]}"}`, Status: 200, Want: `{"valid":true,"errors":[],"warnings":[],"includes":[]}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"content":"a:\n  script: [x]\n  stage: x"}`, Status: 200,
				Want: `{"valid":false,"errors":["<any>"],"error_locations":[{"file":".gitlab-ci.yml","line":3,"column":10,"key":"jobs:a:stage"}]}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"content":"a: {script: [x], rules: [{when: never}]}","dry_run":true}`, Status: 200,
				Want: `{"valid":false,"errors":["The resulting pipeline would have been empty. Review the rules configuration for the relevant jobs."]}`},
			{Do: "POST " + at, As: w.owner, Status: 400, Want: `{"error":"content is missing"}`},
		})
	})
}
