package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestGroupProtectedBranches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		var group, sub, p struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"G","path":"g"}`, Status: 201}).JSON(t, &group)
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"S","path":"s","parent_id":%d}`, group.ID), Status: 201}).JSON(t, &sub)
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"P","path":"p","namespace_id":%d,"initialize_with_readme":true}`, sub.ID), Status: 201}).JSON(t, &p)
		const at, in = "/groups/g/protected_branches", "/projects/g%2Fs%2Fp"
		push := func(name string, status int) apptest.Call {
			return apptest.Call{Name: name, Do: "POST " + in + "/repository/commits", As: bobToken, Status: status,
				JSON: `{"branch":"release/1","commit_message":"m","actions":[{"action":"create","file_path":"` + name + `","content":"x"}]}`}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST /groups/g/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bob), Status: 201},
			{Do: "POST " + in + "/repository/branches?branch=release/1&ref=main", As: bobToken, Status: 201},
			push("before", 201),
			{Name: "protect", Do: "POST " + at, As: alice, JSON: `{"name":"release/*","push_access_level":40,"merge_access_level":40}`, Status: 201,
				Want: `{"name":"release/*","push_access_levels":[{"access_level":40}],"allow_force_push":false}`, Not: []string{"inherited"}},
			{Name: "again", Do: "POST " + at, As: alice, JSON: `{"name":"release/*"}`, Status: 409},
			{Name: "odd name", Do: "POST " + at, As: alice, JSON: `{"name":"a..b"}`, Status: 422},
			{Name: "for a user", Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"name":"x","allowed_to_push":[{"user_id":%d}]}`, bob), Status: 422},
			{Name: "in a subgroup", Do: "POST /groups/g%2Fs/protected_branches", As: alice, JSON: `{"name":"x"}`, Status: 422},
			{Name: "subgroups have none", Do: "GET /groups/g%2Fs/protected_branches", As: alice, Status: 200, Want: `[]`},
			{Name: "a developer", Do: "GET " + at, As: bobToken, Status: 403},
			push("refused", 403),
			{Name: "shown in the project", Do: "GET " + in + "/protected_branches?search=rel", As: bobToken, Status: 200, Want: `[{"name":"release/*","inherited":true}]`},
			{Name: "after its own", Do: "GET " + in + "/protected_branches", As: bobToken, Status: 200, Want: `[{"name":"main","inherited":false},{"name":"release/*","inherited":true}]`},
			{Name: "one", Do: "GET " + in + "/protected_branches/release%2F*", As: bobToken, Status: 200, Want: `{"inherited":true}`},
			{Name: "the branch", Do: "GET " + in + "/repository/branches/release%2F1", As: bobToken, Status: 200, Want: `{"protected":true,"can_push":false}`},
			{Name: "not changed in the project", Do: "PATCH " + in + "/protected_branches/release%2F*", As: alice, JSON: `{"allow_force_push":true}`, Status: 404},
			{Name: "not removed in the project", Do: "DELETE " + in + "/protected_branches/release%2F*", As: alice, Status: 404},
			{Name: "change", Do: "PATCH " + at + "/release%2F*", As: alice, JSON: `{"allowed_to_push":[{"access_level":30}]}`, Status: 200, Want: `{"push_access_levels":[{"access_level":40},{"access_level":30}]}`},
			push("allowed", 201),
			{Name: "get", Do: "GET " + at + "/release%2F*", As: alice, Status: 200, Want: `{"name":"release/*"}`},
			{Name: "none", Do: "GET " + in + "/protected_branches/none", As: alice, Status: 404},
			{Name: "remove", Do: "DELETE " + at + "/release%2F*", As: alice, Status: 204},
			{Name: "gone", Do: "GET " + in + "/protected_branches", As: bobToken, Status: 200, Want: `[{"name":"main"}]`},
		})
	})
}

// TestFirstPush checks that Developers can push the first commit only if the
// protection of default branches allows it.
func TestFirstPush(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		for path, c := range map[string]struct {
			protection string
			status     int
		}{
			"full":  {`{"allowed_to_push":[{"access_level":40}]}`, 403},
			"first": {`{"allowed_to_push":[{"access_level":40}],"developer_can_initial_push":true}`, 201},
			"open":  {`{"allowed_to_push":[{"access_level":30}]}`, 201},
		} {
			var group struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"G","path":%q,"default_branch_protection_defaults":%s}`, path, c.protection), Status: 201}).JSON(t, &group)
			s.Table(t, []apptest.Call{
				{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"p","namespace_id":%d}`, group.ID), Status: 201},
				{Do: "POST /groups/" + path + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bob), Status: 201},
				{Name: path, Do: "POST /projects/" + path + "%2Fp/repository/files/a", As: bobToken, JSON: `{"branch":"main","content":"x","commit_message":"m"}`, Status: c.status},
			})
		}
	})
}

func TestGroupPushRules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		var top, below struct {
			ID int64 `json:"id"`
		}
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"top","path":"top"}`, Status: 201}).JSON(t, &top)
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"below","path":"below","parent_id":%d}`, top.ID), Status: 201}).JSON(t, &below)
		project := func(path string, in int64) apptest.Call {
			return apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":%q,"namespace_id":%d}`, path, in), Status: 201}
		}
		s.Table(t, []apptest.Call{
			project("old", top.ID),
			{Name: "none", Do: "GET /groups/top/push_rule", As: alice, Status: 404},
			{Name: "create", Do: "POST /groups/top/push_rule", As: alice, JSON: `{"commit_message_regex":"^JIRA","max_file_size":5}`, Status: 201,
				Want: `{"id":"<any>","created_at":"<any>","commit_message_regex":"^JIRA","max_file_size":5,"deny_delete_tag":false}`},
			{Name: "again", Do: "POST /groups/top/push_rule", As: alice, JSON: `{}`, Status: 422},
			{Name: "not a pattern", Do: "PUT /groups/top/push_rule", As: alice, JSON: `{"branch_name_regex":"("}`, Status: 400},
			{Name: "change", Do: "PUT /groups/top/push_rule", As: alice, JSON: `{"deny_delete_tag":true}`, Status: 200, Want: `{"commit_message_regex":"^JIRA","deny_delete_tag":true}`},
			project("fresh", top.ID), project("deep", below.ID),
			{Name: "of a new project", Do: "GET /projects/top%2Ffresh/push_rule", As: alice, Status: 200, Want: `{"commit_message_regex":"^JIRA","max_file_size":5,"deny_delete_tag":true}`},
			{Name: "of one in a subgroup", Do: "GET /projects/top%2Fbelow%2Fdeep/push_rule", As: alice, Status: 200, Want: `{"commit_message_regex":"^JIRA"}`},
			{Name: "of an older project", Do: "GET /projects/top%2Fold/push_rule", As: alice, Status: 200, Want: `null`},
			{Name: "in the subgroup", Do: "POST /groups/top%2Fbelow/push_rule", As: alice, JSON: `{"branch_name_regex":"^x"}`, Status: 201},
			project("deeper", below.ID),
			{Name: "the nearest", Do: "GET /projects/top%2Fbelow%2Fdeeper/push_rule", As: alice, Status: 200, Want: `{"commit_message_regex":"","branch_name_regex":"^x"}`},
			{Name: "delete", Do: "DELETE /groups/top/push_rule", As: alice, Status: 204},
			{Name: "delete again", Do: "DELETE /groups/top/push_rule", As: alice, Status: 404},
			{Name: "projects keep theirs", Do: "GET /projects/top%2Ffresh/push_rule", As: alice, Status: 200, Want: `{"commit_message_regex":"^JIRA"}`},
			project("late", top.ID),
			{Name: "after that", Do: "GET /projects/top%2Flate/push_rule", As: alice, Status: 200, Want: `null`},
		})
	})
}

func TestGroupActivity(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		var g struct {
			ID int64 `json:"id"`
		}
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"top","path":"top","visibility":"private"}`, Status: 201}).JSON(t, &g)
		const at = "/analytics/group_activity"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"p","namespace_id":%d,"initialize_with_readme":true}`, g.ID), Status: 201},
			{Do: "POST /projects/top%2Fp/issues", As: alice, JSON: `{"title":"one"}`, Status: 201},
			{Do: "POST /projects/top%2Fp/issues", As: alice, JSON: `{"title":"old","created_at":"2001-01-01T00:00:00Z"}`, Status: 201},
			{Name: "issues", Do: "GET " + at + "/issues_count?group_path=top", As: alice, Status: 200, Want: `{"issues_count":1}`},
			{Name: "merge requests", Do: "GET " + at + "/merge_requests_count?group_path=top", As: alice, Status: 200, Want: `{"merge_requests_count":0}`},
			{Name: "members", Do: "GET " + at + "/new_members_count?group_path=top", As: alice, Status: 200, Want: `{"new_members_count":1}`},
			{Name: "a stranger", Do: "GET " + at + "/issues_count?group_path=top", As: bobToken, Status: 404},
			{Do: "POST /groups/top/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, bob), Status: 201},
			{Name: "a Guest", Do: "GET " + at + "/issues_count?group_path=top", As: bobToken, Status: 403},
			{Name: "both", Do: "GET " + at + "/new_members_count?group_path=top", As: alice, Status: 200, Want: `{"new_members_count":2}`},
			{Name: "no group", Do: "GET " + at + "/new_members_count", As: alice, Status: 400},
			{Name: "statistics", Do: "GET /application/statistics", As: alice, Status: 403},
		})
	})
}
