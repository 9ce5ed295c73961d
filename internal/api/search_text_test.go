package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db"
)

// TestSearchWords searches for words in any order, for phrases and for parts of
// words, in texts that were just created, changed and deleted.
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

// TestSearchCommonWords compares the pages of searches with more matches than the
// text index returns with plain queries.
func TestSearchCommonWords(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", `,"visibility":"public"`)
		hidden := newProject(t, s, apptest.RootToken, "hidden", `,"visibility":"private"`)
		for _, project := range []int64{id, hidden} {
			for _, query := range []string{
				`INSERT INTO milestones (project_id, iid, title, description, created_at, updated_at) SELECT CAST(? AS BIGINT), n, 'Milestone ' || n, 'gear train', 0, 0 FROM series`,
				`INSERT INTO issues (project_id, iid, state, author_id, created_at, updated_at, title) SELECT CAST(? AS BIGINT), n, 'opened', 1, n, n, 'Title' FROM series`,
				`INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, author_id, created_at, updated_at, body)
					SELECT i.project_id, 'Issue', i.id, i.iid, 'd' || i.id, 1, 0, 0, CASE WHEN i.iid % 90 = 0 THEN 'gear' ELSE 'gear train' END FROM series JOIN issues i ON i.iid = n AND i.project_id = ?`,
			} {
				if _, err := s.DB.ExecContext(t.Context(), `WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < 1300) `+query, project); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, c := range []struct{ scope, text, table, cond string }{
			{"notes", "gear", "notes", "1 = 1"}, {"notes", "gear+train", "notes", "n.body = 'gear train'"}, {"notes", "in", "notes", "n.body = 'gear train'"},
			{"milestones", "gear", "milestones", "1 = 1"}, {"milestones", "13", "milestones", "n.title LIKE '%13%'"},
		} {
			all, err := db.All(t.Context(), s.DB, db.Value[int64], `SELECT n.id FROM `+c.table+` n WHERE n.project_id = ? AND `+c.cond+` ORDER BY n.id DESC`, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range []string{"", fmt.Sprintf("/projects/%d", id)} {
				for _, page := range []int{1, 2, 5} {
					do := fmt.Sprintf("GET %s/search?scope=%s&search=%s&per_page=9&page=%d", in, c.scope, c.text, page)
					var list []struct{ ID int64 }
					s.Check(t, apptest.Call{Name: do, Do: do, As: alice, Status: 200}).JSON(t, &list)
					var got []int64
					for _, one := range list {
						got = append(got, one.ID)
					}
					if want := all[min(len(all), 9*(page-1)):min(len(all), 9*page)]; !slices.Equal(got, want) {
						t.Errorf("%s: got %v, want %v", do, got, want)
					}
				}
			}
		}
	})
}
