package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientApprovals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		ada, bob := newUser(t, root, "ada"), newUser(t, root, "bob")
		self, other := s.client(t, newToken(t, root, ada.ID, "api").Token), s.client(t, newToken(t, root, bob.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("approvals"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
		ask(self.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: bob.ID, AccessLevel: new(gitlab.DeveloperPermissions)})).done(t, http.StatusCreated)
		config := ask(self.Projects.ChangeApprovalConfiguration(p.ID, &gitlab.ChangeApprovalConfigurationOptions{MergeRequestsDisableCommittersApproval: new(true)})).done(t, http.StatusCreated)
		same(t, "configuration", []any{config.ResetApprovalsOnPush, config.MergeRequestsAuthorApproval, config.MergeRequestsDisableCommittersApproval, len(config.Approvers)}, []any{true, false, true, 0})
		settings := ask(self.MergeRequestApprovalSettings.UpdateProjectMergeRequestApprovalSettings(p.ID, &gitlab.UpdateProjectMergeRequestApprovalSettingsOptions{AllowOverridesToApproverListPerMergeRequest: new(true)})).ok(t)
		same(t, "settings", []any{settings.AllowAuthorApproval.Value, settings.AllowCommitterApproval.Value, settings.RetainApprovalsOnPush.Value, settings.RetainApprovalsOnPush.Locked}, []any{false, false, false, false})
		same(t, "settings again", ask(self.MergeRequestApprovalSettings.GetProjectMergeRequestApprovalSettings(p.ID)).ok(t), settings)
		rule := ask(self.Projects.CreateProjectApprovalRule(p.ID, &gitlab.CreateProjectLevelRuleOptions{Name: new("review"), ApprovalsRequired: new(int64(1)), UserIDs: &[]int64{ada.ID}})).done(t, http.StatusCreated)
		same(t, "rule", []any{rule.Name, rule.RuleType, rule.ApprovalsRequired, rule.Users[0].Username, len(rule.Groups)}, []any{"review", "regular", int64(1), "ada", 0})
		rule = ask(self.Projects.UpdateProjectApprovalRule(p.ID, rule.ID, &gitlab.UpdateProjectLevelRuleOptions{Name: new("checks")})).ok(t)
		list := ask(self.Projects.GetProjectApprovalRules(p.ID, nil)).ok(t)
		same(t, "rules", []any{len(list), list[0].Name, list[0].EligibleApprovers[0].Username}, []any{1, "checks", "ada"})
		same(t, "one rule", ask(self.Projects.GetProjectApprovalRule(p.ID, rule.ID)).ok(t).Name, "checks")

		ask(other.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{
			Branch: new("work"), StartBranch: new("main"), CommitMessage: new("Work"),
			Actions: []*gitlab.CommitActionOptions{{Action: new(gitlab.FileCreate), FilePath: new("work.txt"), Content: new("work\n")}},
		})).done(t, http.StatusCreated)
		m := ask(other.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{SourceBranch: new("work"), TargetBranch: new("main"), Title: new("Work")})).done(t, http.StatusCreated)
		same(t, "status", m.DetailedMergeStatus, "not_approved")
		ask(other.MergeRequestApprovals.ApproveMergeRequest(p.ID, m.IID, nil)).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
		given := ask(self.MergeRequestApprovals.ApproveMergeRequest(p.ID, m.IID, &gitlab.ApproveMergeRequestOptions{SHA: &m.SHA})).done(t, http.StatusCreated)
		same(t, "approved", []any{given.Approved, given.ApprovalsRequired, given.ApprovalsLeft, given.ApprovedBy[0].User.Username, given.UserHasApproved}, []any{true, int64(1), int64(0), "ada", true})
		state := ask(self.MergeRequestApprovals.GetApprovalState(p.ID, m.IID)).ok(t)
		same(t, "state", []any{state.ApprovalRulesOverwritten, len(state.Rules), state.Rules[0].Approved, state.Rules[0].ApprovedBy[0].Username}, []any{false, 1, true, "ada"})
		own := ask(other.MergeRequestApprovals.CreateApprovalRule(p.ID, m.IID, &gitlab.CreateMergeRequestApprovalRuleOptions{Name: new("more"), ApprovalsRequired: new(int64(2)), ApprovalProjectRuleID: &rule.ID})).done(t, http.StatusCreated)
		same(t, "own rule", []any{own.Name, own.ApprovalsRequired, own.SourceRule.ID}, []any{"checks", int64(2), rule.ID})
		own = ask(other.MergeRequestApprovals.UpdateApprovalRule(p.ID, m.IID, own.ID, &gitlab.UpdateMergeRequestApprovalRuleOptions{ApprovalsRequired: new(int64(1))})).ok(t)
		same(t, "own rules", len(ask(self.MergeRequestApprovals.GetApprovalRules(p.ID, m.IID)).ok(t)), 1)
		if _, err := other.MergeRequestApprovals.DeleteApprovalRule(p.ID, m.IID, own.ID); err != nil {
			t.Error(err)
		}
		found := ask(self.MergeRequests.ListProjectMergeRequests(p.ID, &gitlab.ListProjectMergeRequestsOptions{ApprovedByIDs: gitlab.ApproverIDs([]int64{ada.ID})})).ok(t)
		same(t, "approved by", len(found), 1)
		if _, err := self.MergeRequestApprovals.UnapproveMergeRequest(p.ID, m.IID); err != nil {
			t.Error(err)
		}
		same(t, "revoked", ask(self.MergeRequestApprovals.GetConfiguration(p.ID, m.IID)).ok(t).Approved, false)
		if _, err := self.Projects.DeleteProjectApprovalRule(p.ID, rule.ID); err != nil {
			t.Error(err)
		}
		same(t, "mergeable", ask(self.MergeRequests.GetMergeRequest(p.ID, m.IID, nil)).ok(t).DetailedMergeStatus, "mergeable")
	})
}
