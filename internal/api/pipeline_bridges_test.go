package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestDownstreamPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		other := w.newProject("lib", `job: {script: [x]}`)
		p := w.push("main", "one", map[string]string{".gitlab-ci.yml": `
variables: {COLOR: red}
stages: [one, two]
free: {stage: one, trigger: alice/lib, variables: {SHAPE: round}}
bound: {stage: one, trigger: {project: alice/lib, branch: main, strategy: depend}}
secret: {stage: one, trigger: {project: alice/nothing}, allow_failure: true}
last: {stage: two, script: [x]}
`})
		w.see(p, "running | bound:running free:success last:created secret:failed")
		w.pick()
		got := w.held["job"].variable("COLOR") + " " + w.held["job"].variable("CI_PIPELINE_SOURCE") + " " + w.held["job"].variable("CI_UPSTREAM_PROJECT_ID")
		if got != fmt.Sprintf("red pipeline %d", w.project) {
			t.Errorf("variables are %s", got)
		}
		var bridges []struct {
			Name       string
			Downstream *struct {
				ID        int64
				ProjectID int64 `json:"project_id"`
				Status    string
				WebURL    string `json:"web_url"`
			} `json:"downstream_pipeline"`
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges", p), As: w.owner, Status: 200,
			Want: `[{"name":"secret","downstream_pipeline":null,"failure_reason":"unmet_prerequisites"},{"name":"bound","status":"running","pipeline":{"id":"<any>","web_url":"<any>"}},{"name":"free"}]`}).JSON(t, &bridges)
		made := map[string]int64{}
		for _, b := range bridges {
			if b.Downstream != nil {
				made[b.Name] = b.Downstream.ID
				if want := fmt.Sprintf("%s/alice/lib/-/pipelines/%d", s.URL, b.Downstream.ID); b.Downstream.WebURL != want || b.Downstream.ProjectID != other {
					t.Errorf("downstream is %+v", b.Downstream)
				}
			}
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges?scope=success", p), As: w.owner, Status: 200, Want: `[{"name":"free"}]`})
		// Both pipelines have a job with this name: end each.
		for _, id := range made {
			if id == made["bound"] {
				continue
			}
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipelines/%d/cancel", other, id), As: w.owner, Status: 200})
		}
		w.settled()
		w.see(p, "running | bound:running free:success last:created secret:failed")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipelines/%d/cancel", other, made["bound"]), As: w.owner, Status: 200})
		w.settled()
		w.see(p, "canceled | bound:canceled free:success last:skipped secret:failed")
		s.Check(t, apptest.Call{Do: w.at("POST", "/pipelines/%d/retry", p), As: w.owner, Status: 201})
		w.settled()
		w.see(p, "running | bound:running free:success last:created secret:failed")
		w.end("success", "", "job")
		w.see(p, "running | bound:success free:success last:pending secret:failed")
	})
}

func TestChildPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "one", map[string]string{
			".gitlab-ci.yml": `
stages: [make, run]
generate: {stage: make, script: [x], artifacts: {paths: [made.yml]}}
local: {stage: make, trigger: {include: child.yml, strategy: depend, forward: {pipeline_variables: true}}}
dynamic: {stage: run, needs: [generate], trigger: {include: [{artifact: made.yml, job: generate}], strategy: depend}}
missing: {stage: run, needs: [generate], trigger: {include: [{artifact: none.yml, job: generate}]}, allow_failure: true}
`,
			"child.yml": `
inner: {script: [x]}
deeper: {trigger: {include: grandchild.yml, strategy: depend}}
`,
			"grandchild.yml": `
leaf: {script: [x]}
toodeep: {trigger: {include: child.yml}, allow_failure: true}
`})
		w.see(p, "running | dynamic:created generate:pending local:running missing:created")
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?source=parent_pipeline"), As: w.owner, Status: 200}).JSON(t, &list)
		if len(list) != 2 {
			t.Fatalf("%d children", len(list))
		}
		child, grandchild := list[1].ID, list[0].ID
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines"), As: w.owner, Status: 200, Want: `[{"source":"push"}]`}) // child pipelines are not listed
		w.see(child, "running | deeper:running inner:pending")
		w.see(grandchild, "running | leaf:pending toodeep:failed")
		w.pick()
		w.upload(w.held["generate"], "artifact_format=zip&artifact_type=archive", zipped(t, map[string]string{"made.yml": "produced: {script: [x]}"}), 201)
		w.end("success", "", "generate", "leaf", "inner")
		w.see(grandchild, "success | leaf:success toodeep:failed")
		w.see(child, "success | deeper:success inner:success")
		w.see(p, "running | dynamic:running generate:success local:success missing:failed")
		w.end("failed", "", "produced")
		w.see(p, "failed | dynamic:failed generate:success local:success missing:failed")

		// A child pipeline is canceled and deleted with its parent.
		q := w.push("main", "two", map[string]string{"x": "1"})
		s.Check(t, apptest.Call{Do: w.at("POST", "/pipelines/%d/cancel", q), As: w.owner, Status: 200})
		w.settled()
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines?source=parent_pipeline&status=canceled"), As: w.owner, Status: 200, Want: `[{},{}]`},
			{Do: w.at("DELETE", "/pipelines/%d", q), As: w.owner, Status: 204},
			{Do: w.at("GET", "/pipelines?source=parent_pipeline&status=canceled"), As: w.owner, Status: 200, Want: `[]`},
		})
	})
}

func TestVariablePrecedence(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: w.owner, JSON: `{"path":"team","name":"team"}`, Status: 201}).JSON(t, &group)
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: w.owner, JSON: fmt.Sprintf(`{"path":"app","namespace_id":%d}`, group.ID), Status: 201}).JSON(t, &made)
		w.project = made.ID
		groupVariables, own := fmt.Sprintf("/groups/%d/variables", group.ID), fmt.Sprintf("/projects/%d/variables", made.ID)
		variable := func(place, as, body string) apptest.Call {
			return apptest.Call{Do: "POST " + place, As: as, JSON: body, Status: 201}
		}
		s.Table(t, []apptest.Call{
			variable("/admin/ci/variables", root, `{"key":"A","value":"instance"}`),
			variable("/admin/ci/variables", root, `{"key":"B","value":"instance"}`),
			variable("/admin/ci/variables", root, `{"key":"P","value":"instance","protected":true}`),
			variable(groupVariables, w.owner, `{"key":"B","value":"group"}`),
			variable(groupVariables, w.owner, `{"key":"C","value":"group"}`),
			variable(own, w.owner, `{"key":"C","value":"project"}`),
			variable(own, w.owner, `{"key":"D","value":"project"}`),
			variable(own, w.owner, `{"key":"S","value":"everywhere"}`),
			variable(own, w.owner, `{"key":"S","value":"review","environment_scope":"review/*"}`),
			variable(own, w.owner, `{"key":"F","value":"content","variable_type":"file"}`),
			variable(own, w.owner, `{"key":"M","value":"masked-value-1","masked":true,"protected":true}`),
			variable(own, w.owner, `{"key":"H","value":"hidden-value-1","masked_and_hidden":true}`),
			{Do: "GET " + own + "/H", As: w.owner, Status: 200, Want: `{"value":null,"hidden":true,"masked":true}`, Not: []string{"hidden-value-1"}},
			{Do: "PUT " + own + "/H?masked=false", As: w.owner, Status: 400},
			{Do: "GET " + own + "/S", As: w.owner, Status: 409},
			{Do: "GET " + own + "/S?filter[environment_scope]=review/*", As: w.owner, Status: 200, Want: `{"value":"review"}`},
			{Do: "PUT " + own + "/S?value=all&filter[environment_scope]=*", As: w.owner, Status: 200, Want: `{"value":"all","environment_scope":"*"}`},
			{Do: "POST " + own, As: w.owner, JSON: `{"key":"C","value":"x"}`, Status: 400, Want: `{"message":{"key":["(C) has already been taken"]}}`},
			{Do: "POST " + own, As: w.owner, JSON: `{"key":"C-1","value":"x"}`, Status: 400},
			{Do: "POST " + own, As: w.owner, JSON: `{"key":"SHORT","value":"x","masked":true}`, Status: 400},
			{Do: "GET " + own + "?per_page=2", As: w.owner, Status: 200, Want: `[{"key":"C"},{"key":"D"}]`, WantHeader: map[string]string{"X-Total": "7"}},
			{Do: "DELETE " + own + "/NONE", As: w.owner, Status: 404, Want: `{"message":"404 Variable Not Found"}`},
		})
		yaml := `
variables: {A: yaml, B: yaml, E: yaml, CI_PROJECT_NAME: own, G: yaml}
plain: {script: [x], variables: {E: job}}
review: {script: [x], environment: review/one}
`
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/files/.gitlab-ci.yml", made.ID), As: w.owner, Status: 201,
			JSON: fmt.Sprintf(`{"branch":"main","commit_message":"ci","content":%q}`, yaml)})
		w.settled()
		w.pick()
		check := func(job string, want map[string]string) {
			t.Helper()
			for key, value := range want {
				if got := w.held[job].variable(key); got != value {
					t.Errorf("%s in %s is %q, want %q", key, job, got, value)
				}
			}
		}
		check("plain", map[string]string{
			"A": "instance", "B": "group", "C": "project", "D": "project", "E": "job", "G": "yaml", "P": "instance", "M": "masked-value-1", "S": "all",
			"CI_PROJECT_NAME": "own", "CI": "true", "GITLAB_CI": "true", "CI_COMMIT_REF_NAME": "main", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_REF_PROTECTED": "true",
			"CI_PIPELINE_SOURCE": "push", "CI_PROJECT_PATH": "team/app", "CI_PROJECT_NAMESPACE": "team", "CI_JOB_NAME": "plain", "CI_JOB_STAGE": "test",
			"CI_COMMIT_TITLE": "ci", "GITLAB_USER_LOGIN": "alice", "GITLAB_USER_EMAIL": "alice@example.org", "CI_SERVER_URL": s.URL, "CI_API_V4_URL": s.URL + "/api/v4", "CI_CONFIG_PATH": ".gitlab-ci.yml",
			"CI_DEFAULT_BRANCH": "main", "CI_NODE_TOTAL": "1", "CI_COMMIT_SHORT_SHA": w.sha("main")[:8],
		})
		check("review", map[string]string{"S": "review", "CI_ENVIRONMENT_NAME": "review/one", "CI_ENVIRONMENT_ACTION": "start"})
		for _, v := range w.held["plain"].Variables {
			if v.Masked != (v.Key == "M" || v.Key == "H" || v.Key == "CI_JOB_TOKEN" || v.Value == w.held["plain"].Token) && !v.Masked {
				t.Errorf("%s is not masked", v.Key)
			}
		}
		w.end("success", "", "plain", "review")

		// Variables of a pipeline take precedence; protected variables are not
		// passed to unprotected branches.
		s.Check(t, apptest.Call{Do: w.at("POST", "/repository/branches?branch=side&ref=main"), As: w.owner, Status: 201})
		w.settled()
		w.pick()
		check("plain", map[string]string{"A": "instance", "C": "project", "P": "", "M": "", "CI_COMMIT_REF_PROTECTED": "false"})
		w.end("success", "", "plain", "review")
		s.Table(t, []apptest.Call{
			{Do: w.at("POST", "/pipeline"), As: w.owner, JSON: `{"ref":"side","variables":[{"key":"C","value":"given"},{"key":"A","value":"given"}]}`, Status: 201, Want: `{"source":"api"}`},
		})
		w.settled()
		w.pick()
		check("plain", map[string]string{"A": "given", "C": "given", "B": "group"})
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?source=api"), As: w.owner, Status: 200}).JSON(t, &list)
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines/%d/variables", list[0].ID), As: w.owner, Status: 200, Want: `[{"key":"C","value":"given","variable_type":"env_var"},{"key":"A"}]`},
			{Do: w.at("PUT", "?ci_pipeline_variables_minimum_override_role=no_one_allowed"), As: w.owner, Status: 200},
			{Do: w.at("POST", "/pipeline"), As: w.owner, JSON: `{"ref":"side","variables":[{"key":"C","value":"given"}]}`, Status: 400,
				Want: `{"message":{"base":["Insufficient permissions to set pipeline variables"]}}`},
		})
	})
}

// TestBridgeFollowsPipeline checks that a trigger job gets the state of its
// downstream pipeline, also when that is retried.
func TestBridgeFollowsPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		other := w.newProject("lib", `job: {script: [x]}`)
		p := w.push("main", "one", map[string]string{".gitlab-ci.yml": `
stages: [one, two]
bound: {stage: one, trigger: {project: alice/lib, branch: main, strategy: depend}}
last: {stage: two, script: [x]}
`})
		var bridges []struct {
			Downstream struct{ ID int64 } `json:"downstream_pipeline"`
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges", p), As: w.owner, Status: 200}).JSON(t, &bridges)
		down := bridges[0].Downstream.ID
		w.end("failed", `,"failure_reason":"script_failure"`, "job")
		w.see(p, "failed | bound:failed last:skipped")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipelines/%d/retry", other, down), As: w.owner, Status: 201})
		w.settled()
		w.see(p, "running | bound:running last:created")
		w.end("success", "", "job")
		w.see(p, "running | bound:success last:pending")

		// The trigger job fails if its downstream pipeline is deleted.
		q := w.push("main", "two", map[string]string{"x": "1"})
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges", q), As: w.owner, Status: 200}).JSON(t, &bridges)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/pipelines/%d", other, bridges[0].Downstream.ID), As: w.owner, Status: 204})
		w.settled()
		w.see(q, "failed | bound:failed last:skipped")

		// A commit with [skip ci] gets no pipeline for its push, but a trigger job
		// can create one.
		w.pushTo(other, "main", "not this [skip ci]", map[string]string{"x": "1"})
		r := w.push("main", "three", map[string]string{"x2": "2"})
		w.see(r, "running | bound:running last:created")
	})
}

// TestCanceledTriggerJob checks that a trigger job that a user canceled stays canceled
// while its downstream pipeline goes on.
func TestCanceledTriggerJob(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		w.newProject("lib", "stages: [a, b]\nfirst: {stage: a, script: [x]}\nsecond: {stage: b, script: [x]}\n")
		p := w.push("main", "one", map[string]string{".gitlab-ci.yml": `
stages: [one, two]
bound: {stage: one, trigger: {project: alice/lib, branch: main, strategy: depend}}
last: {stage: two, script: [x]}
`})
		var bridges []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges", p), As: w.owner, Status: 200, Want: `[{"status":"running"}]`}).JSON(t, &bridges)
		w.act(bridges[0].ID, "cancel", 201, `{"status":"canceled"}`)
		for _, name := range []string{"first", "second"} {
			w.end("success", "", name)
			w.see(p, "canceled | bound:canceled last:skipped")
		}
	})
}

// TestRetryInGrandchild checks that all trigger jobs above a retried job run again.
func TestRetryInGrandchild(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "one", map[string]string{
			".gitlab-ci.yml": "outer: {trigger: {include: child.yml, strategy: depend}}\nlast: {stage: deploy, script: [x]}\n",
			"child.yml":      "inner: {trigger: {include: grandchild.yml, strategy: depend}}\n",
			"grandchild.yml": "leaf: {script: [x]}\n",
		})
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?source=parent_pipeline"), As: w.owner, Status: 200}).JSON(t, &list)
		if len(list) != 2 {
			t.Fatalf("%d child pipelines", len(list))
		}
		w.end("failed", "", "leaf")
		w.see(p, "failed | last:skipped outer:failed")
		w.act(w.job(list[0].ID, "leaf"), "retry", 201, "")
		w.settled()
		w.see(list[1].ID, "running | inner:running")
		w.see(p, "running | last:created outer:running")
		w.end("success", "", "leaf")
		w.see(p, "running | last:pending outer:success")
	})
}

// TestMirrorPipeline checks a job that shows the state of the latest pipeline of
// another project.
func TestMirrorPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		other := w.newProject("lib", `job: {script: [x]}`)
		yaml := "shown: {needs: [{pipeline: lib}]}\nlast: {stage: deploy, script: [x]}\n"
		none := w.push("main", "none", map[string]string{".gitlab-ci.yml": yaml})
		w.see(none, "failed | last:skipped shown:failed")
		first := w.pushTo(other, "main", "one", map[string]string{"x": "1"})
		p := w.push("main", "one", map[string]string{"x": "1"})
		w.see(p, "running | last:created shown:running")
		w.sweep()
		w.see(p, "running | last:created shown:running")
		w.end("success", "", "job")
		w.sweep()
		w.see(p, "running | last:pending shown:success")
		w.end("success", "", "last")

		// The state of a finished pipeline is shown at once; if the pipeline is
		// deleted, the job fails.
		q := w.push("main", "two", map[string]string{"x2": "1"})
		w.see(q, "running | last:pending shown:success")
		second := w.pushTo(other, "main", "two", map[string]string{"y": "1"})
		r := w.push("main", "three", map[string]string{"x3": "1"})
		w.see(r, "running | last:created shown:running")
		for _, id := range []int64{first, second} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/pipelines/%d", other, id), As: w.owner, Status: 204})
		}
		w.sweep()
		w.see(r, "failed | last:skipped shown:failed")
	})
}
