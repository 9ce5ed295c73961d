package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientMerge(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("merge"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
		ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("It breaks")})).done(t, http.StatusCreated)
		c := ask(self.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{
			Branch: new("work"), StartBranch: new("main"), CommitMessage: new("Work\n\nFixes #1"),
			Actions: []*gitlab.CommitActionOptions{{Action: new(gitlab.FileCreate), FilePath: new("work.txt"), Content: new("work\nand\nmore\n")}},
		})).done(t, http.StatusCreated)
		m := ask(self.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{
			SourceBranch: new("work"), TargetBranch: new("main"), Title: new("Draft: Work"), Labels: &gitlab.LabelOptions{"bug"},
			AssigneeID: &u.ID, ReviewerIDs: &[]int64{u.ID}, RemoveSourceBranch: new(true),
		})).done(t, http.StatusCreated)
		same(t, "made", []any{m.IID, m.State, m.Draft, m.SHA, m.Labels, m.Assignee.Username, m.Reviewers[0].Username, m.DetailedMergeStatus, m.ChangesCount, m.DiffRefs.HeadSha, m.References.Full},
			[]any{int64(1), "opened", true, c.ID, gitlab.Labels{"bug"}, "ada", "ada", "draft_status", "1", c.ID, "ada/merge!1"})
		recent(t, "created_at", m.CreatedAt)
		ask(self.MergeRequests.AcceptMergeRequest(p.ID, m.IID, &gitlab.AcceptMergeRequestOptions{})).refused(t, http.StatusMethodNotAllowed, "{message: 405 Method Not Allowed}")
		m = ask(self.MergeRequests.UpdateMergeRequest(p.ID, m.IID, &gitlab.UpdateMergeRequestOptions{Title: new("Work"), Description: new("As it was said")})).ok(t)
		same(t, "ready", []any{m.Draft, m.DetailedMergeStatus, m.HasConflicts}, []any{false, "mergeable", false})
		list := ask(self.MergeRequests.ListProjectMergeRequests(p.ID, &gitlab.ListProjectMergeRequestsOptions{State: new("opened"), SourceBranch: new("work"), Labels: &gitlab.LabelOptions{"bug"}})).ok(t)
		if len(list) != 1 || list[0].IID != m.IID {
			t.Errorf("list: %+v", list)
		}
		diffs := ask(self.MergeRequests.ListMergeRequestDiffs(p.ID, m.IID, nil)).ok(t)
		if len(diffs) != 1 || diffs[0].NewPath != "work.txt" || !diffs[0].NewFile {
			t.Errorf("diffs: %+v", diffs)
		}
		commits := ask(self.MergeRequests.GetMergeRequestCommits(p.ID, m.IID, nil)).ok(t)
		same(t, "commits", []any{len(commits), commits[0].ID}, []any{1, c.ID})
		versions := ask(self.MergeRequests.GetMergeRequestDiffVersions(p.ID, m.IID, nil)).ok(t)
		same(t, "versions", []any{len(versions), versions[0].HeadCommitSHA}, []any{1, c.ID})
		thread := ask(self.Discussions.CreateMergeRequestDiscussion(p.ID, m.IID, &gitlab.CreateMergeRequestDiscussionOptions{Body: new("All of it?"), Position: &gitlab.PositionOptions{
			BaseSHA: &m.DiffRefs.BaseSha, StartSHA: &m.DiffRefs.StartSha, HeadSHA: &m.DiffRefs.HeadSha, PositionType: new("text"), OldPath: new("work.txt"), NewPath: new("work.txt"), NewLine: new(int64(3)),
			LineRange: &gitlab.LineRangeOptions{Start: &gitlab.LinePositionOptions{Type: new("new"), NewLine: new(int64(1))}, End: &gitlab.LinePositionOptions{Type: new("new"), NewLine: new(int64(3))}},
		}})).done(t, http.StatusCreated)
		lines := thread.Notes[0].Position.LineRange
		same(t, "lines", []any{lines.StartRange.Type, lines.StartRange.NewLine, lines.EndRange.NewLine, lines.EndRange.LineCode != ""}, []any{"new", int64(1), int64(3), true})
		closes := ask(self.MergeRequests.GetIssuesClosedOnMerge(p.ID, m.IID, nil)).ok(t)
		same(t, "closes", []any{len(closes), closes[0].IID}, []any{1, int64(1)})
		ask(self.MergeRequests.AcceptMergeRequest(p.ID, m.IID, &gitlab.AcceptMergeRequestOptions{SHA: new("0000000000000000000000000000000000000000")})).refused(t, http.StatusConflict, "{message: SHA does not match HEAD of source branch: "+c.ID+"}")
		m = ask(self.MergeRequests.AcceptMergeRequest(p.ID, m.IID, &gitlab.AcceptMergeRequestOptions{SHA: &c.ID, Squash: new(true), SquashCommitMessage: new("One")})).ok(t)
		same(t, "merged", []any{m.State, m.MergeUser.Username, m.MergeCommitSHA != "", m.SquashCommitSHA != ""}, []any{"merged", "ada", true, true})
		waitFor(t, "the issue is closed", func() bool { return ask(self.Issues.GetIssue(p.ID, 1)).ok(t).State == "closed" })
		ask(self.MergeRequests.GetMergeRequest(p.ID, 99, nil)).missing(t)
	})
}

// TestGoClientMergeDependencies makes a merge request depend on another one, adds a
// context commit to it, and lists the merge requests of deployments.
func TestGoClientMergeDependencies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("merge"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
		open := func(branch string) *gitlab.MergeRequest {
			ask(self.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{
				Branch: &branch, StartBranch: new("main"), CommitMessage: new("Add " + branch),
				Actions: []*gitlab.CommitActionOptions{{Action: new(gitlab.FileCreate), FilePath: new(branch), Content: new("x\n")}},
			})).done(t, http.StatusCreated)
			return ask(self.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{SourceBranch: &branch, TargetBranch: new("main"), Title: &branch})).done(t, http.StatusCreated)
		}
		deploy := func() *gitlab.Deployment {
			tip := ask(self.Branches.GetBranch(p.ID, "main")).ok(t).Commit.ID
			return ask(self.Deployments.CreateProjectDeployment(p.ID, &gitlab.CreateProjectDeploymentOptions{
				Environment: new("production"), SHA: &tip, Ref: new("main"), Tag: new(false), Status: new(gitlab.DeploymentStatusSuccess),
			})).done(t, http.StatusCreated)
		}
		first := deploy()
		lib, use := open("lib"), open("use")

		made := ask(self.MergeRequests.CreateMergeRequestDependency(p.ID, use.IID, gitlab.CreateMergeRequestDependencyOptions{BlockingMergeRequestID: &lib.ID})).done(t, http.StatusCreated)
		same(t, "made", []any{made.ProjectID, made.BlockingMergeRequest.ID, made.BlockingMergeRequest.Iid, made.BlockingMergeRequest.State}, []any{p.ID, lib.ID, lib.IID, "opened"})
		list := ask(self.MergeRequests.GetMergeRequestDependencies(p.ID, use.IID)).ok(t)
		same(t, "list", []any{len(list), list[0].ID}, []any{1, made.ID})
		same(t, "blocked", ask(self.MergeRequests.GetMergeRequest(p.ID, use.IID, nil)).ok(t).DetailedMergeStatus, "merge_request_blocked")
		ask(self.MergeRequests.AcceptMergeRequest(p.ID, use.IID, &gitlab.AcceptMergeRequestOptions{})).refused(t, http.StatusMethodNotAllowed, "{message: 405 Method Not Allowed}")
		ask(self.MergeRequests.CreateMergeRequestDependency(p.ID, use.IID, gitlab.CreateMergeRequestDependencyOptions{BlockingMergeRequestID: &lib.ID})).refused(t, http.StatusConflict, "{message: Block already exists}")
		if _, err := self.MergeRequests.DeleteMergeRequestDependency(p.ID, use.IID, made.ID); err != nil {
			t.Error(err)
		}
		same(t, "deleted", len(ask(self.MergeRequests.GetMergeRequestDependencies(p.ID, use.IID)).ok(t)), 0)
		events := ask(self.AuditEvents.ListProjectAuditEvents(p.ID, nil)).ok(t)
		same(t, "audit events", []any{events[0].EventName, events[1].EventName}, []any{"merge_request_dependency_deleted", "merge_request_dependency_created"})

		base := ask(self.Branches.GetBranch(p.ID, "main")).ok(t).Commit.ID
		added := ask(self.MergeRequestContextCommits.CreateMergeRequestContextCommits(p.ID, use.IID, &gitlab.CreateMergeRequestContextCommitsOptions{Commits: &[]string{base}})).done(t, http.StatusCreated)
		same(t, "context commits added", []any{len(added), added[0].ID}, []any{1, base})
		same(t, "context commits", len(ask(self.MergeRequestContextCommits.ListMergeRequestContextCommits(p.ID, use.IID)).ok(t)), 1)
		if _, err := self.MergeRequestContextCommits.DeleteMergeRequestContextCommits(p.ID, use.IID, &gitlab.DeleteMergeRequestContextCommitsOptions{Commits: &[]string{base}}); err != nil {
			t.Error(err)
		}
		same(t, "context commits left", len(ask(self.MergeRequestContextCommits.ListMergeRequestContextCommits(p.ID, use.IID)).ok(t)), 0)

		ask(self.MergeRequests.AcceptMergeRequest(p.ID, lib.IID, &gitlab.AcceptMergeRequestOptions{})).ok(t)
		second := deploy()
		for deployment, want := range map[int64]int64{first.ID: lib.IID, second.ID: lib.IID} {
			got := ask(self.DeploymentMergeRequests.ListDeploymentMergeRequests(p.ID, deployment, &gitlab.ListMergeRequestsOptions{State: new("merged")})).ok(t)
			if len(got) != 1 || got[0].IID != want {
				t.Errorf("merge requests of deployment %d: %+v", deployment, got)
			}
		}
	})
}
