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

// TestFirstPush lets Developers push the first commit only where the protection of
// default branches allows it.
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
