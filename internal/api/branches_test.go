package api_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// codeProject creates a private project with the commits.
func codeProject(t *testing.T, s *apptest.Server, token, path string, history ...gittest.Commit) (int64, *gittest.Repo) {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: fmt.Sprintf(`{"path":%q}`, path), Status: 201}).JSON(t, &made)
	return made.ID, s.Repository(t, made.ID, history...)
}

// member adds a user to a project.
func member(t *testing.T, s *apptest.Server, token string, projectID, userID int64, level int) {
	t.Helper()
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", projectID), As: token, Status: 201,
		JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, userID, level)})
}

// file returns the change of one file.
func file(path, content string) []gittest.Change {
	return []gittest.Change{{Path: path, Content: content}}
}

// TestExpensiveRefPattern matches branches with a pattern of 4,500 steps. If there
// are more names than can be matched in two seconds, the request is refused.
func TestExpensiveRefPattern(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		first := r.Tip("refs/heads/main")
		var refs strings.Builder
		for i := range 200 {
			fmt.Fprintf(&refs, "%s refs/heads/%s%d\n", first, strings.Repeat("a", 200), i)
		}
		if err := os.WriteFile(filepath.Join(r.Path, "packed-refs"), []byte(refs.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("GET /projects/%d/repository/branches?per_page=1&regex=", id)
		s.Table(t, []apptest.Call{
			{Do: at + "a{200}", As: alice, Status: 200},
			{Do: at + "(.%3F.%3F){650}z", As: alice, Status: 400, Want: `{"message":"400 Bad request - regex takes too long to match so many names. Use a simpler pattern, or search."}`},
		})
	})
}

func TestBranches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Seconds: 1_600_000_000, Changes: file("a", "a\n")})
		first := r.Tip("refs/heads/main")
		r.Commit(gittest.Commit{Seconds: 1_600_000_300, Changes: file("b", "b\n")})
		r.Git("update-ref", "refs/heads/old", first)
		r.Commit(gittest.Commit{Branch: "feature/One", Parents: []string{first}, Seconds: 1_600_000_200, Changes: file("c", "c\n")})
		at := fmt.Sprintf("/projects/%d/repository/branches", id)
		names := func(list ...string) string {
			var parts []string
			for _, name := range list {
				parts = append(parts, fmt.Sprintf(`{"name":%q}`, name))
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: alice, Status: 200, Want: `[
				{"name":"feature/One","merged":false,"default":false,"protected":false,"can_push":true,"developers_can_push":false,"web_url":"` + s.URL + `/alice/code/-/tree/feature/One"},
				{"name":"main","merged":false,"default":true,"commit":{"title":"<any>","parent_ids":["` + first + `"],"committed_date":"2020-09-13T12:31:40.000+00:00"}},
				{"name":"old","merged":true,"commit":{"id":"` + first + `","short_id":"` + first[:8] + `","trailers":{},"extended_trailers":{}}}]`,
				WantHeader: map[string]string{"X-Total": "3", "X-Next-Page": ""}},
			{Do: "GET " + at + "?sort=updated_asc", As: alice, Status: 200, Want: names("old", "feature/One", "main")},
			{Do: "GET " + at + "?sort=updated_desc", As: alice, Status: 200, Want: names("main", "feature/One", "old")},
			{Do: "GET " + at + "?search=ONE", As: alice, Status: 200, Want: names("feature/One")},
			{Do: "GET " + at + "?search=^ma", As: alice, Status: 200, Want: names("main")},
			{Do: "GET " + at + "?search=ld$", As: alice, Status: 200, Want: names("old")},
			{Do: "GET " + at + "?search=^l", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "?regex=^(main|o.*)$", As: alice, Status: 200, Want: names("main", "old")},
			{Do: "GET " + at + "?regex=(", As: alice, Status: 400},
			{Name: "a million steps", Do: "GET " + at + "?regex=(" + strings.Repeat(".%3F", 450) + "){1000}z", As: alice, Status: 400},
			{Do: "GET " + at + "?regex=a&search=b", As: alice, Status: 400},
			{Do: "GET " + at + "?per_page=2&page=2", As: alice, Status: 200, Want: names("old"), WantHeader: map[string]string{"X-Total": "3", "X-Prev-Page": "1"}},
			{Do: "GET " + at + "?per_page=2&pagination=keyset", As: alice, Status: 200, Want: names("feature/One", "main"), WantHeader: map[string]string{
				"X-Total": "-", "Link": "<" + s.URL + "/api/v4" + at + `?page_token=main&pagination=keyset&per_page=2>; rel="next"`}},
			{Do: "GET " + at + "?page_token=main&pagination=keyset&per_page=2", As: alice, Status: 200, Want: names("old"), WantHeader: map[string]string{"Link": "-"}},
			{Do: "GET " + at + "?page_token=mainz&pagination=keyset", As: alice, Status: 200, Want: names("old")},
			{Do: "GET " + at + "?page_token=mainz&pagination=keyset&sort=updated_asc", As: alice, Status: 400},

			{Do: "GET " + at + "/feature%2FOne", As: alice, Status: 200, Want: `{"name":"feature/One"}`},
			{Do: "HEAD " + at + "/main", As: alice, Status: 200},
			{Do: "GET " + at + "/nope", As: alice, Status: 404, Want: `{"message":"404 Branch Not Found"}`},

			{Do: "POST " + at, As: alice, JSON: `{"branch":"new/one","ref":"old"}`, Status: 201, Want: `{"name":"new/one","commit":{"id":"` + first + `"}}`},
			{Do: "POST " + at + "?branch=two&ref=" + first, As: alice, Status: 201, Want: `{"name":"two","can_push":true}`},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"$(id);%2e","ref":"old"}`, Status: 201},
			{Do: "GET " + at + "/$(id)%3B%252e", As: alice, Status: 200, Want: `{"name":"$(id);%2e","web_url":"` + s.URL + `/alice/code/-/tree/$%28id%29%3B%252e"}`},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"two","ref":"old"}`, Status: 400, Want: `{"message":"Branch already exists"}`},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"three","ref":"nowhere"}`, Status: 400, Want: `{"message":"Invalid reference name: nowhere"}`},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"two/below","ref":"old"}`, Status: 409},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"` + first + `","ref":"old"}`, Status: 403},
			{Do: "POST " + at, As: alice, JSON: `{"ref":"old"}`, Status: 400, Want: `{"error":"branch is missing"}`},

			{Do: "DELETE " + at + "/new%2Fone", As: alice, Status: 204},
			{Do: "DELETE " + at + "/new%2Fone", As: alice, Status: 404},
			{Do: "DELETE " + at + "/main", As: alice, Status: 403, Want: `{"message":"403 Forbidden - The default branch of a project cannot be deleted."}`},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"kept","ref":"old"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/protected_branches", id), As: alice, JSON: `{"name":"kep*"}`, Status: 201},
			{Do: "POST " + at, As: alice, JSON: `{"branch":"same","ref":"main"}`, Status: 201, Want: `{"merged":false}`},
			{Do: fmt.Sprintf("DELETE /projects/%d/repository/merged_branches", id), As: alice, Status: 202, Want: `{"message":"202 Accepted"}`},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, Want: names("feature/One", "kept", "main", "same")})

		var empty struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"empty"}`, Status: 201}).JSON(t, &empty)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/branches", empty.ID), As: alice, Status: 200, Want: `[]`})
	})
}

// hostileRefNames are invalid names of refs; some are invalid in paths too.
var hostileRefNames = []string{
	"-x", "--upload-pack=x", "a/-b", "..", "../../etc/passwd", "a..b", "x.lock", "a@{1}", "HEAD:x", "a b", "a~1:", "a\x00b", "a\nb",
	"refs\\heads", strings.Repeat("a", 4096), "\xff\xfe", ".git/config", "a/.git/hooks/x", "*", "?", "[a]",
}

// TestHostileRefNames sends names that must not be passed to git to every endpoint
// with such a parameter. They are refused without a server error.
func TestHostileRefNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		before := r.Git("for-each-ref") + r.Git("rev-parse", "HEAD")
		at := fmt.Sprintf("/projects/%d", id)
		calls := []struct {
			do   string // {x} is the name in the path, {q} in the query
			form url.Values
		}{
			{do: "GET {at}/repository/branches/{x}"}, {do: "DELETE {at}/repository/branches/{x}"},
			{do: "GET {at}/repository/branches?page_token={q}&sort=updated_asc"},
			{do: "POST {at}/repository/branches", form: url.Values{"branch": {"{x}"}, "ref": {"main"}}},
			{do: "POST {at}/repository/branches", form: url.Values{"branch": {"n"}, "ref": {"{x}"}}},
			{do: "GET {at}/repository/tags/{x}"}, {do: "GET {at}/repository/tags/{x}/signature"}, {do: "DELETE {at}/repository/tags/{x}"},
			{do: "POST {at}/repository/tags", form: url.Values{"tag_name": {"{x}"}, "ref": {"main"}}},
			{do: "POST {at}/repository/tags", form: url.Values{"tag_name": {"n"}, "ref": {"{x}"}, "message": {"m"}}},
			{do: "GET {at}/repository/commits/{x}"}, {do: "GET {at}/repository/commits/{x}/diff"}, {do: "GET {at}/repository/commits/{x}/refs"},
			{do: "GET {at}/repository/commits/{x}/sequence"}, {do: "GET {at}/repository/commits/{x}/comments"},
			{do: "GET {at}/repository/commits/{x}/statuses"}, {do: "GET {at}/repository/commits/{x}/signature"},
			{do: "POST {at}/repository/commits/{x}/revert", form: url.Values{"branch": {"main"}}},
			{do: "POST {at}/repository/commits/main/cherry_pick", form: url.Values{"branch": {"{x}"}}},
			{do: "POST {at}/repository/commits/{x}/comments", form: url.Values{"note": {"n"}}},
			{do: "POST {at}/statuses/{x}", form: url.Values{"state": {"success"}}},
			{do: "GET {at}/repository/files/{x}?ref=main"}, {do: "GET {at}/repository/files/a?ref={q}"}, {do: "GET {at}/repository/files/a/raw?ref={q}"},
			{do: "GET {at}/repository/files/a/blame?ref={q}"}, {do: "GET {at}/repository/files/{x}/blame?ref=main"},
			{do: "POST {at}/repository/files/b", form: url.Values{"branch": {"{x}"}, "commit_message": {"m"}, "content": {"c"}}},
			{do: "POST {at}/repository/files/b", form: url.Values{"branch": {"n"}, "start_branch": {"{x}"}, "commit_message": {"m"}, "content": {"c"}}},
			{do: "PUT {at}/repository/files/{x}", form: url.Values{"branch": {"main"}, "commit_message": {"m"}, "content": {"c"}}},
			{do: "DELETE {at}/repository/files/{x}?branch=main&commit_message=m"},
			{do: "GET {at}/protected_branches/{x}"}, {do: "DELETE {at}/protected_branches/{x}"}, {do: "GET {at}/protected_tags/{x}"},
		}
		for _, name := range hostileRefNames {
			for _, c := range calls {
				fill := strings.NewReplacer("{at}", at, "{x}", url.PathEscape(name), "{q}", url.QueryEscape(name))
				call := apptest.Call{Do: fill.Replace(c.do), As: alice}
				if c.form != nil {
					call.Form = url.Values{}
					for key, values := range c.form {
						call.Form.Set(key, strings.ReplaceAll(values[0], "{x}", name))
					}
				}
				got := s.Send(t, call)
				if got.Status != 400 && got.Status != 404 && got.Status != 414 {
					t.Errorf("%s with %.40q: status %d: %.200s", c.do, name, got.Status, got.Body)
				}
			}
		}
		r.Git("fsck", "--strict")
		if after := r.Git("for-each-ref") + r.Git("rev-parse", "HEAD"); after != before {
			t.Errorf("the refs were %s and are %s", before, after)
		}
	})
}
