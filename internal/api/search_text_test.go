package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestSearchWords searches for words in any order, for phrases and for parts of words,
// in what was written, changed and deleted a moment before.
func TestSearchWords(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "walrus", `,"visibility":"public","description":"Keeps an elephant seal"`)
		at := fmt.Sprintf("/projects/%d", id)
		find := func(text string) string {
			return "GET " + at + "/issues?order_by=created_at&sort=asc&search=" + url.QueryEscape(text)
		}
		everywhere := func(scope, text string) string {
			return "GET /search?scope=" + scope + "&search=" + url.QueryEscape(text)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"The gear train","description":"turns without a sound"}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"A train of thought","description":"of 100% \"quoted\" C++ code_name"}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"Secret train","confidential":true}`, Status: 201},
			{Do: "POST " + at + "/issues/1/notes", As: alice, JSON: `{"body":"the sound of a walrus"}`, Status: 201},
			{Do: "POST " + at + "/issues/3/notes", As: alice, JSON: `{"body":"a walrus in secret"}`, Status: 201},
			{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"Grand tour","description":"around the world"}`, Status: 201},
			{Do: "POST /snippets", As: alice, JSON: `{"title":"Tour of the world","file_name":"a.txt","content":"x","visibility":"public"}`, Status: 201},

			{Name: "one word", Do: find("train"), As: alice, Status: 200, Want: `[{"iid":1},{"iid":2},{"iid":3}]`},
			{Name: "that a user may see", Do: find("train"), As: bob, Status: 200, Want: `[{"iid":1},{"iid":2}]`},
			{Name: "two words", Do: find("train gear"), As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "in two fields", Do: find("SOUND Gear"), As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "a part of a word", Do: find("houg"), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "a phrase", Do: find(`"train of"`), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "a phrase that is not there", Do: find(`"of train"`), As: alice, Status: 200, Want: `[]`},
			{Name: "a short word beside a long one", Do: find("train of"), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "a short word", Do: find("++"), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "signs", Do: find(`100% c++ code_`), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "an open quote", Do: find(`"quoted`), As: alice, Status: 200, Want: `[{"iid":2}]`},
			{Name: "quotes around nothing", Do: find(`""`), As: alice, Status: 200, Want: `[]`},
			{Name: "words of the index", Do: find(`train AND gear NOT thought`), As: alice, Status: 200, Want: `[]`},
			{Name: "in titles", Do: find("sound") + "&in=title", As: alice, Status: 200, Want: `[]`},
			{Name: "with a label", Do: find("train") + "&labels=None&author_username=alice", As: bob, Status: 200, Want: `[{"iid":1},{"iid":2}]`},
			{Name: "statistics", Do: "GET " + at + "/issues_statistics?search=train", As: bob, Status: 200, Want: `{"statistics":{"counts":{"all":2}}}`},
			{Name: "comments", Do: everywhere("notes", "walrus sound"), As: bob, Status: 200, Want: `[{"body":"the sound of a walrus"}]`},
			{Name: "comments on what is confidential", Do: everywhere("notes", "walrus secret"), As: bob, Status: 200, Want: `[]`},
			{Name: "milestones", Do: everywhere("milestones", "world grand"), As: bob, Status: 200, Want: `[{"title":"Grand tour"}]`},
			{Name: "snippets", Do: everywhere("snippet_titles", "world tour"), As: bob, Status: 200, Want: `[{"title":"Tour of the world"}]`},
			{Name: "projects", Do: everywhere("projects", "seal walrus"), As: bob, Status: 200, Want: `[{"name":"walrus"}]`},
			{Name: "users", Do: everywhere("users", "lic"), As: bob, Status: 200, Want: `[{"username":"alice"}]`},

			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"Long","description":"opening ` + strings.Repeat("x", 70_000) + ` ending qz"}`, Status: 201},
			{Name: "the beginning of a long text", Do: find("opening"), As: alice, Status: 200, Want: `[{"iid":4}]`},
			{Name: "the end of a long text", Do: find("ending"), As: alice, Status: 200, Want: `[]`},
			{Name: "a short word at the end of a long text", Do: find("qz"), As: alice, Status: 200, Want: `[]`},

			{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"title":"The clockwork"}`, Status: 200},
			{Name: "what is gone", Do: find("gear"), As: alice, Status: 200, Want: `[]`},
			{Name: "what is new", Do: find("clockwork"), As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Do: "DELETE " + at + "/issues/1", As: alice, Status: 204},
			{Name: "deleted", Do: find("clockwork"), As: alice, Status: 200, Want: `[]`},
			{Name: "comments on what was deleted", Do: everywhere("notes", "sound"), As: alice, Status: 200, Want: `[]`},
		})
	})
}
