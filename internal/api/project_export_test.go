package api_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/lfs"
	"svc/internal/project"
)

// sendProject uploads a file to be imported as a project, with the fields as name,
// value pairs.
func sendProject(t testing.TB, s *apptest.Server, token string, file []byte, fields ...string) apptest.Answer {
	t.Helper()
	return sendExport(t, s, "/projects/import", token, file, fields...)
}

// exportedProject exports a project and returns the file.
func exportedProject(t testing.TB, s *apptest.Server, token, path string) []byte {
	t.Helper()
	at := "/projects/" + strings.ReplaceAll(path, "/", "%2F")
	s.Check(t, apptest.Call{Do: "POST " + at + "/export", As: token, Status: 202, Want: `{"message":"202 Accepted"}`})
	settled(t, s)
	s.Check(t, apptest.Call{Do: "GET " + at + "/export", As: token, Status: 200, Want: `{"export_status":"finished","error":null,"_links":{"api_url":"<any>","web_url":"<any>"}}`})
	return s.Check(t, apptest.Call{Do: "GET " + at + "/export/download", As: token, Status: 200, WantHeader: map[string]string{"Content-Type": "application/gzip"}}).Body
}

// importedProject imports a file and returns the ID of the project.
func importedProject(t testing.TB, s *apptest.Server, token string, file []byte, fields ...string) int64 {
	t.Helper()
	a := sendProject(t, s, token, file, fields...)
	var made struct {
		ID     int64
		Status string `json:"import_status"`
		Type   string `json:"import_type"`
	}
	if a.Status != 201 {
		t.Fatalf("status %d: %s", a.Status, a.Body)
	}
	a.JSON(t, &made)
	if made.Status != "scheduled" || made.Type != "gitlab_project" {
		t.Errorf("the answer is %s", a.Body)
	}
	settled(t, s)
	return made.ID
}

// richProject creates a project with objects of each kind, and returns the paths of
// the requests that show them.
func richProject(t *testing.T, s *apptest.Server, alice, bob string, bobID int64) (shows []string) {
	t.Helper()
	do := func(as, do, body string, status int) apptest.Answer {
		t.Helper()
		return s.Check(t, apptest.Call{Do: do, As: as, JSON: body, Status: status})
	}
	var made struct{ ID int64 }
	do(alice, "POST /projects", `{"name":"Rich Project","path":"rich","visibility":"public","description":"All *kinds*.","topics":["one","two"],"merge_method":"rebase_merge",
		"wiki_access_level":"private","only_allow_merge_if_pipeline_succeeds":true,"build_timeout":7200}`, 201).JSON(t, &made)
	at := fmt.Sprintf("/projects/%d", made.ID)
	s.Repository(t, made.ID,
		gittest.Commit{Changes: []gittest.Change{{Path: "README.md", Content: "# Rich\n"}, {Path: "a.txt", Content: "one\ntwo\nthree\n"}}},
	)
	if a := uploadFile(t, s, alice, made.ID, "a picture.txt", "not a picture"); a.Status != 201 {
		t.Errorf("upload: %d %s", a.Status, a.Body)
	}
	const object = "a large file"
	p, err := s.Projects.Require(t.Context(), actor.System(), project.RefTo(made.ID), project.NoAccess)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.LFS.Put(t.Context(), p, lfs.Pointer{OID: hexOf(object), Size: int64(len(object))}, strings.NewReader(object)); err != nil {
		t.Fatal(err)
	}
	do(alice, "POST "+at+"/members", fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID), 201)
	do(alice, "POST "+at+"/repository/tags", `{"tag_name":"v1","ref":"main"}`, 201)
	do(alice, "POST "+at+"/repository/commits", `{"branch":"topic","start_branch":"main","commit_message":"Change","actions":[{"action":"update","file_path":"a.txt","content":"one\n2\nthree\n"}]}`, 201)
	do(alice, "POST "+at+"/labels", `{"name":"bug","color":"#ff0000","description":"Wrong","priority":3}`, 201)
	do(alice, "POST "+at+"/labels", `{"name":"later","color":"#00ff00"}`, 201)
	var goal struct{ ID int64 }
	do(alice, "POST "+at+"/milestones", `{"title":"1.0","description":"First","due_date":"2030-01-02"}`, 201).JSON(t, &goal)
	do(bob, "POST "+at+"/issues", fmt.Sprintf(`{"title":"First issue","description":"See !1 and #2.","labels":"bug,later","milestone_id":%d,"assignee_ids":[%d],"weight":3,"due_date":"2031-02-03"}`, goal.ID, bobID), 201)
	do(alice, "POST "+at+"/issues", `{"title":"Second & <b>","confidential":true,"issue_type":"incident"}`, 201)
	do(alice, "POST "+at+"/issues", `{"title":"Third"}`, 201)
	do(alice, "DELETE "+at+"/issues/3", "", 204)
	do(alice, "POST "+at+"/issues/1/links", fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":2,"link_type":"blocks"}`, made.ID), 201)
	do(alice, "POST "+at+"/issues/1/time_estimate?duration=3h", "", 200)
	do(bob, "POST "+at+"/issues/1/add_spent_time?duration=1h&summary=work", "", 201)
	do(bob, "POST "+at+"/issues/1/award_emoji?name=thumbsup", "", 201)
	do(bob, "POST "+at+"/issues/1/notes", `{"body":"A comment, see #2"}`, 201)
	var thread struct{ ID string }
	do(bob, "POST "+at+"/issues/1/discussions", `{"body":"A thread"}`, 201).JSON(t, &thread)
	do(alice, "POST "+at+"/issues/1/discussions/"+thread.ID+"/notes", `{"body":"An answer"}`, 201)
	do(alice, "PUT "+at+"/issues/2", `{"state_event":"close"}`, 200)
	do(bob, "POST "+at+"/merge_requests", fmt.Sprintf(`{"title":"Draft: topic","description":"Closes #1","source_branch":"topic","target_branch":"main","labels":"bug","reviewer_ids":[%d],"assignee_ids":[%d]}`, bobID, bobID), 201)
	settled(t, s)
	var request struct {
		Refs map[string]string `json:"diff_refs"`
	}
	do(alice, "GET "+at+"/merge_requests/1", "", 200).JSON(t, &request)
	position := fmt.Sprintf(`{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text","new_path":"a.txt","old_path":"a.txt","new_line":2}`,
		request.Refs["base_sha"], request.Refs["start_sha"], request.Refs["head_sha"])
	do(alice, "POST "+at+"/merge_requests/1/discussions", `{"body":"Why?\n`+"```suggestion:-0+0\\ntwo\\n```"+`","position":`+position+`}`, 201).JSON(t, &thread)
	do(bob, "PUT "+at+"/merge_requests/1/discussions/"+thread.ID+"?resolved=true", "", 200)
	do(alice, "POST "+at+"/merge_requests/1/approve", "", 201)
	do(alice, "POST "+at+"/repository/commits", `{"branch":"topic","commit_message":"More","actions":[{"action":"create","file_path":"b.txt","content":"b\n"}]}`, 201)
	do(alice, "POST "+at+"/repository/commits", `{"branch":"done","start_branch":"main","commit_message":"Done","actions":[{"action":"create","file_path":"c.txt","content":"c\n"}]}`, 201)
	do(alice, "POST "+at+"/merge_requests", `{"title":"To close","source_branch":"done","target_branch":"main"}`, 201)
	do(alice, "PUT "+at+"/merge_requests/2", `{"state_event":"close"}`, 200)
	do(alice, "POST "+at+"/releases", `{"tag_name":"v1","name":"One","description":"The first","milestones":["1.0"],"assets":{"links":[{"name":"doc","url":"https://example.org/doc","link_type":"runbook"}]}}`, 201)
	do(alice, "POST "+at+"/protected_branches", `{"name":"stable-*","push_access_level":0,"merge_access_level":30,"allow_force_push":true}`, 201)
	do(alice, "POST "+at+"/protected_tags", `{"name":"v*","create_access_level":40}`, 201)
	do(alice, "POST "+at+"/badges", `{"name":"build","link_url":"https://example.org/%{project_path}","image_url":"https://example.org/i.svg"}`, 201)
	do(alice, "POST "+at+"/push_rule", `{"commit_message_regex":"^[A-Z]","max_file_size":7}`, 201)
	do(alice, "POST "+at+"/pipeline_schedules", `{"description":"Nightly","ref":"refs/heads/main","cron":"0 1 * * *","cron_timezone":"UTC","active":false}`, 201)
	do(alice, "POST "+at+"/approval_rules", fmt.Sprintf(`{"name":"Experts","approvals_required":1,"user_ids":[%d]}`, bobID), 201)
	do(alice, "POST "+at+"/wikis", `{"title":"home","content":"Hello wiki"}`, 201)
	do(bob, "POST "+at+"/snippets", `{"title":"Snip","description":"D","visibility":"internal","files":[{"file_path":"x.rb","content":"puts 1\n"}]}`, 201)
	do(alice, "POST "+at+"/repository/commits/main/comments", `{"note":"On the commit"}`, 201)
	var lists struct{ ID int64 }
	do(alice, "POST "+at+"/boards", `{"name":"Plan"}`, 201).JSON(t, &lists)
	settled(t, s)
	return []string{
		"", "/labels", "/milestones", "/issues?sort=asc", "/issues/1/links", "/issues/1/notes?sort=asc", "/issues/1/discussions", "/issues/1/award_emoji", "/issues/1/time_stats",
		"/issues/1/resource_label_events", "/issues/2/resource_state_events", "/merge_requests?sort=asc", "/merge_requests/1", "/merge_requests/1/discussions", "/merge_requests/1/diffs",
		"/merge_requests/1/versions", "/merge_requests/1/approvals", "/merge_requests/1/commits", "/merge_requests/1/closes_issues", "/merge_requests/1/reviewers", "/releases", "/protected_branches", "/protected_tags", "/badges",
		"/push_rule", "/pipeline_schedules", "/approval_rules", "/wikis?with_content=1", "/snippets", "/repository/commits/main/comments", "/boards",
		"/uploads", "/repository/branches", "/repository/tags", "/members", "/repository/commits?all=true",
	}
}

// scrub matches values that differ in a copy: IDs, URLs of the server, and the times
// of the import.
var scrub = []*regexp.Regexp{
	regexp.MustCompile(`"(id|project_id|source_project_id|target_project_id|noteable_id|creator_id|author_id|issue_id|milestone_id|group_id|author_id|resource_id|issue_link_id|namespace_id|user_id)":\d+`),
	regexp.MustCompile(`http://127\.0\.0\.1:\d+[^"\\]*`), regexp.MustCompile(`git@[^"]*`),
	regexp.MustCompile(`"(owner|created_by)":\{[^}]*\}`),
	regexp.MustCompile(`"(subscribed|last_activity_at|updated_at|import_status|import_type|import_url|owner_id|protected|discussion_locked|runners_token|current_sign_in_at|next_run_at|last_activity_on|merge_status|detailed_merge_status|user_notes_count_x|created_by_id|ssh_url_to_repo|created_at_member)":("[^"]*"|null|true|false|\d+)`),
	regexp.MustCompile(`issue#\d+|"(full|relative)":"[^"]*"`),
}

func scrubbed(body []byte) string {
	text := string(body)
	for _, re := range scrub {
		text = re.ReplaceAllString(text, `"_":0`)
	}
	return text
}

// firstDifference returns the first difference of two texts, with its context.
func firstDifference(got, want string) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	from := max(0, n-100)
	return fmt.Sprintf("…%s…\nwant\n…%s…", got[from:min(len(got), n+200)], want[from:min(len(want), n+200)])
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// otherServer starts a server on the other kind of database, if there is one.
func otherServer(t *testing.T, src dbtest.Source) *apptest.Server {
	t.Helper()
	if strings.HasPrefix(src.URL, "postgres") || os.Getenv("TEST_POSTGRES") == "" {
		return apptest.Start(t, dbtest.SQLite(t))
	}
	return apptest.Start(t, dbtest.Postgres(t))
}

// TestProjectRoundTrip copies a project with objects of each kind to other servers,
// and compares their responses.
func TestProjectRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		s := apptest.Start(t, src)
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		shows := richProject(t, s, alice, bob, bobID)
		target := func(t *testing.T) (other *apptest.Server, there string) {
			other = otherServer(t, src)
			_, there = other.User(t, "alice")
			other.User(t, "bob")
			return other, there
		}
		t.Run("export file", func(t *testing.T) {
			other, there := target(t)
			fileRoundTrip(t, s, other, alice, there, shows)
		})
		t.Run("bulk import", func(t *testing.T) {
			other, there := target(t)
			bulkRoundTrip(t, s, other, alice, there, shows)
		})
	})
}

// fileRoundTrip exports the project of richProject to a file and imports the file.
func fileRoundTrip(t *testing.T, s, other *apptest.Server, alice, there string, shows []string) {
	t.Helper()
	file := exportedProject(t, s, apptest.RootToken, "alice/rich")
	id := importedProject(t, other, apptest.RootToken, file, "path", "rich", "name", "Rich Project", "namespace", "alice")
	other.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/import", id), As: there, Status: 200,
		Want: `{"import_status":"finished","import_type":"gitlab_project","import_error":null,"failed_relations":[]}`})
	for _, show := range shows {
		want := s.Check(t, apptest.Call{Do: "GET /projects/alice%2Frich" + show, As: alice, Status: 200})
		got := other.Check(t, apptest.Call{Do: "GET /projects/alice%2Frich" + show, As: there, Status: 200})
		if show == "/push_rule" { // created with the project
			for _, a := range []*apptest.Answer{&want, &got} {
				a.Body = regexp.MustCompile(`"created_at":"[^"]*"`).ReplaceAll(a.Body, nil)
			}
		}
		if a, b := scrubbed(want.Body), scrubbed(got.Body); a != b {
			t.Errorf("%s is %s", show, firstDifference(b, a))
		}
	}
	for _, name := range []string{"project/uploads.ndjson", "project/lfs/" + hexOf("a large file"), "project/notes.ndjson", "project/snippets/1.bundle", "project/wiki.bundle"} {
		if _, ok := parts(t, file)[name]; !ok {
			t.Errorf("the export has no %s", name)
		}
	}
	again := exportedProject(t, other, apptest.RootToken, "alice/rich")
	first, second := parts(t, file), parts(t, again)
	for name, want := range first {
		if got := second[name]; got != want {
			t.Errorf("%s of the export of the copy is\n%s\nwant\n%s", name, got, want)
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d entries, want %d", len(second), len(first))
	}
	// An import creates no to-do items or events.
	for _, quiet := range []string{"/todos", "/events?scope=all"} {
		other.Check(t, apptest.Call{Do: "GET " + quiet, As: there, Status: 200, Not: []string{"First issue", "A comment"}})
	}
}

// parts returns the entries of an export file without those that may differ: packs,
// of which only the headers of the bundles are kept, and the manifest.
func parts(t testing.TB, file []byte) map[string]string {
	t.Helper()
	found := entries(t, file)
	for name, text := range found {
		if strings.HasSuffix(name, ".bundle") {
			found[name], _, _ = strings.Cut(text, "\n\n")
		}
	}
	delete(found, "manifest.json")
	return found
}

// importers are users of a server with the project of richProject.
type importers struct {
	alice, bob, carol string // tokens; alice owns the project
	bobID, carolID    int64
}

// TestProjectImport checks who can import a project to which namespace, and how
// users without an account are imported.
func TestProjectImport(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var by importers
		_, by.alice = s.User(t, "alice")
		by.bobID, by.bob = s.User(t, "bob")
		by.carolID, by.carol = s.User(t, "carol")
		richProject(t, s, by.alice, by.bob, by.bobID)
		t.Run("export file", func(t *testing.T) { checkFileImport(t, s, by) })
		t.Run("bulk import", func(t *testing.T) { checkBulkImport(t, s, by) })
	})
}

func checkFileImport(t *testing.T, s *apptest.Server, by importers) {
	t.Helper()
	alice, bob, carol := by.alice, by.bob, by.carol
	file := exportedProject(t, s, alice, "alice/rich")
	for name, text := range entries(t, file) {
		if strings.Contains(text, "email_sha256") {
			t.Errorf("%s has addresses: %s", name, text)
		}
	}
	g := group(t, s, alice, "team", `,"project_creation_level":"maintainer"`)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, by.bobID), Status: 201})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, by.carolID), Status: 201})
	for _, c := range []struct {
		name   string
		as     string
		file   []byte
		fields []string
		status int
		want   string
	}{
		{"nobody", "", file, []string{"path", "x"}, 401, ""},
		{"a Developer", carol, file, []string{"path", "x", "namespace", "team"}, 403, ""},
		{"no such group", carol, file, []string{"path", "x", "namespace_path", "nowhere"}, 404, ""},
		{"the namespace of another user", carol, file, []string{"path", "x", "namespace", "alice"}, 404, ""},
		{"no file", bob, nil, []string{"path", "x"}, 400, "file is missing"},
		{"no path", bob, file, nil, 400, "path is missing"},
		{"two namespaces", bob, file, []string{"path", "x", "namespace", "team", "namespace_path", "team"}, 400, "mutually exclusive"},
		{"overwrite", bob, file, []string{"path", "x", "overwrite", "true"}, 400, "overwrite"},
		{"an unknown override", bob, file, []string{"path", "x", "override_params[storage]", "x"}, 400, "storage"},
		{"a bad override", bob, file, []string{"path", "x", "override_params[build_timeout]", "soon"}, 400, "build_timeout"},
		{"a taken path", alice, file, []string{"path", "RICH"}, 400, "has already been taken"},
	} {
		if a := sendProject(t, s, c.as, c.file, c.fields...); a.Status != c.status || !strings.Contains(string(a.Body), c.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", c.name, a.Status, c.status, c.want, a.Body)
		}
	}
	id := importedProject(t, s, bob, file, "path", "copy", "namespace", "team", "override_params[description]", "Mine", "override_params[merge_method]", "ff")
	s.Table(t, []apptest.Call{
		{Do: fmt.Sprintf("GET /projects/%d", id), As: bob, Status: 200, Want: `{"path_with_namespace":"team/copy","description":"Mine","merge_method":"ff","visibility":"private","import_status":"finished","import_type":"gitlab_project"}`},
		{Do: fmt.Sprintf("GET /projects/%d/import", id), As: bob, Status: 200, Want: `{"import_status":"finished","failed_relations":[{"relation_name":"user"},{"relation_name":"user"}]}`},
		{Name: "others see no report", Do: fmt.Sprintf("GET /projects/%d/import", id), As: alice, Status: 200, Want: `{"import_status":"finished","failed_relations":[]}`},
		{Do: fmt.Sprintf("GET /projects/%d/members", id), As: bob, Status: 200, Want: `[]`},
		{Do: fmt.Sprintf("GET /projects/%d/issues/1", id), As: bob, Status: 200, Want: `{"author":{"username":"ghost"},"assignees":[],"upvotes":0,"labels":["bug","later"]}`},
		{Do: fmt.Sprintf("GET /projects/%d/merge_requests/1", id), As: bob, Status: 200, Want: `{"author":{"username":"ghost"},"reviewers":[]}`},
		{Do: fmt.Sprintf("GET /projects/%d/merge_requests/1/approvals", id), As: bob, Status: 200, Want: `{"approved_by":[]}`},
		{Do: fmt.Sprintf("GET /projects/%d/pipelines", id), As: bob, Status: 200, Want: `[]`},
		{Do: "GET /todos", As: carol, Status: 200, Want: `[]`},
	})
	notes := s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/issues/1/notes?activity_filter=only_comments", id), As: bob})
	if !strings.Contains(string(notes.Body), `"body":"*By bob (bob) on `) {
		t.Errorf("the notes do not name their authors: %s", notes.Body)
	}

	// A failed import leaves no project, and its path can be used again.
	bad := sendProject(t, s, bob, []byte("no archive"), "path", "bad")
	var made struct{ ID int64 }
	bad.JSON(t, &made)
	settled(t, s)
	s.Table(t, []apptest.Call{
		{Do: fmt.Sprintf("GET /projects/%d", made.ID), As: bob, Status: 404},
		{Do: fmt.Sprintf("GET /projects/%d/import", made.ID), As: bob, Status: 200, Want: `{"import_status":"failed","import_error":"The file is not a project export: it is not compressed with gzip."}`},
		{Do: fmt.Sprintf("GET /projects/%d/import", made.ID), As: alice, Status: 404},
		{Do: "POST /projects", As: bob, JSON: `{"name":"bad"}`, Status: 201},
		{Do: fmt.Sprintf("POST /projects/%d/export", id), As: bob, JSON: `{"upload":{}}`, Status: 400},
		{Do: fmt.Sprintf("POST /projects/%d/export", id), As: carol, Status: 403},
	})
}

// TestExportsOfRoles exports a project as an administrator and as a Maintainer, in turns:
// the file of the one does not replace that of the other.
func TestExportsOfRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		made(t, s, alice, "POST /projects", `{"name":"p"}`)
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/issues", As: alice, JSON: `{"title":"one"}`, Status: 201})
		addresses := func(file []byte) bool {
			t.Helper()
			for _, text := range entries(t, file) {
				if strings.Contains(text, "email_sha256") {
					return true
				}
			}
			return false
		}
		for range 2 {
			for _, as := range []string{alice, apptest.RootToken} {
				if has := addresses(exportedProject(t, s, as, "alice/p")); has != (as == apptest.RootToken) {
					t.Errorf("the file of %.5s has addresses: %t", as, has)
				}
				for _, other := range []string{alice, apptest.RootToken} {
					if as == alice && other != alice {
						continue // that of root may not be there yet
					}
					file := s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp/export/download", As: other, Status: 200}).Body
					if has := addresses(file); has != (other == apptest.RootToken) {
						t.Errorf("after an export of %.5s, the file of %.5s has addresses: %t", as, other, has)
					}
				}
			}
		}
		exportedProject(t, s, alice, "alice/p")
		if file := s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp/export/download", As: apptest.RootToken, Status: 200}).Body; !addresses(file) {
			t.Error("the file of an administrator was replaced by one without addresses")
		}
		if n := rows(t, s, `SELECT count(DISTINCT expires_at) FROM project_exports`); n < 2 {
			t.Errorf("older files have not expired: %d", n)
		}
	})
}

// TestImportsAreLimited starts as many imports of files as a user may have waiting.
func TestImportsAreLimited(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		if err := s.Queue.Stop(t.Context()); err != nil { // they stay pending
			t.Fatal(err)
		}
		file := []byte("not read")
		remote := func(as, path string, status int) apptest.Answer {
			t.Helper()
			return s.Check(t, apptest.Call{Do: "POST /projects/remote-import", As: as, JSON: `{"path":"` + path + `","url":"https://files.example.org/a.tar.gz"}`, Status: status})
		}
		for n := range 5 {
			if a := sendProject(t, s, alice, file, "path", fmt.Sprintf("file-%d", n)); a.Status != 201 {
				t.Fatalf("status %d: %s", a.Status, a.Body)
			}
		}
		for n := range 3 {
			remote(alice, fmt.Sprintf("remote-%d", n), 201)
		}
		for n := range 2 {
			if a := sendImport(t, s, alice, file, "name", "g", "path", fmt.Sprintf("g-%d", n)); a.Status != 202 {
				t.Fatalf("status %d: %s", a.Status, a.Body)
			}
		}
		for what, a := range map[string]apptest.Answer{
			"a project": sendProject(t, s, alice, file, "path", "more"), "a URL": remote(alice, "more", 400), "a group": sendImport(t, s, alice, file, "name", "more", "path", "more"),
		} {
			if a.Status != 400 || !strings.Contains(string(a.Body), "10 of your imports are under way") {
				t.Errorf("%s: status %d: %s", what, a.Status, a.Body)
			}
		}
		s.Check(t, apptest.Call{Name: "nothing is left of it", Do: "POST /projects", As: alice, JSON: `{"name":"more"}`, Status: 201})
		if a := sendProject(t, s, bob, file, "path", "other"); a.Status != 201 {
			t.Errorf("another user: status %d: %s", a.Status, a.Body)
		}
	})
}

// TestImportedRulesAreNotWider checks that what only a group may do on a protected branch
// is for no one in the copy, which does not have the group.
func TestImportedRulesAreNotWider(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		team, p := group(t, s, alice, "team", ""), newProject(t, s, alice, "locked", `,"initialize_with_readme":true`)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":40}`, team), Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/protected_branches", p), As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"name":"stable","allowed_to_push":[{"group_id":%d}],"allowed_to_merge":[{"access_level":40}]}`, team)},
		})
		id := importedProject(t, s, alice, exportedProject(t, s, alice, "alice/locked"), "path", "copy")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/protected_branches/stable", id), As: alice, Status: 200,
			Want: `{"push_access_levels":[{"access_level":0,"group_id":null}],"merge_access_levels":[{"access_level":40}]}`})
	})
}

// TestProjectImportSize checks that the size limits of pushes and repositories apply to
// the repository in an import file.
func TestProjectImportSize(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		big := make([]byte, 2<<20)
		_, _ = rand.Read(big) // never fails
		id := newProject(t, s, alice, "big", "")
		s.Repository(t, id, gittest.Commit{Changes: []gittest.Change{{Path: "big", Content: string(big)}}})
		file := exportedProject(t, s, alice, "alice/big")
		for i, limits := range []string{`{"repository_size_limit":1}`, `{"repository_size_limit":0,"receive_max_input_size":1}`} {
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: limits, Status: 200})
			made := importedProject(t, s, alice, file, "path", fmt.Sprintf("copy%d", i))
			answer := string(s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/import", made), As: alice, Status: 200, Want: `{"import_status":"failed"}`}).Body)
			if !strings.Contains(answer, "exceeds the maximum size") {
				t.Errorf("%s: %s", limits, answer)
			}
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"repository_size_limit":3,"receive_max_input_size":3}`, Status: 200})
		made := importedProject(t, s, alice, file, "path", "copy")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/import", made), As: alice, Status: 200, Want: `{"import_status":"finished"}`})
	})
}
