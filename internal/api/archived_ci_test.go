package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// TestArchivedProjectSchedules checks that a schedule that is due while its project
// is archived creates no pipeline, then or later.
func TestArchivedProjectSchedules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `a: {script: [x]}`)
		other := b.newProject("other", `a: {script: [x]}`)
		for _, id := range []int64{b.project, other} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline_schedules", id), As: b.owner, JSON: `{"description":"nightly","ref":"main","cron":"0 1 * * *"}`, Status: 201})
		}
		aDay := func() {
			t.Helper()
			s.Clock.Move(24 * time.Hour)
			if err := s.CI.Schedules.RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settled()
		}
		see := func(id int64, want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pipelines", id), As: b.owner, Status: 200, Want: want})
		}
		s.Check(t, apptest.Call{Do: "POST " + b.at("/archive"), As: b.owner, Status: 201})
		aDay()
		see(b.project, `[]`)
		see(other, `[{"source":"schedule"}]`)
		s.Check(t, apptest.Call{Do: "POST " + b.at("/unarchive"), As: b.owner, Status: 201})
		aDay()
		see(b.project, `[{"source":"schedule"}]`)
		see(other, `[{"source":"schedule"},{"source":"schedule"}]`)
	})
}

// TestArchivedProjectJobFinishes archives a project while one of its jobs runs: the
// runner can send its log, artifacts and state, and gets no other job.
func TestArchivedProjectJobFinishes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "stages: [one, two]\na: {stage: one, script: [x], artifacts: {paths: [out]}}\nb: {stage: two, script: [x]}\n")
		b.pipeline(b.project)
		b.settled()
		j := b.run()
		b.patch(j, 0, "one\n", 202)
		s.Check(t, apptest.Call{Do: "POST " + b.at("/archive"), As: b.owner, Status: 201})
		b.patch(j, 4, "two\n", 202)
		b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"out": "made"}), 201)
		b.update(j, 200, crc("one\ntwo\n"))
		b.settled()
		if got := b.status(j.ID); got != "success" {
			t.Errorf("the job is %s", got)
		}
		if got := b.plain(b.at("/jobs/%d/trace", j.ID)); got != "one\ntwo\n" {
			t.Errorf("the log is %q", got)
		}
		if got := b.plain(b.at("/jobs/%d/artifacts/out", j.ID)); got != "made" {
			t.Errorf("the artifact is %q", got)
		}
		b.take(b.runner, 204, "")
		s.Check(t, apptest.Call{Do: "POST " + b.at("/unarchive"), As: b.owner, Status: 201})
		if next := b.run(); next.JobInfo.Name != "b" {
			t.Errorf("the next job is %s", next.JobInfo.Name)
		}
	})
}
