package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func TestPipelineStages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
stages: [build, test, deploy]
compile: {stage: build, script: [make]}
docs: {stage: build, script: [doc], allow_failure: true}
unit: {stage: test, script: [test]}
cleanup: {stage: test, script: [rm], when: on_failure}
last: {stage: deploy, script: [ship], when: always}
`})
		w.see(p, "pending | cleanup:created compile:pending docs:pending last:created unit:created")
		w.end("success", "", "compile")
		w.see(p, "running | cleanup:created compile:success docs:running last:created unit:created")
		w.end("failed", `,"failure_reason":"script_failure","exit_code":1`, "docs")
		w.see(p, "running | cleanup:skipped compile:success docs:failed last:created unit:pending")
		w.end("failed", `,"failure_reason":"script_failure"`, "unit")
		w.see(p, "running | cleanup:skipped compile:success docs:failed last:pending unit:failed")
		w.end("success", "", "last")
		w.see(p, "failed | cleanup:skipped compile:success docs:failed last:success unit:failed")
	})
}

func TestPipelineNeeds(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
stages: [build, test, deploy]
a: {stage: build, script: [x]}
b: {stage: build, script: [x]}
c: {stage: test, script: [x], needs: [a]}
d: {stage: deploy, script: [x], needs: [c, {job: b, optional: true}]}
e: {stage: deploy, script: [x], needs: []}
f: {stage: deploy, script: [x]}
`})
		w.see(p, "pending | a:pending b:pending c:created d:created e:pending f:created")
		w.end("success", "", "a")
		w.see(p, "running | a:success b:running c:pending d:created e:running f:created")
		w.end("failed", "", "c")
		w.see(p, "running | a:success b:running c:failed d:created e:running f:created")
		w.end("success", "", "b", "e")
		w.see(p, "failed | a:success b:success c:failed d:skipped e:success f:skipped")

		// After a retry, jobs that were skipped because of the failure can run.
		w.act(w.job(p, "c"), "retry", 201, `{"name":"c","status":"pending","started_at":null,"finished_at":null,"duration":null}`)
		w.see(p, "running | a:success b:success c:pending d:created e:success f:created")
		w.end("success", "", "c")
		w.see(p, "running | a:success b:success c:success d:pending e:success f:pending")
		w.end("success", "", "d", "f")
		w.see(p, "success | a:success b:success c:success d:success e:success f:success")
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines/%d/jobs?include_retried=true&scope[]=failed", p), As: w.owner, Status: 200, Want: `[{"name":"c","status":"failed","failure_reason":"script_failure"}]`},
			{Do: w.at("GET", "/pipelines/%d/jobs?scope=failed", p), As: w.owner, Status: 200, Want: `[]`},
			{Do: w.at("GET", "/pipelines/%d/jobs?scope=nonsense", p), As: w.owner, Status: 400, Want: `{"error":"scope does not have a valid value"}`},
		})
	})
}

// TestPlayNeededJob starts a manual job that other jobs need, which were skipped
// because it did not run.
func TestPlayNeededJob(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
build: {stage: build, script: [x], when: manual}
other: {stage: build, script: [x]}
deploy: {stage: deploy, script: [x], needs: [build]}
report: {stage: deploy, script: [x], needs: [deploy]}
`})
		w.end("success", "", "other")
		w.see(p, "success | build:manual deploy:skipped other:success report:skipped")
		w.act(w.job(p, "build"), "play", 200, "")
		w.see(p, "running | build:pending deploy:created other:success report:created")
		w.end("success", "", "build")
		w.end("success", "", "deploy")
		w.see(p, "running | build:success deploy:success other:success report:pending")
	})
}

func TestManualAndDelayedJobs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
stages: [one, two, three]
optional: {stage: one, script: [x], when: manual}
later: {stage: one, script: [x], when: delayed, start_in: 30 minutes}
gate: {stage: two, script: [x], when: manual, allow_failure: false}
end: {stage: three, script: [x]}
`})
		w.see(p, "scheduled | end:created gate:created later:scheduled optional:manual")
		w.act(w.job(p, "end"), "play", 400, `{"message":"400 Bad request - Unplayable Job"}`)
		w.act(w.job(p, "end"), "unschedule", 400, "")
		w.act(w.job(p, "end"), "retry", 403, `{"message":"403 Forbidden - Job is not retryable"}`)
		w.act(w.job(p, "end"), "erase", 403, "")
		s.Clock.Move(29 * time.Minute)
		w.sweep()
		w.see(p, "scheduled | end:created gate:created later:scheduled optional:manual")
		s.Clock.Move(2 * time.Minute)
		w.sweep()
		w.see(p, "pending | end:created gate:created later:pending optional:manual")
		w.end("success", "", "later")
		w.see(p, "manual | end:created gate:manual later:success optional:manual")
		w.act(w.job(p, "gate"), "play", 200, `{"name":"gate","status":"pending"}`)
		w.end("success", "", "gate")
		w.see(p, "running | end:pending gate:success later:success optional:manual")
		w.end("success", "", "end")
		w.see(p, "success | end:success gate:success later:success optional:manual")

		// Variables of the job take precedence.
		s.Check(t, apptest.Call{Do: w.at("POST", "/jobs/%d/play", w.job(p, "optional")), As: w.owner, Status: 200,
			JSON: `{"job_variables_attributes":[{"key":"COLOR","value":"red"}]}`})
		w.pick()
		if got := w.held["optional"].variable("COLOR"); got != "red" {
			t.Errorf("COLOR is %q", got)
		}
		w.end("success", "", "optional")

		q := w.push("main", "second", map[string]string{"x": "1"})
		w.act(w.job(q, "later"), "unschedule", 201, `{"status":"manual"}`)
		w.see(q, "manual | end:created gate:created later:manual optional:manual")
		w.act(w.job(q, "later"), "cancel", 201, `{"status":"canceled","finished_at":"<any>"}`)
		w.act(w.job(q, "later"), "cancel", 201, `{"status":"canceled"}`)
		w.see(q, "canceled | end:skipped gate:skipped later:canceled optional:manual")
	})
}

func TestJobRetry(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": `
often: {script: [x], retry: 2}
system: {script: [x], retry: {max: 1, when: runner_system_failure}}
code: {script: [x], retry: {max: 1, exit_codes: 137}}
soft: {script: [x], allow_failure: {exit_codes: [3]}}
`})
		w.end("failed", `,"failure_reason":"script_failure","exit_code":3`, "often", "system", "code", "soft")
		w.see(p, "running | code:failed often:pending soft:failed system:failed")
		w.end("failed", "", "often")
		w.see(p, "running | code:failed often:pending soft:failed system:failed")
		w.end("failed", "", "often")
		w.see(p, "failed | code:failed often:failed soft:failed system:failed")
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/jobs/%d", w.job(p, "soft")), As: w.owner, Status: 200, Want: `{"allow_failure":true,"failure_reason":"script_failure"}`},
			{Do: w.at("GET", "/jobs/%d", w.job(p, "code")), As: w.owner, Status: 200, Want: `{"allow_failure":false}`},
			{Do: w.at("GET", "/pipelines/%d/jobs?include_retried=true", p), As: w.owner, Status: 200, Want: `[{},{},{},{},{},{}]`},
		})

		// Retrying a pipeline retries its failed jobs.
		s.Check(t, apptest.Call{Do: w.at("POST", "/pipelines/%d/retry", p), As: w.owner, Status: 201, Want: `{"status":"pending"}`})
		w.see(p, "pending | code:pending often:pending soft:pending system:pending")
		w.end("failed", `,"failure_reason":"runner_system_failure"`, "system")
		w.end("failed", `,"failure_reason":"script_failure","exit_code":137`, "code")
		w.see(p, "running | code:pending often:running soft:running system:running")
		w.end("success", "", "often", "soft", "system", "code")
		w.see(p, "success | code:success often:success soft:success system:success")

		w.act(w.job(p, "often"), "erase", 201, `{"erased_at":"<any>","artifacts":[]}`)
		w.act(w.job(p, "often"), "erase", 403, "")
	})
}

func TestCancelPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		yaml := map[string]string{".gitlab-ci.yml": `
stages: [one, two]
a: {stage: one, script: [x], interruptible: true}
b: {stage: one, script: [x]}
c: {stage: two, script: [x]}
`}
		p := w.push("main", "first", yaml)
		w.pick()
		s.Check(t, apptest.Call{Do: w.at("POST", "/pipelines/%d/cancel", p), As: w.owner, Status: 200, Want: `{"status":"canceled","finished_at":"<any>"}`})
		w.see(p, "canceled | a:canceled b:canceled c:canceled")
		// The job is canceled, and updates by its runner are refused.
		w.s.Check(t, apptest.Call{Do: w.at("GET", "/jobs/%d", w.held["a"].ID), As: w.owner, Status: 200, Want: `{"status":"canceled"}`})
		w.update(w.held["a"], 403, `{"state":"success"}`)

		// A newer pipeline cancels an older one, unless a job that is not
		// interruptible has started.
		first := w.push("other", "one", map[string]string{"x": "1"})
		second := w.push("other", "two", map[string]string{"y": "2"})
		w.see(first, "canceled | a:canceled b:canceled c:canceled")
		w.pick()
		third := w.push("other", "three", map[string]string{"z": "2"})
		w.see(second, "running | a:running b:running c:created")
		w.see(third, "pending | a:pending b:pending c:created")
		fourth := w.push("other", "four", map[string]string{".gitlab-ci.yml": `
workflow: {auto_cancel: {on_new_commit: interruptible, on_job_failure: all}}
a: {script: [x], interruptible: true}
b: {script: [x]}
`})
		w.see(third, "canceled | a:canceled b:canceled c:canceled")
		fifth := w.push("other", "five", map[string]string{"v": "2"})
		w.see(fourth, "running | a:canceled b:pending")
		w.pick()
		w.end("failed", "", "a")
		w.see(fifth, "failed | a:failed b:canceled")
		s.Table(t, []apptest.Call{
			{Do: w.at("DELETE", "/pipelines/%d", first), As: w.owner, Status: 204},
			{Do: w.at("GET", "/pipelines/%d", first), As: w.owner, Status: 404, Want: `{"message":"404 Pipeline Not Found"}`},
		})
	})
}

// TestPipelinesOfProtectedBranch checks that Developers can change pipelines and keep
// artifacts only on refs on which they may run jobs.
func TestPipelinesOfProtectedBranch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], artifacts: {paths: [out], expire_in: 1 day}}")
		id, dev := s.User(t, "dev")
		member(t, s, b.owner, b.project, id, 30)
		p := b.pipeline(b.project)
		j := b.run()
		b.upload(j, "artifact_type=archive&artifact_format=zip&expire_in=1+day", zipped(t, map[string]string{"out": "made"}), 201)
		b.update(j, 200, `{"state":"success"}`)
		rename, keep := "PUT "+b.at("/pipelines/%d/metadata", p), "POST "+b.at("/jobs/%d/artifacts/keep", j.ID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + b.at("/protected_branches?name=main"), As: b.owner, Status: 201},
			{Do: rename, As: dev, JSON: `{"name":"mine"}`, Status: 403},
			{Do: keep, As: dev, Status: 403},
			{Do: "GET " + b.at("/jobs/%d", j.ID), As: dev, Status: 200, Want: `{"artifacts_expire_at":"<any>","pipeline":{"id":"<any>"}}`, Not: []string{`"artifacts_expire_at":null`, "mine"}},
			{Do: rename, As: b.owner, JSON: `{"name":"theirs"}`, Status: 200, Want: `{"name":"theirs"}`},
			{Do: keep, As: b.owner, Status: 200, Want: `{"artifacts_expire_at":null}`},
			{Do: "DELETE " + b.at("/protected_branches/main"), As: b.owner, Status: 204},
			{Do: rename, As: dev, JSON: `{"name":"mine"}`, Status: 200, Want: `{"name":"mine"}`},
			{Do: keep, As: dev, Status: 200},
		})
	})
}

// TestLatePush checks that a push that is processed after a newer one does not
// cancel the pipeline of the newer one.
func TestLatePush(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		w.push("main", "one", map[string]string{".gitlab-ci.yml": "a: {script: [x]}"})
		old := w.sha("main")
		latest := w.push("main", "two", map[string]string{"x": "1"})
		by := actorOf(t, s, w.owner)
		p, err := s.Projects.Get(t.Context(), by, project.RefTo(w.project))
		if err != nil {
			t.Fatal(err)
		}
		late := repo.Push{Project: p, By: by, Changes: []repo.Change{{Ref: git.Heads + "main", Old: git.ZeroOID, New: git.OID(old)}}}
		if err := s.DB.Tx(t.Context(), func(tx *db.Tx) error { return s.CI.Pushed(t.Context(), tx, late) }); err != nil {
			t.Fatal(err)
		}
		w.settled()
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?status=pending"), As: w.owner, Status: 200, Want: fmt.Sprintf(`[{"sha":%q},{"id":%d}]`, old, latest)})
		w.see(latest, "pending | a:pending")
	})
}

func TestPushPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		yaml := `
workflow: {name: 'built of $CI_COMMIT_BRANCH', rules: [{if: $CI_COMMIT_BRANCH == "none", when: never}, {when: always}]}
a: {script: [x], rules: [{changes: ["*.go"]}]}
b: {script: [x]}
`
		p := w.push("main", "first", map[string]string{".gitlab-ci.yml": yaml})
		w.see(p, "pending | b:pending")
		q := w.push("main", "second", map[string]string{"x.go": "x"})
		w.see(q, "pending | a:pending b:pending")
		r := w.push("side", "third", map[string]string{"README": "x"})
		w.see(r, "pending | a:pending b:pending") // the changes of a new branch are unknown
		if none := w.push("none", "fourth", map[string]string{"y": "x"}); none != 0 {
			t.Error("a pipeline that the rules forbid")
		}
		skipped := w.push("main", "no [skip ci] please", map[string]string{"z": "x"})
		w.see(skipped, "skipped | ")
		broken := w.push("main", "break", map[string]string{".gitlab-ci.yml": "a: {script: [x], stage: nowhere}"})
		w.see(broken, "failed | ")
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines/%d", broken), As: w.owner, Status: 200, Want: `{"source":"push","status":"failed","user":{"username":"alice"},
				"yaml_errors":".gitlab-ci.yml:1: a job: chosen stage nowhere does not exist; available stages are .pre, build, test, deploy, .post"}`},
			{Name: "retry", Do: w.at("POST", "/pipelines/%d/retry", broken), As: w.owner, Status: 403,
				Want: `{"message":"403 Forbidden - Pipeline is not retryable: its CI/CD configuration is invalid"}`},
			{Name: "cancel", Do: w.at("POST", "/pipelines/%d/cancel", broken), As: w.owner, Want: `{"status":"failed"}`, Status: 200},
			{Name: "still failed", Do: w.at("GET", "/pipelines/%d", broken), As: w.owner, Status: 200, Want: `{"status":"failed"}`},
			{Do: w.at("POST", "/pipeline"), JSON: `{"ref":"main"}`, As: w.owner, Status: 400,
				Want: `{"message":{"base":["a job: chosen stage nowhere does not exist; available stages are .pre, build, test, deploy, .post"]}}`},
			{Do: w.at("POST", "/pipeline"), JSON: `{"ref":"none"}`, As: w.owner, Status: 400, Want: `{"message":{"base":["Pipeline filtered out by workflow rules."]}}`},
			{Do: w.at("POST", "/pipeline"), JSON: `{"ref":"nowhere"}`, As: w.owner, Status: 400, Want: `{"message":{"base":["Reference not found"]}}`},
			{Do: w.at("POST", "/pipeline"), As: w.owner, Status: 400, Want: `{"error":"ref is missing"}`},
			{Do: w.at("GET", "/pipelines/%d", q), As: w.owner, Status: 200, Want: `{"id":"<any>","iid":2,"name":"built of main","ref":"main","tag":false,"before_sha":"<any>",
				"detailed_status":{"group":"pending"},"web_url":"<any>","yaml_errors":null,"started_at":null,"duration":null}`},
			{Do: w.at("GET", "/pipelines?yaml_errors=true"), As: w.owner, Status: 200, Want: `[{"status":"failed"}]`},
			{Do: w.at("GET", "/pipelines?ref=side&source=push&username=alice&order_by=updated_at&sort=asc"), As: w.owner, Status: 200, Want: `[{"ref":"side"}]`},
			{Do: w.at("GET", "/pipelines?username=root"), As: w.owner, Status: 200, Want: `[]`},
			{Do: w.at("GET", "/pipelines?scope=branches"), As: w.owner, Status: 200, Want: `[{"ref":"main","status":"failed"},{"ref":"side"}]`},
			{Do: w.at("GET", "/pipelines?scope=finished"), As: w.owner, Status: 200, Want: `[{"status":"failed"},{"status":"canceled"}]`},
			{Do: w.at("GET", "/pipelines/latest?ref=side"), As: w.owner, Status: 200, Want: `{"ref":"side"}`},
			{Do: w.at("PUT", "/pipelines/%d/metadata", q), As: w.owner, JSON: `{"name":"other"}`, Status: 200, Want: `{"name":"other"}`},
			{Do: w.at("DELETE", "/repository/branches/side"), As: w.owner, Status: 204},
			{Do: w.at("GET", "/pipelines/latest?ref=side"), As: w.owner, Status: 404},
		})
		// A tag has a pipeline too, and is not a branch.
		s.Check(t, apptest.Call{Do: w.at("POST", "/repository/tags"), As: w.owner, JSON: `{"tag_name":"v1","ref":"none","message":"the first"}`, Status: 201})
		w.settled()
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?scope=tags"), As: w.owner, Status: 200, Want: `[{"ref":"v1","name":"built of "}]`})
		w.held = map[string]*assigned{}
		w.pick()
	})
}
