package api_test

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"svc/internal/app/apptest"
)

// listedIssue is an issue or merge request in TestListWindows.
type listedIssue struct {
	iid, weight, created int // weight is -1 if it is not set
	state                string
	title                string
	milestone            int // 1 or 2; 0 for none
	due                  string
	common, usual        bool // labels
	assigned             bool // to the developer
	marked               bool // a confidential issue, or a draft merge request
	incident             bool // the type of the issue
}

// newListedIssue returns the issue with a number. Some conditions are common enough
// for lists that are read in order, and some combinations do not exist.
func newListedIssue(n int) listedIssue {
	one := listedIssue{
		iid: n, weight: -1, created: n * 7919 % 10007, state: "closed", title: fmt.Sprintf("Title %05d", n*104729%10007), due: "9999",
		common: n%2 == 0, usual: n%5 == 0, assigned: n%4 != 0, marked: n%11 < 5, incident: n%13 < 6,
	}
	if n%3 == 2 {
		one.state = "opened"
	}
	if n%3 == 1 {
		one.weight = n % 7
	}
	switch {
	case n <= 30 || n%7 == 0:
		one.milestone, one.due = 2, "2030-02-01"
	case n%3 == 2:
		one.milestone, one.due = 1, "2030-01-01"
	}
	return one
}

// TestListWindows compares lists of a project with their expected contents, for
// combinations of filters and orders.
func TestListWindows(t *testing.T) {
	t.Parallel()
	const rows = 3000
	type filter struct {
		query string
		match func(listedIssue) bool
	}
	all := func(listedIssue) bool { return true }
	type order struct {
		name    string
		issues  bool // does not apply to merge requests
		compare func(a, b listedIssue) int
	}
	orders := []order{
		{"created_at", false, func(a, b listedIssue) int { return cmp.Compare(a.created, b.created) }},
		{"milestone_due", false, func(a, b listedIssue) int { return cmp.Compare(a.due, b.due) }},
		{"title", false, func(a, b listedIssue) int { return cmp.Compare(a.title, b.title) }},
		{"weight", true, func(a, b listedIssue) int { return cmp.Compare(a.weight, b.weight) }},
	}
	states := []filter{
		{"", all},
		{"state=opened", func(o listedIssue) bool { return o.state == "opened" }},
		{"state=closed", func(o listedIssue) bool { return o.state == "closed" }},
	}
	labels := []filter{
		{"", all},
		{"labels=common", func(o listedIssue) bool { return o.common }},
		{"labels=common,usual", func(o listedIssue) bool { return o.common && o.usual }},
		{"not[labels]=common", func(o listedIssue) bool { return !o.common }},
		{"labels=usual&not[labels]=common", func(o listedIssue) bool { return o.usual && !o.common }},
	}
	milestones := []filter{
		{"", all},
		{"milestone=first", func(o listedIssue) bool { return o.milestone == 1 }},
		{"milestone=second", func(o listedIssue) bool { return o.milestone == 2 }},
		{"milestone=None", func(o listedIssue) bool { return o.milestone == 0 }},
		{"not[milestone]=first", func(o listedIssue) bool { return o.milestone != 1 }},
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		worker, _ := s.User(t, "worker")
		var p, common, usual, first, second struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d", p.ID)
		s.Check(t, apptest.Call{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"common","color":"#428bca"}`, Status: 201}).JSON(t, &common)
		s.Check(t, apptest.Call{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"usual","color":"#428bca"}`, Status: 201}).JSON(t, &usual)
		s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"first","due_date":"2030-01-01"}`, Status: 201}).JSON(t, &first)
		s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"second","due_date":"2030-02-01"}`, Status: 201}).JSON(t, &second)
		assignees := []filter{
			{"", all},
			{fmt.Sprintf("assignee_id=%d", worker), func(o listedIssue) bool { return o.assigned }},
			{fmt.Sprintf("not[assignee_id]=%d", worker), func(o listedIssue) bool { return !o.assigned }},
		}
		insert := func(query string, args ...any) {
			t.Helper()
			if _, err := s.DB.ExecContext(t.Context(), query, args...); err != nil {
				t.Fatal(err)
			}
		}
		var list []listedIssue
		for n := 1; n <= rows; n++ {
			list = append(list, newListedIssue(n))
		}
		for _, kind := range []string{"issue", "merge_request"} {
			columns, values, more := "", "", []any{}
			switch kind {
			case "issue":
				columns, values = ", confidential, weight, type", ", n % 11 < 5, CASE WHEN n % 3 = 1 THEN n % 7 END, CASE WHEN n % 13 < 6 THEN 'incident' ELSE 'issue' END"
			case "merge_request":
				columns, values, more = ", draft, source_project_id, source_branch, target_branch, head_sha", ", n % 11 < 5, CAST(? AS BIGINT), 'b' || n, 'main', ''", []any{p.ID}
			}
			insert(`WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < ?)
				INSERT INTO `+kind+`s (project_id, iid, state, author_id, milestone_id, created_at, updated_at, title`+columns+`)
				SELECT CAST(? AS BIGINT), n, CASE WHEN n % 3 = 2 THEN 'opened' ELSE 'closed' END, CAST(? AS BIGINT),
					CASE WHEN n <= 30 OR n % 7 = 0 THEN CAST(? AS BIGINT) WHEN n % 3 = 2 THEN CAST(? AS BIGINT) END,
					n * 7919 % 10007, n, 'Title ' || substr('' || (100000 + n * 104729 % 10007), 2)`+values+` FROM series ORDER BY n`,
				append([]any{rows, p.ID, id, second.ID, first.ID}, more...)...)
			insert(`INSERT INTO `+kind+`_labels (`+kind+`_id, label_id) SELECT i.id, CAST(? AS BIGINT) FROM `+kind+`s i WHERE i.iid % 2 = 0`, common.ID)
			insert(`INSERT INTO `+kind+`_labels (`+kind+`_id, label_id) SELECT i.id, CAST(? AS BIGINT) FROM `+kind+`s i WHERE i.iid % 5 = 0`, usual.ID)
			insert(`INSERT INTO `+kind+`_assignees (`+kind+`_id, user_id) SELECT i.id, CAST(? AS BIGINT) FROM `+kind+`s i WHERE i.iid % 4 <> 0`, worker)
		}
		step := 0
		for _, o := range orders {
			for _, state := range states {
				for _, label := range labels {
					for _, milestone := range milestones {
						for _, assignee := range assignees {
							// Only every seventh combination is tested, each with
							// another kind, direction and page.
							if step++; step%7 != 0 {
								continue
							}
							kind, desc, page := "issues", step%2 == 0, 1+step%3/2
							if step%4 < 2 && !o.issues {
								kind = "merge_requests"
							}
							filters := []filter{state, label, milestone, assignee}
							if step%5 == 0 {
								query := map[string]string{"issues": "confidential=true", "merge_requests": "wip=yes"}[kind]
								filters = append(filters, filter{query, func(one listedIssue) bool { return one.marked }})
							}
							if step%3 == 0 && kind == "issues" {
								filters = append(filters, filter{"issue_type=incident", func(one listedIssue) bool { return one.incident }})
							}
							want := slices.Clone(list)
							for _, f := range filters {
								want = slices.DeleteFunc(want, func(one listedIssue) bool { return !f.match(one) })
							}
							slices.SortFunc(want, func(a, b listedIssue) int {
								c := cmp.Or(o.compare(a, b), cmp.Compare(a.iid, b.iid))
								if desc {
									return -c
								}
								return c
							})
							total := len(want)
							want = want[min(10*(page-1), total):min(10*page, total)]
							sort := map[bool]string{false: "asc", true: "desc"}[desc]
							query := fmt.Sprintf("order_by=%s&sort=%s&per_page=10&page=%d", o.name, sort, page)
							for _, f := range filters {
								if f.query != "" {
									query += "&" + f.query
								}
							}
							if _, err := url.ParseQuery(query); err != nil {
								t.Fatal(err)
							}
							answer := s.Check(t, apptest.Call{Name: query, Do: "GET " + at + "/" + kind + "?" + query, As: alice, Status: 200})
							var found []struct{ IID int }
							answer.JSON(t, &found)
							same := slices.EqualFunc(found, want, func(f struct{ IID int }, w listedIssue) bool { return f.IID == w.iid })
							if !same || answer.Header.Get("X-Total") != strconv.Itoa(total) {
								t.Errorf("%s?%s: %v of %s, want %v of %d", kind, query, found, answer.Header.Get("X-Total"), want, total)
							}
						}
					}
				}
			}
		}
	})
}
