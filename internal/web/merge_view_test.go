package web

import (
	"time"

	"svc/internal/ci"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// mergeContents are the pages of merge requests in all their states.
func mergeContents() []content {
	now := time.Unix(1e9, 0)
	ada := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	in := &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", DefaultBranch: "main"}
	h := planHead{P: &head{Project: in, Merges: true, Pending: "2", Builds: true, SignedIn: true}, Place: project.Place{Ref: "g/p"}, Base: "/g/p/-/", Part: "merges", Plans: true, SignedIn: true, Adds: true}
	sure := true
	m := &merge.MergeRequest{
		Issuable: plan.Issuable{
			IID: 1, ProjectPath: "g/p", Title: "T", Description: "d", State: merge.Opened, Author: ada, Notes: 1, Locked: &sure, CreatedAt: now, Subscribed: true,
			Assignees: []*user.User{ada}, Reviewers: []*user.User{ada}, Labels: []*plan.Label{{Name: "bug", Color: "#ff0000"}}, Milestone: &plan.Milestone{Title: "1.0", Path: "g/p"},
		},
		SourceBranch: "a", TargetBranch: "main", AutoMergeBy: ada, Status: merge.Status{Git: "cannot_be_merged"}, Version: &merge.Version{Head: "0123456789", Files: 1},
	}
	merged := &merge.MergeRequest{Issuable: plan.Issuable{IID: 2, ProjectPath: "g/p", State: merge.Merged, CreatedAt: now}, MergedBy: ada, MergedAt: &now, MergeCommit: "0123456789", SquashCommit: "0123456789"}
	closed := &merge.MergeRequest{Issuable: plan.Issuable{IID: 3, ProjectPath: "g/p", State: merge.Closed, ClosedBy: ada, ClosedAt: &now, CreatedAt: now}}
	draft := &merge.MergeRequest{Issuable: plan.Issuable{IID: 4, ProjectPath: "g/p", State: merge.Opened, CreatedAt: now}, Draft: true}
	rows := []mergeRow{newMergeRow(m, true), newMergeRow(merged, false), newMergeRow(closed, false), newMergeRow(draft, false)}
	commit := &git.Commit{ID: "0123456789", Title: "t", Author: git.Signature{Name: "Ada", When: now}, Committer: git.Signature{When: now}}
	bad := form{Errors: map[string][]string{"title": {"is wrong"}, "target_branch": {"is wrong"}}, Error: "no"}
	query := issuableQuery{Merges: true, State: "opened", Scope: "created_by_me", Draft: "yes"}
	page := func(of mergeRow, tab string, b mergeBox) mergePage {
		return mergePage{issuableView: issuableView{planHead: h, Edits: true, Deletes: true, Tasks: 2, Done: 1, Participants: []*user.User{ada}}, mergeRow: of, Shows: tab, Source: in, Box: b}
	}
	over := page(rows[0], "overview", mergeBox{Kind: "ok", Head: "h", Text: "t", CI: &ciStatus{Status: "success", URL: "/x"}, Merges: true, Auto: true, Waits: true, Cancels: true, Fault: "f", Squash: "choice", Removes: true})
	rule := &merge.ApprovalRule{ID: 1, Type: merge.CodeOwner, Name: "*.go", Section: "S", Required: 1}
	states := []approvalRow{{RuleState: &merge.RuleState{ApprovalRule: rule, ApprovedBy: []*user.User{ada}, Approved: true}, Shown: []string{"Ada"}, More: 2}}
	over.Approvals = &approvalBox{Approvals: &merge.Approvals{CanApprove: true, CanEdit: true, Password: true, Given: []merge.Approval{{User: ada}}}, Head: "h", Kind: "wait", Rows: states, Open: true}
	over.Closes = []issueRow{{Issue: &plan.Issue{Issuable: plan.Issuable{Title: "i"}}, Path: "/x", Ref: "#1"}}
	over.Needs, over.Blocks = []dependencyRow{{1, &rows[3]}, {2, nil}}, []dependencyRow{{3, &rows[1]}, {4, nil}}
	commits, runs, diff := page(rows[0], "commits", mergeBox{}), page(rows[0], "pipelines", mergeBox{}), page(rows[0], "changes", mergeBox{})
	commits.Commits, commits.Count, commits.Context = days([]byline{{Commit: commit, By: ada}}), 1, []byline{{Commit: commit, By: ada}, {Commit: commit}}
	runs.Pipelines = []mergePipeline{{&ci.Pipeline{ID: 1, SHA: "0123456789", CreatedAt: now}, "g/p"}}
	diff.Versions, diff.Shown = []*merge.Version{{ID: 2, Head: "0123456789"}, {ID: 1, Head: "0123456789"}}, &merge.Version{ID: 1}
	goals, boxes := []option{{"0", "None"}}, []choice{{Value: "1", Label: "x", On: true}}
	return []content{
		mergesPage{issuableList: issuableList{planHead: h, Query: query, Labels: []string{"bug"}, Milestones: []string{"1.0"}}, Rows: rows}, mergesPage{issuableList: issuableList{Own: true, Query: query}},
		mergesPage{issuableList: issuableList{planHead: h, Query: issuableQuery{Merges: true, State: "closed"}, Counts: plan.Counts{All: 1}}}, mergesPage{issuableList: issuableList{planHead: h}},
		mergeRulesPage{planHead: h, ruleEditor: someRules(goals), Path: "/x", Ref: "!1", Title: "t", Overwritten: true}, mergeRulesPage{planHead: h},
		over, commits, runs, diff, page(rows[3], "pipelines", mergeBox{}), page(rows[3], "commits", mergeBox{}),
		page(rows[0], "overview", mergeBox{Kind: "bad", Squash: "always", Merges: true}), page(rows[1], "overview", mergeBox{Kind: "done"}),
		page(rows[2], "overview", mergeBox{Kind: "warn", Rebases: true}), page(rows[3], "overview", mergeBox{Kind: "wait", Again: true, Ready: true}),
		mergeForm{planForm: planForm{planHead: h, Form: bad}, Asks: true, Branches: []string{"main"}, Targets: []option{{"1", "g/p"}, {"2", "h/p"}}},
		mergeForm{planForm: planForm{planHead: h, Form: filled("source_branch", "a", "target_branch", "main"), Chooses: true, Labels: boxes, Assignees: boxes, Reviewers: boxes, Goals: goals, Preview: "<p>x</p>"},
			Into: in, Targets: []option{{"1", "g/p"}, {"2", "h/p"}}, Squashes: true, Collaborate: true, Commits: days([]byline{{Commit: commit}}), Count: 1, Files: 1},
		mergeForm{planForm: planForm{planHead: h, Form: filled()}}, mergeForm{planForm: planForm{planHead: h, IID: 1, Form: bad}, Branches: []string{"main"}},
		partPage{planHead: h, List: option{"merge_requests", "Merge requests"}, Ref: "!1", Path: "/a/b/-/merge_requests/1", Which: "reviewers", Choices: boxes}, partPage{planHead: h, List: option{"merge_requests", "Merge requests"}, Ref: "!1", Path: "/a/b/-/merge_requests/1", Which: "milestone", Goals: goals, Form: bad},
		partPage{planHead: h, List: option{"merge_requests", "Merge requests"}, Ref: "!1", Path: "/a/b/-/merge_requests/1", Which: "labels"}, partPage{planHead: h, List: option{"merge_requests", "Merge requests"}, Ref: "!1", Path: "/a/b/-/merge_requests/1", Which: "assignees"},
		conflictsPage{planHead: h, Path: "/a/b/-/merge_requests/1", Form: bad, ConflictSet: &merge.ConflictSet{Request: m, Head: "0123456789", Target: "0123456789"}, Shown: []conflictView{
			{ConflictFile: merge.ConflictFile{Path: "a.txt"}, Parts: []conflictPart{{Name: "0.0", Chosen: "ours", Ours: "x", Theirs: "y"}, {Lines: []string{"z"}, Left: 1}}},
			{ConflictFile: merge.ConflictFile{Path: "b.txt"}, Number: 1, Edits: true, Text: "t"},
		}},
		conflictsPage{planHead: h, Path: "/a/b/-/merge_requests/1", ConflictSet: &merge.ConflictSet{Request: m, Reason: "A file is too large.", Files: []merge.ConflictFile{{Path: "a", Reason: "binary"}}}},
	}
}
