package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

func TestDispatchRules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `
plain: {script: [x]}
tagged: {script: [x], tags: [linux, big]}
`)
		g := group(t, s, b.owner, "g", "")
		away := newProject(t, s, b.owner, "away", fmt.Sprintf(`,"namespace_id":%d`, g))
		s.Repository(t, away, gittest.Commit{Changes: file(".gitlab-ci.yml", "of-group: {script: [x]}")})
		runner := func(as, body string) string { return newRunner(t, s, as, body) }
		tests := []struct {
			name  string
			token string
			jobs  []string // in this order, then none
		}{
			{"paused", runner(root, `{"runner_type":"instance_type","paused":true}`), nil},
			{"of another project", runner(b.owner, fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, newProject(t, s, b.owner, "third", ""))), nil},
			{"of a protected ref", runner(root, `{"runner_type":"instance_type","access_level":"ref_protected","tag_list":["linux","big"]}`), nil},
			{"without all tags", runner(root, `{"runner_type":"instance_type","run_untagged":false,"tag_list":["linux"]}`), nil},
			{"of the group", runner(b.owner, fmt.Sprintf(`{"runner_type":"group_type","group_id":%d}`, g)), []string{"of-group"}},
			{"tagged alone", runner(root, `{"runner_type":"instance_type","run_untagged":false,"tag_list":["linux","big","more"]}`), []string{"tagged"}},
			{"of the project", runner(b.owner, fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, b.project)), []string{"plain"}},
		}
		b.unprotect()
		b.pipeline(b.project)
		b.pipeline(away)
		for _, tt := range tests {
			for _, want := range tt.jobs {
				if j := b.take(tt.token, 201, ""); j == nil || j.JobInfo.Name != want {
					t.Errorf("%s: got %+v, want %s", tt.name, j, want)
				}
			}
			b.take(tt.token, 204, "")
		}
		// Instance runners get no jobs of a project that disables them.
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"shared_runners_enabled":false}`, Status: 200})
		b.pipeline(b.project)
		b.take(b.runner, 204, "")
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"shared_runners_enabled":true}`, Status: 200})
		// The timeout of the runner overrides a longer timeout of the job.
		var given struct{ ID int64 }
		short := runner(root, `{"runner_type":"instance_type","maximum_timeout":700}`)
		s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, short), Status: 201, Want: `{"runner_info":{"timeout":700},"job_info":{"name":"plain"}}`}).JSON(t, &given)
		// That timeout applies to the runner only: another one gets the timeout of
		// the job.
		s.Check(t, apptest.Call{Do: "POST " + b.at("/jobs/%d/cancel", given.ID), As: b.owner, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + b.at("/jobs/%d/retry", given.ID), As: b.owner, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, b.runner), Status: 201, Want: `{"runner_info":{"timeout":3600},"job_info":{"name":"plain"}}`})
	})
}

// unprotect removes the protection of main.
func (b *bench) unprotect() {
	b.t.Helper()
	b.s.Send(b.t, apptest.Call{Do: "DELETE " + b.at("/protected_branches/main"), As: b.owner})
}

// TestDispatchProtected checks that a runner for protected refs only gets jobs of
// protected refs.
func TestDispatchProtected(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		safe := newRunner(t, s, root, `{"runner_type":"instance_type","access_level":"ref_protected"}`)
		b.unprotect()
		b.pipeline(b.project)
		b.take(safe, 204, "")
		s.Send(t, apptest.Call{Do: "POST " + b.at("/protected_branches"), As: b.owner, JSON: `{"name":"main"}`})
		b.pipeline(b.project)
		if j := b.take(safe, 201, ""); j == nil {
			t.Error("the protected job was not given")
		}
		b.take(safe, 204, "")
		b.take(b.runner, 201, "") // the job of the first pipeline
	})
}

// TestDispatchIsFair checks that a project with many jobs does not delay one with
// few.
func TestDispatchIsFair(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "big: {script: [x], parallel: 20}")
		few := b.newProject("few", "small: {script: [x], parallel: 2}")
		b.pipeline(b.project)
		b.pipeline(few)
		var order []string
		for range 6 {
			order = append(order, b.run().JobInfo.Name[:3])
		}
		if got, want := fmt.Sprint(order), "[big sma big sma big big]"; got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	})
}

// TestClaimIsGivenBack checks that a job is assigned again if its runner does not
// start it.
func TestClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		first := b.take(b.runner, 201, twoPhase)
		b.take(b.runner, 204, twoPhase)
		s.Clock.Move(3 * time.Minute)
		if err := s.CI.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := b.take(b.runner, 201, twoPhase)
		if second == nil || second.ID != first.ID || second.Token == first.Token {
			t.Fatalf("the job was not given back: %+v", second)
		}
		b.update(first, 403, `{"state":"running"}`)
		b.update(first, 403, `{"state":"success"}`)
		b.update(second, 200, `{"state":"running"}`)
		b.update(first, 403, `{"state":"success"}`)
	})
}

// TestGracefulCancel checks that a runner with the feature cancel_gracefully can
// clean up.
func TestGracefulCancel(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.take(b.runner, 201, `,"info":{"features":{"cancel_gracefully":true}}`)
		b.patch(j, 0, "one", 202)
		if _, err := s.CI.Cancel(t.Context(), actorOf(t, s, b.owner), project.RefTo(b.project), j.ID, false); err != nil {
			t.Fatal(err)
		}
		if got := b.patch(j, 3, " after", 202); got.Header.Get("Job-Status") != "canceling" {
			t.Errorf("Job-Status is %q", got.Header.Get("Job-Status"))
		}
		if got := b.update(j, 200, `{"state":"failed","failure_reason":"script_failure"}`); got.Header.Get("Job-Status") != "canceled" {
			t.Errorf("at the end Job-Status is %q", got.Header.Get("Job-Status"))
		}
		b.patch(j, 9, "late", 403)
		b.putAway()
		if got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200}); string(got.Body) != "one after" {
			t.Errorf("the log is %q", got.Body)
		}
		if n := b.blobs(); n != 1 {
			t.Errorf("%d logs are put away", n)
		}
	})
}

// TestSilentBehindBridges checks that the end of a job without a runner does not wait
// for trigger jobs, which have none.
func TestSilentBehindBridges(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "many: {script: [x], parallel: 100}")
		one := b.newProject("one", "long: {script: [x], timeout: 10h}")
		// Rows like those of trigger jobs that wait for their pipelines.
		many := b.pipeline(b.project)
		for _, text := range []string{`UPDATE jobs SET bridge = TRUE, status = 'running', started_at = 1, heard_at = 1 WHERE pipeline_id = ?`,
			`DELETE FROM job_queue WHERE job_id IN (SELECT id FROM jobs WHERE pipeline_id = ?)`} {
			if _, err := s.DB.ExecContext(t.Context(), text, many); err != nil {
				t.Fatal(err)
			}
		}
		b.pipeline(one)
		j := b.run()
		s.Clock.Move(61 * time.Minute)
		if err := s.CI.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/jobs/%d", one, j.ID), As: b.owner, Status: 200, Want: `{"status":"failed"}`})
	})
}

// TestSkippedTurn checks that a job does not wait for a job of its resource group
// that was skipped.
func TestSkippedTurn(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "stages: [a, b]\na: {stage: a, script: [x]}\nb: {stage: b, script: [x], resource_group: box}")
		b.pipeline(b.project)
		s.Check(t, apptest.Call{Do: "PUT " + b.at("/resource_groups/box"), As: b.owner, JSON: `{"process_mode":"oldest_first"}`, Status: 200})
		second := b.pipeline(b.project)
		older, newer := b.run(), b.run()
		b.update(newer, 200, `{"state":"success"}`)
		b.settled()
		var jobs []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs?scope=waiting_for_resource", second), As: b.owner, Status: 200}).JSON(t, &jobs)
		if len(jobs) != 1 {
			t.Fatalf("%d jobs wait for the resource", len(jobs))
		}
		b.update(older, 200, `{"state":"failed"}`)
		b.settled()
		if status := b.status(jobs[0].ID); status != "pending" {
			t.Errorf("the job is %s after the older one was skipped", status)
		}
	})
}
