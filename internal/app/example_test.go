package app_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
	"svc/internal/waittest"
)

// withRunner sets the options of "make run".
func withRunner(c *config.Config) {
	c.Runner, c.RunnerDir, c.Example = "builtin", filepath.Join(c.DataDir, "runner"), true
}

// TestExample runs the pipeline of the example project.
func TestExample(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var list []struct {
			ID     int64
			Status string
		}
		waittest.For(t, "the end of the pipeline", func() bool {
			s.Check(t, apptest.Call{Do: "GET /projects/example%2Fhello/pipelines", Status: 200}).JSON(t, &list)
			return len(list) > 0 && list[0].Status != "running" && list[0].Status != "pending" && list[0].Status != "created"
		})
		s.Table(t, []apptest.Call{
			{Do: "GET /groups/example", Status: 200, Want: `{"visibility":"public","projects":[{"path":"hello","visibility":"public"}]}`},
			{Do: "GET /projects/example%2Fhello/pipelines", Status: 200, Want: `[{"status":"success","source":"push","ref":"main"}]`},
			{Do: "GET /projects/example%2Fhello/jobs", Status: 200,
				Want: `[{"name":"release","status":"manual"},{"name":"test","status":"success"},{"name":"build","status":"success","runner":{"description":"built-in"}}]`},
			{Do: "GET /projects/example%2Fhello/pipelines/1/test_report", Status: 200, Want: `{"total_count":3,"success_count":3}`},
			{Do: "GET /groups/example/audit_events", As: apptest.RootToken, Status: 200, Want: `[{"details":{"author_name":"Administrator"}}]`, Not: []string{"impersonated_by"}},
			{Do: "GET /projects/example%2Fhello/audit_events", As: apptest.RootToken, Status: 200, Want: `[{"details":{"author_name":"Administrator"}}]`, Not: []string{"impersonated_by"}},
			{Do: "GET /runners/all", As: apptest.RootToken, Status: 200,
				Want: `[{"description":"built-in","runner_type":"instance_type","online":true,"paused":false}]`},
		})
		got := s.Send(t, apptest.Call{Do: "GET /projects/example%2Fhello/jobs/artifacts/main/raw/dist%2Fhello?job=build"})
		if got.Status != 200 || !strings.Contains(string(got.Body), "# Built from ") {
			t.Errorf("artifact: %d %s", got.Status, got.Body)
		}
		var manual []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /projects/example%2Fhello/jobs?scope=manual", Status: 200}).JSON(t, &manual)
		if len(manual) != 1 {
			t.Fatalf("manual jobs: %v", manual)
		}
		job := fmt.Sprintf("/projects/example%%2Fhello/jobs/%d", manual[0].ID)
		s.Check(t, apptest.Call{Do: "POST " + job + "/play", As: apptest.RootToken, Status: 200})
		var release struct{ Status string }
		waittest.For(t, "the release job succeeds", func() bool {
			s.Check(t, apptest.Call{Do: "GET " + job, Status: 200}).JSON(t, &release)
			if release.Status == "failed" {
				t.Fatalf("release is %s: %s", release.Status, s.Send(t, apptest.Call{Do: "GET " + job + "/trace"}).Body)
			}
			return release.Status == "success"
		})
	}, withRunner)
}

// TestExampleOnce checks that the example is created only in an empty instance, only
// once, and that an interrupted attempt is completed.
func TestExampleOnce(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, dir string, example bool, do func(s *app.Server)) string {
		t.Helper()
		a := open(t, config.Config{
			DataDir: dir, Example: example, RootPassword: apptest.RootPassword, RootToken: apptest.RootToken,
			Storages: map[string]string{"default": filepath.Join(dir, "repositories")},
		})
		defer a.Close()
		var told bytes.Buffer
		s, err := a.Listen(t.Context(), &told)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		if do != nil {
			do(s)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return told.String()
	}
	root := func(s *app.Server) actor.Actor {
		by, err := s.Users.Become(t.Context(), actor.System(), user.RootName)
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	branch := func(s *app.Server) string {
		p, err := s.Projects.Get(t.Context(), actor.System(), "example/hello")
		if err != nil {
			return ""
		}
		return p.DefaultBranch
	}
	public := project.Public
	tests := []struct {
		name   string
		before func(s *app.Server) // during a start without the example
		want   bool
	}{
		{name: "empty", want: true},
		{name: "with a user", before: func(s *app.Server) {
			_, err := s.Users.Create(t.Context(), actor.System(), user.NewUser{Email: "alice@example.org", Name: "Alice", Username: "alice", Password: "a good password"})
			if err != nil {
				t.Error(err)
			}
		}},
		{name: "with a project", before: func(s *app.Server) {
			if _, err := s.Projects.Create(t.Context(), root(s), project.NewProject{Name: "p"}); err != nil {
				t.Error(err)
			}
		}},
		{name: "cut off after the group", want: true, before: func(s *app.Server) {
			if _, err := s.Projects.CreateGroup(t.Context(), root(s), project.NewGroup{Name: "Example", Path: "example", Visibility: &public}); err != nil {
				t.Error(err)
			}
			begin(t, s.DB)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.before != nil {
				run(t, dir, false, tt.before)
			}
			out := run(t, dir, true, func(s *app.Server) {
				if made := branch(s) == "main"; made != tt.want {
					t.Errorf("created is %t", made)
				}
				if !tt.want {
					return
				}
				if err := s.Projects.Delete(t.Context(), root(s), "example/hello", project.Deletion{}); err != nil {
					t.Error(err)
				}
			})
			if told := strings.Contains(out, "example/hello"); told != tt.want {
				t.Errorf("printed: %s", out)
			}
			if tt.before != nil {
				return
			}
			// A deleted example is not created again.
			run(t, dir, true, func(s *app.Server) {
				if branch(s) != "" {
					t.Error("it was created again")
				}
			})
		})
	}
}

// begin records that the example was begun.
func begin(t *testing.T, d *db.DB) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), `INSERT INTO settings (key, value) VALUES ('example', 'begun')`); err != nil {
		t.Error(err)
	}
}
