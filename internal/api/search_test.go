package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// searchPlaceRoles are the rows of the search in projects and groups.
var searchPlaceRoles = map[string]placeRole{
	"GET /projects/{id}/search":   {do: "GET {at}/search?scope=issues&search=word", ok: 200},
	"GET /projects/{id}/-/search": {do: "GET {at}/-/search?scope=blobs&search=word", ok: 200, code: true},
	"GET /groups/{id}/search":     {do: "GET {at}/search?scope=projects&search=word", ok: 200},
	"GET /groups/{id}/-/search":   {do: "GET {at}/-/search?scope=notes&search=word", ok: 200},
}

// searchRoles are the rows of the instance-wide search.
var searchRoles = map[string]role{
	"GET /search":                 ownRead("GET /search?scope=users&search=word"),
	"GET /projects/{id}/search":   ownRead("GET /projects/{project}/search?scope=issues&search=word"),
	"GET /projects/{id}/-/search": ownRead("GET /projects/{project}/-/search?scope=milestones&search=word"),
	"GET /groups/{id}/search":     {"GET /groups/99999/search?scope=issues&search=word", "", 401, 404, 404, 404, 403},
	"GET /groups/{id}/-/search":   {"GET /groups/99999/-/search?scope=issues&search=word", "", 401, 404, 404, 404, 403},
}

// TestSearch searches each scope in each place, with all parameters and with hostile
// texts.
func TestSearch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "walrus", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public","description":"Keeps a Quokka"`, top))
		old := newProject(t, s, alice, "quokka-old", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		at := fmt.Sprintf("/projects/%d", id)
		s.Repository(t, id, gittest.Commit{Message: "Feed the quokka\n\nThoroughly.", Changes: []gittest.Change{
			{Path: "src/main.go", Content: "package main\n\n// a quokka lives here\nfunc main() {}\n\n\n\n\n// Quokka again\n"},
			{Path: "docs/quokka.md", Content: "# About\n\nNothing.\n"},
			{Path: "docs/other.md", Content: "The QUOKKA, once.\n"},
			{Path: "-odd name", Content: "--output=x and 100% of a_b \"quoted\" NEAR * text\n"},
		}})
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"Quokka is hungry","description":"It wants 100% leaves_now."}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"Plain","description":"about a quokka","confidential":true}`, Status: 201},
			{Do: "PUT " + at + "/issues/2", As: alice, JSON: `{"state_event":"close"}`, Status: 200},
			{Do: "POST " + at + "/issues/1/notes", As: alice, JSON: `{"body":"a quokka comment"}`, Status: 201},
			{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"Quokka 1.0"}`, Status: 201},
			{Do: fmt.Sprintf("POST /groups/%d/milestones", top), As: alice, JSON: `{"title":"Quokka of the group"}`, Status: 201},
			{Do: "POST /snippets", As: alice, JSON: `{"title":"Quokka snippet","file_name":"a.txt","content":"x","visibility":"public"}`, Status: 201},
			{Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"Animals/Small","content":"one\n\nthe quokka page\n"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", old), As: alice, JSON: `{"title":"quokka of an archived project"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/archive", old), As: alice, Status: 201},
			{Do: "POST " + at + "/repository/branches?branch=topic&ref=main", As: alice, Status: 201},
			{Do: "POST " + at + "/repository/files/topic.txt", As: alice, JSON: `{"branch":"topic","commit_message":"quokka of a topic","content":"only a quokka of a topic"}`, Status: 201},
			{Do: "POST " + at + "/merge_requests", As: alice, JSON: `{"source_branch":"topic","target_branch":"main","title":"Add the quokka"}`, Status: 201},
		})
		all, in := "GET /search?search=QUOKKA&scope=", "GET "+at+"/-/search?search=quokka&scope="
		of := fmt.Sprintf("GET /groups/%d/search?search=quokka&scope=", top)
		main := `{"basename":"src/main","path":"src/main.go","filename":"src/main.go","id":null,"ref":"main","startline":%d,"project_id":%d,"data":%q}`
		first := fmt.Sprintf(main, 1, id, "package main\n\n// a quokka lives here\nfunc main() {}\n\n")
		second := fmt.Sprintf(main, 7, id, "\n\n// Quokka again\n")
		other := `{"path":"docs/other.md","startline":1}`
		named := `{"path":"docs/quokka.md","startline":1,"data":"# About\n\nNothing.\n"}`
		var commits []struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits", As: alice, Status: 200}).JSON(t, &commits)
		s.Table(t, []apptest.Call{
			{Name: "projects", Do: all + "projects", As: alice, Status: 200, Want: `[{"path_with_namespace":"top/walrus"}]`, WantHeader: map[string]string{"X-Total": "1"}},
			{Name: "archived projects", Do: all + "projects&include_archived=true&sort=asc", As: alice, Status: 200, Want: `[{"path":"walrus"},{"path":"quokka-old"}]`},
			{Name: "issues", Do: all + "issues", As: alice, Status: 200, Want: `[{"iid":2},{"iid":1,"title":"Quokka is hungry","merge_requests_count":0}]`},
			{Name: "oldest first", Do: all + "issues&order_by=created_at&sort=asc&per_page=1", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "titles", Do: all + "issues&fields=title", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "titles, as clients send it", Do: all + "issues&fields[]=title", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "closed", Do: all + "issues&state=closed", As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "confidential", Do: all + "issues&confidential=true", As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "merge requests", Do: all + "merge_requests", As: alice, Status: 200, Want: `[{"iid":1,"title":"Add the quokka"}]`},
			{Name: "milestones", Do: all + "milestones", As: alice, Status: 200, Want: fmt.Sprintf(`[{"title":"Quokka 1.0","project_id":%d}]`, id)},
			{Name: "snippets", Do: all + "snippet_titles", As: alice, Status: 200, Want: `[{"title":"Quokka snippet","file_name":"a.txt"}]`},
			{Name: "comments", Do: all + "notes", As: alice, Status: 200, Want: `[{"body":"a quokka comment","noteable_type":"Issue","noteable_iid":1}]`},
			{Name: "users", Do: "GET /search?scope=users&search=ALIC", As: alice, Status: 200, Want: `[{"username":"alice"}]`},

			{Name: "projects of a group", Do: of + "projects", As: alice, Status: 200, Want: `[{"path":"walrus"}]`},
			{Name: "issues of a group", Do: of + "issues&per_page=1&page=2", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "merge requests of a group", Do: of + "merge_requests", As: alice, Status: 200, Want: `["<any>"]`},
			{Name: "milestones of a group", Do: of + "milestones", As: alice, Status: 200, Want: `[{"title":"Quokka of the group"},{"title":"Quokka 1.0"}]`},
			{Name: "comments of a group", Do: of + "notes", As: alice, Status: 200, Want: `["<any>"]`},
			{Name: "members of a group", Do: fmt.Sprintf("GET /groups/%d/-/search?scope=users&search=lice", top), As: alice, Status: 200, Want: `[{"username":"alice"}]`},

			{Name: "issues of a project", Do: in + "issues", As: alice, Status: 200, Want: `["<any>","<any>"]`},
			{Name: "issues of an archived project", Do: fmt.Sprintf("GET /projects/%d/search?scope=issues&search=quokka", old), As: alice, Status: 200, Want: `["<any>"]`},
			{Name: "merge requests of a project", Do: in + "merge_requests&state=merged", As: alice, Status: 200, Want: `[]`},
			{Name: "milestones of a project", Do: in + "milestones", As: alice, Status: 200, Want: `[{"title":"Quokka 1.0"}]`},
			{Name: "comments of a project", Do: in + "notes", As: alice, Status: 200, Want: `["<any>"]`},
			{Name: "members of a project", Do: "GET " + at + "/search?scope=users&search=lice", As: alice, Status: 200, Want: `[{"username":"alice"}]`},
			{Name: "commits", Do: in + "commits", As: alice, Status: 200, Want: fmt.Sprintf(`[{"title":"Feed the quokka","project_id":%d,"status":null}]`, id)},
			{Name: "commits of a branch", Do: in + "commits&ref=topic", As: alice, Status: 200, Want: `[{"title":"quokka of a topic"},"<any>"]`},
			{Name: "a commit by its ID", Do: "GET " + at + "/search?scope=commits&search=" + commits[0].ID[:8], As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%q}]`, commits[0].ID)},
			{Name: "files", Do: in + "blobs", As: alice, Status: 200, Want: `[` + other + `,` + first + `,` + second + `,` + named + `]`, WantHeader: map[string]string{"X-Total": "4"}},
			{Name: "a page of files", Do: in + "blobs&per_page=2&page=2", As: alice, Status: 200, Want: `[` + second + `,` + named + `]`, WantHeader: map[string]string{"X-Next-Page": ""}},
			{Name: "the last page of files", Do: in + "blobs&per_page=2&page=600", As: alice, Status: 200, Want: `[]`},
			{Name: "files without context", Do: in + "blobs&num_context_lines=0&per_page=1", As: alice, Status: 200, Want: `[{"data":"The QUOKKA, once.\n"}]`},
			{Name: "files of a branch", Do: in + "blobs&ref=topic&per_page=100", As: alice, Status: 200, Want: `[` + other + `,"<any>","<any>",{"path":"topic.txt","ref":"topic"},` + named + `]`},
			{Name: "no such branch", Do: in + "blobs&ref=none", As: alice, Status: 404},
			{Name: "files by extension", Do: "GET " + at + "/search?scope=blobs&search=" + url.QueryEscape("quokka extension:md -path:other"), As: alice, Status: 200, Want: `[` + named + `]`},
			{Name: "files by name", Do: "GET " + at + "/search?scope=blobs&search=" + url.QueryEscape("filename:MAIN.*"), As: alice, Status: 200, Want: `[{"path":"src/main.go"}]`},
			{Name: "wiki pages", Do: in + "wiki_blobs", As: alice, Status: 200, Want: fmt.Sprintf(`[{"basename":"Animals/Small","path":"Animals/Small.md","startline":1,"project_id":%d,"data":"one\n\nthe quokka page\n"}]`, id)},
			{Name: "of an empty repository", Do: fmt.Sprintf("GET /projects/%d/search?scope=blobs&search=quokka", old), As: alice, Status: 200, Want: `[]`},
			{Name: "of an empty wiki", Do: fmt.Sprintf("GET /projects/%d/search?scope=wiki_blobs&search=quokka", old), As: alice, Status: 200, Want: `[]`},

			{Name: "no scope", Do: "GET /search?search=x", As: alice, Status: 400, Want: `{"error":"scope is missing"}`},
			{Name: "no text", Do: "GET /search?scope=issues", As: alice, Status: 400, Want: `{"error":"search is missing"}`},
			{Name: "no words", Do: "GET /search?scope=issues&search=%20", As: alice, Status: 400, Want: `{"error":"search is empty"}`},
			{Name: "unknown scope", Do: "GET /search?scope=epics&search=x", As: alice, Status: 400, Want: `{"error":"scope does not have a valid value"}`},
			{Name: "projects in a project", Do: in + "projects", As: alice, Status: 400},
			{Name: "snippets in a project", Do: in + "snippet_titles", As: alice, Status: 400},
			{Name: "commits of a group", Do: of + "commits", As: alice, Status: 400},
			{Name: "wiki pages of a group", Do: of + "wiki_blobs", As: alice, Status: 400},
			{Name: "order", Do: all + "issues&order_by=title", As: alice, Status: 400},
			{Name: "type", Do: all + "issues&search_type=none", As: alice, Status: 400},
			{Name: "the type there is", Do: all + "users&search_type=basic", As: alice, Status: 200},
			{Name: "another type", Do: all + "users&search_type=advanced", As: alice, Status: 200},
			{Name: "context", Do: in + "blobs&num_context_lines=21", As: alice, Status: 400},
			{Name: "too long", Do: "GET /search?scope=issues&search=" + strings.Repeat("x", 4097), As: alice, Status: 400},
			{Name: "not signed in", Do: all + "issues", Status: 401},
			{Name: "no such project", Do: "GET /projects/99999/search?scope=issues&search=x", As: alice, Status: 404},
		})
		// No character is an operator.
		for text, want := range map[string]int{
			`100% leaves_now`: 1, `100%leaves`: 0, `leavesXnow`: 0, `leaves_`: 1, `%`: 1, `_`: 1, `"`: 0, `'`: 0, `*`: 0, `hungr*`: 0, `quokka NEAR hungry`: 0, `title:Quokka`: 0,
			`-hungry`: 0, `quokka OR plain`: 0, `\`: 0, `";--`: 0, `^quokka`: 0, `(quokka`: 0, "\t": -1, `ÜÖ`: 0, `is`: 1, `i`: 1,
		} {
			do := "GET " + at + "/search?scope=issues&state=opened&search=" + url.QueryEscape(text)
			if want < 0 {
				s.Check(t, apptest.Call{Do: do, As: alice, Status: 400})
				continue
			}
			var list []json.RawMessage
			s.Check(t, apptest.Call{Do: do, As: alice, Status: 200}).JSON(t, &list)
			if len(list) != want {
				t.Errorf("search for %q finds %d issues, want %d", text, len(list), want)
			}
		}
		for text, want := range map[string]int{
			`--output=x`: 1, `100% of a_b "quoted" NEAR *`: 1, `.*`: 0, `-e`: 0, `--`: 1, `-odd`: 1, `:(top)`: 0, `path:../..`: 0, `extension:--output`: 0, `a filename:*[`: 0,
			"quokka\nlives": 0, strings.Repeat("(a+)+", 500): 0,
		} {
			var list []json.RawMessage
			s.Check(t, apptest.Call{Do: "GET " + at + "/search?scope=blobs&search=" + url.QueryEscape(text), As: alice, Status: 200}).JSON(t, &list)
			if len(list) != want {
				t.Errorf("search for %.20q finds %d files, want %d", text, len(list), want)
			}
		}
		for _, scope := range []string{"commits", "blobs", "wiki_blobs", "notes", "milestones", "users"} {
			s.Check(t, apptest.Call{Do: "GET " + at + "/search?search=a%00b&scope=" + scope, As: alice, Status: 400})
			s.Check(t, apptest.Call{Do: "GET " + at + "/search?search=%ff&scope=" + scope, As: alice, Status: 400})
			s.Check(t, apptest.Call{Do: "GET " + at + "/search?search=--output%3Dx%22%27&page=100000&scope=" + scope, As: alice, Status: 200})
		}
		for _, ref := range []string{"--output=x", "main..topic", "refs/heads/../x", "main:src"} {
			got := s.Send(t, apptest.Call{Do: in + "blobs&ref=" + url.QueryEscape(ref), As: alice})
			if got.Status != 404 {
				t.Errorf("ref %s: status %d", ref, got.Status)
			}
		}
	})
}

// TestSearchVisibility searches every scope as every kind of reader, and checks that
// results are limited to objects that the reader can see.
func TestSearchVisibility(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner := s.User(t, "owner")
		guestID, guest := s.User(t, "guest")
		plannerID, planner := s.User(t, "planner")
		devID, dev := s.User(t, "dev")
		outsiderID, outsider := s.User(t, "outsider")
		externalID, external := s.User(t, "external")
		goneID, _ := s.User(t, "okapi-banned")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("PUT /users/%d", externalID), As: root, JSON: `{"external":true}`, Status: 200},
			{Do: fmt.Sprintf("POST /users/%d/ban", goneID), As: root, Status: 201},
		})
		readAPI := s.Token(t, outsiderID, "read_api")
		readUser := s.Token(t, outsiderID, "read_user")
		ids := map[string]int64{}
		for _, visibility := range []string{"private", "internal", "public"} {
			at := group(t, s, owner, "in-"+visibility, `,"visibility":"`+visibility+`"`)
			id := newProject(t, s, owner, "okapi-"+visibility, fmt.Sprintf(`,"namespace_id":%d,"visibility":%q`, at, visibility))
			ids[visibility] = id
			ids["group "+visibility] = at
			enlist(t, s, id, guestID, project.Guest)
			enlist(t, s, id, plannerID, project.Planner)
			enlist(t, s, id, devID, project.Developer)
			s.Repository(t, id, gittest.Commit{Message: "okapi " + visibility, Changes: file("a.txt", "okapi "+visibility+"\n")})
			p := fmt.Sprintf("/projects/%d", id)
			s.Table(t, []apptest.Call{
				{Do: "POST " + p + "/issues", As: owner, JSON: `{"title":"okapi ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/issues", As: owner, JSON: `{"title":"okapi secret ` + visibility + `","confidential":true}`, Status: 201},
				{Do: "POST " + p + "/issues/1/notes", As: owner, JSON: `{"body":"okapi ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/issues/1/notes", As: owner, JSON: `{"body":"okapi internal note secret ` + visibility + `","internal":true}`, Status: 201},
				{Do: "POST " + p + "/issues/2/notes", As: owner, JSON: `{"body":"okapi note secret ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/milestones", As: owner, JSON: `{"title":"okapi ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/snippets", As: owner, JSON: `{"title":"okapi ` + visibility + `","content":"x","file_name":"a","visibility":"` + visibility + `"}`, Status: 201},
				{Do: "POST /snippets", As: owner, JSON: `{"title":"okapi own ` + visibility + `","content":"x","file_name":"a","visibility":"` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/wikis", As: owner, JSON: `{"title":"okapi","content":"okapi ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/repository/branches?branch=topic&ref=main", As: owner, Status: 201},
				{Do: "POST " + p + "/repository/files/b.txt", As: owner, JSON: `{"branch":"topic","commit_message":"c","content":"x"}`, Status: 201},
				{Do: "POST " + p + "/merge_requests", As: owner, JSON: `{"source_branch":"topic","target_branch":"main","title":"okapi ` + visibility + `"}`, Status: 201},
				{Do: "POST " + p + "/merge_requests/1/notes", As: owner, JSON: `{"body":"okapi code ` + visibility + `"}`, Status: 201},
			})
		}
		// count returns the number of results of a reader, or -1 if the place is not
		// found.
		count := func(as, do string) int {
			t.Helper()
			got := s.Send(t, apptest.Call{Do: do, As: as})
			if got.Status == 404 || got.Status == 403 {
				return -1
			}
			var list []json.RawMessage
			if got.Status != 200 {
				t.Errorf("%s: status %d: %s", do, got.Status, got.Body)
				return -2
			}
			got.JSON(t, &list)
			return len(list)
		}
		readers := []string{owner, guest, planner, dev, outsider, external, root, readAPI}
		names := []string{"owner", "guest", "planner", "developer", "outsider", "external", "admin", "read_api"}
		expect := func(do string, want ...int) {
			t.Helper()
			var got []int
			for _, as := range readers {
				got = append(got, count(as, do))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s\n as  %v\n got %v\nwant %v", do, names, got, want)
			}
			s.Check(t, apptest.Call{Do: do, Status: 401})
			s.Check(t, apptest.Call{Do: do, As: readUser, Status: 403})
		}
		const all = "GET /search?per_page=100&search=okapi&scope="
		// Owner, Guest, Planner and Developer of all places; outsider; external
		// user; administrator; outsider with read_api.
		expect(all+"projects", 3, 3, 3, 3, 2, 1, 3, 2)
		expect(all+"issues", 6, 3, 6, 6, 2, 1, 6, 2)
		expect(all+"issues&confidential=true", 3, 0, 3, 3, 0, 0, 3, 0)
		expect(all+"merge_requests", 3, 2, 2, 3, 2, 1, 3, 2)
		expect(all+"milestones", 3, 3, 3, 3, 2, 1, 3, 2)
		expect(all+"snippet_titles", 6, 5, 5, 5, 4, 2, 6, 4)
		expect(all+"notes", 12, 5, 11, 12, 4, 2, 12, 4)
		expect(all+"users", 0, 0, 0, 0, 0, 0, 1, 0)
		indexCode(t, s)
		expect(all+"blobs", 3, 2, 2, 3, 2, 1, 3, 2)
		expect(all+"blobs&regex=true", 3, 2, 2, 3, 2, 1, 3, 2)
		expect(fmt.Sprintf("GET /groups/%d/search?search=okapi&scope=blobs", ids["group private"]), 1, 0, 0, 1, -1, -1, 1, -1)
		for scope, want := range map[string][]int{
			"projects": {1, 1, 1, 1, -1, -1, 1, -1}, "issues": {2, 1, 2, 2, -1, -1, 2, -1}, "merge_requests": {1, 0, 0, 1, -1, -1, 1, -1}, "milestones": {1, 1, 1, 1, -1, -1, 1, -1}, "notes": {4, 1, 3, 4, -1, -1, 4, -1},
		} {
			expect(fmt.Sprintf("GET /groups/%d/search?search=okapi&scope=%s", ids["group private"], scope), want...)
		}
		for scope, want := range map[string][]int{
			"issues": {2, 1, 2, 2, -1, -1, 2, -1}, "merge_requests": {1, -1, -1, 1, -1, -1, 1, -1}, "milestones": {1, 1, 1, 1, -1, -1, 1, -1}, "notes": {4, 1, 3, 4, -1, -1, 4, -1},
			"commits": {1, -1, -1, 1, -1, -1, 1, -1}, "blobs": {1, -1, -1, 1, -1, -1, 1, -1}, "wiki_blobs": {1, 1, 1, 1, -1, -1, 1, -1},
		} {
			expect(fmt.Sprintf("GET /projects/%d/search?search=okapi&scope=%s", ids["private"], scope), want...)
		}
		public := fmt.Sprintf("/projects/%d", ids["public"])
		for scope, want := range map[string][]int{
			"issues": {2, 1, 2, 2, 1, 1, 2, 1}, "notes": {4, 2, 4, 4, 2, 2, 4, 2}, "commits": {1, 1, 1, 1, 1, 1, 1, 1}, "blobs": {1, 1, 1, 1, 1, 1, 1, 1}, "wiki_blobs": {1, 1, 1, 1, 1, 1, 1, 1},
		} {
			expect("GET "+public+"/search?search=okapi&scope="+scope, want...)
		}
		// Parts for members only, and disabled parts.
		s.Check(t, apptest.Call{Do: "PUT " + public, As: owner, Status: 200, JSON: `{"issues_access_level":"private","wiki_access_level":"private","repository_access_level":"private",
			"merge_requests_access_level":"private","snippets_access_level":"private","builds_access_level":"private"}`})
		for scope, want := range map[string][]int{
			"issues": {2, 1, 2, 2, -1, -1, 2, -1}, "merge_requests": {1, -1, -1, 1, -1, -1, 1, -1}, "notes": {4, 1, 3, 4, 0, 0, 4, 0}, "milestones": {1, 1, 1, 1, -1, -1, 1, -1},
			"blobs": {1, -1, -1, 1, -1, -1, 1, -1}, "commits": {1, -1, -1, 1, -1, -1, 1, -1}, "wiki_blobs": {1, 1, 1, 1, -1, -1, 1, -1},
		} {
			expect("GET "+public+"/search?search=okapi&scope="+scope, want...)
		}
		expect(all+"notes", 12, 4, 10, 12, 2, 0, 12, 2)
		expect(all+"blobs", 3, 1, 1, 3, 1, 0, 3, 1)
		expect(all+"milestones", 3, 3, 3, 3, 1, 0, 3, 1)
		s.Check(t, apptest.Call{Do: "PUT " + public, As: owner, Status: 200, JSON: `{"issues_access_level":"disabled","wiki_access_level":"disabled","snippets_access_level":"disabled"}`})
		for _, scope := range []string{"issues", "wiki_blobs"} {
			expect("GET "+public+"/search?search=okapi&scope="+scope, -1, -1, -1, -1, -1, -1, -1, -1)
		}
		expect(all+"issues", 4, 2, 4, 4, 1, 0, 4, 1)
		// A project that is marked for deletion.
		s.Check(t, apptest.Call{Do: "DELETE " + public, As: owner, Status: 202})
		expect(all+"projects", 2, 2, 2, 2, 1, 0, 2, 1)
		expect(all+"blobs", 2, 1, 1, 2, 1, 0, 2, 1)
	})
}
