package api_test

import (
	"fmt"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/git/gittest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// TestCatalog publishes components and includes them by version.
func TestCatalog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		tools, r := codeProject(t, s, alice, "tools", gittest.Commit{Changes: []gittest.Change{
			{Path: "templates/test.yml", Content: "spec:\n  inputs:\n    stage: {default: test}\n    name:\n---\n\"$[[ inputs.name ]]\":\n  stage: $[[ inputs.stage ]]\n  script: [one]\n"},
			{Path: "templates/lint/template.yml", Content: "lint: {script: [x]}\n"},
		}})
		at := fmt.Sprintf("/projects/%d", tools)
		app, _ := codeProject(t, s, alice, "app", gittest.Commit{Changes: file("a", "a\n")})
		lint := func(version string) string {
			return fmt.Sprintf(`{"content":"include: [{component: '$CI_SERVER_FQDN/alice/tools/test@%s', inputs: {name: job}}]","include_jobs":true,"dry_run":true,"ref":"main"}`, version)
		}
		use := fmt.Sprintf("POST /projects/%d/ci/lint", app)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/catalog/publish", As: alice, JSON: `{"version":"1.0.0"}`, Status: 404},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"1.0.0","ref":"main"}`, Status: 201},
			{Do: "POST " + at + "/catalog/publish", As: alice, JSON: `{"version":"1.0.0"}`, Status: 422, Want: `{"message":"The project is not a CI/CD Catalog project."}`},
			{Do: use, As: alice, JSON: lint("1.0.0"), Status: 200, Want: `{"valid":true,"includes":[{"type":"component","blob":"` + s.URL + `/alice/tools/-/blob/` + r.Tip("refs/heads/main") + `/templates/test.yml"}],"jobs":[{"name":"job","stage":"test","script":["one"]}]}`},
			{Do: use, As: alice, JSON: lint("~latest"), Status: 200, Want: `{"valid":true}`},
			{Do: use, As: alice, JSON: lint("main"), Status: 200, Want: `{"valid":true}`},
			{Do: use, As: alice, JSON: lint(r.Tip("refs/heads/main")), Status: 200, Want: `{"valid":true}`},
			{Do: use, As: alice, JSON: lint("2"), Status: 200, Want: `{"valid":false}`},
		})
		r.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "templates/test.yml", Content: "spec: {inputs: {name: }}\n---\n\"$[[ inputs.name ]]\": {script: [two]}\n"}}})
		s.Repository(t, tools)
		if err := s.Catalog.List(t.Context(), actor.System(), project.RefTo(tools), true); err == nil {
			t.Error("a project without a description is in the catalog")
		}
		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"description":"Tools"}`, Status: 200})
		if err := s.Catalog.List(t.Context(), actor.System(), project.RefTo(tools), true); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"1.10.0","ref":"main"}`, Status: 201},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"2.0.0-rc.1","ref":"main"}`, Status: 201},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"nightly","ref":"main"}`, Status: 201},
			{Do: "POST " + at + "/catalog/publish", As: alice, JSON: `{"version":"1.0.0"}`, Status: 200, Want: fmt.Sprintf(`{"catalog_url":"%s/explore/catalog/alice/tools?version=1.0.0"}`, s.URL)},
			{Do: "POST " + at + "/catalog/publish", As: alice, JSON: `{"version":"nightly"}`, Status: 422},
			{Do: "POST " + at + "/catalog/publish", As: bob, JSON: `{"version":"1.0.0"}`, Status: 404},
			{Name: "the highest, not the newest", Do: use, As: alice, JSON: lint("1"), Status: 200, Want: `{"valid":true,"jobs":[{"script":["two"]}]}`},
			{Do: use, As: alice, JSON: lint("1.0"), Status: 200, Want: `{"valid":true,"jobs":[{"script":["one"]}]}`},
			{Name: "no prerelease", Do: use, As: alice, JSON: lint("2"), Status: 200, Want: `{"valid":false}`},
		})
		by := actor.System()
		waittest.For(t, "the releases are published", func() bool {
			_, versions, err := s.Catalog.Get(t.Context(), by, project.RefTo(tools))
			return err == nil && len(versions) == 3
		})
		res, versions, err := s.Catalog.Get(t.Context(), by, project.RefTo(tools))
		if err != nil || res.Latest.Name != "1.10.0" || versions[0].Name != "2.0.0-rc.1" || len(versions[2].Components) != 2 || len(versions[2].Components[1].Inputs) != 2 {
			t.Errorf("the catalog has %+v, %+v, %v", res, versions, err)
		}
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/releases/1.10.0", As: alice, Status: 200})
		if res, _, err := s.Catalog.Get(t.Context(), by, project.RefTo(tools)); err != nil || res.Latest.Name != "1.0.0" {
			t.Errorf("a deleted release is in the catalog: %+v, %v", res, err)
		}
		for _, want := range []int{1, 0} { // a project without releases is not listed
			page, err := s.Catalog.Resources(t.Context(), by, "", db.Paging{Limit: 20})
			if err != nil || len(page.Items) != want || want > 0 && page.Items[0].Latest.Name != "1.0.0" {
				t.Errorf("the catalog lists %+v, %v, want %d", page.Items, err, want)
			}
			if want > 0 {
				s.Check(t, apptest.Call{Do: "DELETE " + at + "/releases/1.0.0", As: alice, Status: 200})
				s.Check(t, apptest.Call{Do: "DELETE " + at + "/releases/2.0.0-rc.1", As: alice, Status: 200})
			}
		}
	})
}
