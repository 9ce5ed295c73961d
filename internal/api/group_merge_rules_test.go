package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestGroupApprovalSetting checks that a top-level group enforces approval
// settings in the projects of its subgroups.
func TestGroupApprovalSetting(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const of, at = "/groups/g/merge_request_approval_setting", "/projects/g%2Fteam%2Fp/merge_request_approval_setting"
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"g","path":"g"}`, Status: 201})
		g := idOfGroup(t, s, alice, "g")
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"s","path":"team","parent_id":%d}`, g), Status: 201})
		sub := idOfGroup(t, s, alice, "g%2Fteam")
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"p","namespace_id":%d}`, sub), Status: 201},
			{Do: "PUT " + at, As: alice, JSON: `{"allow_author_approval":true,"retain_approvals_on_push":true}`, Status: 200},
			{Name: "none", Do: "GET " + of, As: alice, Status: 200, Want: `{"allow_author_approval":{"value":true,"locked":false,"inherited_from":null},"allow_committer_approval":{"value":true},
				"allow_overrides_to_approver_list_per_merge_request":{"value":true},"retain_approvals_on_push":{"value":true},"selective_code_owner_removals":{"value":false},
				"require_password_to_approve":{"value":false},"require_reauthentication_to_approve":{"value":false}}`},
			{Name: "another user", Do: "GET " + of, As: bob, Status: 404},
			{Name: "of a subgroup", Do: "GET /groups/g%2Fteam/merge_request_approval_setting", As: alice, Status: 403},
			{Name: "change in a subgroup", Do: "PUT /groups/g%2Fteam/merge_request_approval_setting", As: alice, JSON: `{"allow_author_approval":false}`, Status: 403},
			{Name: "contradiction", Do: "PUT " + of, As: alice, JSON: `{"retain_approvals_on_push":false,"selective_code_owner_removals":true}`, Status: 400},
			{Name: "change", Do: "PUT " + of, As: alice, JSON: `{"allow_author_approval":false,"retain_approvals_on_push":false,"require_password_to_approve":true}`, Status: 200,
				Want: `{"allow_author_approval":{"value":false,"locked":false},"retain_approvals_on_push":{"value":false},"require_password_to_approve":{"value":true},"allow_committer_approval":{"value":true}}`},
			{Name: "in the project", Do: "GET " + at, As: alice, Status: 200, Want: `{"allow_author_approval":{"value":false,"locked":true,"inherited_from":"group"},
				"retain_approvals_on_push":{"value":false,"locked":true,"inherited_from":"group"},"require_password_to_approve":{"value":true,"locked":true},
				"allow_committer_approval":{"value":true,"locked":false,"inherited_from":null}}`},
			{Name: "cannot be relaxed", Do: "PUT " + at, As: alice, JSON: `{"allow_author_approval":true,"require_password_to_approve":false}`, Status: 200,
				Want: `{"allow_author_approval":{"value":false,"locked":true},"require_password_to_approve":{"value":true,"locked":true}}`},
			{Name: "in the other words", Do: "GET /projects/g%2Fteam%2Fp/approvals", As: alice, Status: 200,
				Want: `{"merge_requests_author_approval":false,"reset_approvals_on_push":true,"require_password_to_approve":true}`},
			{Name: "a new subgroup", Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"n","path":"n","parent_id":%d}`, sub), Status: 201},
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"q","namespace_id":%d}`, sub+1), Status: 201},
			{Name: "its project", Do: "GET /projects/g%2Fteam%2Fn%2Fq/merge_request_approval_setting", As: alice, Status: 200, Want: `{"allow_author_approval":{"value":false,"locked":true}}`},
			{Name: "a group of its own", Do: "POST /groups/g%2Fteam/transfer", As: alice, Status: 201},
			{Name: "is free", Do: "GET /projects/team%2Fp/merge_request_approval_setting", As: alice, Status: 200, Want: `{"allow_author_approval":{"value":true,"locked":false},"retain_approvals_on_push":{"value":true}}`},
			{Name: "with all below it", Do: "GET /projects/team%2Fn%2Fq/merge_request_approval_setting", As: alice, Status: 200, Want: `{"require_password_to_approve":{"value":false,"locked":false}}`},
		})
	})
}

// TestGroupMergeChecks checks that the merge checks of groups apply to the merge
// requests of their projects.
func TestGroupMergeChecks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"g","path":"g"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"p","namespace_id":%d,"initialize_with_readme":true}`, idOfGroup(t, s, alice, "g")), Status: 201})
		const at = "/projects/g%2Fp"
		const one = at + "/merge_requests/1"
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/repository/commits", As: alice, JSON: `{"branch":"work","start_branch":"main","commit_message":"m","actions":[{"action":"create","file_path":"f","content":"x"}]}`, Status: 201},
			{Do: "POST " + at + "/merge_requests", As: alice, JSON: `{"source_branch":"work","target_branch":"main","title":"T"}`, Status: 201},
			{Do: "POST " + one + "/discussions", As: alice, JSON: `{"body":"why?"}`, Status: 201},
			{Name: "no checks", Do: "GET " + one, As: alice, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "threads", Do: "PUT /groups/g", As: alice, JSON: `{"only_allow_merge_if_all_discussions_are_resolved":true}`, Status: 200,
				Want: `{"only_allow_merge_if_all_discussions_are_resolved":true,"only_allow_merge_if_pipeline_succeeds":false,"allow_merge_on_skipped_pipeline":false}`},
			{Name: "are to be resolved", Do: "GET " + one, As: alice, Status: 200, Want: `{"detailed_merge_status":"discussions_not_resolved"}`},
			{Name: "not merged", Do: "PUT " + one + "/merge", As: alice, Status: 405},
			{Name: "pipeline", Do: "PUT /groups/g", As: alice, JSON: `{"only_allow_merge_if_all_discussions_are_resolved":false,"only_allow_merge_if_pipeline_succeeds":true,"allow_merge_on_skipped_pipeline":true}`, Status: 200},
			{Name: "must succeed", Do: "GET " + one, As: alice, Status: 200, Want: `{"detailed_merge_status":"ci_must_pass"}`},
			{Name: "not merged without one", Do: "PUT " + one + "/merge", As: alice, Status: 405},
			{Name: "the project keeps its own", Do: "GET " + at, As: alice, Status: 200, Want: `{"only_allow_merge_if_pipeline_succeeds":false}`},
			{Do: "PUT /groups/g", As: alice, JSON: `{"only_allow_merge_if_pipeline_succeeds":false}`, Status: 200, Want: `{"allow_merge_on_skipped_pipeline":true}`},
			{Name: "merged", Do: "PUT " + one + "/merge", As: alice, Status: 200, Want: `{"state":"merged"}`},
		})
	})
}
