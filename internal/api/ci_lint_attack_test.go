package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/limit"
)

// TestLintExhaustion uses all slots for compiling CI configurations that anonymous
// callers can have: another anonymous request is refused with 503, and users are not
// affected. If the server itself uses the other slots, users get 503 too.
func TestLintExhaustion(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.CI.LimitCompilations(0, time.Minute)
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", `,"visibility":"public"`)
		s.Repository(t, id, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: "a: {script: [x]}\n"}}})
		lint, pipeline := fmt.Sprintf("/projects/%d/ci/lint", id), fmt.Sprintf("/projects/%d/pipeline", id)
		var held []func()
		take := func(as func(n int) context.Context) {
			t.Helper()
			for n := 1; ; n++ {
				release, err := s.CI.Compilations().Acquire(as(n))
				if err != nil && n == 1 {
					t.Fatal(err)
				}
				if err != nil {
					return
				}
				held = append(held, release)
			}
		}
		const busy = `{"message":"503 Service Unavailable - The server is busy with other compilations of CI configurations. Try again in a moment."}`

		take(func(n int) context.Context { return limit.WithAddress(t.Context(), fmt.Sprintf("192.0.2.%d:1", n)) })
		if a := s.Check(t, apptest.Call{Do: "GET " + lint, Status: 503, Want: busy}); a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if status, body := page(t, s, "/ada/p/-/ci/lint"); status != 503 || !strings.Contains(body, "busy with other compilations") {
			t.Errorf("the page: %d", status)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + lint, As: ada, Status: 200, Want: `{"valid":true}`},
			{Do: "POST " + pipeline, As: ada, JSON: `{"ref":"main"}`, Status: 201},
		})

		take(func(int) context.Context { return t.Context() })
		s.Table(t, []apptest.Call{
			{Do: "GET " + lint, As: ada, Status: 503, Want: busy},
			{Do: "POST " + lint, As: ada, JSON: `{"content":"a: {script: [x]}"}`, Status: 503, Want: busy},
			{Do: "POST " + pipeline, As: ada, JSON: `{"ref":"main"}`, Status: 503, Want: busy},
		})

		for _, release := range held {
			release()
		}
		s.Check(t, apptest.Call{Do: "GET " + lint, Status: 200, Want: `{"valid":true}`})
		s.Check(t, apptest.Call{Do: "POST " + pipeline, As: ada, JSON: `{"ref":"main"}`, Status: 201})
		if n := s.CI.Compilations().Held(); n != 0 {
			t.Errorf("%d slots are still held", n)
		}
	})
}

// TestLintManyJobs lints configurations with thousands of jobs, by name and by
// parallel.
func TestLintManyJobs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var named, parallel strings.Builder
		for n := range 19_000 {
			fmt.Fprintf(&named, "j%d: {script: [x]}\n", n)
		}
		for n := range 30 {
			fmt.Fprintf(&parallel, "j%d: {script: [x], parallel: 200}\n", n)
		}
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", `,"visibility":"public"`)
		s.Repository(t, id, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: named.String()}}})
		content, err := json.Marshal(map[string]string{"content": parallel.String()})
		if err != nil {
			t.Fatal(err)
		}
		lint := fmt.Sprintf("/projects/%d/ci/lint", id)
		const refused = `{"valid":false,"errors":["jobs config has more than 5000 jobs"]}`
		s.Table(t, []apptest.Call{
			{Do: "GET " + lint, Status: 200, Want: refused},
			{Do: "POST " + lint, As: ada, JSON: string(content), Status: 200, Want: refused},
			{Do: fmt.Sprintf("POST /projects/%d/pipeline", id), As: ada, JSON: `{"ref":"main"}`, Status: 400, Want: `{"message":{"base":["jobs config has more than 5000 jobs"]}}`},
		})
	})
}

// TestSlowCompilation compiles a configuration that takes longer than allowed: CI Lint
// and the pipeline of a push report it, and the push is not compiled again.
func TestSlowCompilation(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.CI.LimitCompilations(time.Minute, time.Nanosecond)
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", `,"visibility":"public","initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", id)
		const slow = "The CI configuration took longer than 1ns to compile. Make it smaller, or split it into child pipelines."
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/.gitlab-ci.yml", As: ada, JSON: `{"branch":"main","content":"a: {script: [x]}","commit_message":"m"}`, Status: 201})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/pipelines", As: ada, Status: 200, Want: `[{"status":"failed","source":"push"}]`},
			{Do: "GET " + at + "/pipelines/latest", As: ada, Status: 200, Want: fmt.Sprintf(`{"yaml_errors":%q}`, slow)},
			{Do: "GET " + at + "/ci/lint", Status: 200, Want: fmt.Sprintf(`{"valid":false,"errors":[%q]}`, slow)},
			{Do: "POST " + at + "/pipeline", As: ada, JSON: `{"ref":"main"}`, Status: 400, Want: fmt.Sprintf(`{"message":{"base":[%q]}}`, slow)},
		})
	})
}

// TestLintManyStages lints a file with more stages than any pipeline has jobs.
func TestLintManyStages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var file strings.Builder
		file.WriteString("a: {script: [x]}\nstages:\n")
		for n := range 180_000 {
			fmt.Fprintf(&file, "- s%d\n", n)
		}
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", `,"visibility":"public"`)
		s.Repository(t, id, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: file.String()}}})
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /projects/%d/ci/lint", id), Status: 200, Want: `{"valid":false,"errors":["stages config has more than 1000 stages"]}`},
			{Do: fmt.Sprintf("POST /projects/%d/pipeline", id), As: ada, JSON: `{"ref":"main"}`, Status: 400, Want: `{"message":{"base":["stages config has more than 1000 stages"]}}`},
		})
	})
}

// TestLongYAMLErrors pushes a configuration in which each of many errors repeats a long
// text of the author.
func TestLongYAMLErrors(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		at := fmt.Sprintf("/projects/%d", newProject(t, s, ada, "p", `,"initialize_with_readme":true`))
		var file strings.Builder
		fmt.Fprintf(&file, "stages: [%s]\n", strings.Repeat("ö", 50_000))
		for n := range 200 {
			fmt.Fprintf(&file, "j%d: {script: [x]}\n", n)
		}
		body, err := json.Marshal(map[string]string{"branch": "main", "content": file.String(), "commit_message": "m"})
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/.gitlab-ci.yml", As: ada, JSON: string(body), Status: 201})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var p struct {
			Errors string `json:"yaml_errors"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/pipelines/latest", As: ada, Status: 200}).JSON(t, &p)
		if n := len(p.Errors); n == 0 || n > 64<<10+len("…") {
			t.Errorf("the errors have %d bytes: %.200s", n, p.Errors)
		}
	})
}

// TestIssueListTasks counts tasks in a list of issues, one of which has a megabyte
// of text that resembles tasks.
func TestIssueListTasks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		at := fmt.Sprintf("/projects/%d/issues", newProject(t, s, ada, "p", `,"visibility":"public"`))
		for _, text := range []string{
			"1. [ ] a\r\n  * [X] b\r\n+\t[x]\tc\n- [x]d\na - [ ] e\n- [ ]",
			strings.Repeat("- [ ", 250_000) + "\n2) [x] f\n",
		} {
			body, err := json.Marshal(map[string]string{"title": "t", "description": text})
			if err != nil {
				t.Fatal(err)
			}
			s.Check(t, apptest.Call{Do: "POST " + at, As: ada, JSON: string(body), Status: 201})
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "?sort=asc", Status: 200, Want: `[{"task_completion_status":{"count":3,"completed_count":2}},{"task_completion_status":{"count":1,"completed_count":1}}]`})
	})
}
