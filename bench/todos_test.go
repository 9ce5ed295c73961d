package bench

import (
	"fmt"
	"os"
	"testing"

	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// BenchmarkTodos compares the first page of to-do lists with few and with a million
// rows, for each filter. Half of the rows belong to the user of the request.
func BenchmarkTodos(b *testing.B) {
	t := &table{}
	b.Run("sqlite", func(b *testing.B) {
		todosOn(b, t, "SQLite", func() string { return "" })
	})
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) {
			todosOn(b, t, "PostgreSQL", func() string { return dbtest.Postgres(b).URL })
		})
	}
	t.finish(b)
}

// todoSite is a server with to-do items of a user.
type todoSite struct {
	*app.Server
	token string
	group int64
	other int64 // the ID of a user who is the author of few items
	last  int64 // the ID of a project with few items
}

func todosOn(b *testing.B, t *table, on string, newDatabase func() string) {
	sites := map[int]*todoSite{}
	for _, rows := range []int{fewRows, manyRows} {
		sites[rows] = newTodoSite(b, newDatabase(), rows)
	}
	for _, c := range []struct {
		name  string
		query func(*todoSite) string
	}{
		{"pending", func(*todoSite) string { return "" }},
		{"done", func(*todoSite) string { return "&state=done" }},
		{"a common action", func(*todoSite) string { return "&state=done&action=mentioned" }},
		{"a rare action", func(*todoSite) string { return "&state=done&action=unmergeable" }},
		{"a common type", func(*todoSite) string { return "&state=done&type=Issue" }},
		{"a rare type", func(*todoSite) string { return "&state=done&type=Commit" }},
		{"an author", func(s *todoSite) string { return fmt.Sprintf("&state=done&author_id=%d", s.other) }},
		{"a project", func(s *todoSite) string { return fmt.Sprintf("&state=done&project_id=%d", s.last) }},
		{"a group", func(s *todoSite) string { return fmt.Sprintf("&state=done&group_id=%d", s.group) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			at := func(rows int) *walk {
				s := sites[rows]
				return newWalkAs(b, s.Server, s.token, []string{"todos?per_page=20" + c.query(s)})
			}
			most := 2.0
			if on == "PostgreSQL" && c.name == "an author" {
				most = 8 // it counts with a table scan, because it estimates more items per author
			}
			comparePages(b, t, at(fewRows), at(manyRows), figure{
				name: fmt.Sprintf("to-do items, %s (%s)", c.name, on), limit: most, unit: fmt.Sprintf("× at %d rows", fewRows),
			})
		})
	}
}

// newTodoSite creates to-do items: half of them are done items of the user somebody,
// the others are pending items of many users. Issues are public.
func newTodoSite(b testing.TB, databaseURL string, rows int) *todoSite {
	b.Helper()
	s := &todoSite{Server: serve(b, databaseURL)}
	s.token = newToken(b, s.Server, "somebody")
	p := newSite(b, s.Addr())
	var made struct{ ID int64 }
	check(b, p.post("groups", `{"name":"g","path":"g","visibility":"public"}`, &made))
	s.group = made.ID
	check(b, p.post("projects", fmt.Sprintf(`{"name":"rare","visibility":"public","namespace_id":%d}`, s.group), &made))
	s.last = made.ID
	check(b, p.post("projects", `{"name":"usual","visibility":"public"}`, &made))
	const issues = 500
	fillUsers(b, s.DB, rows/2/issues)
	var me int64
	check(b, s.DB.QueryRowContext(b.Context(), `SELECT id FROM users WHERE username = 'somebody'`).Scan(&me))
	check(b, s.DB.QueryRowContext(b.Context(), `SELECT min(id) FROM users WHERE email LIKE 'user-%'`).Scan(&s.other))
	fillTodos(b, s.DB, todoRows{rows: rows, issues: issues, user: me, other: s.other, usual: made.ID, rare: s.last})
	return s
}

type todoRows struct {
	rows, issues             int
	user, other, usual, rare int64
}

func fillTodos(b testing.TB, d *db.DB, r todoRows) {
	b.Helper()
	fill(b, d, []statement{
		{series + `INSERT INTO issues (project_id, iid, author_id, created_at, updated_at, title)
			SELECT CASE WHEN n % 100 = 0 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END, n, 1, 1700000000000000, 1700000000000000, 'Issue ' || n FROM series`,
			[]any{r.issues, r.rare, r.usual}},
		// Only the first items are of the rare author and project: the newest are
		// read last.
		{series + `INSERT INTO todos (user_id, author_id, project_id, target_type, issue_id, commit_sha, action, state, created_at, updated_at)
			SELECT CAST(? AS BIGINT), CASE WHEN n <= 50 THEN CAST(? AS BIGINT) ELSE 1 END, i.project_id, CASE WHEN n <= 50 THEN 'Commit' ELSE 'Issue' END,
				CASE WHEN n > 50 THEN i.id END, CASE WHEN n <= 50 THEN 'sha' || n END, CASE WHEN n <= 50 THEN 'unmergeable' WHEN n % 2 = 0 THEN 'mentioned' ELSE 'assigned' END, 'done', 1700000000000000, 1700000000000000
			FROM series JOIN issues i ON i.iid = CASE WHEN n <= 50 THEN 100 ELSE 1 + n % 99 END`, []any{r.rows / 2, r.user, r.other}},
		{`INSERT INTO todos (user_id, author_id, project_id, target_type, issue_id, action, state, created_at, updated_at)
			SELECT u.id, 1, i.project_id, 'Issue', i.id, 'assigned', 'pending', 1700000000000000, 1700000000000000
			FROM users u CROSS JOIN issues i WHERE u.email LIKE 'user-%'`, nil},
		{`INSERT INTO todos (user_id, author_id, project_id, target_type, issue_id, action, state, created_at, updated_at)
			SELECT CAST(? AS BIGINT), 1, i.project_id, 'Issue', i.id, 'assigned', 'pending', 1700000000000000, 1700000000000000 FROM issues i`, []any{r.user}},
	})
}

func TestFillTodos(t *testing.T) {
	t.Parallel()
	s := newTodoSite(t, "", 1000)
	newWalkAs(t, s.Server, s.token, []string{fmt.Sprintf("todos?per_page=20&state=done&group_id=%d", s.group)}).read(t)
	if n := count(t, s.Server, `SELECT count(*) FROM todos`); n != 1500 {
		t.Errorf("%d items", n)
	}
}
