package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestReleases(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "team", `,"visibility":"private"`)
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"app","namespace_id":%d,"visibility":"private"}`, g), Status: 201}).JSON(t, &made)
		id := made.ID
		r := s.Repository(t, id, gittest.Commit{Changes: file("a", "a\n")})
		sha := r.Tip("refs/heads/main")
		bobID, bob := s.User(t, "bob")
		devID, dev := s.User(t, "dev")
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, bobID), Status: 201},
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, devID), Status: 201},
			{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"m1"}`, Status: 201},
			{Do: fmt.Sprintf("POST /groups/%d/milestones", g), As: alice, JSON: `{"title":"gm"}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"i","milestone_id":1}`, Status: 201},
			{Do: "GET " + at + "/releases", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/releases/permalink/latest", As: alice, Status: 404},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"name":"x"}`, Status: 400, Want: `{"error":"tag_name is missing"}`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v1"}`, Status: 422, Want: `{"message":"Ref is not specified"}`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v1","ref":"nowhere"}`, Status: 400, Want: `{"message":"Target nowhere is invalid"}`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"-v1","ref":"main"}`, Status: 400},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"../v1","ref":"main"}`, Status: 400},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v1","ref":"main","milestones":["none"]}`, Status: 400, Want: `{"message":"Milestone(s) not found: none"}`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v1","ref":"main","milestones":["m1"],"milestone_ids":[1]}`, Status: 400},
			{Name: "a link that is not one leaves no tag", Do: "POST " + at + "/releases", As: alice, Status: 400,
				JSON: `{"tag_name":"v1","ref":"main","assets":{"links":[{"name":"x","url":"javascript:alert(1)"}]}}`, Want: `{"message":{"url":"<any>"}}`},
			{Do: "POST " + at + "/releases", As: alice, Status: 400,
				JSON: `{"tag_name":"v1","ref":"main","assets":{"links":[{"name":"x","url":"https://example.org/a"},{"name":"x","url":"https://example.org/b"}]}}`},
			{Do: "GET " + at + "/repository/tags", As: alice, Status: 200, Want: `[]`},
			{Name: "guest", Do: "POST " + at + "/releases", As: bob, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 403},
			{Name: "all of it", Do: "POST " + at + "/releases", As: dev, Status: 201, JSON: `{"tag_name":"v1.0","ref":"main","tag_message":"One","name":"First",
				"description":"See #1, **bold**","milestones":["m1","gm"],"released_at":"2020-01-02T03:04:05Z","assets":{"links":[
				{"name":"bin","url":"https://example.org/bin","direct_asset_path":"/bin/linux-amd64","link_type":"package"},
				{"name":"doc","url":"https://example.org/doc"}]}}`,
				Want: `{"tag_name":"v1.0","name":"First","description":"See #1, **bold**","released_at":"2020-01-02T03:04:05.000Z","upcoming_release":false,
				"author":{"username":"dev"},"commit":{"id":"` + sha + `"},"milestones":[{"title":"m1","issue_stats":{"total":1,"closed":0}},{"title":"gm"}],
				"commit_path":"/team/app/-/commit/` + sha + `","tag_path":"/team/app/-/tags/v1.0","evidences":[],
				"assets":{"count":6,"sources":[{"format":"zip","url":"` + s.URL + `/team/app/-/archive/v1.0/app-v1.0.zip"},{"format":"tar.gz"},{"format":"tar.bz2"},{"format":"tar"}],
				"links":[{"name":"doc","url":"https://example.org/doc","direct_asset_url":"https://example.org/doc","link_type":"other"},
				{"name":"bin","direct_asset_url":"` + s.URL + `/team/app/-/releases/v1.0/downloads/bin/linux-amd64","link_type":"package"}]},
				"_links":{"self":"` + s.URL + `/team/app/-/releases/v1.0","edit_url":"` + s.URL + `/team/app/-/releases/v1.0/edit"}}`},
			{Do: "POST " + at + "/releases", As: dev, JSON: `{"tag_name":"v1.0"}`, Status: 409, Want: `{"message":"Release already exists"}`},
			{Do: "GET " + at + "/repository/tags/v1.0", As: alice, Status: 200, Want: `{"message":"One","release":{"tag_name":"v1.0","description":"See #1, **bold**"}}`},
			{Do: "GET " + at + "/repository/tags", As: alice, Status: 200, Want: `[{"name":"v1.0","release":{"tag_name":"v1.0"}}]`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"a/b","ref":"main"}`, Status: 201, Want: `{"name":"a/b","_links":{"self":"` + s.URL + `/team/app/-/releases/a%2Fb"}}`},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"next","ref":"main","released_at":"2999-01-01"}`, Status: 201, Want: `{"upcoming_release":true}`},
			{Do: "GET " + at + "/releases", As: alice, Status: 200, Want: `[{"tag_name":"next"},{"tag_name":"a/b"},{"tag_name":"v1.0"}]`},
			{Do: "GET " + at + "/releases?sort=asc&per_page=1", As: alice, Status: 200, Want: `[{"tag_name":"v1.0"}]`, WantHeader: map[string]string{"X-Total": "3"}},
			{Do: "GET " + at + "/releases?order_by=created_at&sort=asc", As: alice, Status: 200, Want: `[{"tag_name":"v1.0"},{"tag_name":"a/b"},{"tag_name":"next"}]`},
			{Do: "GET " + at + "/releases?updated_before=2001-01-01T00:00:00Z", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/releases?order_by=name", As: alice, Status: 400},
			{Do: "GET " + at + "/releases/a%2Fb", As: alice, Status: 200, Want: `{"tag_name":"a/b"}`},
			{Do: "GET " + at + "/releases/v1.0?include_html_description=true", As: alice, Status: 200, Want: `{"description_html":"<any>"}`},
			{Name: "latest is not one to come", Do: "GET " + at + "/releases/permalink/latest", As: alice, Status: 302,
				WantHeader: map[string]string{"Location": s.URL + "/api/v4" + at + "/releases/a%2Fb"}},
			{Do: "GET " + at + "/releases/permalink/latest/downloads%2Fbin%2Fx?a=b", As: alice, Status: 302,
				WantHeader: map[string]string{"Location": s.URL + "/api/v4" + at + "/releases/a%2Fb/downloads/bin/x?a=b"}},
			{Do: "GET " + at + "/releases/v1.0/downloads/bin%2Flinux-amd64", As: alice, Status: 302, WantHeader: map[string]string{"Location": "https://example.org/bin"}},
			{Do: "GET " + at + "/releases/v1.0/downloads/none", As: alice, Status: 404},

			{Name: "guests see no code", Do: "GET " + at + "/releases?sort=asc&per_page=1", As: bob, Status: 200,
				Want: `[{"name":"Release-1","milestones":[{"title":"m1"},{"title":"gm"}],"assets":{"count":2,"links":[{"name":"doc"},{"name":"bin"}]}}]`},
			{Do: "GET " + at + "/releases/v1.0", As: bob, Status: 403},
			{Do: "GET " + at + "/releases/v1.0/assets/links", As: bob, Status: 403},
			{Do: "GET " + at + "/releases", Status: 404},
			{Do: fmt.Sprintf("GET /groups/%d/releases", g), As: alice, Status: 200, Want: `[{"tag_name":"next","commit":{"id":"` + sha + `"}},{"tag_name":"a/b"},{"tag_name":"v1.0"}]`},
			{Do: fmt.Sprintf("GET /groups/%d/releases?simple=true&sort=asc", g), As: alice, Status: 200, Want: `[{"tag_name":"v1.0","name":"First"},{"tag_name":"a/b"},{"tag_name":"next"}]`},

			{Do: "PUT " + at + "/releases/v1.0", As: dev, JSON: `{}`, Status: 400, Want: `{"message":"params is empty"}`},
			{Do: "PUT " + at + "/releases/v1.0", As: dev, JSON: `{"name":null,"description":"new","milestones":[]}`, Status: 200, Want: `{"name":"First","description":"new"}`},
			{Do: "PUT " + at + "/releases/none", As: dev, JSON: `{"name":"x"}`, Status: 404},
			{Do: "PUT " + at + "/releases/v1.0", As: bob, JSON: `{"name":"x"}`, Status: 403},
			{Do: "PUT " + at + "/releases/v1.0", As: dev, JSON: `{"name":"` + strings.Repeat("x", 256) + `"}`, Status: 400},
		})
		var link struct{ ID int64 }
		links := at + "/releases/v1.0/assets/links"
		s.Check(t, apptest.Call{Do: "POST " + links, As: dev, JSON: `{"name":"n","url":"https://example.org/n","filepath":"/n"}`, Status: 201,
			Want: `{"name":"n","direct_asset_url":"` + s.URL + `/team/app/-/releases/v1.0/downloads/n"}`}).JSON(t, &link)
		one := fmt.Sprintf("%s/%d", links, link.ID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + links, As: dev, JSON: `{"name":"n","url":"https://example.org/o"}`, Status: 400, Want: `{"message":{"name":["has already been taken"]}}`},
			{Do: "POST " + links, As: dev, JSON: `{"name":"o","url":"https://example.org/n"}`, Status: 400, Want: `{"message":{"url":["has already been taken"]}}`},
			{Do: "POST " + links, As: dev, JSON: `{"name":"o","url":"https://example.org/o","direct_asset_path":"/../x"}`, Status: 400},
			{Do: "POST " + links, As: dev, JSON: `{"name":"o","url":"https://example.org/o","link_type":"none"}`, Status: 400},
			{Do: "GET " + links + "?per_page=1", As: alice, Status: 200, Want: `[{"name":"n"}]`, WantHeader: map[string]string{"X-Total": "3"}},
			{Do: "GET " + one, As: alice, Status: 200, Want: `{"name":"n"}`},
			{Do: "PUT " + one, As: dev, JSON: `{"name":"m","link_type":"image"}`, Status: 200, Want: `{"name":"m","url":"https://example.org/n","link_type":"image"}`},
			{Do: "PUT " + one, As: dev, JSON: `{"link_type":"other"}`, Status: 400, Want: `{"error":"name, url are missing, at least one parameter must be provided"}`},
			{Do: "DELETE " + one, As: dev, Status: 200, Want: `{"name":"m"}`},
			{Do: "GET " + one, As: alice, Status: 404},

			{Name: "protected tags", Do: "POST " + at + "/protected_tags", As: alice, JSON: `{"name":"v*","create_access_level":40}`, Status: 201},
			{Do: "POST " + at + "/releases", As: dev, JSON: `{"tag_name":"v2","ref":"main"}`, Status: 403},
			{Do: "PUT " + at + "/releases/v1.0", As: dev, JSON: `{"name":"x"}`, Status: 403},
			{Do: "DELETE " + at + "/releases/v1.0", As: dev, Status: 403},
			{Do: "DELETE " + at + "/releases/v1.0", As: alice, Status: 200, Want: `{"tag_name":"v1.0"}`},
			{Do: "GET " + at + "/repository/tags/v1.0", As: alice, Status: 200, Want: `{"release":null}`},
			{Name: "deleted with its tag", Do: "DELETE " + at + "/repository/tags/a%2Fb", As: alice, Status: 204},
			{Do: "GET " + at + "/releases", As: alice, Status: 200, Want: `[{"tag_name":"next"}]`},
			{Do: "GET " + at + "/audit_events?per_page=2", As: alice, Status: 200,
				Want: `[{"details":{"custom_message":"Deleted release a/b with its tag"}},{"details":{"custom_message":"Deleted release v1.0"}}]`},

			{Name: "switched off", Do: "PUT " + at, As: alice, JSON: `{"releases_access_level":"disabled"}`, Status: 200},
			{Do: "GET " + at + "/releases", As: alice, Status: 404},
			{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v3","ref":"main"}`, Status: 404},
			{Do: fmt.Sprintf("GET /groups/%d/releases", g), As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/repository/tags/next", As: alice, Status: 200, Want: `{"release":null}`},
		})
	})
}

// TestReleaseJobToken checks that a job can change releases of its own project, with
// the permissions of its user, and of no other project.
func TestReleaseJobToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], release: {tag_name: v1, description: d}}")
		other := b.newProject("other", "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		if len(j.Steps) != 2 || j.Steps[1].Name != "release" || j.Steps[1].When != "on_success" {
			t.Errorf("the steps of the job are %+v", j.Steps)
		}
		// The script creates a tag at the commit of the pipeline, with both CLI
		// tools.
		script := strings.Join(j.Steps[1].Script, "\n")
		for _, ref := range []string{`release-cli create --description "d" --tag-name "v1" --ref "$CI_COMMIT_SHA"`, `--no-close-milestone --ref "$CI_COMMIT_SHA"`, `--data-urlencode "ref=$CI_COMMIT_SHA"`} {
			if !strings.Contains(script, ref) {
				t.Errorf("%s is missing in %s", ref, script)
			}
		}
		token := map[string]string{"JOB-TOKEN": j.Token}
		own, others := fmt.Sprintf("/projects/%d/releases", b.project), fmt.Sprintf("/projects/%d/releases", other)
		s.Table(t, []apptest.Call{
			{Do: "POST " + own, Header: token, JSON: `{"tag_name":"v1","ref":"main","description":"d"}`, Status: 201, Want: `{"tag_name":"v1"}`},
			{Do: "GET " + own, Header: token, Status: 200, Want: `[{"tag_name":"v1"}]`},
			{Do: "PUT " + own + "/v1", Header: token, JSON: `{"name":"x"}`, Status: 200},
			{Do: "POST " + own + "/v1/assets/links", Header: token, JSON: `{"name":"x","url":"https://example.org"}`, Status: 201},
			{Do: "POST " + others, Header: token, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 404},
			{Do: "GET " + others, Header: token, Status: 404},
			{Do: fmt.Sprintf("PUT /projects/%d", other), As: b.owner, JSON: `{"visibility":"public"}`, Status: 200},
			{Do: "GET " + others, Header: token, Status: 200, Want: `[]`},
			{Do: "POST " + others, Header: token, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 403},
		})
		b.update(j, 200, `{"state":"success"}`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline", b.project), As: b.owner, JSON: `{"ref":"v1"}`, Status: 201})
		notes := ""
		for _, v := range b.run().Variables {
			if v.Key == "CI_RELEASE_DESCRIPTION" {
				notes = v.Value
			}
		}
		if notes != "d" {
			t.Errorf("CI_RELEASE_DESCRIPTION is %q", notes)
		}
	})
}
