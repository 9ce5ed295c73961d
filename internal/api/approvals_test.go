package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

func TestApprovals(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		eveID, eve := s.User(t, "eve")
		_, outsider := s.User(t, "outsider")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Developer)
		enlist(t, s, id, eveID, project.Reporter)
		at := fmt.Sprintf("/projects/%d", id)
		m := proposed(t, s, bob, id, "work", fmt.Sprintf(`,"reviewer_ids":[%d]`, danID))
		var head struct{ SHA string }
		s.Check(t, apptest.Call{Do: "GET " + m, As: bob, Status: 200, Want: `{"approvals_before_merge":null}`}).JSON(t, &head)
		none := strings.Repeat("0", 40)
		s.Table(t, []apptest.Call{
			{Name: "defaults", Do: "GET " + at + "/approvals", As: bob, Status: 200, Want: `{"approvers":[],"approver_groups":[],"approval_groups":[],"approvals_before_merge":0,"reset_approvals_on_push":true,
				"selective_code_owner_removals":false,"disable_overriding_approvers_per_merge_request":false,"merge_requests_author_approval":false,
				"merge_requests_disable_committers_approval":false,"require_password_to_approve":false,"require_reauthentication_to_approve":false}`},
			{Name: "anonymous", Do: "GET " + at + "/approvals", Status: 401},
			{Name: "for maintainers", Do: "POST " + at + "/approvals", As: bob, JSON: `{"approvals_before_merge":1}`, Status: 403},
			{Name: "both removals", Do: "POST " + at + "/approvals", As: alice, JSON: `{"selective_code_owner_removals":true}`, Status: 400},
			{Name: "too many", Do: "POST " + at + "/approvals", As: alice, JSON: `{"approvals_before_merge":101}`, Status: 400},

			{Name: "not required", Do: "GET " + m + "/approvals", As: bob, Status: 200, Want: `{"iid":1,"title":"Take work","state":"opened","merge_status":"can_be_merged","approved":true,"approvals_required":0,
				"approvals_left":0,"approved_by":[],"user_has_approved":false,"user_can_approve":false,"has_approval_rules":false,"approval_rules_left":[]}`},
			{Name: "the author", Do: "POST " + m + "/approve", As: bob, Status: 401},
			{Name: "a reporter", Do: "POST " + m + "/approve", As: eve, Status: 401},
			{Name: "not a member", Do: "POST " + m + "/approve", As: outsider, Status: 401},
			{Name: "another head", Do: "POST " + m + "/approve", As: dan, JSON: `{"sha":"` + none + `"}`, Status: 409},
			{Name: "approved", Do: "POST " + m + "/approve", As: dan, JSON: `{"sha":"` + head.SHA + `"}`, Status: 201,
				Want: `{"approved":true,"approved_by":[{"user":{"username":"dan"},"approved_at":"<any>"}],"user_has_approved":true,"user_can_approve":false}`},
			{Name: "twice", Do: "POST " + m + "/approve", As: dan, Status: 401},
			{Name: "reviewer", Do: "GET " + m + "/reviewers", As: dan, Status: 200, Want: `[{"user":{"username":"dan"},"state":"approved"}]`},
			{Name: "note", Do: "GET " + m + "/notes", As: dan, Status: 200, Want: `[{"body":"approved this merge request","system":true,"author":{"username":"dan"}}]`},
			{Name: "event", Do: "GET " + at + "/events?action=approved", As: dan, Status: 200, Want: `[{"action_name":"approved","target_type":"MergeRequest","target_iid":1,"author":{"username":"dan"}}]`},
			{Name: "has approved", Do: "GET " + at + "/merge_requests?approved=yes", As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "has not", Do: "GET " + at + "/merge_requests?approved=no", As: bob, Status: 200, Want: `[]`},
			{Name: "approved by", Do: fmt.Sprintf("GET %s/merge_requests?approved_by_ids[]=%d", at, danID), As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "approved by both", Do: fmt.Sprintf("GET %s/merge_requests?approved_by_ids=%d,%d", at, danID, bobID), As: bob, Status: 200, Want: `[]`},
			{Name: "approved by any", Do: "GET " + at + "/merge_requests?approved_by_ids=Any", As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "approved by none", Do: "GET " + at + "/merge_requests?approved_by_ids=None", As: bob, Status: 200, Want: `[]`},
			{Name: "approved by name", Do: "GET " + at + "/merge_requests?approved_by_usernames[]=Dan", As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "no ID", Do: "GET " + at + "/merge_requests?approved_by_ids=x", As: bob, Status: 400},
			{Name: "revoked", Do: "POST " + m + "/unapprove", As: dan, Status: 201, Want: `{"approved_by":[],"user_has_approved":false,"user_can_approve":true}`},
			{Name: "reviewer again", Do: "GET " + m + "/reviewers", As: dan, Status: 200, Want: `[{"user":{"username":"dan"},"state":"unapproved"}]`},
			{Name: "nothing to revoke", Do: "POST " + m + "/unapprove", As: dan, Status: 404},

			{Name: "one is required", Do: "POST " + at + "/approvals", As: alice, JSON: `{"approvals_before_merge":1}`, Status: 201, Want: `{"approvals_before_merge":1}`},
			{Name: "project", Do: "GET " + at, As: alice, Status: 200, Want: `{"approvals_before_merge":1}`},
			{Name: "its rule", Do: "GET " + at + "/approval_rules", As: bob, Status: 200, Want: `[{"name":"All Members","rule_type":"any_approver","approvals_required":1,"users":[],"groups":[],"eligible_approvers":[],"protected_branches":[]}]`},
			{Name: "status", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved","merge_status":"can_be_merged"}`},
			{Name: "status in lists", Do: "GET " + at + "/merge_requests", As: alice, Status: 200, Want: `[{"detailed_merge_status":"not_approved"}]`},
			{Name: "merge is refused", Do: "PUT " + m + "/merge", As: alice, Status: 405},
			{Name: "left", Do: "GET " + m + "/approvals", As: dan, Status: 200, Want: `{"approved":false,"approvals_required":1,"approvals_left":1,"approval_rules_left":[{"name":"All Members","rule_type":"any_approver"}]}`},
			{Name: "approved again", Do: "POST " + m + "/approve", As: dan, Status: 201, Want: `{"approved":true,"approvals_left":0}`},
			{Name: "mergeable", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "state", Do: "GET " + m + "/approval_state", As: dan, Status: 200, Want: `{"approval_rules_overwritten":false,"rules":[{"rule_type":"any_approver","approved":true,"approved_by":[{"username":"dan"}],"source_rule":null,"overridden":false}]}`},
		})

		commitTo(t, s, bob, id, "work", "work.txt", "more\n", "More")
		s.Table(t, []apptest.Call{
			{Name: "reset by a push", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "nobody", Do: "GET " + m + "/approvals", As: dan, Status: 200, Want: `{"approved_by":[]}`},
			{Name: "approved", Do: "POST " + m + "/approve", As: dan, Status: 201},
			{Name: "only by bots", Do: "PUT " + m + "/reset_approvals", As: alice, Status: 401},
			{Name: "kept", Do: "POST " + at + "/approvals", As: alice, JSON: `{"reset_approvals_on_push":false}`, Status: 201},
		})
		notes := string(s.Check(t, apptest.Call{Do: "GET " + m + "/notes?sort=asc", As: alice, Status: 200}).Body)
		if !strings.Contains(notes, "reset approvals from @dan by pushing to the branch") {
			t.Errorf("no note about the reset: %s", notes)
		}
		commitTo(t, s, bob, id, "work", "work.txt", "even more\n", "Even more")
		s.Check(t, apptest.Call{Name: "kept on push", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`})

		var token struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_tokens", As: alice, JSON: `{"name":"bot","scopes":["api"],"access_level":30,"expires_at":"` + s.Clock.Now().AddDate(0, 1, 0).Format("2006-01-02") + `"}`, Status: 201}).JSON(t, &token)
		s.Table(t, []apptest.Call{
			{Name: "reset by a bot", Do: "PUT " + m + "/reset_approvals", As: token.Token, Status: 202},
			{Name: "nobody", Do: "GET " + m + "/approvals", As: dan, Status: 200, Want: `{"approved_by":[]}`},

			{Name: "authors may", Do: "POST " + at + "/approvals", As: alice, JSON: `{"merge_requests_author_approval":true}`, Status: 201},
			{Name: "by the author", Do: "POST " + m + "/approve", As: bob, Status: 201, Want: `{"approved":true}`},
			{Name: "authors may not", Do: "POST " + at + "/approvals", As: alice, JSON: `{"merge_requests_author_approval":false}`, Status: 201},
			{Name: "does not count", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "revoked", Do: "POST " + m + "/unapprove", As: bob, Status: 201},

			{Name: "committers may not", Do: "POST " + at + "/approvals", As: alice, JSON: `{"merge_requests_disable_committers_approval":true,"merge_requests_author_approval":true}`, Status: 201},
			{Name: "by a committer", Do: "POST " + m + "/approve", As: bob, Status: 401},
			{Name: "by another", Do: "POST " + m + "/approve", As: dan, Status: 201},
		})
		commitTo(t, s, dan, id, "work", "dan.txt", "dan\n", "By Dan")
		s.Table(t, []apptest.Call{
			{Name: "who committed afterwards does not count", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "committers may", Do: "POST " + at + "/approvals", As: alice, JSON: `{"merge_requests_disable_committers_approval":false}`, Status: 201},
			{Name: "counts", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "a former member", Do: fmt.Sprintf("DELETE %s/members/%d", at, danID), As: alice, Status: 204},
			{Name: "does not count", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "administrators", Do: "POST " + m + "/approve", As: root, Status: 201, Want: `{"approved":true}`},

			{Name: "password", Do: "POST " + at + "/approvals", As: alice, JSON: `{"require_reauthentication_to_approve":true}`, Status: 201, Want: `{"require_password_to_approve":true}`},
			{Name: "none", Do: "POST " + m + "/approve", As: alice, Status: 401},
			{Name: "wrong", Do: "POST " + m + "/approve", As: alice, JSON: `{"approval_password":"wrong"}`, Status: 401},
			{Name: "right", Do: "POST " + m + "/approve", As: alice, JSON: `{"approval_password":"a good password"}`, Status: 201},

			{Name: "closed", Do: "PUT " + m, As: alice, JSON: `{"state_event":"close"}`, Status: 200},
			{Name: "is not approved", Do: "POST " + m + "/approve", As: bob, Status: 405},
			{Name: "is not revoked", Do: "POST " + m + "/unapprove", As: alice, Status: 405},
			{Name: "is shown", Do: "GET " + m + "/approvals", As: alice, Status: 200, Want: `{"state":"closed","user_can_approve":false,"user_has_approved":true}`},
			{Name: "reopened", Do: "PUT " + m, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200},
			{Name: "archived", Do: "POST " + at + "/archive", As: alice, Status: 201},
			{Name: "is not revoked", Do: "POST " + m + "/unapprove", As: alice, Status: 403},
			{Name: "no longer", Do: "POST " + at + "/unarchive", As: alice, Status: 201},
			{Name: "merged", Do: "PUT " + m + "/merge", As: alice, Status: 200, Want: `{"state":"merged"}`},
			{Name: "is not approved", Do: "POST " + m + "/approve", As: bob, Status: 405},
		})
	})
}

// TestApprovalsReset checks that approvals do not survive a push to a closed
// merge request or another target branch, and survive a rebase.
func TestApprovalsReset(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		m := proposed(t, s, bob, id, "work", "")
		approved := func(want string) {
			t.Helper()
			becomes(t, s, apptest.Call{Do: "GET " + m + "/approvals", As: alice, Status: 200, Want: `{"approved_by":` + want + `}`})
		}
		by := `[{"user":{"username":"alice"}}]`
		s.Check(t, apptest.Call{Do: "POST " + m + "/approve", As: alice, Status: 201})
		commitTo(t, s, alice, id, "main", "main.txt", "main\n", "Main")
		approved(by)
		s.Check(t, apptest.Call{Do: "PUT " + m + "/rebase", As: bob, Status: 202})
		approved(by)
		s.Check(t, apptest.Call{Do: "GET " + m + "?include_diverged_commits_count=true", As: bob, Status: 200, Want: `{"diverged_commits_count":0}`})
		s.Check(t, apptest.Call{Do: "PUT " + m, As: bob, JSON: `{"state_event":"close"}`, Status: 200})
		s.Check(t, apptest.Call{Do: "PUT " + m, As: bob, JSON: `{"state_event":"reopen"}`, Status: 200})
		approved(by)
		s.Check(t, apptest.Call{Do: "PUT " + m, As: bob, JSON: `{"state_event":"close"}`, Status: 200})
		commitTo(t, s, bob, id, "work", "work.txt", "secret\n", "Pushed while closed")
		s.Check(t, apptest.Call{Do: "PUT " + m, As: bob, JSON: `{"state_event":"reopen"}`, Status: 200})
		approved(`[]`)
		s.Check(t, apptest.Call{Do: "POST " + m + "/approve", As: alice, Status: 201})
		commitTo(t, s, alice, id, "next", "next.txt", "next\n", "Next")
		s.Check(t, apptest.Call{Do: "PUT " + m, As: bob, JSON: `{"target_branch":"next"}`, Status: 200})
		approved(`[]`)
	})
}

// TestApprovalsOfDroppedMerge rebases a merge request whose merge commit undoes a
// commit: the rebase leaves the merge commit out, so that the approved changes are
// not those of the rebased branch.
func TestApprovalsOfDroppedMerge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		r := s.Repository(t, id)
		base := r.Tip("main")
		side := r.Commit(gittest.Commit{Branch: "side", Parents: []string{base}, Changes: []gittest.Change{{Path: "evil.txt", Content: "evil\n"}}})
		work := func(branch string, parents ...string) string {
			change := gittest.Change{Path: branch + ".txt", Content: "work\n"}
			first := r.Commit(gittest.Commit{Branch: branch, Parents: []string{base}, Changes: []gittest.Change{change}})
			if len(parents) > 0 { // keeps the tree of the first parent
				r.Commit(gittest.Commit{Branch: branch, Parents: append([]string{first}, parents...)})
			}
			m := requested(t, s, bob, id, branch, "")
			s.Check(t, apptest.Call{Do: "GET " + m + "/diffs", As: alice, Status: 200, Want: fmt.Sprintf(`[{"new_path":%q}]`, change.Path)})
			s.Check(t, apptest.Call{Do: "POST " + m + "/approve", As: alice, Status: 201})
			return m
		}
		undone, plain := work("undone", side), work("plain")
		commitTo(t, s, alice, id, "main", "main.txt", "main\n", "Main")
		for m, want := range map[string]string{undone: `[]`, plain: `[{"user":{"username":"alice"}}]`} {
			s.Check(t, apptest.Call{Do: "PUT " + m + "/rebase", As: bob, Status: 202})
			becomes(t, s, apptest.Call{Do: "GET " + m + "?include_diverged_commits_count=true", As: bob, Status: 200, Want: `{"diverged_commits_count":0}`})
			becomes(t, s, apptest.Call{Do: "GET " + m + "/approvals", As: alice, Status: 200, Want: `{"approved_by":` + want + `}`})
		}
	})
}

func TestApprovalRules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		eveID, eve := s.User(t, "eve")
		outsiderID, _ := s.User(t, "outsider")
		team := group(t, s, alice, "team", "")
		hidden := group(t, s, root, "hidden", "")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Reporter)
		enlist(t, s, id, eveID, project.Developer)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", team), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, eveID), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", team), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, outsiderID), Status: 201})
		at := fmt.Sprintf("/projects/%d", id)
		rules := at + "/approval_rules"
		m := proposed(t, s, bob, id, "work", "")
		security := made(t, s, alice, "POST "+rules, fmt.Sprintf(`{"name":"security","approvals_required":1,"user_ids":[%d],"usernames":["Alice"],"group_ids":[%d]}`, danID, team))
		one := fmt.Sprintf("%s/%d", rules, security)
		var branch struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: alice, JSON: `{"name":"release"}`, Status: 201}).JSON(t, &branch)
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: alice, JSON: `{"name":"ma*"}`, Status: 201})
		s.Table(t, []apptest.Call{
			{Name: "rule", Do: "GET " + one, As: bob, Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"security","rule_type":"regular","report_type":null,"approvals_required":1,"users":[{"username":"alice"},{"username":"dan"}],
				"groups":[],"contains_hidden_groups":true,"eligible_approvers":[{"username":"alice"},{"username":"dan"},{"username":"eve"}],"applies_to_all_protected_branches":false,"protected_branches":[]}`, security)},
			{Name: "groups", Do: "GET " + one, As: alice, Status: 200, Want: `{"groups":[{"path":"team"}],"contains_hidden_groups":false}`},
			{Name: "same name", Do: "POST " + rules, As: alice, JSON: fmt.Sprintf(`{"name":"security","approvals_required":1,"user_ids":[%d]}`, aliceID), Status: 400, Want: `{"message":{"name":["has already been taken"]}}`},
			{Name: "not a member", Do: "POST " + rules, As: alice, JSON: fmt.Sprintf(`{"name":"x","approvals_required":1,"user_ids":[%d]}`, outsiderID), Status: 400},
			{Name: "unknown name", Do: "POST " + rules, As: alice, JSON: `{"name":"x","approvals_required":1,"usernames":["nobody"]}`, Status: 400},
			{Name: "hidden group", Do: "POST " + rules, As: alice, JSON: fmt.Sprintf(`{"name":"x","approvals_required":1,"group_ids":[%d]}`, hidden), Status: 400},
			{Name: "report", Do: "POST " + rules, As: alice, JSON: `{"name":"x","approvals_required":1,"rule_type":"report_approver","report_type":"code_coverage"}`, Status: 400, Want: `{"error":"report_type is not supported"}`},
			{Name: "too many", Do: "POST " + rules, As: alice, JSON: `{"name":"x","approvals_required":101}`, Status: 400},
			{Name: "no name", Do: "POST " + rules, As: alice, JSON: `{"name":" ","approvals_required":1}`, Status: 400},
			{Name: "unknown branch", Do: "PUT " + one, As: alice, JSON: `{"protected_branch_ids":[999999]}`, Status: 400},
			{Name: "for Maintainers", Do: "PUT " + one, As: bob, JSON: `{"approvals_required":0}`, Status: 403},
			{Name: "waits", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "named user", Do: "GET " + at + fmt.Sprintf("/merge_requests?approver_ids=%d", danID), As: bob, Status: 200, Want: `[{"iid":1}]`},
			{Name: "not named", Do: "GET " + at + fmt.Sprintf("/merge_requests?approver_ids=%d", bobID), As: bob, Status: 200, Want: `[]`},
			{Name: "for other branches", Do: "PUT " + one, As: alice, JSON: fmt.Sprintf(`{"protected_branch_ids":[%d]}`, branch.ID), Status: 200, Want: `{"protected_branches":[{"name":"release"}]}`},
			{Name: "not for main", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "for all protected", Do: "PUT " + one, As: alice, JSON: `{"applies_to_all_protected_branches":true}`, Status: 200, Want: `{"applies_to_all_protected_branches":true,"protected_branches":["<any>","<any>"]}`},
			{Name: "for main", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "a reporter whom a rule names", Do: "POST " + m + "/approve", As: dan, Status: 201, Want: `{"approved":true}`},
			{Name: "state", Do: "GET " + m + "/approval_state", As: dan, Status: 200, Want: `{"rules":[{"name":"security","approved":true,"approved_by":[{"username":"dan"}],"code_owner":false}]}`},
			{Name: "any approver", Do: "POST " + rules, As: alice, JSON: `{"name":"Any name","rule_type":"any_approver","approvals_required":1}`, Status: 201, Want: `{"rule_type":"any_approver","approvals_required":1}`},
			{Name: "config", Do: "GET " + at + "/approvals", As: alice, Status: 200, Want: `{"approvals_before_merge":1}`},
			{Name: "any approver again", Do: "POST " + rules, As: alice, JSON: `{"name":"Another","approvals_required":1}`, Status: 400},
			{Name: "a reporter is not any approver", Do: "GET " + m + "/approvals", As: dan, Status: 200, Want: `{"approved":false,"approvals_required":2,"approvals_left":1}`},
			{Name: "group member", Do: "POST " + m + "/approve", As: eve, Status: 201, Want: `{"approved":true}`},
			{Name: "list", Do: "GET " + rules + "?per_page=1&page=2", As: bob, Status: 200, Want: `[{"name":"Any name"}]`},

			{Name: "own rule", Do: "POST " + m + "/approval_rules", As: bob, JSON: fmt.Sprintf(`{"name":"extra","approvals_required":1,"user_ids":[%d]}`, aliceID), Status: 201,
				Want: `{"name":"extra","rule_type":"regular","source_rule":null,"overridden":false,"users":[{"username":"alice"}]}`},
			{Name: "with those of the project", Do: "GET " + m + "/approval_state", As: bob, Status: 200, Want: `{"approval_rules_overwritten":true,"rules":[
				{"name":"security","source_rule":{"name":"security"},"approved":true},{"name":"Any name","approved":true},{"name":"extra","approved":false}]}`},
			{Name: "waits", Do: "GET " + m, As: alice, Status: 200, Want: `{"detailed_merge_status":"not_approved","approvals_before_merge":1}`},
			{Name: "author cannot be eligible", Do: "POST " + m + "/approval_rules", As: bob, JSON: fmt.Sprintf(`{"name":"self","approvals_required":1,"user_ids":[%d]}`, bobID), Status: 201},
			{Name: "so it is satisfied", Do: "GET " + m + "/approvals", As: bob, Status: 200, Want: `{"approvals_left":1,"invalid_approvers_rules":[{"name":"self"}]}`},
			{Name: "approvals of the merge request", Do: "POST " + m + "/approvals", As: bob, JSON: `{"approvals_required":2}`, Status: 201, Want: `{"approvals_left":2}`},
			{Name: "approved", Do: "POST " + m + "/approve", As: alice, Status: 201, Want: `{"approved":true}`},
			{Name: "reporters may not", Do: "POST " + m + "/approval_rules", As: dan, JSON: `{"name":"x","approvals_required":1}`, Status: 403},
			{Name: "no overriding", Do: "POST " + at + "/approvals", As: alice, JSON: `{"disable_overriding_approvers_per_merge_request":true}`, Status: 201},
			{Name: "own rules do not count", Do: "GET " + m + "/approval_state", As: bob, Status: 200, Want: `{"approval_rules_overwritten":false,"rules":[{"name":"security"},{"name":"Any name"}]}`},
			{Name: "cannot be made", Do: "POST " + m + "/approval_rules", As: alice, JSON: `{"name":"x","approvals_required":1}`, Status: 403},
			{Name: "overriding", Do: "POST " + at + "/approvals", As: alice, JSON: `{"disable_overriding_approvers_per_merge_request":false}`, Status: 201},
			{Name: "new with approvals", Do: "POST " + at + "/merge_requests", As: bob, JSON: `{"source_branch":"work","target_branch":"release","title":"x"}`, Status: 400},

			{Name: "less", Do: "PUT " + one, As: alice, JSON: `{"name":"safety","user_ids":[],"group_ids":[],"approvals_required":0}`, Status: 200, Want: `{"name":"safety","users":[],"groups":[]}`},
			{Name: "audited", Do: "GET " + at + "/audit_events", As: alice, Status: 200},
			{Name: "deleted", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "gone", Do: "GET " + one, As: alice, Status: 404},
		})
		var own []struct {
			ID       int64
			Name     string
			RuleType string `json:"rule_type"`
		}
		s.Check(t, apptest.Call{Do: "GET " + m + "/approval_rules", As: bob, Status: 200}).JSON(t, &own)
		if len(own) != 4 {
			t.Fatalf("rules: %+v", own)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/approval_rules/%d", m, own[0].ID), As: bob, JSON: `{"approvals_required":0}`, Status: 200, Want: `{"approvals_required":0}`})
		for _, r := range own {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/approval_rules/%d", m, r.ID), As: bob, Status: 200, Want: fmt.Sprintf(`{"name":%q}`, r.Name)})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/approval_rules/%d", m, r.ID), As: bob, Status: 204})
		}
		s.Check(t, apptest.Call{Do: "GET " + m + "/approval_state", As: bob, Status: 200, Want: `{"approval_rules_overwritten":false}`})
		next := proposed(t, s, bob, id, "next", `,"approvals_before_merge":3`)
		s.Check(t, apptest.Call{Do: "GET " + next, As: bob, Status: 200, Want: `{"approvals_before_merge":3}`})
	})
}

// TestApprovalAutoMerge checks that the last approval triggers auto-merge.
func TestApprovalAutoMerge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", `,"approvals_before_merge":1`)
		enlist(t, s, id, bobID, project.Developer)
		m := proposed(t, s, bob, id, "work", "")
		s.Table(t, []apptest.Call{
			{Name: "refused", Do: "PUT " + m + "/merge", As: alice, Status: 405},
			{Name: "later", Do: "PUT " + m + "/merge", As: alice, JSON: `{"auto_merge":true}`, Status: 200, Want: `{"state":"opened","merge_when_pipeline_succeeds":true,"detailed_merge_status":"not_approved"}`},
			{Name: "approved", Do: "POST " + m + "/approve", As: alice, Status: 201},
		})
		becomes(t, s, apptest.Call{Do: "GET " + m, As: alice, Status: 200, Want: `{"state":"merged","merge_user":{"username":"alice"}}`})
	})
}

func TestCodeOwners(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		eveID, eve := s.User(t, "eve")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Developer)
		enlist(t, s, id, eveID, project.Maintainer)
		at := fmt.Sprintf("/projects/%d", id)
		commitTo(t, s, alice, id, "main", "CODEOWNERS", "* @@maintainers\n*.md @dan\n[Secrets][2]\nsecret.txt @dan eve@example.org @nobody\n^[Texts]\n*.txt @alice\n", "Add owners")
		m := func(branch, path string) string {
			commitTo(t, s, bob, id, branch, path, branch+"\n", "Add "+path)
			return requested(t, s, bob, id, branch, "")
		}
		guide, text, secret := m("guide", "guide.md"), m("text", "text.txt"), m("secret", "secret.txt")
		s.Table(t, []apptest.Call{
			{Name: "optional", Do: "GET " + guide + "/approval_state", As: bob, Status: 200, Want: `{"rules":[{"name":"*.md","rule_type":"code_owner","section":"codeowners","code_owner":true,"approvals_required":0,"approved":true,"eligible_approvers":[{"username":"dan"}]}]}`},
			{Name: "mergeable", Do: "GET " + guide, As: bob, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "required", Do: "POST " + at + "/protected_branches", As: alice, JSON: fmt.Sprintf(`{"name":"main","code_owner_approval_required":true,"allowed_to_push":[{"user_id":%d}]}`, aliceID), Status: 201},
			{Name: "blocked", Do: "GET " + guide, As: bob, Status: 200, Want: `{"detailed_merge_status":"not_approved"}`},
			{Name: "another owner", Do: "POST " + guide + "/approve", As: eve, Status: 201, Want: `{"approved":false,"approvals_required":1,"approvals_left":1,"approval_rules_left":[{"name":"*.md","rule_type":"code_owner"}]}`},
			{Name: "blocked", Do: "PUT " + guide + "/merge", As: alice, Status: 405},
			{Name: "the owner", Do: "POST " + guide + "/approve", As: dan, Status: 201, Want: `{"approved":true}`},
			{Name: "mergeable", Do: "GET " + guide, As: bob, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "rules", Do: "GET " + guide + "/approval_rules", As: bob, Status: 200, Want: `[{"name":"*.md","rule_type":"code_owner"}]`},

			{Name: "roles and optional sections", Do: "GET " + text + "/approval_state", As: bob, Status: 200, Want: `{"approval_rules_overwritten":false,"rules":[
				{"name":"*","approvals_required":1,"eligible_approvers":[{"username":"eve"}],"approved":false},{"name":"*.txt","section":"Texts","approvals_required":0,"approved":true}]}`},
			{Name: "two of a section", Do: "GET " + secret + "/approval_state", As: bob, Status: 200, Want: `{"rules":[{"name":"*"},
				{"name":"secret.txt","section":"Secrets","approvals_required":2,"eligible_approvers":[{"username":"dan"},{"username":"eve"}]},{"name":"*.txt"}]}`},
			{Name: "own rules do not replace them", Do: "POST " + secret + "/approval_rules", As: bob, JSON: `{"name":"x","approvals_required":0}`, Status: 201},
			{Name: "still", Do: "GET " + secret + "/approval_state", As: bob, Status: 200, Want: `{"approval_rules_overwritten":true,"rules":[{"name":"x"},{"name":"*"},{"name":"secret.txt"},{"name":"*.txt"}]}`},
		})
		var rules []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + guide + "/approval_rules", As: bob, Status: 200}).JSON(t, &rules)
		one := fmt.Sprintf("%s/approval_rules/%d", guide, rules[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "cannot be changed", Do: "PUT " + one, As: bob, JSON: `{"approvals_required":0}`, Status: 403},
			{Name: "cannot be deleted", Do: "DELETE " + one, As: bob, Status: 403},
		})

		commitTo(t, s, alice, id, "main", "CODEOWNERS", "*.md @eve\n", "Other owners")
		s.Table(t, []apptest.Call{
			{Name: "other owners", Do: "GET " + guide + "/approval_state", As: bob, Status: 200, Want: `{"rules":[{"name":"*.md","eligible_approvers":[{"username":"eve"}],"approved_by":[{"username":"eve"}],"approved":true}]}`},
			{Name: "no owners", Do: "GET " + text + "/approval_state", As: bob, Status: 200, Want: `{"rules":[]}`},
			{Name: "selective", Do: "POST " + at + "/approvals", As: alice, JSON: `{"reset_approvals_on_push":false,"selective_code_owner_removals":true}`, Status: 201},
		})
		commitTo(t, s, bob, id, "guide", "other.c", "other\n", "Another file")
		s.Check(t, apptest.Call{Name: "kept", Do: "GET " + guide + "/approvals", As: bob, Status: 200, Want: `{"approved_by":[{"user":{"username":"eve"}},{"user":{"username":"dan"}}]}`})
		commitTo(t, s, bob, id, "guide", "guide.md", "changed\n", "The file of the owner")
		s.Check(t, apptest.Call{Name: "removed", Do: "GET " + guide + "/approvals", As: bob, Status: 200, Want: `{"approved_by":[{"user":{"username":"dan"}}],"approved":false}`})
	})
}

// TestApprovalsOfAnotherHead checks that approvals are reset when the head is set to
// the commit of the source branch without a push: it was approved with another one.
func TestApprovalsOfAnotherHead(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		danID, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, danID, project.Developer)
		m := proposed(t, s, alice, id, "work", "")
		var first struct{ SHA string }
		s.Check(t, apptest.Call{Do: "GET " + m, As: alice, Status: 200}).JSON(t, &first)
		idle := func() {
			t.Helper()
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		idle()
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/commits", id), As: alice, Status: 201,
			JSON: `{"branch":"work","start_branch":"main","force":true,"commit_message":"Two","actions":[{"action":"create","file_path":"two","content":"2\n"}]}`})
		idle()
		s.Table(t, []apptest.Call{
			{Do: "POST " + m + "/approve", As: dan, Status: 201, Want: `{"approved_by":[{"user":{"username":"dan"}}]}`},
			{Do: "PUT " + m, As: alice, JSON: `{"state_event":"close"}`, Status: 200},
		})
		idle()
		if err := s.Queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "PUT " + m, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200})
		// Like a push while the merge request was closed.
		s.Repository(t, id).Git("update-ref", "refs/heads/work", first.SHA)
		if err := s.Queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		idle()
		s.Table(t, []apptest.Call{
			{Do: "GET " + m, As: alice, Status: 200, Want: `{"sha":"` + first.SHA + `"}`},
			{Do: "GET " + m + "/approvals", As: alice, Status: 200, Want: `{"approved_by":[]}`},
		})
	})
}

// TestCollaborationOfFormerMember checks that a merge request from a project into a
// fork gives no access to the project when its author has none.
func TestCollaborationOfFormerMember(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		eveID, eve := s.User(t, "eve")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, eveID, project.Developer)
		var fork struct{ ID int64 }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/fork", id), As: eve, Status: 201}).JSON(t, &fork)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("/projects/%d", id)
		commit := func(name string, status int) apptest.Call {
			return apptest.Call{Name: name, Do: "POST " + at + "/repository/commits", As: eve, Status: status,
				JSON: fmt.Sprintf(`{"branch":"work","commit_message":"Change","actions":[{"action":"create","file_path":%q,"content":"x"}]}`, name)}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/repository/branches?branch=work&ref=main", As: alice, Status: 201},
			commit("member", 201),
			{Do: "POST " + at + "/merge_requests", As: eve, Status: 201,
				JSON: fmt.Sprintf(`{"title":"Take it","source_branch":"work","target_project_id":%d,"target_branch":"main","allow_collaboration":true}`, fork.ID)},
			{Do: fmt.Sprintf("DELETE %s/members/%d", at, eveID), As: alice, Status: 204},
			commit("former", 403),
		})
	})
}

// TestApprovalWithoutPassword checks that approvals without the password that the
// project requires do not count as failed sign-ins.
func TestApprovalWithoutPassword(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		m := proposed(t, s, alice, id, "work", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/approvals", id), As: alice, JSON: `{"require_password_to_approve":true}`, Status: 201})
		for range 25 {
			s.Check(t, apptest.Call{Do: "POST " + m + "/approve", As: bob, Status: 401})
		}
		answer := string(s.Check(t, apptest.Call{Do: "POST " + m + "/notes", As: bob, JSON: `{"body":"/approve"}`, Status: 400}).Body)
		if want := "This project requires your password to approve. Use the Approve button of the merge request."; !strings.Contains(answer, want) {
			t.Errorf("%s: want %q", answer, want)
		}
		s.Table(t, []apptest.Call{
			{Name: "not approved", Do: "GET " + m + "/approvals", As: bob, Status: 200, Want: `{"approved_by":[]}`},
			{Name: "not locked", Do: "POST " + m + "/approve", As: bob, JSON: `{"approval_password":"a good password"}`, Status: 201},
		})
	})
}
