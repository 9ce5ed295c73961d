package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestSnippets(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		p := newProject(t, s, alice, "p", `,"visibility":"public"`)
		mine := made(t, s, alice, "POST /snippets", `{"title":"mine","description":"d","visibility":"public","files":[{"file_path":"a b.rb","content":"puts 1"},{"file_path":"dir/z.txt","content":"z"}]}`)
		old := made(t, s, alice, "POST /snippets", `{"title":"old","file_name":"x.py","content":"x"}`)
		nameless := made(t, s, bob, "POST /snippets", `{"title":"nameless","content":"n","visibility":"internal"}`)
		inside := made(t, s, alice, fmt.Sprintf("POST /projects/%d/snippets", p), `{"title":"inside","visibility":"public","files":[{"file_path":"in.md","content":"# in"}]}`)
		one, two, in := fmt.Sprintf("/snippets/%d", mine), fmt.Sprintf("/snippets/%d", old), fmt.Sprintf("/projects/%d/snippets/%d", p, inside)
		s.Table(t, []apptest.Call{
			{Name: "one", Do: "GET " + one, Status: 200, Want: fmt.Sprintf(`{"id":%d,"title":"mine","description":"d","visibility":"public","author":{"username":"alice"},"project_id":null,"file_name":"a b.rb","imported":false,"imported_from":"none",
				"web_url":"%[2]s/-/snippets/%[1]d","raw_url":"%[2]s/-/snippets/%[1]d/raw","http_url_to_repo":"%[2]s/snippets/%[1]d.git",
				"files":[{"path":"a b.rb","raw_url":"%[2]s/-/snippets/%[1]d/raw/main/a%%20b.rb"},{"path":"dir/z.txt"}]}`, mine, s.URL), Not: []string{"repository_storage"}},
			{Name: "as an administrator", Do: "GET " + one, As: root, Status: 200, Want: `{"repository_storage":"default"}`},
			{Name: "of a project", Do: "GET " + in, Status: 200, Want: fmt.Sprintf(`{"project_id":%d,"web_url":"%[2]s/alice/p/-/snippets/%[3]d","http_url_to_repo":"%[2]s/alice/p/snippets/%[3]d.git"}`, p, s.URL, inside)},
			{Name: "of a project by its id alone", Do: fmt.Sprintf("GET /snippets/%d", inside), Status: 200, Want: `{"title":"inside"}`},
			{Name: "of another project", Do: fmt.Sprintf("GET /projects/%d/snippets/%d", p, mine), Status: 404},
			{Name: "private", Do: "GET " + two, As: bob, Status: 404, Want: `{"message":"404 Snippet Not Found"}`},
			{Name: "without a name", Do: fmt.Sprintf("GET /snippets/%d", nameless), As: bob, Status: 200, Want: `{"file_name":"snippetfile1.txt"}`},
			{Name: "internal", Do: fmt.Sprintf("GET /snippets/%d", nameless), Status: 404},
			{Name: "raw", Do: "GET " + one + "/raw", Status: 200, Text: "puts 1"},
			{Name: "a file", Do: "GET " + one + "/files/main/dir%2Fz.txt/raw", Status: 200, Text: "z"},
			{Name: "no file", Do: "GET " + one + "/files/main/none/raw", Status: 404},
			{Name: "no version", Do: "GET " + one + "/files/none/dir%2Fz.txt/raw", Status: 404},
			{Name: "own", Do: "GET /snippets", As: alice, Status: 200, Want: `[{"title":"inside"},{"title":"old"},{"title":"mine"}]`},
			{Name: "public", Do: "GET /snippets/public", As: bob, Status: 200, Want: `[{"title":"mine"}]`},
			{Name: "all of one's", Do: "GET /snippets/all", As: bob, Status: 200, Want: `[{"title":"inside"},{"title":"nameless"},{"title":"mine"}]`},
			{Name: "all", Do: "GET /snippets/all", As: root, Status: 200, Want: `[{"title":"inside"},{"title":"nameless"},{"title":"old"},{"title":"mine"}]`},
			{Name: "on a storage", Do: "GET /snippets/all?repository_storage=other", As: root, Status: 200, Want: `[]`},
			{Name: "of the project", Do: fmt.Sprintf("GET /projects/%d/snippets", p), Status: 200, Want: `[{"title":"inside"}]`},
			{Name: "made with", Do: "GET " + one + "/user_agent_detail", As: root, Status: 200, Want: `{"ip_address":"127.0.0.1","akismet_submitted":false}`},
			{Name: "not for all", Do: "GET " + one + "/user_agent_detail", As: alice, Status: 403},
			{Name: "nothing in it", Do: "POST /snippets", As: alice, JSON: `{"title":"x"}`, Status: 400},
			{Name: "both ways", Do: "POST /snippets", As: alice, JSON: `{"title":"x","content":"x","files":[{"file_path":"a","content":"x"}]}`, Status: 400},
			{Name: "no title", Do: "POST /snippets", As: alice, JSON: `{"title":" ","content":"x"}`, Status: 400},
			{Name: "a bad path", Do: "POST /snippets", As: alice, JSON: `{"title":"x","content":"x","file_name":"../x"}`, Status: 400, Want: `{"message":"The path of a file is invalid"}`},
			{Name: "many files", Do: "POST /snippets", As: alice, JSON: `{"title":"x","files":[` + strings.TrimSuffix(strings.Repeat(`{"file_path":"","content":"x"},`, 11), ",") + `]}`, Status: 400},
			{Name: "eleven files", Do: "POST /snippets", As: alice, JSON: `{"title":"x","files":[` + elevenFiles() + `]}`, Status: 400, Want: `{"message":"The repository can contain at most 10 file(s)."}`},
			{Name: "no change", Do: "PUT " + one, As: alice, JSON: `{}`, Status: 400},
			{Name: "of another's", Do: "PUT " + one, As: bob, JSON: `{"title":"x"}`, Status: 403},
			{Name: "that one does not see", Do: "PUT " + two, As: bob, JSON: `{"title":"x"}`, Status: 404},
			{Name: "change files", Do: "PUT " + one, As: alice, JSON: `{"title":"changed","files":[{"action":"update","file_path":"a b.rb","content":"puts 2"},{"action":"move","previous_path":"dir/z.txt","file_path":"y.txt"},{"action":"create","file_path":"n","content":"n"}]}`, Status: 200,
				Want: `{"title":"changed","files":[{"path":"a b.rb"},{"path":"n"},{"path":"y.txt"}]}`},
			{Name: "which is seen", Do: "GET " + one + "/raw", Status: 200, Text: "puts 2"},
			{Name: "moved", Do: "GET " + one + "/files/main/y.txt/raw", Status: 200, Text: "z"},
			{Name: "delete files", Do: "PUT " + one, As: alice, JSON: `{"files":[{"action":"delete","file_path":"n"},{"action":"delete","file_path":"y.txt"}]}`, Status: 200, Want: `{"files":[{"path":"a b.rb"}]}`},
			{Name: "the last one", Do: "PUT " + one, As: alice, JSON: `{"files":[{"action":"delete","file_path":"a b.rb"}]}`, Status: 400, Want: `{"message":"The repository must contain at least 1 file."}`},
			{Name: "one that is not there", Do: "PUT " + one, As: alice, JSON: `{"files":[{"action":"update","file_path":"none","content":"x"}]}`, Status: 400, Want: `{"message":"A file with this name doesn't exist"}`},
			{Name: "the old way", Do: "PUT " + two, As: alice, JSON: `{"file_name":"y.py","content":"y"}`, Status: 200, Want: `{"file_name":"y.py","files":[{"path":"y.py"}]}`},
			{Name: "its text", Do: "GET " + two + "/raw", As: alice, Status: 200, Text: "y"},
			{Name: "hide", Do: "PUT " + in, As: alice, JSON: `{"visibility":"private"}`, Status: 200, Want: `{"visibility":"private"}`},
			{Name: "hidden", Do: "GET " + in, As: bob, Status: 404},
			{Name: "from the list", Do: fmt.Sprintf("GET /projects/%d/snippets", p), As: bob, Status: 200, Want: `[]`},
			{Name: "but not from members", Do: fmt.Sprintf("GET /projects/%d/snippets", p), As: alice, Status: 200, Want: `[{"title":"inside"}]`},
			{Name: "changed since", Do: "DELETE " + two, As: alice, Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, Status: 412},
			{Name: "events", Do: fmt.Sprintf("GET /users/%d/events?target_type=snippet", aliceID), As: alice, Status: 200,
				Want: fmt.Sprintf(`[{"action_name":"updated","target_title":"inside","project_id":%d,"target_type":"Snippet"},{"action_name":"updated","target_title":"old","project_id":null},
					{"action_name":"updated","target_title":"changed"},{"action_name":"updated","target_title":"changed"},{"action_name":"opened","target_title":"inside"},{"action_name":"opened","target_title":"old"},{"action_name":"opened","target_title":"changed"}]`, p)},
			{Name: "for others", Do: fmt.Sprintf("GET /users/%d/events?target_type=snippet", aliceID), As: bob, Status: 200, Want: `[{"target_title":"changed"},{"target_title":"changed"},{"target_title":"changed"}]`, Not: []string{"inside", "old"}},
			{Name: "of the project", Do: fmt.Sprintf("GET /projects/%d/events?target_type=snippet", p), Status: 200, Want: `[]`},
			{Name: "a reference", Do: "POST /markdown", As: alice, JSON: fmt.Sprintf(`{"text":"see $%d and $%d","project":"alice/p"}`, inside, mine), Status: 201,
				Want: fmt.Sprintf(`{"html":"<p>see <a href=\"/alice/p/-/snippets/%d\" class=\"gfm gfm-snippet\" title=\"inside\">$%[1]d</a> and $%d</p>\n"}`, inside, mine)},
			{Name: "which others do not see", Do: "POST /markdown", As: bob, JSON: fmt.Sprintf(`{"text":"$%d","project":"alice/p"}`, inside), Status: 201, Want: fmt.Sprintf(`{"html":"<p>$%d</p>\n"}`, inside)},
			{Name: "turned off", Do: fmt.Sprintf("PUT /projects/%d", p), As: alice, JSON: `{"snippets_access_level":"disabled"}`, Status: 200, Want: `{"snippets_enabled":false}`},
			{Name: "not seen", Do: "GET " + in, As: alice, Status: 404},
			{Name: "nor listed", Do: "GET /snippets", As: alice, Status: 200, Want: `[{"title":"old"},{"title":"changed"}]`},
			{Name: "nor made", Do: fmt.Sprintf("POST /projects/%d/snippets", p), As: alice, JSON: `{"title":"x","content":"x"}`, Status: 404},
			{Name: "turned on", Do: fmt.Sprintf("PUT /projects/%d", p), As: alice, JSON: `{"snippets_enabled":true}`, Status: 200},
			{Name: "delete", Do: "DELETE " + in, As: alice, Status: 204},
			{Name: "gone", Do: "GET " + in, As: alice, Status: 404},
			{Name: "delete", Do: "DELETE " + two, As: alice, Status: 204},
			{Name: "with its events", Do: fmt.Sprintf("GET /users/%d/events?target_type=snippet", aliceID), As: alice, Status: 200, Not: []string{"inside", "old"}},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(s.Config.Storages["default"], "snippets", "*", "*.git"))
		if err != nil || len(left) != 2 { // of the two remaining snippets
			t.Errorf("repositories %v, %v", left, err)
		}
	})
}

func elevenFiles() string {
	var list []string
	for i := range 11 {
		list = append(list, fmt.Sprintf(`{"file_path":"f%d","content":"x"}`, i))
	}
	return strings.Join(list, ",")
}

// TestSnippetOwners deletes the authors and projects of snippets.
func TestSnippetOwners(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		p := newProject(t, s, bob, "p", `,"visibility":"public"`)
		q := newProject(t, s, bob, "q", `,"visibility":"public"`)
		enlist(t, s, p, aliceID, project.Reporter)
		enlist(t, s, q, aliceID, project.Reporter)
		own := made(t, s, alice, "POST /snippets", `{"title":"own","content":"x","visibility":"public"}`)
		kept := made(t, s, alice, fmt.Sprintf("POST /projects/%d/snippets", p), `{"title":"kept","content":"x","visibility":"public"}`)
		lost := made(t, s, alice, fmt.Sprintf("POST /projects/%d/snippets", q), `{"title":"lost","content":"x","visibility":"public"}`)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("DELETE /projects/%d", q), As: bob, Status: 202},
			{Do: fmt.Sprintf("DELETE /users/%d", aliceID), As: root, Status: 204},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "own is deleted", Do: fmt.Sprintf("GET /snippets/%d", own), As: bob, Status: 404},
			{Name: "the project's is the ghost's", Do: fmt.Sprintf("GET /snippets/%d", kept), As: bob, Status: 200, Want: `{"author":{"username":"ghost"}}`},
			{Name: "and has its file", Do: fmt.Sprintf("GET /snippets/%d/raw", kept), As: bob, Status: 200, Text: "x"},
			{Name: "that of a project goes with it", Do: fmt.Sprintf("GET /snippets/%d", lost), As: bob, Status: 404},
		})
		left, err := filepath.Glob(filepath.Join(s.Config.Storages["default"], "snippets", "*", "*.git"))
		if err != nil || len(left) != 1 {
			t.Errorf("repositories %v, %v", left, err)
		}
		var form struct {
			Statistics struct {
				Size    int64 `json:"snippets_size"`
				Storage int64 `json:"storage_size"`
			}
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d?statistics=true", p), As: bob, Status: 200}).JSON(t, &form)
		if form.Statistics.Size == 0 || form.Statistics.Storage < form.Statistics.Size {
			t.Errorf("statistics %+v", form.Statistics)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/snippets/%d", p, kept), As: root, Status: 204})
		becomes(t, s, apptest.Call{Do: fmt.Sprintf("GET /projects/%d?statistics=true", p), As: bob, Status: 200, Want: `{"statistics":{"snippets_size":0}}`})
	})
}

// TestUnfinishedSnippet creates the state after a crash: a snippet without files.
func TestUnfinishedSnippet(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := made(t, s, alice, "POST /snippets", `{"title":"cut off","content":"x","visibility":"public"}`)
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE snippets SET files = '[]' WHERE id = ?`, id); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /snippets/%d", id), As: alice, Status: 404},
			{Do: "GET /snippets", As: alice, Status: 200, Want: `[]`},
		})
		s.Clock.Move(25 * time.Hour)
		if err := s.Snippets.DropUnfinished(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(s.Config.Storages["default"], "snippets", "*", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
		if _, err := os.Stat(filepath.Join(s.Config.Storages["default"], "snippets")); err != nil {
			t.Error(err)
		}
	})
}
