package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// BenchmarkActivity compares pages of events in an instance with many events to
// those in one with few.
func BenchmarkActivity(b *testing.B) {
	t := &table{}
	b.Run("sqlite", func(b *testing.B) { activityOn(b, t, "SQLite", func() string { return "" }) })
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) {
			activityOn(b, t, "PostgreSQL", func() string { return dbtest.Postgres(b).URL })
		})
	}
	t.finish(b)
}

// activeProjects is the number of projects with events.
const activeProjects = 10

func activityOn(b *testing.B, t *table, on string, newDatabase func() string) {
	servers, first := map[int]*app.Server{}, map[int]int64{}
	for _, rows := range []int{fewRows, manyRows} {
		s := serve(b, newDatabase())
		for i := range activeProjects {
			if id := makeProject(b, s, fmt.Sprintf("active-%d", i)); i == 0 {
				first[rows] = id
			}
		}
		fillActivity(b, s.DB, rows)
		servers[rows] = s
	}
	for _, c := range []struct {
		name, path string
		most       float64
	}{
		{"of a user", "users/root/events?per_page=20", 1.3},
		// Each project is queried for as many events as come before the page.
		{"of a user, page 25", "users/root/events?per_page=20&page=25", 2.5},
		{"of a project", "projects/{first}/events?per_page=20", 1.3},
		{"of a project, the oldest first", "projects/{first}/events?per_page=20&sort=asc", 1.3},
		{"of all projects", "events?scope=all&per_page=20", 1.3},
		{"of all projects, before a day", "events?scope=all&per_page=20&before=2023-11-15", 1.3},
	} {
		b.Run(c.name, func(b *testing.B) {
			at := func(rows int) *walk {
				return newWalk(b, servers[rows], []string{strings.ReplaceAll(c.path, "{first}", fmt.Sprint(first[rows]))})
			}
			comparePages(b, t, at(fewRows), at(manyRows), figure{
				name: fmt.Sprintf("events %s (%s)", c.name, on), limit: c.most, unit: fmt.Sprintf("× at %d events", fewRows),
			})
		})
	}
}

// makeProject creates a project as root.
func makeProject(b testing.TB, s *app.Server, path string) int64 {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+s.Addr()+"/api/v4/projects?path="+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", rootToken)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var made struct{ ID int64 }
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || res.StatusCode != http.StatusCreated {
		b.Fatalf("create a project: %s, %v", res.Status, err)
	}
	return made.ID
}

// fillActivity adds events of root, alternating between all projects.
func fillActivity(b testing.TB, d *db.DB, n int) {
	b.Helper()
	fill(b, d, []statement{
		{series + `INSERT INTO activity_events (project_id, author_id, action, audience, push, created_at)
			SELECT (SELECT min(id) FROM projects) + n % ?, 1, 'pushed', 2,
				'{"action":"pushed","ref_type":"branch","ref":"main","from":"","to":"","commit_count":1,"commit_title":"Change ' || n || '"}',
				1700000000000000 + n
			FROM series`, []any{n, activeProjects}},
	})
}
