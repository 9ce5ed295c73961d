package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/waittest"
)

// bulkImport starts an import by the API and returns its ID.
func bulkImport(t testing.TB, s *apptest.Server, as, source, token string, entities ...map[string]any) int64 {
	t.Helper()
	body, err := json.Marshal(map[string]any{"configuration": map[string]string{"url": source, "access_token": token}, "entities": entities})
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /bulk_imports", As: as, JSON: string(body), Status: 201, Want: `{"status":"created","source_type":"gitlab"}`}).JSON(t, &made)
	return made.ID
}

type bulkEntity struct {
	ID          int64
	Status      string
	Type        string `json:"entity_type"`
	Source      string `json:"source_full_path"`
	Destination string `json:"destination_full_path"`
	ProjectID   *int64 `json:"project_id"`
	GroupID     *int64 `json:"namespace_id"`
	ParentID    *int64 `json:"parent_id"`
	Failures    []struct {
		Relation string
		Message  string `json:"exception_message"`
		Title    string `json:"source_title"`
		URL      string `json:"source_url"`
	}
	Stats map[string]struct{ Source, Fetched, Imported int64 }
}

// bulkEnded waits until an import has ended and returns its entities.
func bulkEnded(t testing.TB, s *apptest.Server, as string, id int64, want string) []bulkEntity {
	t.Helper()
	var now struct{ Status string }
	waittest.For(t, "the import to end", func() bool {
		s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /bulk_imports/%d", id), As: as}).JSON(t, &now)
		return now.Status != "created" && now.Status != "started"
	})
	var list []bulkEntity
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /bulk_imports/%d/entities?sort=asc&per_page=100", id), As: as, Status: 200}).JSON(t, &list)
	if now.Status != want {
		t.Fatalf("the import is %s, want %s: %+v", now.Status, want, list)
	}
	for i := range list { // the list has only the first failures
		first := list[i].Failures
		for list[i].Failures = nil; len(first) > 0; {
			at := fmt.Sprintf("GET /bulk_imports/%d/entities/%d/failures?per_page=100&page=%d", id, list[i].ID, len(list[i].Failures)/100+1)
			more := first[:0:0]
			s.Check(t, apptest.Call{Do: at, As: as, Status: 200}).JSON(t, &more)
			if list[i].Failures = append(list[i].Failures, more...); len(more) < 100 {
				break
			}
		}
	}
	return list
}

// compareProjects compares the responses of two servers for a project.
func compareProjects(t *testing.T, s, other *apptest.Server, as, there, from, to string, shows []string) {
	t.Helper()
	for _, show := range shows {
		want := s.Check(t, apptest.Call{Do: "GET /projects/" + from + show, As: as, Status: 200})
		got := other.Check(t, apptest.Call{Do: "GET /projects/" + to + show, As: there, Status: 200})
		if show == "/push_rule" { // created with the project
			for _, a := range []*apptest.Answer{&want, &got} {
				a.Body = regexp.MustCompile(`"created_at":"[^"]*"`).ReplaceAll(a.Body, nil)
			}
		}
		if a, b := scrubbed(want.Body), scrubbed(got.Body); a != b {
			t.Errorf("%s is %s", show, firstDifference(b, a))
		}
	}
}

// bulkRoundTrip imports the project of richProject by the API of its server.
func bulkRoundTrip(t *testing.T, s, other *apptest.Server, alice, there string, shows []string) {
	t.Helper()
	s.Check(t, apptest.Call{Do: "POST /projects/alice%2Frich/variables", As: alice, JSON: `{"key":"SECRET","value":"hidden"}`, Status: 201})
	allowImports(t, other)
	id := bulkImport(t, other, apptest.RootToken, s.URL, apptest.RootToken,
		map[string]any{"source_type": "project_entity", "source_full_path": "alice/rich", "destination_slug": "rich", "destination_namespace": "alice"})
	list := bulkEnded(t, other, apptest.RootToken, id, "finished")
	if len(list) != 1 || list[0].Status != "finished" || list[0].ProjectID == nil {
		t.Fatalf("the entities are %+v", list)
	}
	for _, f := range list[0].Failures {
		if f.Relation != "variables" && f.Relation != "timelogs" {
			t.Errorf("not carried over: %+v", f)
		}
	}
	if n := list[0].Stats["issues"]; n.Source != 2 || n.Fetched != 2 || n.Imported != 2 {
		t.Errorf("the statistics are %+v", list[0].Stats)
	}
	if text := fmt.Sprint(list[0].Failures); !strings.Contains(text, "SECRET") || strings.Contains(text, "hidden") {
		t.Errorf("variables are reported as %s", text)
	}
	settled(t, other)
	// Uploads that no text links to, and comments on commits, are not imported.
	shows = slices.DeleteFunc(shows, func(show string) bool { return show == "/uploads" || show == "/repository/commits/main/comments" })
	compareProjects(t, s, other, alice, there, "alice%2Frich", "alice%2Frich", shows)
	for _, quiet := range []string{"/todos", "/events?scope=all"} {
		other.Check(t, apptest.Call{Do: "GET " + quiet, As: there, Status: 200, Not: []string{"First issue", "A comment"}})
	}
	var left int
	if err := other.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM bulk_imports WHERE token <> ''`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tokens are left, %v", left, err)
	}
}

// TestBulkImportGroup imports a group with a subgroup and their projects.
func TestBulkImportGroup(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		s, other := apptest.Start(t, src), otherServer(t, src)
		_, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		_, there := other.User(t, "alice")
		other.User(t, "bob")
		top := group(t, s, alice, "top", `,"description":"All of us"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d,"subgroup_creation_level":"owner"`, top))
		var lists struct{ ID int64 }
		at := fmt.Sprintf("/groups/%d", top)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID), Status: 201},
			{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"bug","color":"#ff0000"}`, Status: 201},
			{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"1.0","due_date":"2030-01-02"}`, Status: 201},
			{Do: "POST " + at + "/badges", As: alice, JSON: `{"name":"b","link_url":"https://example.org/","image_url":"https://example.org/i.svg"}`, Status: 201},
			{Do: "POST " + at + "/variables", As: alice, JSON: `{"key":"OF_GROUP","value":"hidden"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"One","path":"one","namespace_id":%d,"description":"First"}`, top), Status: 201},
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"Two","path":"two","namespace_id":%d,"initialize_with_readme":true}`, sub), Status: 201},
			{Do: "POST /projects/top%2Fsub%2Ftwo/issues", As: alice, JSON: `{"title":"Of the group","labels":"bug"}`, Status: 201},
		})
		s.Check(t, apptest.Call{Do: "POST " + at + "/boards", As: alice, JSON: `{"name":"Plan"}`, Status: 201}).JSON(t, &lists)
		settled(t, s)
		allowImports(t, other)
		id := bulkImport(t, other, apptest.RootToken, s.URL+"/", apptest.RootToken, map[string]any{"source_type": "group_entity", "source_full_path": "top", "destination_slug": "copy", "destination_namespace": ""})
		list := bulkEnded(t, other, apptest.RootToken, id, "finished")
		if len(list) != 3 || list[0].Type != "group" || list[0].GroupID == nil || list[1].Source != "top/one" || list[2].Destination != "copy/sub/two" || list[2].ParentID == nil || *list[2].ParentID != list[0].ID {
			t.Fatalf("the entities are %+v", list)
		}
		if text := fmt.Sprint(list[0].Failures); !strings.Contains(text, "OF_GROUP") || strings.Contains(text, "hidden") {
			t.Errorf("the group lost %s", text)
		}
		other.Table(t, []apptest.Call{
			{Do: "GET /groups/copy", As: apptest.RootToken, Status: 200, Want: `{"name":"TOP","description":"All of us","visibility":"private"}`},
			{Do: "GET /groups/copy%2Fsub", As: there, Status: 200, Want: `{"name":"SUB","subgroup_creation_level":"owner"}`},
			{Do: "GET /groups/copy/labels", As: there, Status: 200, Want: `[{"name":"bug","color":"#ff0000"}]`},
			{Do: "GET /groups/copy/milestones", As: there, Status: 200, Want: `[{"title":"1.0","due_date":"2030-01-02"}]`},
			{Do: "GET /groups/copy/badges", As: there, Status: 200, Want: `[{"name":"b"}]`},
			{Do: "GET /groups/copy/boards", As: there, Status: 200, Want: `[{"name":"Plan"}]`},
			{Do: "GET /projects/copy%2Fone", As: there, Status: 200, Want: `{"name":"One","description":"First"}`},
			{Do: "GET /projects/copy%2Fsub%2Ftwo/issues", As: there, Status: 200, Want: `[{"title":"Of the group","labels":["bug"],"author":{"username":"alice"}}]`},
			{Name: "the label is that of the group", Do: "GET /projects/copy%2Fsub%2Ftwo/labels", As: there, Status: 200, Want: `[{"name":"bug","is_project_label":false}]`},
			{Do: "GET /projects/copy%2Fsub%2Ftwo/repository/files/README.md?ref=main", As: there, Status: 200, Want: `{"file_name":"README.md"}`},
		})
		var members []struct{ Username string }
		other.Check(t, apptest.Call{Do: "GET /groups/copy/members?per_page=100", As: there, Status: 200}).JSON(t, &members)
		names := fmt.Sprint(members)
		if !strings.Contains(names, "alice") || !strings.Contains(names, "bob") {
			t.Errorf("the members are %s", names)
		}
	})
}

// checkBulkImport checks who can import to which namespace, and who can see an
// import.
func checkBulkImport(t *testing.T, s *apptest.Server, by importers) {
	t.Helper()
	alice, bob, carol := by.alice, by.bob, by.carol
	g := group(t, s, alice, "office", `,"project_creation_level":"maintainer"`)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, by.bobID), Status: 201})
	start := func(url, token, entity string) string {
		return `{"configuration":{"url":` + quoted(url) + `,"access_token":` + quoted(token) + `},"entities":[` + entity + `]}`
	}
	project := func(from, slug, to string) string {
		return fmt.Sprintf(`{"source_type":"project_entity","source_full_path":%q,"destination_slug":%q,"destination_namespace":%q}`, from, slug, to)
	}
	s.Check(t, apptest.Call{Name: "the local network", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, project("alice/rich", "x", "bob")), Status: 400, Want: `{"message":{"url":["is blocked: requests to the local network are not allowed"]}}`})
	allowImports(t, s)
	s.Table(t, []apptest.Call{
		{Name: "nobody", Do: "POST /bulk_imports", JSON: start(s.URL, bob, project("alice/rich", "x", "bob")), Status: 401},
		{Name: "a Developer", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, project("alice/rich", "x", "office")), Status: 403},
		{Name: "a group that carol cannot see", Do: "POST /bulk_imports", As: carol, JSON: start(s.URL, carol, project("alice/rich", "x", "office")), Status: 404},
		{Name: "the namespace of another user", Do: "POST /bulk_imports", As: carol, JSON: start(s.URL, carol, project("alice/rich", "x", "alice")), Status: 404},
		{Name: "no namespace", Do: "POST /bulk_imports", As: carol, JSON: start(s.URL, carol, project("alice/rich", "x", "")), Status: 400},
		{Name: "a taken path", Do: "POST /bulk_imports", As: alice, JSON: start(s.URL, alice, project("alice/rich", "rich", "alice")), Status: 400},
		{Name: "a path that leads elsewhere", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, project("../../x", "x", "bob")), Status: 400},
		{Name: "a destination that is no path", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, project("alice/rich", "../x", "bob")), Status: 400},
		{Name: "no URL", Do: "POST /bulk_imports", As: bob, JSON: start("file:///etc/passwd", bob, project("alice/rich", "x", "bob")), Status: 400},
		{Name: "credentials in the URL", Do: "POST /bulk_imports", As: bob, JSON: start("https://a:b@example.org", bob, project("alice/rich", "x", "bob")), Status: 400},
		{Name: "a token that is none", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, "a\nb", project("alice/rich", "x", "bob")), Status: 400},
		{Name: "twice", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, project("alice/rich", "x", "bob")+","+project("alice/rich", "X", "bob")), Status: 400},
		{Name: "nothing", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, ""), Status: 400},
		{Name: "no such type", Do: "POST /bulk_imports", As: bob, JSON: start(s.URL, bob, `{"source_type":"user_entity","source_full_path":"x"}`), Status: 400},
	})
	id := bulkImport(t, s, bob, s.URL, bob, map[string]any{"source_type": "project_entity", "source_full_path": "alice/rich", "destination_slug": "mine", "destination_namespace": "bob"})
	list := bulkEnded(t, s, bob, id, "finished")
	at := fmt.Sprintf("/bulk_imports/%d", id)
	entity := fmt.Sprintf("%s/entities/%d", at, list[0].ID)
	for _, get := range []string{at, at + "/entities", entity, entity + "/failures"} {
		s.Table(t, []apptest.Call{
			{Do: "GET " + get, As: bob, Status: 200},
			{Do: "GET " + get, As: apptest.RootToken, Status: 200},
			{Do: "GET " + get, As: carol, Status: 404},
			{Do: "GET " + get, Status: 401},
		})
	}
	s.Table(t, []apptest.Call{
		{Do: "GET /bulk_imports", As: bob, Status: 200, Want: `[{"status":"finished","has_failures":true}]`},
		{Do: "GET /bulk_imports", As: carol, Status: 200, Want: `[]`},
		{Do: "GET /bulk_imports?status=failed", As: bob, Status: 200, Want: `[]`},
		{Do: "GET /bulk_imports/entities?status=finished", As: bob, Status: 200, Want: `[{"entity_type":"project","destination_full_path":"bob/mine","destination_slug":"mine","destination_namespace":"bob"}]`},
		{Do: "GET /bulk_imports/entities", As: carol, Status: 200, Want: `[]`},
		{Do: "POST " + at + "/cancel", As: carol, Status: 404},
		{Name: "it is over", Do: "POST " + at + "/cancel", As: bob, Status: 409},
		{Name: "users are mapped for administrators alone", Do: "GET /projects/bob%2Fmine/issues/1", As: bob, Status: 200, Want: `{"author":{"username":"ghost"},"assignees":[],"labels":["bug","later"]}`},
		{Do: "GET /projects/bob%2Fmine/members", As: bob, Status: 200, Want: `[{"username":"bob","access_level":50}]`},
		{Do: "GET /projects/bob%2Fmine/merge_requests/1/diffs", As: bob, Status: 200, Want: `[{"new_path":"a.txt"},{"new_path":"b.txt"}]`},
		{Do: "GET /projects/bob%2Fmine/pipelines", As: bob, Status: 200, Want: `[]`},
	})
	notes := s.Send(t, apptest.Call{Do: "GET /projects/bob%2Fmine/issues/1/notes?activity_filter=only_comments", As: bob})
	if !strings.Contains(string(notes.Body), `"body":"*By bob (bob) on `) {
		t.Errorf("the notes do not name their authors: %s", notes.Body)
	}
}

// TestBulkImportObjects imports LFS objects, uploads that texts link to, and a merge
// request with a force-pushed source branch. A branch whose name is refused is left out.
func TestBulkImportObjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		allowImports(t, s)
		const object = "a large file"
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"from"}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d", made.ID)
		p, err := s.Projects.Require(t.Context(), actor.System(), project.RefTo(made.ID), project.NoAccess)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.LFS.Put(t.Context(), p, lfs.Pointer{OID: hexOf(object), Size: int64(len(object))}, strings.NewReader(object)); err != nil {
			t.Fatal(err)
		}
		odd := "refs/heads/" + strings.Repeat("ab", 20)
		r := s.Repository(t, made.ID, gittest.Commit{Changes: []gittest.Change{
			{Path: "a", Content: "a\n"}, {Path: "large", Content: fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hexOf(object), len(object))},
		}})
		r.Git("update-ref", odd, "main")
		files := make([]struct{ Markdown, URL string }, 3)
		for i := range files {
			uploadFile(t, s, alice, made.ID, "a text.txt", fmt.Sprintf("the text %d", i)).JSON(t, &files[i])
		}
		// The secrets of the links descend, those of an export ascend.
		text := "See"
		for _, i := range []int{0, 1, 2} {
			file := slices.MaxFunc(files[i:], func(a, b struct{ Markdown, URL string }) int { return strings.Compare(a.URL, b.URL) })
			at := slices.Index(files, file)
			files[i], files[at] = files[at], files[i]
			text += " " + file.Markdown
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"With files","description":` + quoted(text) + `}`, Status: 201},
			{Do: "POST " + at + "/repository/commits", As: alice, JSON: `{"branch":"topic","start_branch":"main","commit_message":"One","actions":[{"action":"create","file_path":"b","content":"b\n"}]}`, Status: 201},
			{Do: "POST " + at + "/merge_requests", As: alice, JSON: `{"title":"Forced","source_branch":"topic","target_branch":"main"}`, Status: 201},
		})
		settled(t, s)
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, JSON: `{"branch":"topic","start_branch":"main","force":true,"commit_message":"Two","actions":[{"action":"create","file_path":"c","content":"c\n"}]}`, Status: 201})
		settled(t, s)
		var versions []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/merge_requests/1/versions", As: alice, Status: 200}).JSON(t, &versions)
		if len(versions) != 2 {
			t.Fatalf("the source has %d versions", len(versions))
		}
		id := bulkImport(t, s, alice, s.URL, alice, map[string]any{"source_type": "project_entity", "source_full_path": "alice/from", "destination_slug": "copy", "destination_namespace": "alice"})
		list := bulkEnded(t, s, alice, id, "finished")
		if text := fmt.Sprint(list[0].Failures); !strings.Contains(text, "merge_request_versions") || strings.Contains(text, "lfs") {
			t.Errorf("not carried over: %s", text)
		}
		checkReport(t, list[0], [2]string{"repository", odd})
		const copied = "/projects/alice%2Fcopy"
		s.Table(t, []apptest.Call{
			{Do: "GET " + copied + "/merge_requests/1/versions", As: alice, Status: 200, Want: `[{"real_size":"1"}]`},
			{Do: "GET " + copied + "/merge_requests/1/diffs", As: alice, Status: 200, Want: `[{"new_path":"c"}]`},
			{Do: "GET " + copied + "/uploads", As: alice, Status: 200, Want: `[{"filename":"a text.txt","size":10},{"size":10},{"size":10}]`},
			{Do: "GET " + copied + "/repository/branches", As: alice, Status: 200, Want: `[{"name":"main"},{"name":"topic"}]`},
			{Do: "GET " + copied + "/repository/files/large/raw?ref=main&lfs=true", As: alice, Status: 200},
		})
		made.ID = *list[0].ProjectID
		if p, err = s.Projects.Require(t.Context(), actor.System(), project.RefTo(made.ID), project.NoAccess); err != nil {
			t.Fatal(err)
		}
		content, err := s.LFS.Open(t.Context(), p, hexOf(object))
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if text, err := io.ReadAll(content); err != nil || string(text) != object {
			t.Errorf("the object is %q, %v", text, err)
		}
		for _, file := range files {
			a := s.Send(t, apptest.Call{Do: "GET " + copied + strings.ReplaceAll(file.URL, " ", "%20"), As: alice})
			if a.Status != 200 || !strings.HasPrefix(string(a.Body), "the text ") {
				t.Errorf("the file is %d %q", a.Status, a.Body)
			}
		}
	})
}
