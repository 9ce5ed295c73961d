package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestResourceGroups(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		yaml := map[string]string{".gitlab-ci.yml": `
workflow: {auto_cancel: {on_new_commit: none}}
deploy: {script: [x], resource_group: "$CI_DEFAULT_BRANCH/box"}
`}
		first := w.push("main", "one", yaml)
		second := w.push("main", "two", map[string]string{"x": "2"})
		third := w.push("main", "three", map[string]string{"x": "3"})
		w.see(first, "pending | deploy:pending")
		w.see(second, "waiting_for_resource | deploy:waiting_for_resource")
		group := w.bench.at("/resource_groups")
		s.Table(t, []apptest.Call{
			{Do: "GET " + group, As: w.owner, Status: 200, Want: `[{"id":"<any>","key":"main/box","process_mode":"unordered"}]`},
			{Do: "GET " + group + "/main%2Fbox/upcoming_jobs", As: w.owner, Status: 200, Want: fmt.Sprintf(`[{"pipeline":{"id":%d}},{"pipeline":{"id":%d}}]`, second, third)},
			{Do: "GET " + group + "/main%2Fbox/current_job", As: w.owner, Status: 200, Want: fmt.Sprintf(`{"pipeline":{"id":%d}}`, first)},
			{Do: "PUT " + group + "/main%2Fbox?process_mode=nonsense", As: w.owner, Status: 400},
			{Do: "PUT " + group + "/main%2Fbox?process_mode=newest_first", As: w.owner, Status: 200, Want: `{"process_mode":"newest_first"}`},
			{Do: "GET " + group + "/none", As: w.owner, Status: 404},
		})
		w.end("success", "", "deploy")
		w.see(first, "success | deploy:success")
		w.see(second, "waiting_for_resource | deploy:waiting_for_resource")
		w.see(third, "pending | deploy:pending")
		w.act(w.job(third, "deploy"), "cancel", 201, "")
		w.settled()
		w.see(second, "pending | deploy:pending")
		w.end("failed", "", "deploy")
		w.see(second, "failed | deploy:failed")
		s.Check(t, apptest.Call{Do: "GET " + group + "/main%2Fbox/current_job", As: w.owner, Status: 404})

		// The oldest job comes first, even if it is not ready yet.
		s.Check(t, apptest.Call{Do: "PUT " + group + "/main%2Fbox?process_mode=oldest_first", As: w.owner, Status: 200})
		slow := w.push("main", "slow", map[string]string{".gitlab-ci.yml": `
workflow: {auto_cancel: {on_new_commit: none}}
stages: [build, deploy]
build: {stage: build, script: [x]}
deploy: {stage: deploy, script: [x], resource_group: "$CI_DEFAULT_BRANCH/box"}
`})
		quick := w.push("main", "quick", yaml)
		w.see(slow, "pending | build:pending deploy:created")
		w.see(quick, "waiting_for_resource | deploy:waiting_for_resource")
		w.end("failed", "", "build")
		w.see(slow, "failed | build:failed deploy:skipped")
		w.sweep()
		w.see(quick, "pending | deploy:pending")
	})
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		p := w.push("main", "one", map[string]string{".gitlab-ci.yml": `
stages: [deploy, stop]
review: {stage: deploy, script: [x], environment: {name: "review/$CI_COMMIT_REF_NAME", url: "https://$CI_ENVIRONMENT_SLUG.example.com", on_stop: halt, auto_stop_in: 2 days}}
live: {stage: deploy, script: [x], environment: production}
halt: {stage: stop, script: [x], when: manual, environment: {name: "review/$CI_COMMIT_REF_NAME", action: stop}}
`})
		at := w.bench.at("/environments")
		var list []struct {
			ID   int64
			Name string
			Slug string
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "?search=rev", As: w.owner, Status: 200, Want: `[{"name":"review/main","state":"available","tier":"development"}]`}).JSON(t, &list)
		review := list[0].ID
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "?name=production", As: w.owner, Status: 200, Want: `[{"name":"production","slug":"production","tier":"production","external_url":null,"auto_stop_at":null}]`},
			{Do: "GET " + at + "?search=re", As: w.owner, Status: 400},
			{Do: w.at("GET", "/deployments?environment=review/main"), As: w.owner, Status: 200, Want: `[{"iid":"<any>","status":"created","environment":{"name":"review/main"},
				"deployable":{"name":"review","status":"pending"},"user":{"username":"alice"}}]`},
		})
		w.pick()
		if got := w.held["review"].variable("CI_ENVIRONMENT_SLUG"); got != list[0].Slug || !strings.HasPrefix(got, "review-main-") {
			t.Errorf("slug is %q", got)
		}
		s.Check(t, apptest.Call{Do: w.at("GET", "/deployments?status=running"), As: w.owner, Status: 200, Want: `[{"status":"running"},{"status":"running"}]`})
		w.end("success", "", "review")
		w.end("failed", "", "live")
		w.see(p, "failed | halt:skipped live:failed review:success")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET %s/%d", at, review), As: w.owner, Status: 200, Want: `{"external_url":"https://` + list[0].Slug + `.example.com","auto_stop_at":"<any>",
				"last_deployment":{"status":"success","deployable":{"name":"review"}}}`},
			{Do: w.at("GET", "/deployments?status=failed"), As: w.owner, Status: 200, Want: `[{"environment":{"name":"production"}}]`},
			{Do: fmt.Sprintf("DELETE %s/%d", at, review), As: w.owner, Status: 403},
		})
		w.act(w.job(p, "live"), "retry", 201, "")
		w.end("success", "", "live")
		w.see(p, "success | halt:manual live:success review:success")
		// Jobs that only use the environment set when it is stopped.
		stops := func(file, want string) {
			t.Helper()
			w.push("use", file, map[string]string{".gitlab-ci.yml": file})
			w.end("success", "", "use")
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/%d", at, review), As: w.owner, Status: 200, Want: `{"state":"available","auto_stop_at":` + want + `}`})
		}
		stops("use: {script: [x], environment: {name: review/main, action: verify}}\n", `"<any>"`)
		stops("use: {script: [x], environment: {name: review/main, action: access, auto_stop_in: never}}\n", "null")
		stops("use: {script: [x], environment: {name: review/main, action: prepare, auto_stop_in: two days}}\n", `"<any>"`)
		// A user who cannot run jobs on main cannot start the job that stops the
		// environment.
		bobID, bob := s.User(t, "bob")
		member(t, s, w.owner, w.project, bobID, 30)
		s.Table(t, []apptest.Call{
			{Do: w.at("POST", "/protected_branches?name=main"), As: w.owner, Status: 201},
			{Do: fmt.Sprintf("POST %s/%d/stop", at, review), As: bob, Status: 403},
			{Do: fmt.Sprintf("GET %s/%d", at, review), As: bob, Status: 200, Want: `{"state":"available"}`},
			{Do: w.at("DELETE", "/protected_branches/main"), As: w.owner, Status: 204},
		})
		// The environment expires: the job that stops it runs.
		s.Clock.Move(49 * time.Hour)
		w.sweep()
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/%d", at, review), As: w.owner, Status: 200, Want: `{"state":"stopping"}`})
		w.end("success", "", "halt")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET %s/%d", at, review), As: w.owner, Status: 200, Want: `{"state":"stopped","auto_stop_at":null}`},
			{Do: fmt.Sprintf("DELETE %s/%d", at, review), As: w.owner, Status: 204},
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"box","external_url":"https://a.example"}`, Status: 201, Want: `{"name":"box","tier":"other","external_url":"https://a.example"}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"box"}`, Status: 400, Want: `{"message":{"name":["has already been taken"]}}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"/x/"}`, Status: 400},
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"y","external_url":"javascript:alert(1)"}`, Status: 400},
			{Do: w.at("POST", "/deployments"), As: w.owner, Status: 201, JSON: fmt.Sprintf(`{"environment":"box","sha":%q,"ref":"main","tag":false,"status":"running"}`, w.sha("main")),
				Want: `{"status":"running","environment":{"name":"box"},"deployable":null}`},
			{Do: w.at("POST", "/deployments"), As: w.owner, Status: 400, JSON: `{"environment":"box","sha":"0123","ref":"main","tag":false,"status":"running"}`},
		})
		var made []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/deployments?environment=box"), As: w.owner, Status: 200}).JSON(t, &made)
		one := w.bench.at("/deployments/%d", made[0].ID)
		s.Table(t, []apptest.Call{
			{Do: "DELETE " + one, As: w.owner, Status: 400},
			{Do: "PUT " + one + "?status=success", As: w.owner, Status: 200, Want: `{"status":"success"}`},
			{Do: "PUT " + one + "?status=failed", As: w.owner, Status: 400},
			{Do: "DELETE " + one, As: w.owner, Status: 400},
			{Do: "GET " + one, As: w.owner, Status: 200},
			{Do: w.at("GET", "/deployments/999999"), As: w.owner, Status: 404},
		})
		// Stale environments are stopped on request.
		s.Clock.Move(40 * 24 * time.Hour)
		stale := func(days int, status int) apptest.Call {
			return apptest.Call{Do: "POST " + at + "/stop_stale", As: w.owner, JSON: fmt.Sprintf(`{"before":%q}`, s.Clock.Now().AddDate(0, 0, -days).Format(time.RFC3339)), Status: status}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"fresh"}`, Status: 201},
			stale(6, 400), stale(3660, 400),
			{Do: "POST " + at + "/stop_stale", As: w.owner, Status: 400, Want: `{"error":"before is missing"}`},
			stale(8, 200),
			{Do: "GET " + at + "?states=stopped", As: w.owner, Status: 200, Want: `[{"name":"box"},{"name":"production"}]`},
			{Do: "GET " + at + "?states=available", As: w.owner, Status: 200, Want: `[{"name":"fresh"}]`},
		})
	})
}

// TestStopEnvironments stops environments whose stop job cannot be started yet, and
// stale environments of which one is protected.
func TestStopEnvironments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		w.push("main", "one", map[string]string{".gitlab-ci.yml": `
stages: [deploy, stop]
review: {stage: deploy, script: [x], environment: {name: review, on_stop: halt}}
slow: {stage: deploy, script: [x]}
halt: {stage: stop, script: [x], when: manual, environment: {name: review, action: stop}}
`})
		w.end("success", "", "review")
		at := w.bench.at("/environments")
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at, As: w.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 {
			t.Fatalf("%d environments", len(list))
		}
		one := fmt.Sprintf("%s/%d", at, list[0].ID)
		s.Check(t, apptest.Call{Do: "POST " + one + "/stop", As: w.owner, Status: 200})
		w.settled()
		s.Check(t, apptest.Call{Do: "GET " + one, As: w.owner, Status: 200, Want: `{"state":"stopped"}`})

		id, _ := s.User(t, "dana")
		member(t, s, w.owner, w.project, id, 40)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"first"}`, Status: 201},
			{Do: "POST " + at, As: w.owner, JSON: `{"name":"second"}`, Status: 201},
			{Do: w.at("POST", "/protected_environments"), As: w.owner, JSON: fmt.Sprintf(`{"name":"first","deploy_access_levels":[{"user_id":%d}]}`, id), Status: 201},
		})
		s.Clock.Move(40 * 24 * time.Hour)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/stop_stale", As: w.owner, JSON: fmt.Sprintf(`{"before":%q}`, s.Clock.Now().AddDate(0, 0, -8).Format(time.RFC3339)), Status: 200},
			{Do: "GET " + at + "?states=available", As: w.owner, Status: 200, Want: `[{"name":"first"}]`},
		})
	})
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `a: {script: [x]}`)
		bobID, bob := s.User(t, "bob")
		member(t, s, w.owner, w.project, bobID, 40)
		at := w.bench.at("/triggers")
		var made struct {
			ID    int64
			Token string
		}
		s.Check(t, apptest.Call{Do: "POST " + at, As: w.owner, JSON: `{"description":"nightly"}`, Status: 201, Want: `{"description":"nightly","last_used":null,"owner":{"username":"alice"}}`}).JSON(t, &made)
		one := fmt.Sprintf("%s/%d", at, made.ID)
		start := w.bench.at("/trigger/pipeline")
		s.Table(t, []apptest.Call{
			{Do: "GET " + one, As: bob, Status: 200, Not: []string{made.Token}},
			{Do: "GET " + at, As: w.owner, Status: 200, Want: `[{"token":"` + made.Token + `"}]`},
			{Do: "PUT " + one + "?description=x", As: bob, Status: 403},
			{Do: "PUT " + one + "?description=x", As: w.owner, Status: 200, Want: `{"description":"x"}`},
			{Do: "POST " + start + "?ref=main", Status: 400, Want: `{"error":"token is missing"}`},
			{Do: "POST " + start + "?ref=main&token=wrong", Status: 404},
			{Do: "POST " + start + "?ref=nowhere&token=" + made.Token, Status: 400, Want: `{"message":{"base":["Reference not found"]}}`},
			{Do: "POST " + start + "?ref=main&token=" + made.Token + "&variables[WHO]=me&variables[$x]=1", Status: 400},
			{Do: "POST " + start + "?ref=main&token=" + made.Token + "&variables[WHO]=me", Status: 201, Want: `{"source":"trigger","user":{"username":"alice"}}`},
			{Do: "GET " + one, As: w.owner, Status: 200, Want: `{"last_used":"<any>"}`},
		})
		w.pick()
		for key, want := range map[string]string{"WHO": "me", "CI_PIPELINE_TRIGGERED": "true", "CI_PIPELINE_SOURCE": "trigger", "GITLAB_USER_LOGIN": "alice"} {
			if got := w.held["a"].variable(key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		// A running job can also trigger a pipeline, with its job token.
		s.Check(t, apptest.Call{Do: "POST " + start + "?ref=main&token=" + w.held["a"].Token, Status: 201, Want: `{"source":"pipeline"}`})
		token := w.held["a"].Token
		w.update(w.held["a"], 200, `{"state":"success"}`)
		s.Table(t, []apptest.Call{
			{Do: "POST " + start + "?ref=main&token=" + token, Status: 404},
			{Do: "DELETE " + one, As: bob, Status: 204},
			{Do: "POST " + start + "?ref=main&token=" + made.Token, Status: 404},
		})
	})
}

func TestPipelineSchedules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `a: {script: [x], rules: [{if: $CI_PIPELINE_SOURCE == "schedule"}]}`)
		bobID, bob := s.User(t, "bob")
		member(t, s, w.owner, w.project, bobID, 30)
		carolID, carol := s.User(t, "carol")
		member(t, s, w.owner, w.project, carolID, 40)
		s.Check(t, apptest.Call{Do: w.at("POST", "/protected_branches?name=main"), As: w.owner, Status: 201})
		at := w.bench.at("/pipeline_schedules")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at, As: w.owner, JSON: `{"description":"nightly","ref":"main","cron":"0 1 * * *","cron_timezone":"Europe/Berlin"}`, Status: 201,
			Want: `{"description":"nightly","ref":"refs/heads/main","cron":"0 1 * * *","cron_timezone":"Europe/Berlin","active":true,"next_run_at":"<any>","last_pipeline":null,"variables":[]}`}).JSON(t, &made)
		one := fmt.Sprintf("%s/%d", at, made.ID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at, As: w.owner, JSON: `{"description":"x","ref":"main","cron":"every day"}`, Status: 400, Want: `{"message":{"cron":["syntax is invalid"]}}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"description":"x","ref":"main","cron":"0 1 * * *","cron_timezone":"Nowhere"}`, Status: 400, Want: `{"message":{"cron_timezone":["syntax is invalid"]}}`},
			{Do: "POST " + at, As: w.owner, JSON: `{"description":"x","ref":"nope","cron":"0 1 * * *"}`, Status: 400},
			{Do: "POST " + one + "/variables", As: w.owner, JSON: `{"key":"NIGHT","value":"1"}`, Status: 201, Want: `{"key":"NIGHT","value":"1","variable_type":"env_var"}`},
			{Do: "POST " + one + "/variables", As: w.owner, JSON: `{"key":"NIGHT","value":"1"}`, Status: 400, Want: `{"message":{"key":["has already been taken"]}}`},
			{Do: "PUT " + one + "/variables/NIGHT", As: w.owner, JSON: `{"value":"2"}`, Status: 200, Want: `{"value":"2"}`},
			{Do: "PUT " + one + "/variables/OTHER", As: w.owner, JSON: `{"value":"2"}`, Status: 404},
			{Do: "GET " + one, As: bob, Status: 200, Want: `{"owner":{"username":"alice"}}`, Not: []string{"NIGHT"}},
			{Do: "GET " + at + "?scope=inactive", As: bob, Status: 200, Want: `[]`},
			{Do: "PUT " + one + "?active=false", As: bob, Status: 403},
			{Do: "DELETE " + one, As: bob, Status: 403},
			{Do: "POST " + one + "/take_ownership", As: bob, Status: 403},
			{Do: "POST " + one + "/play", As: bob, Status: 403}, // main is protected
			// The owner of the schedule is alice: another Maintainer must take
			// ownership first.
			{Do: "GET " + one, As: carol, Status: 200, Want: `{"variables":[{"key":"NIGHT"}]}`},
			{Do: "PUT " + one + "?active=false", As: carol, Status: 403},
			{Do: "PUT " + one + "/variables/NIGHT", As: carol, JSON: `{"value":"3"}`, Status: 403},
			{Do: "POST " + one + "/take_ownership", As: carol, Status: 201, Want: `{"owner":{"username":"carol"}}`},
			{Do: "PUT " + one + "?description=mine", As: carol, Status: 200},
			{Do: "PUT " + one + "?description=nightly", As: w.owner, Status: 403},
			{Do: "POST " + one + "/take_ownership", As: w.owner, Status: 201},
			{Do: "PUT " + one + "?description=nightly", As: w.owner, Status: 200},
		})
		s.Clock.Move(25 * time.Hour)
		if err := s.CI.Schedules.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.settled()
		if err := s.CI.Schedules.RunDue(t.Context()); err != nil { // the next run is tomorrow
			t.Fatal(err)
		}
		w.settled()
		s.Table(t, []apptest.Call{
			{Do: "GET " + one, As: w.owner, Status: 200, Want: `{"last_pipeline":{"status":"pending","ref":"main"},"variables":[{"key":"NIGHT","value":"2"}]}`},
			{Do: "GET " + one + "/pipelines", As: bob, Status: 200, Want: `[{"source":"schedule"}]`},
			{Do: "POST " + one + "/play", As: w.owner, Status: 201, Want: `{"message":"201 Created"}`},
		})
		w.settled()
		w.pick()
		if got := w.held["a"].variable("NIGHT") + w.held["a"].variable("CI_PIPELINE_SCHEDULE_DESCRIPTION"); got != "2nightly" {
			t.Errorf("variables are %q", got)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + one + "/pipelines", As: bob, Status: 200, Want: `[{},{}]`},
			{Do: "PUT " + one + "?active=false", As: w.owner, Status: 200, Want: `{"active":false,"next_run_at":null}`},
			{Do: "DELETE " + one + "/variables/NIGHT", As: w.owner, Status: 202, Want: `{"key":"NIGHT"}`},
			{Do: "DELETE " + one, As: w.owner, Status: 204},
			{Do: "GET " + one, As: w.owner, Status: 404},
		})
	})
}
