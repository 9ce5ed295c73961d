package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/project"
)

// TestCrossProjectDotenvLeak checks that needs:project gives a job only artifacts of
// another project that its token could download.
func TestCrossProjectDotenvLeak(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "use:\n  script: [x]\n  needs: [{project: $LIB, job: make, ref: main, artifacts: true}]\n")
		b.variable("LIB", "lib")
		bob, token := s.User(t, "bob")
		member(t, s, b.owner, b.project, bob, 40)
		lib := b.newProject("lib", "make:\n  script: [x]\n  artifacts: {paths: [x], reports: {dotenv: x.env}}\n")
		member(t, s, b.owner, lib, bob, 20)
		scope := fmt.Sprintf("/projects/%d/job_token_scope", lib)
		put := func(do, body string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: b.owner, JSON: body, Status: status})
		}
		build := func(access string) {
			t.Helper()
			at := fmt.Sprintf("/projects/%d/repository/files/.gitlab-ci.yml", lib)
			put("PUT "+at, fmt.Sprintf(`{"branch":"main","commit_message":"c","content":%q}`,
				"make:\n  script: [x]\n  artifacts: {access: "+access+", paths: [x], reports: {dotenv: x.env}}\n"), 200)
			b.settled()
			j := b.run()
			b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"x": "x"}), 201)
			b.upload(j, "artifact_type=dotenv&artifact_format=gzip", gzipped(t, "SECRET=leaked\n"), 201)
			b.update(j, 200, `{"state":"success"}`)
			b.settled()
		}
		use := func(what, as string, want bool) {
			t.Helper()
			_, _, err := s.CI.CreatePipeline(t.Context(), actorOf(t, s, as), project.RefTo(b.project), ci.NewPipeline{Ref: "main"})
			if err != nil {
				t.Fatal(err)
			}
			if !want {
				b.take(b.runner, 204, "")
				var failed []struct{ ID int64 }
				s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs?per_page=1"), As: b.owner, Status: 200,
					Want: `[{"name":"use","status":"failed","failure_reason":"missing_dependency_failure"}]`}).JSON(t, &failed)
				log := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", failed[0].ID), As: b.owner, Status: 200})
				if !strings.Contains(string(log.Body), "has no job make, or the user or token of this job has no access to it") {
					t.Errorf("%s: log: %s", what, log.Body)
				}
				b.settled()
				return
			}
			j := b.run()
			found := false
			for _, v := range j.Variables {
				found = found || v.Key == "SECRET"
			}
			if found != want || len(j.Dependencies) > 0 != want {
				t.Errorf("%s: variables %t, %d dependencies, want %t", what, found, len(j.Dependencies), want)
			}
			b.update(j, 200, `{"state":"success"}`)
			b.settled()
		}
		build("all")
		put("PATCH "+scope, `{"enabled":false}`, 204)
		use("all, everybody let in, owner", b.owner, true)
		use("all, everybody let in, reporter", token, true)
		put("PATCH "+scope, `{"enabled":true}`, 204)
		use("not in the list, owner", b.owner, false)
		use("not in the list, reporter", token, false)
		put("POST "+scope+"/allowlist", fmt.Sprintf(`{"target_project_id":%d}`, b.project), 201)
		use("in the list, owner", b.owner, true)
		use("in the list, reporter", token, true)
		build("developer")
		use("developer, owner", b.owner, true)
		use("developer, reporter", token, false)
		build("none")
		use("none, reporter", token, false)
		put(fmt.Sprintf("DELETE %s/allowlist/%d", scope, b.project), "", 204)
		put(fmt.Sprintf("PUT /projects/%d", lib), `{"visibility":"public"}`, 200)
		build("developer")
		use("public, not in the list, developer, owner", b.owner, false)
		build("all")
		use("public, not in the list, all, owner", b.owner, true)
	})
}
