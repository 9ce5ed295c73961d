package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

// TestApprovalSetting checks that both endpoints of the approval settings agree.
func TestApprovalSetting(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201},
			{Do: "POST " + at + "/approvals", As: alice, JSON: `{"reset_approvals_on_push":true,"merge_requests_author_approval":true,"merge_requests_disable_committers_approval":false}`, Status: 201},
			{Name: "read", Do: "GET " + at + "/merge_request_approval_setting", As: alice, Status: 200, Want: `{"retain_approvals_on_push":{"value":false,"locked":false,"inherited_from":null},
				"allow_author_approval":{"value":true},"allow_committer_approval":{"value":true},"allow_overrides_to_approver_list_per_merge_request":{"value":true},
				"selective_code_owner_removals":{"value":false},"require_password_to_approve":{"value":false},"require_reauthentication_to_approve":{"value":false}}`},
			{Name: "change", Do: "PUT " + at + "/merge_request_approval_setting", As: alice, JSON: `{"allow_author_approval":false,"allow_committer_approval":false,"retain_approvals_on_push":true}`, Status: 200,
				Want: `{"allow_author_approval":{"value":false},"allow_committer_approval":{"value":false},"retain_approvals_on_push":{"value":true},"allow_overrides_to_approver_list_per_merge_request":{"value":true}}`},
			{Name: "in the other words", Do: "GET " + at + "/approvals", As: alice, Status: 200,
				Want: `{"reset_approvals_on_push":false,"merge_requests_author_approval":false,"merge_requests_disable_committers_approval":true,"disable_overriding_approvers_per_merge_request":false}`},
		})
	})
}
