package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// jobOf returns the ID and state of the only job of a pipeline.
func jobOf(t *testing.T, b *bench, pipeline int64) (id int64, status, reason string) {
	t.Helper()
	var jobs []struct {
		ID     int64
		Status string
		Reason string `json:"failure_reason"`
	}
	b.s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs", pipeline), As: b.owner, Status: 200}).JSON(t, &jobs)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	return jobs[0].ID, jobs[0].Status, jobs[0].Reason
}

// TestProtectedEnvironments deploys to environments that require a role and
// approvals.
func TestProtectedEnvironments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "up: {script: [x], environment: production}")
		tokens, ids := map[string]string{}, map[string]int64{}
		for name, level := range map[string]int{"dev": 30, "dana": 40, "rita": 20} {
			ids[name], tokens[name] = s.User(t, name)
			s.Check(t, apptest.Call{Do: "POST " + b.at("/members"), As: b.owner, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, ids[name], level), Status: 201})
		}
		at := b.at("/protected_environments")
		_, stranger := s.User(t, "stranger")
		hidden := group(t, s, stranger, "hidden", `,"visibility":"private"`)
		s.Table(t, []apptest.Call{
			{Name: "no levels", Do: "POST " + at, As: b.owner, JSON: `{"name":"production"}`, Status: 400},
			{Name: "two in one", Do: "POST " + at, As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":40,"user_id":1}]}`, Status: 422},
			{Name: "odd level", Do: "POST " + at, As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":10}]}`, Status: 422},
			{Name: "stranger", Do: "POST " + at, As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"user_id":1}]}`, Status: 422},
			{Name: "a hidden group", Do: "POST " + at, As: b.owner, JSON: fmt.Sprintf(`{"name":"production","deploy_access_levels":[{"group_id":%d}]}`, hidden), Status: 422,
				Want: `{"message":"Group does not exist"}`},
			{Name: "protect", Do: "POST " + at, As: b.owner, JSON: fmt.Sprintf(`{"name":"production","deploy_access_levels":[{"user_id":%d}]}`, ids["dana"]), Status: 201,
				Want: fmt.Sprintf(`{"name":"production","deploy_access_levels":[{"access_level":null,"access_level_description":"dana","user_id":%d,"group_id":null,"group_inheritance_type":0}],"approval_rules":[],"required_approval_count":0}`, ids["dana"])},
			{Name: "twice", Do: "POST " + at, As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}]}`, Status: 409},
			{Name: "list", Do: "GET " + at, As: b.owner, Status: 200, Want: `[{"name":"production"}]`},
		})
		failed := b.pipeline(b.project)
		b.settled()
		if id, status, reason := jobOf(t, b, failed); status != "failed" || reason != "protected_environment_failure" {
			t.Errorf("the job of one who may not deploy is %s, %s", status, reason)
		} else {
			s.Check(t, apptest.Call{Name: "retry", Do: "POST " + b.at("/jobs/%d/retry", id), As: b.owner, Status: 403})
		}
		s.Table(t, []apptest.Call{
			{Name: "maintainers", Do: "PUT " + at + "/production", As: b.owner, JSON: `{"deploy_access_levels":[{"access_level":40}],"approval_rules":[{"access_level":30,"required_approvals":1}]}`, Status: 200,
				Want: `{"deploy_access_levels":[{"user_id":"<any>"},{"access_level":40,"access_level_description":"Maintainers"}],"approval_rules":[{"access_level":30,"required_approvals":1}]}`},
		})
		blocked := b.pipeline(b.project)
		b.settled()
		job, status, _ := jobOf(t, b, blocked)
		if status != "manual" {
			t.Errorf("the job that waits for approval is %s", status)
		}
		var list []struct {
			ID     int64
			Status string
		}
		s.Check(t, apptest.Call{Do: "GET " + b.at("/deployments?status=blocked"), As: b.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 {
			t.Fatalf("blocked deployments: %v", list)
		}
		approve := "POST " + b.at("/deployments/%d/approval", list[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "not yet", Do: "POST " + b.at("/jobs/%d/play", job), As: b.owner, Status: 403},
			{Name: "own deployment", Do: approve, As: b.owner, JSON: `{"status":"approved"}`, Status: 400},
			{Name: "no approver", Do: approve, As: tokens["rita"], JSON: `{"status":"approved"}`, Status: 400},
			{Name: "no such rule", Do: approve, As: tokens["dev"], JSON: `{"status":"approved","represented_as":"x"}`, Status: 400},
			{Name: "pending", Do: "GET " + b.at("/deployments/%d", list[0].ID), As: b.owner, Status: 200, Want: `{"status":"blocked","pending_approval_count":1,"approvals":[],"approval_summary":{"rules":[{"access_level":30,"required_approvals":1}]}}`},
			{Name: "approve", Do: approve, As: tokens["dev"], JSON: `{"status":"approved","comment":"good","represented_as":"Developers + Maintainers"}`, Status: 201, Want: `{"status":"approved","comment":"good","user":{"username":"dev"}}`},
			{Name: "approved", Do: "GET " + b.at("/deployments/%d", list[0].ID), As: b.owner, Status: 200, Want: `{"status":"created","pending_approval_count":0,"approvals":[{"status":"approved"}]}`},
			{Name: "too late", Do: approve, As: tokens["dev"], JSON: `{"status":"rejected"}`, Status: 400},
			{Name: "a developer may not deploy", Do: "POST " + b.at("/jobs/%d/play", job), As: tokens["dev"], Status: 403},
			{Name: "start", Do: "POST " + b.at("/jobs/%d/play", job), As: b.owner, Status: 200},
		})
		b.settled()
		j := b.run()
		if j.ID != job {
			t.Errorf("another job runs: %d", j.ID)
		}
		b.update(j, 200, `{"state":"success"}`)

		rejected := b.pipeline(b.project)
		b.settled()
		job, _, _ = jobOf(t, b, rejected)
		s.Check(t, apptest.Call{Do: "GET " + b.at("/deployments?status=blocked"), As: b.owner, Status: 200}).JSON(t, &list)
		s.Check(t, apptest.Call{Name: "reject", Do: "POST " + b.at("/deployments/%d/approval", list[0].ID), As: tokens["dev"], JSON: `{"status":"rejected"}`, Status: 201})
		if _, status, reason := jobOf(t, b, rejected); status != "failed" || reason != "deployment_rejected" {
			t.Errorf("the job of a rejected deployment is %s, %s", status, reason)
		}
		s.Table(t, []apptest.Call{
			{Name: "unprotect", Do: "DELETE " + at + "/production", As: b.owner, Status: 204},
			{Name: "gone", Do: "GET " + at + "/production", As: b.owner, Status: 404},
			{Name: "open again", Do: "POST " + b.at("/jobs/%d/retry", job), As: tokens["dana"], Status: 201},
		})
		g := group(t, s, b.owner, "g", "")
		s.Table(t, []apptest.Call{
			{Name: "no tier", Do: fmt.Sprintf("POST /groups/%d/protected_environments", g), As: b.owner, JSON: `{"name":"x","deploy_access_levels":[{"access_level":40}]}`, Status: 422},
			{Name: "tier", Do: fmt.Sprintf("POST /groups/%d/protected_environments", g), As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":60}]}`, Status: 201},
			{Name: "into the group", Do: "PUT " + b.at("/transfer"), As: b.owner, JSON: fmt.Sprintf(`{"namespace":%d}`, g), Status: 200},
		})
		b.run() // of the retry
		failed = b.pipeline(b.project)
		b.settled()
		if _, status, reason := jobOf(t, b, failed); status != "failed" || reason != "protected_environment_failure" {
			t.Errorf("the job under a group that protects production is %s, %s", status, reason)
		}
	})
}

// TestManualDeploymentApproval starts a manual job whose deployment requires an
// approval.
func TestManualDeploymentApproval(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "up: {script: [x], environment: production, when: manual}")
		id, dev := s.User(t, "dev")
		s.Check(t, apptest.Call{Do: "POST " + b.at("/members"), As: b.owner, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, id), Status: 201})
		early, _, _ := jobOf(t, b, b.pipeline(b.project))
		s.Check(t, apptest.Call{Do: "POST " + b.at("/protected_environments"), As: b.owner, Status: 201,
			JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}],"approval_rules":[{"access_level":30}]}`})
		blocked := func(n int) (list []struct{ ID int64 }) {
			t.Helper()
			b.settled()
			s.Check(t, apptest.Call{Do: "GET " + b.at("/deployments?status=blocked"), As: b.owner, Status: 200}).JSON(t, &list)
			if len(list) != n {
				t.Fatalf("%d deployments are blocked, want %d", len(list), n)
			}
			return list
		}
		blocked(0)
		job, _, _ := jobOf(t, b, b.pipeline(b.project))
		list := blocked(1)
		play := "POST " + b.at("/jobs/%d/play", job)
		s.Table(t, []apptest.Call{
			{Name: "not approved", Do: play, As: b.owner, Status: 403},
			{Name: "approve", Do: "POST " + b.at("/deployments/%d/approval", list[0].ID), As: dev, JSON: `{"status":"approved"}`, Status: 201},
			{Name: "approved", Do: play, As: b.owner, Status: 200},
		})
		b.settled()
		if j := b.run(); j.ID != job {
			t.Errorf("job %d runs, want %d", j.ID, job)
		}
		// The job was created before the protection.
		blocked(0)
		s.Check(t, apptest.Call{Do: "POST " + b.at("/jobs/%d/play", early), As: b.owner, Status: 403})
		blocked(1)
	})
}

// TestFreezePeriods checks the variable CI_DEPLOY_FREEZE of jobs.
func TestFreezePeriods(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}\nb: {script: [x], rules: [{if: $CI_DEPLOY_FREEZE}]}\n")
		at := b.at("/freeze_periods")
		s.Table(t, []apptest.Call{
			{Name: "bad start", Do: "POST " + at, As: b.owner, JSON: `{"freeze_start":"x","freeze_end":"0 7 * * 1"}`, Status: 400, Want: `{"message":{"freeze_start":["is invalid syntax"]}}`},
			{Name: "bad zone", Do: "POST " + at, As: b.owner, JSON: `{"freeze_start":"0 7 * * 1","freeze_end":"0 7 * * 1","cron_timezone":"Nowhere/X"}`, Status: 400},
			{Name: "never", Do: "POST " + at, As: b.owner, JSON: `{"freeze_start":"0 0 31 4 *","freeze_end":"0 7 * * 1"}`, Status: 400},
			{Name: "short", Do: "POST " + at, As: b.owner, JSON: `{"freeze_start":"@daily","freeze_end":"0 7 * * 1"}`, Status: 400},
		})
		// From the first minute of the year to the last, so almost always.
		s.Table(t, []apptest.Call{
			{Name: "create", Do: "POST " + at, As: b.owner, JSON: `{"freeze_start":"0 0 1 1 *","freeze_end":"59 23 31 12 *"}`, Status: 201, Want: `{"id":1,"cron_timezone":"UTC"}`},
			{Name: "change", Do: "PUT " + at + "/1", As: b.owner, JSON: `{"cron_timezone":"Europe/Berlin"}`, Status: 200, Want: `{"freeze_start":"0 0 1 1 *","cron_timezone":"Europe/Berlin"}`},
			{Name: "list", Do: "GET " + at, As: b.owner, Status: 200, Want: `[{"id":1}]`},
		})
		frozen := func() int {
			var jobs []struct{ Name string }
			s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs", b.pipeline(b.project)), As: b.owner, Status: 200}).JSON(t, &jobs)
			return len(jobs)
		}
		if n := frozen(); n != 2 {
			t.Errorf("%d jobs during a freeze, want 2", n)
		}
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/1", As: b.owner, Status: 204})
		if n := frozen(); n != 1 {
			t.Errorf("%d jobs without a freeze, want 1", n)
		}
	})
}

// TestChangeProtectedEnvironments checks that those who may not deploy to a protected
// environment can neither change, stop or delete it, nor record deployments to it, and
// that its deletion does not end the protection for jobs that exist.
func TestChangeProtectedEnvironments(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "up: {script: [x], when: manual, environment: production}")
		id, dev := s.User(t, "dev")
		s.Check(t, apptest.Call{Do: "POST " + b.at("/members"), As: b.owner, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, id), Status: 201})
		job, _, _ := jobOf(t, b, b.pipeline(b.project))
		b.settled()
		var environments []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + b.at("/environments"), As: dev, Status: 200}).JSON(t, &environments)
		if len(environments) != 1 {
			t.Fatalf("environments: %v", environments)
		}
		at := b.at("/environments/%d", environments[0].ID)
		var branch struct{ Commit struct{ ID string } }
		s.Check(t, apptest.Call{Do: "GET " + b.at("/repository/branches/main"), As: dev, Status: 200}).JSON(t, &branch)
		deployed := fmt.Sprintf(`{"environment":"production","ref":"main","tag":false,"sha":%q,"status":"running"}`, branch.Commit.ID)
		var d struct{ ID int64 }
		s.Check(t, apptest.Call{Name: "without protection", Do: "POST " + b.at("/deployments"), As: dev, JSON: deployed, Status: 201}).JSON(t, &d)
		refused := func(name string) {
			t.Helper()
			s.Table(t, []apptest.Call{
				{Name: name + ": deploy", Do: "POST " + b.at("/deployments"), As: dev, JSON: deployed, Status: 403},
				{Name: name + ": end a deployment", Do: "PUT " + b.at("/deployments/%d", d.ID), As: dev, JSON: `{"status":"success"}`, Status: 403},
				{Name: name + ": change the tier", Do: "PUT " + at, As: dev, JSON: `{"tier":"other"}`, Status: 403},
				{Name: name + ": stop", Do: "POST " + at + "/stop?force=true", As: dev, Status: 403},
				{Name: name + ": delete", Do: "DELETE " + at, As: dev, Status: 403},
				{Name: name + ": play", Do: "POST " + b.at("/jobs/%d/play", job), As: dev, Status: 403},
			})
		}
		protection := b.at("/protected_environments")
		s.Check(t, apptest.Call{Do: "POST " + protection, As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}]}`, Status: 201})
		refused("project")
		s.Check(t, apptest.Call{Do: "DELETE " + protection + "/production", As: b.owner, Status: 204})
		g := group(t, s, b.owner, "g", "")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /groups/%d/protected_environments", g), As: b.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}]}`, Status: 201},
			{Do: "PUT " + b.at("/transfer"), As: b.owner, JSON: fmt.Sprintf(`{"namespace":%d}`, g), Status: 200},
		})
		refused("group")
		s.Table(t, []apptest.Call{
			{Name: "to another tier", Do: "PUT " + at, As: b.owner, JSON: `{"tier":"other"}`, Status: 200},
			{Name: "into the protected tier", Do: "PUT " + at, As: dev, JSON: `{"tier":"production"}`, Status: 403},
			{Name: "outside of it", Do: "PUT " + at, As: dev, JSON: `{"tier":"staging"}`, Status: 200},
			{Name: "stop", Do: "POST " + at + "/stop?force=true", As: b.owner, Status: 200},
			{Name: "delete", Do: "DELETE " + at, As: b.owner, Status: 204},
			{Name: "play without the environment", Do: "POST " + b.at("/jobs/%d/play", job), As: dev, Status: 403},
			{Name: "as one who may deploy", Do: "POST " + b.at("/jobs/%d/play", job), As: b.owner, Status: 200},
		})
		b.settled()
		if j := b.run(); j.ID != job {
			t.Errorf("job %d runs, want %d", j.ID, job)
		}
	})
}

// TestProtectedEnvironmentsOfTriggerJobs checks that trigger jobs obey the protection
// of their environment, whose variables they can pass on.
func TestProtectedEnvironmentsOfTriggerJobs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		id, dev := s.User(t, "dev")
		member(t, s, w.owner, w.project, id, 30)
		protection := w.bench.at("/protected_environments")
		s.Table(t, []apptest.Call{
			{Do: w.at("POST", "/variables"), As: w.owner, JSON: `{"key":"TOKEN","value":"of-production","environment_scope":"production"}`, Status: 201},
			{Do: "POST " + protection, As: w.owner, JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}]}`, Status: 201},
		})
		maintainer := w.owner
		w.owner = dev
		p := w.push("main", "one", map[string]string{
			".gitlab-ci.yml": "up: {environment: production, variables: {PASSED: $TOKEN}, trigger: {include: [{local: child.yml}]}}\n",
			"child.yml":      "inner: {script: [x]}\n",
		})
		w.see(p, "failed | up:failed")
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines/%d/bridges", p), As: dev, Status: 200, Want: `[{"failure_reason":"protected_environment_failure","downstream_pipeline":null}]`},
			{Do: w.at("GET", "/pipelines?source=parent_pipeline"), As: dev, Status: 200, Want: `[]`},
			{Do: w.at("GET", "/deployments"), As: dev, Status: 200, Want: `[{"status":"failed"}]`},
		})
		w.owner = maintainer
		q := w.push("main", "two", map[string]string{"x": "1"})
		w.see(q, "success | up:success")
		var children []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines?source=parent_pipeline"), As: w.owner, Status: 200}).JSON(t, &children)
		if len(children) != 1 {
			t.Fatalf("%d child pipelines", len(children))
		}
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines/%d/variables", children[0].ID), As: w.owner, Status: 200, Want: `[{"key":"PASSED","value":"of-production"}]`},
			{Do: w.at("GET", "/deployments?status=success"), As: w.owner, Status: 200, Want: `[{"environment":{"name":"production"}}]`},
			{Do: "PUT " + protection + "/production", As: w.owner, JSON: `{"approval_rules":[{"access_level":30}]}`, Status: 200},
		})
		r := w.push("main", "three", map[string]string{"y": "1"})
		w.see(r, "manual | up:manual")
		var blocked []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/deployments?status=blocked"), As: w.owner, Status: 200}).JSON(t, &blocked)
		if len(blocked) != 1 {
			t.Fatalf("%d deployments are blocked", len(blocked))
		}
		var bridges []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/bridges", r), As: w.owner, Status: 200, Want: `[{"downstream_pipeline":null}]`}).JSON(t, &bridges)
		w.act(bridges[0].ID, "play", 403, "")
		s.Check(t, apptest.Call{Do: w.at("POST", "/deployments/%d/approval", blocked[0].ID), As: dev, JSON: `{"status":"approved"}`, Status: 201})
		w.act(bridges[0].ID, "play", 200, "")
		w.settled()
		w.see(r, "success | up:success")
	})
}
