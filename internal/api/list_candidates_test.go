package api_test

import (
	"fmt"
	"strconv"
	"testing"

	"svc/internal/app/apptest"
)

// TestListCandidates compares lists that are read from few candidates with lists
// that are read in order. There are more issues than the maximum number of
// candidates, half of them with one label, ten of them with another.
func TestListCandidates(t *testing.T) {
	t.Parallel()
	const issues = 2400
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		var p, few, half, milestone struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: apptest.RootToken, JSON: `{"name":"empty","path":"empty","visibility":"public"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &p)
		at := fmt.Sprintf("/projects/%d", p.ID)
		s.Check(t, apptest.Call{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"few","color":"#428bca"}`, Status: 201}).JSON(t, &few)
		s.Check(t, apptest.Call{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"half","color":"#428bca"}`, Status: 201}).JSON(t, &half)
		s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"v1"}`, Status: 201}).JSON(t, &milestone)
		for _, query := range []struct {
			text string
			args []any
		}{
			{`WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < ?)
				INSERT INTO issues (project_id, iid, state, author_id, milestone_id, created_at, updated_at, title, due_date, weight, confidential, type)
				SELECT CAST(? AS BIGINT), n, CASE WHEN n % 2 = 0 THEN 'opened' ELSE 'closed' END, CASE WHEN n <= 7 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END,
					CASE WHEN n > 2390 THEN CAST(? AS BIGINT) END, n, 10000 - n, 'Title ' || (1000000 - n), CASE WHEN n <= 12 THEN '2030-01-02' END, CASE WHEN n <= 12 THEN n END, n = 3 OR n = 20,
					CASE WHEN n = 4 THEN 'incident' ELSE 'issue' END FROM series`, []any{issues, p.ID, bob, id, milestone.ID}},
			{`INSERT INTO issue_labels (issue_id, label_id) SELECT i.id, CAST(? AS BIGINT) FROM issues i WHERE i.iid % 2 = 0`, []any{half.ID}},
			{`INSERT INTO issue_labels (issue_id, label_id) SELECT i.id, CAST(? AS BIGINT) FROM issues i WHERE i.iid <= 10`, []any{few.ID}},
			{`INSERT INTO issue_assignees (issue_id, user_id) SELECT i.id, CAST(? AS BIGINT) FROM issues i WHERE i.iid IN (5, 6)`, []any{bob}},
			{`INSERT INTO award_emoji (name, user_id, issue_id, created_at, updated_at) SELECT e.name, CAST(? AS BIGINT), i.id, 0, 0 FROM issues i
				CROSS JOIN (SELECT 'heart' AS name UNION ALL SELECT 'rocket') AS e WHERE i.iid <= 1100`, []any{id}},
		} {
			if _, err := s.DB.ExecContext(t.Context(), query.text, query.args...); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			query string
			total int
			first string // IIDs of the first two
		}{
			{"order_by=created_at", issues, "[2400,2399]"},
			{"labels=few", 10, "[10,9]"},
			{"labels=half", issues / 2, "[2400,2398]"},
			{"labels=few,half", 5, "[10,8]"},
			{"labels=few&page=3", 10, "[6,5]"},
			{"labels=half&page=3", issues / 2, "[2392,2390]"},
			{"labels=few&state=closed", 5, "[9,7]"},
			{"labels=unknown", 0, "[]"},
			{"labels=None", issues/2 - 5, "[2399,2397]"},
			{"labels=few&order_by=title&sort=asc", 10, "[10,9]"},
			{"labels=few&order_by=updated_at&sort=asc", 10, "[10,9]"},
			{"labels=few&not[labels]=half", 5, "[9,7]"},
			{"not[labels]=unknown", issues, "[2400,2399]"},
			{"state=opened&order_by=title", issues / 2, "[2,4]"},
			{"author_username=bob", 7, "[7,6]"},
			{"author_username=BOB", 7, "[7,6]"},
			{"author_username=unknown", 0, "[]"},
			{"not[author_username]=alice", 7, "[7,6]"},
			{"not[author_username]=unknown", issues, "[2400,2399]"},
			{fmt.Sprintf("not[author_id]=%d", bob), issues - 7, "[2400,2399]"},
			{fmt.Sprintf("assignee_id=%d", bob), 2, "[6,5]"},
			{"assignee_username=bob", 2, "[6,5]"},
			{"assignee_username=unknown", 0, "[]"},
			{"assignee_id=None&labels=few", 8, "[10,9]"},
			{"milestone=v1", 10, "[2400,2399]"},
			{"my_reaction_emoji=Any", 1100, "[1100,1099]"},
			{"my_reaction_emoji=Any&labels=half", 550, "[1100,1098]"},
			{"labels=half&state=opened&author_username=alice", issues/2 - 3, "[2400,2398]"},
			{"milestone=unknown", 0, "[]"},
			{"milestone=None&sort=asc", issues - 10, "[1,2]"},
			{"not[milestone]=v1", issues - 10, "[2390,2389]"},
			{"weight=3", 1, "[3]"},
			{"weight=None", issues - 12, "[2400,2399]"},
			{"due_date=any", 12, "[12,11]"},
			{"due_date=0", issues - 12, "[2400,2399]"},
			{"order_by=due_date&sort=asc", issues, "[1,2]"},
			{"order_by=weight", issues, "[12,11]"},
			{"order_by=relative_position&sort=asc", issues, "[1,2]"},
			{"confidential=true", 2, "[20,3]"},
			{"issue_type=incident", 1, "[4]"},
			{"updated_after=1970-01-01T00:00:00.009995Z", 5, "[5,4]"},
			{"created_before=1970-01-01T00:00:00.000003Z&order_by=title", 3, "[1,2]"},
		} {
			answer := s.Check(t, apptest.Call{Name: c.query, Do: "GET " + at + "/issues?per_page=2&" + c.query, As: alice, Status: 200})
			var list []struct{ IID int }
			answer.JSON(t, &list)
			got := "["
			for i, one := range list {
				if i > 0 {
					got += ","
				}
				got += strconv.Itoa(one.IID)
			}
			if got += "]"; got != c.first || answer.Header.Get("X-Total") != strconv.Itoa(c.total) {
				t.Errorf("%s: got %s of %s, want %s of %d", c.query, got, answer.Header.Get("X-Total"), c.first, c.total)
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "confidential ones of a user who is no member", Do: "GET " + at + "/issues?confidential=true", As: bobToken, Status: 200, Want: `[{"iid":3}]`},
			{Name: "nothing created", Do: "GET /issues?scope=created_by_me", As: apptest.RootToken, Status: 200, Want: `[]`},
			{Name: "nothing assigned", Do: "GET /issues?scope=assigned_to_me", As: alice, Status: 200, Want: `[]`},
			{Name: "assigned", Do: "GET /issues?scope=assigned_to_me", As: bobToken, Status: 200, Want: `[{"iid":6},{"iid":5}]`},
			{Name: "empty group", Do: "GET /groups/empty/issues", As: apptest.RootToken, Status: 200, Want: `[]`, WantHeader: map[string]string{"X-Total": "0"}},
			{Name: "empty group, merge requests", Do: "GET /groups/empty/merge_requests", As: apptest.RootToken, Status: 200, Want: `[]`},
			{Name: "statistics", Do: "GET " + at + "/issues_statistics", As: alice, Status: 200, Want: `{"statistics":{"counts":{"all":2400,"opened":1200,"closed":1200}}}`},
			{Name: "statistics of a label", Do: "GET " + at + "/issues_statistics?labels=few", As: alice, Status: 200, Want: `{"statistics":{"counts":{"all":10,"opened":5,"closed":5}}}`},
			{Name: "statistics of an unknown label", Do: "GET " + at + "/issues_statistics?labels=unknown", As: alice, Status: 200, Want: `{"statistics":{"counts":{"all":0,"opened":0,"closed":0}}}`},
			{Name: "labels with counts", Do: "GET " + at + "/labels?with_counts=true", As: alice, Status: 200,
				Want: `[{"name":"few","open_issues_count":5,"closed_issues_count":5},{"name":"half","open_issues_count":1200,"closed_issues_count":0}]`},
		})
	})
}

// TestMergeListCandidates lists merge requests with filters that few of them match.
func TestMergeListCandidates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		bob, _ := s.User(t, "bob")
		carol, _ := s.User(t, "carol")
		var p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &p)
		for _, query := range []struct {
			text string
			args []any
		}{
			{`WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < 1200)
				INSERT INTO merge_requests (project_id, iid, state, author_id, created_at, updated_at, title, head_sha, source_project_id, source_branch, target_branch, draft, merged_at, merged_by_id)
				SELECT CAST(? AS BIGINT), n, CASE WHEN n <= 3 THEN 'merged' ELSE 'closed' END, CAST(? AS BIGINT), n, n, 'Title', '', CAST(? AS BIGINT), 'b' || n,
					CASE WHEN n <= 4 THEN 'old' ELSE 'main' END, n <= 2, CASE WHEN n <= 3 THEN n END, CASE WHEN n <= 3 THEN CAST(? AS BIGINT) END FROM series`, []any{p.ID, id, p.ID, bob}},
			{`INSERT INTO merge_request_reviewers (merge_request_id, user_id) SELECT i.id, CAST(? AS BIGINT) FROM merge_requests i WHERE i.iid = 9`, []any{bob}},
			{`INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) SELECT i.id, CAST(? AS BIGINT), '', 0 FROM merge_requests i WHERE i.iid = 8`, []any{bob}},
			{`INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) SELECT i.id, CAST(? AS BIGINT), '', 0 FROM merge_requests i WHERE i.iid <= 1010`, []any{id}},
			{`INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) SELECT i.id, CAST(? AS BIGINT), '', 0 FROM merge_requests i WHERE i.iid <= 1010`, []any{carol}},
		} {
			if _, err := s.DB.ExecContext(t.Context(), query.text, query.args...); err != nil {
				t.Fatal(err)
			}
		}
		at := fmt.Sprintf("GET /projects/%d/merge_requests?view=simple&", p.ID)
		s.Table(t, []apptest.Call{
			{Do: at + "source_branch=b7", As: alice, Status: 200, Want: `[{"iid":7}]`},
			{Do: at + "target_branch=old", As: alice, Status: 200, Want: `[{"iid":4},{"iid":3},{"iid":2},{"iid":1}]`},
			{Do: at + "target_branch=main&per_page=1", As: alice, Status: 200, Want: `[{"iid":1200}]`, WantHeader: map[string]string{"X-Total": "1196"}},
			{Do: at + "draft=true", As: alice, Status: 200, Want: `[{"iid":2},{"iid":1}]`},
			{Do: at + "state=merged&order_by=merged_at&sort=asc", As: alice, Status: 200, Want: `[{"iid":1},{"iid":2},{"iid":3}]`},
			{Do: at + "merge_user_username=bob", As: alice, Status: 200, Want: `[{"iid":3},{"iid":2},{"iid":1}]`},
			{Do: at + "merge_user_username=unknown", As: alice, Status: 200, Want: `[]`},
			{Do: at + "reviewer_username=bob", As: alice, Status: 200, Want: `[{"iid":9}]`},
			{Do: at + fmt.Sprintf("reviewer_id=%d", bob), As: alice, Status: 200, Want: `[{"iid":9}]`},
			{Do: at + "approved_by_usernames=bob", As: alice, Status: 200, Want: `[{"iid":8}]`},
			{Do: at + fmt.Sprintf("approved_by_ids=%d", bob), As: alice, Status: 200, Want: `[{"iid":8}]`},
			{Do: at + "approved=yes&per_page=1", As: alice, Status: 200, Want: `[{"iid":1010}]`, WantHeader: map[string]string{"X-Total": "1010"}},
			{Do: at + "approved_by_usernames=carol&state=closed&per_page=1", As: alice, Status: 200, Want: `[{"iid":1010}]`, WantHeader: map[string]string{"X-Total": "1007"}},
			{Do: at + "author_username=alice&per_page=1", As: alice, Status: 200, Want: `[{"iid":1200}]`},
			{Do: at + "author_username=bob", As: alice, Status: 200, Want: `[]`},
			{Do: at + "not[author_username]=alice", As: alice, Status: 200, Want: `[]`},
			{Do: at + "labels=unknown", As: alice, Status: 200, Want: `[]`},
		})
	})
}

// TestMilestoneSearchWindow searches milestones of a group that are among the first
// of the instance, and milestones that come after many of another project.
func TestMilestoneSearchWindow(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		create := func(do, body string) (id int64) {
			t.Helper()
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST " + do, As: alice, JSON: body, Status: 201}).JSON(t, &made)
			return made.ID
		}
		group := create("/groups", `{"name":"g","path":"g","visibility":"public"}`)
		sub := create("/groups", fmt.Sprintf(`{"name":"sub","path":"sub","visibility":"public","parent_id":%d}`, group))
		project := func(name, visibility string, in int64) int64 {
			return create("/projects", fmt.Sprintf(`{"name":%q,"visibility":%q,"namespace_id":%d}`, name, visibility, in))
		}
		open, deep, hidden, archived := project("open", "public", group), project("deep", "public", sub), project("hidden", "private", group), project("archived", "public", group)
		other := create("/projects", `{"name":"other","visibility":"public"}`)
		milestone := func(of, title string) { create(of+"/milestones", fmt.Sprintf(`{"title":%q}`, title)) }
		milestone(fmt.Sprintf("/groups/%d", group), "wheel of the group")
		milestone(fmt.Sprintf("/groups/%d", sub), "wheel of the subgroup")
		for i, id := range []int64{open, deep, hidden, archived} {
			milestone(fmt.Sprintf("/projects/%d", id), fmt.Sprintf("wheel %d", i))
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", archived), As: alice, Status: 201})
		check := func(t *testing.T) {
			t.Helper()
			search := func(scope, more string) string { return "GET " + scope + "/search?scope=milestones&search=" + more }
			in := fmt.Sprintf("/groups/%d", group)
			for _, text := range []string{"wheel", "wh"} { // with candidates from the text index, and without
				s.Table(t, []apptest.Call{
					{Name: text + " for an owner", Do: search(in, text), As: alice, Status: 200, WantHeader: map[string]string{"X-Total": "5"},
						Want: `[{"title":"wheel 2"},{"title":"wheel 1"},{"title":"wheel 0"},{"title":"wheel of the subgroup"},{"title":"wheel of the group"}]`},
					{Name: text + " for others", Do: search(in, text), As: bob, Status: 200, WantHeader: map[string]string{"X-Total": "4"},
						Want: `[{"title":"wheel 1"},{"title":"wheel 0"},{"title":"wheel of the subgroup"},{"title":"wheel of the group"}]`},
					{Name: text + ", second page", Do: search(in, text+"&per_page=2&page=2"), As: bob, Status: 200, WantHeader: map[string]string{"X-Total": "4"},
						Want: `[{"title":"wheel of the subgroup"},{"title":"wheel of the group"}]`},
				})
			}
			s.Table(t, []apptest.Call{
				{Name: "descendants", Do: "GET " + in + "/milestones?include_descendants=true", As: bob, Status: 200, WantHeader: map[string]string{"X-Total": "5"},
					Want: `[{"title":"wheel 3"},{"title":"wheel 1"},{"title":"wheel 0"},{"title":"wheel of the subgroup"},{"title":"wheel of the group"}]`},
				{Name: "not descendants", Do: "GET " + in + "/milestones", As: bob, Status: 200, Want: `[{"title":"wheel of the group"}]`},
			})
		}
		check(t)
		s.Check(t, apptest.Call{Do: searchMilestones + "wheel", As: bob, Status: 200, Want: `[{"title":"wheel 1"},{"title":"wheel 0"}]`})
		if _, err := s.DB.ExecContext(t.Context(), `
			WITH RECURSIVE series (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM series WHERE n < 1200)
			INSERT INTO milestones (project_id, iid, title, description, created_at, updated_at) SELECT CAST(? AS BIGINT), n, 'wheel of others ' || n, '', 0, 0 FROM series`, other); err != nil {
			t.Fatal(err)
		}
		check(t)
		s.Check(t, apptest.Call{Do: searchMilestones + "wheel&per_page=2", As: bob, Status: 200, WantHeader: map[string]string{"X-Total": "1202"},
			Want: `[{"title":"wheel of others 1200"},{"title":"wheel of others 1199"}]`})
	})
}

// searchMilestones searches milestones of the whole instance.
const searchMilestones = "GET /search?scope=milestones&search="
