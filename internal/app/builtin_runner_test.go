package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/git/gittest"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/waittest"
)

// builtinOnly returns an option for a server with the built-in runner.
func builtinOnly(more func(*config.Config)) func(*config.Config) {
	return func(c *config.Config) {
		c.Runner, c.RunnerDir = "builtin", filepath.Join(c.DataDir, "runner")
		if more != nil {
			more(c)
		}
	}
}

// runs creates a pipeline with one job and returns a function that reads the status
// of the job.
func runs(t *testing.T, s *apptest.Server, as string, projectID int64) (id int64, status func() string) {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline", projectID), As: as, JSON: `{"ref":"main"}`, Status: 201}).JSON(t, &made)
	var jobs []struct {
		ID     int64
		Status string
	}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pipelines/%d/jobs", projectID, made.ID), As: as, Status: 200}).JSON(t, &jobs)
	if len(jobs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	return jobs[0].ID, func() string {
		var job struct{ Status string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/jobs/%d", projectID, jobs[0].ID), As: apptest.RootToken, Status: 200}).JSON(t, &job)
		return job.Status
	}
}

// refusal waits until a runner has refused a job.
func refusal(t *testing.T, s *apptest.Server, jobID int64, want string) {
	t.Helper()
	got := ""
	waittest.For(t, fmt.Sprintf("a refusal of job %d: %s", jobID, want), func() bool {
		err := s.DB.QueryRowContext(t.Context(), `SELECT refusal FROM job_queue WHERE job_id = ?`, jobID).Scan(&got)
		return err == nil && strings.Contains(got, want)
	})
}

func ciProject(t *testing.T, s *apptest.Server, as, path string) int64 {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: as, JSON: fmt.Sprintf(`{"path":%q}`, path), Status: 201}).JSON(t, &made)
	s.Repository(t, made.ID, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: "a: {script: [\"true\"]}\n"}}})
	return made.ID
}

// TestBuiltinRunnerOpenSignUp checks that the built-in runner takes no jobs while
// users can sign up, because jobs run as the user of the server.
func TestBuiltinRunnerOpenSignUp(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		signup := func(on bool) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: fmt.Sprintf(`{"signup_enabled":%t}`, on), Status: 200})
		}
		if !strings.Contains(s.Log(), "without isolation") {
			t.Error("the server logged no warning")
		}
		id := ciProject(t, s, apptest.RootToken, "code")
		signup(true)
		job, status := runs(t, s, apptest.RootToken, id)
		refusal(t, s, job, "takes no jobs while anyone can sign up")
		if got := status(); got != "pending" {
			t.Errorf("the job is %s", got)
		}
		// A server that is started with open sign-up returns an error with the
		// option.
		if err := app.StartRunner(t.Context(), s.Server); err == nil || !strings.Contains(err.Error(), "SVC_RUNNER_OPEN_SIGNUP") {
			t.Errorf("a start with open sign-up: %v", err)
		}
	}, builtinOnly(nil))
}

// TestBuiltinRunnerLimits checks that the runner runs only jobs of members, in the
// configured projects.
func TestBuiltinRunnerLimits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "alice")
		id := ciProject(t, s, token, "code")
		other := ciProject(t, s, apptest.RootToken, "other")
		job, _ := runs(t, s, apptest.RootToken, other)
		refusal(t, s, job, "does not serve this project")

		_, status := runs(t, s, token, id)
		waittest.For(t, "the job of a member succeeds", func() bool { return status() == "success" })

		// The user who started the job loses their role before a runner requests it.
		bob, bobToken := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: token, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bob), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: token, JSON: `{"shared_runners_enabled":false}`, Status: 200})
		job, status = runs(t, s, bobToken, id)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d/members/%d", id, bob), As: token, JSON: `{"access_level":20}`, Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: token, JSON: `{"shared_runners_enabled":true}`, Status: 200})
		_, next := runs(t, s, token, id)
		waittest.For(t, "the next job succeeds", func() bool { return next() == "success" })
		refusal(t, s, job, "role Developer")
		if got := status(); got != "pending" {
			t.Errorf("the job is %s", got)
		}
	}, builtinOnly(func(c *config.Config) { c.RunnerProjects = []string{"alice/code"} }))
}

// TestBuiltinRunnerLFS checks that a job gets the files that are stored in Git LFS.
func TestBuiltinRunnerLFS(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"path":"large"}`, Status: 201}).JSON(t, &made)
		const content = "a large file\n"
		sum := sha256.Sum256([]byte(content))
		o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
		p, err := s.Projects.Require(t.Context(), actor.System(), project.RefTo(made.ID), project.NoAccess)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.LFS.Put(t.Context(), p, o, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		s.Repository(t, made.ID, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{
			{Path: ".gitlab-ci.yml", Content: "a: {script: ['cat a.bin', 'grep -q large a.bin', 'test -z \"$(git status --porcelain)\"']}\n"},
			{Path: ".gitattributes", Content: "*.bin filter=lfs diff=lfs merge=lfs -text\n"},
			{Path: "a.bin", Content: fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", o.OID, o.Size)},
		}})
		job, status := runs(t, s, apptest.RootToken, made.ID)
		waittest.For(t, "the end of the job", func() bool { return status() == "success" || status() == "failed" })
		if log := s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/jobs/%d/trace", made.ID, job), As: apptest.RootToken}); status() != "success" {
			t.Errorf("the job is %s: %s", status(), log.Body)
		}
	}, builtinOnly(nil))
}
