package web_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestApprovalPages approves a merge request, and changes its approval rules and
// those of the project on pages.
func TestApprovalPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"code","initialize_with_readme":true}`, Status: 201},
			{Do: "POST /projects/alice%2Fcode/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID), Status: 201},
			{Do: "POST /projects/alice%2Fcode/repository/commits", As: alice, Status: 201,
				JSON: `{"branch":"main","commit_message":"owners","actions":[{"action":"create","file_path":"CODEOWNERS","content":"*.txt @alice\n"}]}`},
			{Do: "POST /projects/alice%2Fcode/repository/commits", As: bob, Status: 201,
				JSON: `{"branch":"work","start_branch":"main","commit_message":"work","actions":[{"action":"create","file_path":"work.txt","content":"work\n"}]}`},
			{Do: "POST /projects/alice%2Fcode/merge_requests", As: bob, Status: 201, JSON: `{"source_branch":"work","target_branch":"main","title":"Work"}`},
		})
		const at, settings = "/alice/code/-/merge_requests/1", "/alice/code/-/settings/merge_requests"
		a, b := newBrowser(t, s), newBrowser(t, s)
		a.signIn("alice", "a good password")
		b.signIn("bob", "a good password")

		a.get("/alice/code").want(200, settings)
		a.get("/alice/code/-/blob/work/work.txt").want(200, "Code owners", "/alice\">alice</a>")
		a.get(at).want(200, "Approval is optional", "Approve</button>", "Code owner", "*.txt")
		a.get(settings).want(200, "No approval rules", "Merge method", "Prevent approval by merge request creator")
		a.submit(settings, settings+"/rules", "name", "review", "approvals_required", "1", "users", "nobody").want(422, "nobody is not a member of the project")
		a.get("/alice/code/-/autocomplete_sources/approvers?search=bo").want(200, `"value":"bob"`).not(`"alice"`)
		a.get("/alice/code/-/autocomplete_sources/groups?search=nothing").want(200, `[]`)
		a.submit(settings, settings+"/rules", "name", "review", "approvals_required", "1", "users", "@alice, ").leads(settings)
		a.get(settings).want(200, "review", "1 approval")
		b.get(at).want(200, "Requires 1 approval from review", "Merge blocked: approval required").not("Approve</button>")
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Fcode/merge_requests/1", As: alice, JSON: `{"state_event":"close"}`, Status: 200})
		a.get(at).want(200, "Missing 1 approval from review").not("Requires 1 approval", "data-poll")
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Fcode/merge_requests/1", As: alice, JSON: `{"state_event":"reopen"}`, Status: 200})
		a.get(at).want(200, "Approve</button>", "Set to auto-merge")
		var m struct{ SHA string }
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fcode/merge_requests/1", As: alice, Status: 200}).JSON(t, &m)
		a.submit(at, at+"/approve", "head", m.SHA).leads(at)
		a.get(at).want(200, "Approved", "Revoke approval", "1 of 1", "Ready to merge")
		a.submit(at, at+"/unapprove").leads(at)

		rules := at + "/approval_rules"
		b.get(rules).want(200, "These are the rules of the project.", "review")
		b.submit(rules, rules, "name", "more", "approvals_required", "2", "users", "", "groups", "no/group").want(422, "no/group is not a group that you can access")
		b.submit(rules, rules, "name", "more", "approvals_required", "2").leads(rules)
		b.get(rules).want(200, "These rules replace those of the project.", "2 approvals")
		b.submit(rules, rules+"/reset").leads(rules)
		b.get(rules).want(200, "These are the rules of the project.")

		a.submit(settings, settings, "merge_method", "ff", "squash_option", "always", "only_allow_merge_if_all_discussions_are_resolved", "1",
			"squash_commit_template", "%{title} by %{merged_by}").leads(settings)
		a.submit(settings, settings+"/approvals", "prevent_overriding", "1", "on_push", "owners").leads(settings)
		s.Table(t, []apptest.Call{
			{Name: "saved", Do: "GET /projects/alice%2Fcode", As: alice, Status: 200, Want: `{"merge_method":"ff","squash_option":"always",
				"only_allow_merge_if_all_discussions_are_resolved":true,"squash_commit_template":"%{title} by %{merged_by}"}`},
			{Name: "approvals", Do: "GET /projects/alice%2Fcode/approvals", As: alice, Status: 200, Want: `{"disable_overriding_approvers_per_merge_request":true,
				"merge_requests_author_approval":true,"reset_approvals_on_push":false,"selective_code_owner_removals":true}`},
		})
		b.get(rules).want(403)
		b.get(settings).want(403)
		const general = "/alice/code/-/settings/general"
		a.get(general).want(200, "Visibility, project features, permissions", "wiki_access_level")
		a.submit(general, general, "name", "code", "visibility", "private", "wiki_access_level", "disabled", "issues_access_level", "private").leads(general)
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fcode", As: alice, Status: 200, Want: `{"wiki_access_level":"disabled","issues_access_level":"private","snippets_access_level":"enabled"}`})
	})
}
