package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db"
)

// TestListOrders compares lists of many issues and merge requests, in each order and
// with common filters, with the result of a single query.
func TestListOrders(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		f := newOrders(t, s)
		for _, kind := range []string{"issue", "merge_request"} {
			orders := map[string]string{
				"created_at": "i.created_at", "updated_at": "i.updated_at", "title": "i.title", "popularity": "i.upvotes",
				"milestone_due": "COALESCE(m.due_date, '9999')",
				"priority": `COALESCE((SELECT min(o.priority) FROM ` + kind + `_labels x JOIN label_priorities o ON o.label_id = x.label_id
					WHERE x.` + kind + `_id = i.id AND o.project_id = i.project_id), 1000000000)`,
			}
			if kind == "issue" {
				orders["due_date"], orders["weight"] = "COALESCE(i.due_date, '9999')", "COALESCE(i.weight, -1)"
				orders["relative_position"] = "CASE WHEN i.position = 0 THEN i.iid * 1000000 ELSE i.position END"
			} else {
				orders["merged_at"] = "COALESCE(i.merged_at, 0)"
			}
			mine := orderFilter{"scope=assigned_to_me", fmt.Sprintf(`EXISTS (SELECT 1 FROM %s_assignees a WHERE a.%s_id = i.id AND a.user_id = %d)`, kind, kind, f.me)}
			for i, by := range slices.Sorted(maps.Keys(orders)) {
				for number := range 6 {
					f.compare(t, kind, by, orders[by], mine, number)
				}
				for j, filter := range f.filters(kind) {
					f.compare(t, kind, by, orders[by], filter, 7*i+j)
					if by == "priority" || by == "milestone_due" { // read in several queries
						f.compare(t, kind, by, orders[by], filter, 0)
						f.compare(t, kind, by, orders[by], filter, 3)
					}
				}
			}
		}
	})
}

// orders is a server with four projects, three of them in a group. alice cannot see
// one of the three.
type orders struct {
	s       *apptest.Server
	alice   string
	group   int64
	project []int64
	me, bob int64 // IDs of alice and bob
}

// orderFilter is a filter, as a query of the API and in SQL.
type orderFilter struct{ query, cond string }

func newOrders(t *testing.T, s *apptest.Server) *orders {
	t.Helper()
	f := &orders{s: s}
	id, alice := s.User(t, "alice")
	f.alice, f.me = alice, id
	f.bob, _ = s.User(t, "bob")
	type row struct{ ID int64 }
	create := func(path, body string) int64 {
		var made row
		s.Check(t, apptest.Call{Do: "POST " + path, As: apptest.RootToken, JSON: body, Status: 201}).JSON(t, &made)
		return made.ID
	}
	f.group = create("/groups", `{"name":"g","path":"g","visibility":"public"}`)
	for _, p := range []string{
		fmt.Sprintf(`{"name":"big","visibility":"public","namespace_id":%d}`, f.group), fmt.Sprintf(`{"name":"other","visibility":"public","namespace_id":%d}`, f.group),
		fmt.Sprintf(`{"name":"hidden","visibility":"private","namespace_id":%d}`, f.group), `{"name":"outside","visibility":"public"}`,
	} {
		f.project = append(f.project, create("/projects", p))
	}
	create(fmt.Sprintf("/projects/%d/members", f.project[0]), fmt.Sprintf(`{"user_id":%d,"access_level":30}`, id))
	of := fmt.Sprintf("/projects/%d", f.project[0])
	create(fmt.Sprintf("/groups/%d/labels", f.group), `{"name":"all","color":"#428bca"}`)
	for name, priority := range map[string]int{"a": 3, "b": 3, "c": 1, "d": 7} {
		create(of+"/labels", fmt.Sprintf(`{"name":%q,"color":"#428bca","priority":%d}`, name, priority))
	}
	s.Check(t, apptest.Call{Do: "PUT " + of + "/labels/all", As: apptest.RootToken, JSON: `{"priority":5}`, Status: 200})
	for _, m := range []string{`{"title":"m1","due_date":"2030-02-01"}`, `{"title":"m2","due_date":"2030-01-01"}`, `{"title":"m3","due_date":"2030-02-01"}`, `{"title":"m4"}`} {
		create(of+"/milestones", m)
	}
	milestone := create(fmt.Sprintf("/groups/%d/milestones", f.group), `{"title":"m5","due_date":"2029-12-31"}`)
	for at, project := range f.project {
		rows := []int{2000, 400, 500, 300}[at]
		for _, kind := range []string{"issue", "merge_request"} {
			columns, values, args := "due_date, weight, confidential, position", "CASE WHEN n % 4 = 0 THEN '2030-01-0' || (1 + n % 9) END, CASE WHEN n % 3 = 1 THEN n % 7 END, n % 50 = 0, CASE WHEN n % 5 = 0 THEN n * 90 ELSE 0 END", []any{}
			if kind == "merge_request" {
				columns, values = "source_project_id, source_branch, target_branch, head_sha, merged_at", `CAST(? AS BIGINT), 'b' || n, 'main', '', CASE WHEN n % 3 = 0 THEN n * 31 % 97 END`
				args = append(args, project)
			}
			for _, query := range []struct {
				text string
				args []any
			}{
				{`WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < ?)
					INSERT INTO ` + kind + `s (project_id, iid, state, author_id, milestone_id, created_at, updated_at, title, description, upvotes, ` + columns + `)
					SELECT CAST(? AS BIGINT), n, CASE WHEN n % 3 > 0 THEN 'opened' ELSE 'closed' END, CASE WHEN n % 2 = 0 THEN CAST(? AS BIGINT) ELSE 1 END,
						CASE WHEN n % 23 = 0 THEN CAST(? AS BIGINT) ELSE (SELECT m.id FROM milestones m WHERE m.project_id = CAST(? AS BIGINT) AND m.title = 'm' || (n % 6)) END,
						1000000 + n * 17 % 700, 2000000 - n * 13 % 501, 'Title ' || (n * 7919 % 1003), 'gear ' || n, n % 5, ` + values + ` FROM series`,
					append([]any{rows, project, f.bob, milestone, project}, args...)},
				{`INSERT INTO ` + kind + `_labels (` + kind + `_id, label_id) SELECT i.id, l.id FROM ` + kind + `s i, labels l WHERE i.project_id = ?
					AND (l.name = 'a' AND i.iid % 7 = 0 OR l.name = 'b' AND i.iid % 5 = 0 OR l.name = 'c' AND i.iid % 90 = 1 OR l.name = 'd' AND i.iid % 2 = 1 OR l.name = 'all' AND i.iid % 4 = 0)
					AND (l.project_id = i.project_id OR l.namespace_id IS NOT NULL)`, []any{project}},
				{`INSERT INTO ` + kind + `_assignees (` + kind + `_id, user_id) SELECT i.id, CAST(? AS BIGINT) FROM ` + kind + `s i WHERE i.project_id = ? AND i.iid % 4 <> 0`, []any{f.bob, project}},
				// They are the last in some orders, and there are more than the
				// limit of candidates.
				{`INSERT INTO ` + kind + `_assignees (` + kind + `_id, user_id) SELECT i.id, CAST(? AS BIGINT) FROM ` + kind + `s i WHERE i.project_id = ? AND i.iid <= 1100 AND i.iid > ?`, []any{id, project, 1100 * min(at, 1)}},
			} {
				if _, err := s.DB.ExecContext(t.Context(), query.text, query.args...); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return f
}

func (f *orders) filters(kind string) []orderFilter {
	label := func(name string) string {
		return `EXISTS (SELECT 1 FROM ` + kind + `_labels x JOIN labels l ON l.id = x.label_id WHERE x.` + kind + `_id = i.id AND l.name = '` + name + `')`
	}
	assigned := fmt.Sprintf(`EXISTS (SELECT 1 FROM %s_assignees a WHERE a.%s_id = i.id AND a.user_id = %d)`, kind, kind, f.bob)
	return []orderFilter{
		{"", "1 = 1"},
		{"state=opened", "i.state = 'opened'"},
		{"labels=d", label("d")},
		{"labels=d,b&state=closed", label("d") + " AND " + label("b") + " AND i.state = 'closed'"},
		{"labels=all&assignee_username=bob", label("all") + " AND " + assigned}, // no object has both
		{"labels=d&assignee_username=bob&author_username=root", label("d") + " AND " + assigned + " AND i.author_id = 1"},
		{"assignee_username=bob&author_username=bob", assigned + fmt.Sprintf(" AND i.author_id = %d", f.bob)},
		{"not[labels]=all&milestone=m2", "NOT " + label("all") + " AND m.title = 'm2'"},
		{"search=gear", "1 = 1"},
		{"search=19&state=opened", "(i.title LIKE '%19%' OR i.description LIKE '%19%') AND i.state = 'opened'"},
	}
}

// compare compares two pages with a plain query, in a project, in a group or in all
// projects, depending on number.
func (f *orders) compare(t *testing.T, kind, by, column string, filter orderFilter, number int) {
	t.Helper()
	seen := fmt.Sprintf(`i.project_id <> %d`, f.project[2])
	if kind == "issue" {
		seen += fmt.Sprintf(` AND (NOT i.confidential OR i.project_id = %d)`, f.project[0])
	}
	at := []struct{ path, cond string }{
		{fmt.Sprintf("projects/%d/%ss?", f.project[0], kind), fmt.Sprintf("i.project_id = %d", f.project[0])},
		{fmt.Sprintf("groups/%d/%ss?scope=all&", f.group, kind), fmt.Sprintf("%s AND i.project_id <> %d", seen, f.project[3])},
		{kind + "s?scope=all&", seen},
	}[number%3]
	way := []string{"asc", "desc"}[number/3%2]
	all, err := db.All(t.Context(), f.s.DB, db.Value[int64], `SELECT i.id FROM `+kind+`s i LEFT JOIN milestones m ON m.id = i.milestone_id WHERE `+at.cond+` AND `+filter.cond+
		` ORDER BY `+column+` `+way+`, i.id `+way)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []int{1, []int{2, 4, 60}[number%3]} {
		const size = 7
		path := at.path
		if strings.HasPrefix(filter.query, "scope=") {
			path = strings.Replace(path, "scope=all&", "", 1)
		}
		do := fmt.Sprintf("GET /%s%s&order_by=%s&sort=%s&per_page=%d&page=%d", path, filter.query, by, way, size, page)
		answer := f.s.Check(t, apptest.Call{Name: do, Do: do, As: f.alice, Status: 200})
		var list []struct{ ID int64 }
		answer.JSON(t, &list)
		got := []int64{}
		for _, one := range list {
			got = append(got, one.ID)
		}
		first := min(len(all), size*(page-1))
		want := all[first:min(len(all), first+size)]
		if !slices.Equal(got, want) || answer.Header.Get("X-Total") != strconv.Itoa(len(all)) {
			t.Errorf("%s: got %v of %s, want %v of %d", do, got, answer.Header.Get("X-Total"), want, len(all))
		}
	}
}
