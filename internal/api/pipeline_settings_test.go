package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestPipelineInputs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `spec:
  inputs:
    name: {default: plain}
    count: {type: number, default: 1}
    fast: {type: boolean, default: false}
    who: {type: array, default: []}
    where: {options: [here, there], default: here}
---
"job-$[[ inputs.name ]]-$[[ inputs.fast ]]-$[[ inputs.where ]]":
  script: [x]
  parallel: $[[ inputs.count ]]
  tags: $[[ inputs.who ]]
`)
		trigger := struct{ Token string }{}
		s.Check(t, apptest.Call{Do: w.at("POST", "/triggers"), As: w.owner, JSON: `{"description":"t"}`, Status: 201}).JSON(t, &trigger)
		made := func(do, body string) string {
			t.Helper()
			var p struct{ ID int64 }
			call := apptest.Call{Do: do, As: w.owner, JSON: body, Status: 201}
			if !strings.HasPrefix(body, "{") {
				form, err := url.ParseQuery(body)
				if err != nil {
					t.Fatal(err)
				}
				call.JSON, call.Form = "", form
			}
			s.Check(t, call).JSON(t, &p)
			return w.statesIn(w.project, p.ID)
		}
		create := w.at("POST", "/pipeline")
		for body, want := range map[string]string{
			`{"ref":"main"}`: "job-plain-false-here 1/1:pending",
			`{"ref":"main","inputs":{"name":"1.0","count":2,"fast":true,"who":["a","b"],"where":"there"}}`: "job-1.0-true-there 1/2:pending job-1.0-true-there 2/2:pending",
			`ref=main&inputs[name]=yes&inputs[count]=1&inputs[fast]=true&inputs[who][]=a`:                  "job-yes-true-here 1/1:pending",
		} {
			if got := made(create, body); got != want {
				t.Errorf("%s made %s, want %s", body, got, want)
			}
		}
		if got := made(w.at("POST", "/trigger/pipeline"), fmt.Sprintf(`{"token":%q,"ref":"main","inputs":{"count":"2"}}`, trigger.Token)); !strings.Contains(got, "2/2") {
			t.Errorf("the trigger made %s", got)
		}
		for input, want := range map[string]string{
			`"count":"many"`:      "`count` input: provided value is not a number",
			`"fast":3`:            "`fast` input: provided value is not a boolean",
			`"name":["a","b"]`:    "`name` input: provided value is not a string",
			`"where":"elsewhere"`: "`where` input: `elsewhere` cannot be used because it is not in the list of allowed options",
			`"other":1`:           "unknown input arguments: `other`",
		} {
			s.Check(t, apptest.Call{Name: input, Do: create, As: w.owner, JSON: `{"ref":"main","inputs":{` + input + `}}`, Status: 400,
				Want: fmt.Sprintf(`{"message":{"base":[%q]}}`, want)})
		}
	})
}

// TestLintKeepsSecrets checks that CI Lint does not reveal variables that the caller
// cannot see.
func TestLintKeepsSecrets(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "include: '/$OPEN-$GUARDED.yml'\na: {script: [x]}\n")
		_, dave := s.User(t, "dave")
		_, mary := s.User(t, "mary")
		for _, c := range []apptest.Call{
			{Do: w.at("PUT", ""), JSON: `{"visibility":"public"}`, Status: 200},
			{Do: w.at("POST", "/members"), JSON: `{"username":"dave","access_level":30}`, Status: 201},
			{Do: w.at("POST", "/protected_branches"), JSON: `{"name":"main","push_access_level":40,"merge_access_level":40}`, Status: 201},
			{Do: w.at("POST", "/variables"), JSON: `{"key":"OPEN","value":"daily"}`, Status: 201},
			{Do: w.at("POST", "/variables"), JSON: `{"key":"GUARDED","value":"hunter22","protected":true}`, Status: 201},
		} {
			c.As = w.owner
			s.Check(t, c)
		}
		for _, tt := range []struct{ name, as, want string }{
			{"owner", w.owner, "daily-hunter22"}, {"developer", dave, "daily-$GUARDED"}, {"stranger", mary, "$OPEN-$GUARDED"}, {"nobody", "", "$OPEN-$GUARDED"},
		} {
			s.Check(t, apptest.Call{Name: tt.name, Do: w.at("GET", "/ci/lint"), As: tt.as, Status: 200,
				Want: fmt.Sprintf(`{"valid":false,"errors":["Local file %s does not exist!"],"includes":[{"location":"%s.yml"}]}`, "`"+tt.want+".yml`", tt.want)})
		}
		s.Check(t, apptest.Call{Do: w.at("POST", "/ci/lint"), As: dave, JSON: `{"content":"include: '$GUARDED.yml'","ref":"main","dry_run":true}`, Status: 200,
			Want: "{\"errors\":[\"Local file `$GUARDED.yml` does not exist!\"]}"})
	})
}

func TestOutdatedDeployments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		set := func(body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: w.at("PUT", ""), As: w.owner, JSON: body, Status: 200})
		}
		set(`{"auto_cancel_pending_pipelines":"disabled"}`)
		yaml := "wait: {stage: build, script: [x]}\nship: {stage: deploy, script: [x], environment: live%s}\n"
		old := w.push("main", "one", map[string]string{".gitlab-ci.yml": fmt.Sprintf(yaml, "")})
		w.pick()
		held := w.held["wait"]
		between := w.push("main", "two", map[string]string{".gitlab-ci.yml": fmt.Sprintf(yaml, ", tags: [nobody]")})
		w.end("success", "", "wait")
		newer := w.push("main", "three", map[string]string{".gitlab-ci.yml": fmt.Sprintf(yaml, "")})
		w.end("success", "", "wait")
		w.see(between, "running | ship:pending wait:success")
		// The latest deployment finishes first: older jobs that are pending or
		// created later fail.
		w.end("success", "", "ship")
		w.see(newer, "success | ship:success wait:success")
		w.see(between, "failed | ship:failed wait:success")
		w.update(held, 200, `{"state":"success"}`)
		w.settled()
		w.see(old, "failed | ship:failed wait:success")
		s.Check(t, apptest.Call{Do: w.at("GET", "/jobs/%d", w.job(old, "ship")), As: w.owner, Status: 200, Want: `{"failure_reason":"unmet_prerequisites"}`})
		s.Check(t, apptest.Call{Do: w.at("GET", "/deployments?status=failed"), As: w.owner, Status: 200, Want: `[{"ref":"main"},{"ref":"main"}]`})

		// Rollbacks are allowed, unless the project disables them.
		set(`{"ci_forward_deployment_rollback_allowed":false}`)
		w.act(w.job(old, "ship"), "retry", 403, "")
		set(`{"ci_forward_deployment_rollback_allowed":true}`)
		w.act(w.job(old, "ship"), "retry", 201, `{"status":"pending"}`)

		// Without the setting, any order is allowed.
		set(`{"ci_forward_deployment_enabled":false}`)
		w.end("success", "", "ship")
		first := w.push("main", "four", map[string]string{"x": "1"})
		w.pick()
		held = w.held["wait"]
		w.push("main", "five", map[string]string{"x2": "1"})
		w.end("success", "", "wait")
		w.end("success", "", "ship")
		w.update(held, 200, `{"state":"success"}`)
		w.settled()
		w.end("success", "", "ship")
		w.see(first, "success | ship:success wait:success")
	})
}

// TestRetryOutdatedDeployments checks that neither an automatic retry nor the retry of a
// pipeline deploys an older version if the project does not allow it.
func TestRetryOutdatedDeployments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		s.Check(t, apptest.Call{Do: w.at("PUT", ""), As: w.owner, JSON: `{"auto_cancel_pending_pipelines":"disabled","ci_forward_deployment_rollback_allowed":false}`, Status: 200})
		old := w.push("main", "one", map[string]string{".gitlab-ci.yml": "ship: {script: [x], environment: live, retry: 1}\nother: {script: [x]}\n"})
		w.pick()
		ship, other := w.held["ship"], w.held["other"]
		w.push("main", "two", map[string]string{"x": "1"})
		w.end("success", "", "ship", "other")
		states := func(want string) {
			t.Helper()
			w.settled()
			if got := w.statesIn(w.project, old); got != want {
				t.Errorf("jobs are %s, want %s", got, want)
			}
		}
		w.update(ship, 200, `{"state":"failed"}`)
		states("other:running ship:failed")
		w.update(other, 200, `{"state":"failed"}`)
		s.Check(t, apptest.Call{Do: w.at("POST", "/pipelines/%d/retry", old), As: w.owner, Status: 201})
		states("other:pending ship:failed")
		s.Table(t, []apptest.Call{
			{Do: w.at("PUT", ""), As: w.owner, JSON: `{"ci_forward_deployment_rollback_allowed":true}`, Status: 200},
			{Do: w.at("POST", "/pipelines/%d/retry", old), As: w.owner, Status: 201},
		})
		states("other:pending ship:pending")
	})
}

func TestPipelineSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "a: {script: [x], interruptible: true}\n")
		first := w.push("main", "one", map[string]string{"x": "1"})
		w.push("main", "two", map[string]string{"x2": "1"})
		w.see(first, "canceled | a:canceled")
		w.pick()
		s.Check(t, apptest.Call{Do: w.at("PUT", ""), As: w.owner, Status: 200,
			JSON: `{"auto_cancel_pending_pipelines":"disabled","ci_default_git_depth":7,"build_timeout":1234,"build_git_strategy":"clone"}`})
		third := w.push("main", "three", map[string]string{"x3": "1"})
		w.push("main", "four", map[string]string{"x4": "1"})
		w.see(third, "pending | a:pending")
		a := s.Send(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, w.runner)})
		var job struct {
			GitInfo    struct{ Depth int }   `json:"git_info"`
			RunnerInfo struct{ Timeout int } `json:"runner_info"`
		}
		if err := json.Unmarshal(a.Body, &job); err != nil {
			t.Fatal(err)
		}
		if job.GitInfo.Depth != 7 || job.RunnerInfo.Timeout != 1234 {
			t.Errorf("the runner is told %+v", job)
		}
	})
}
