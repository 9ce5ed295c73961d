package web

import (
	"time"

	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// planContents are the pages of issues, labels, milestones and boards, with data and
// empty.
func planContents() []content {
	now := time.Unix(1e9, 0)
	ada := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	in := &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", DefaultBranch: "main", Namespace: project.Namespace{Name: "G", FullPath: "g"}}
	group := &groupHead{Group: &project.Namespace{ID: 2, Name: "G", FullPath: "g"}}
	at := func(part string) planHead {
		return planHead{P: &head{Project: in, Issues: true, Open: "2", SignedIn: true}, Place: project.Place{Ref: "g/p"}, Base: "/g/p/-/", Part: part, Plans: true, SignedIn: true, Adds: true}
	}
	above := planHead{G: group, Place: project.Place{Ref: "g", Group: true}, Base: "/groups/g/-/", Part: "issues"}
	yes, label := true, &plan.Label{ID: 1, Name: "bug", Color: "#ff0000", Description: "wrong"}
	goal := &plan.Milestone{ID: 1, IID: 1, Title: "1.0", Path: "g/p", DueDate: "2026-12-01"}
	issue := &plan.Issue{
		Issuable: plan.Issuable{
			ID: 1, IID: 1, ProjectPath: "g/p", Title: "T", Description: "d", State: plan.Opened, Author: ada, Assignees: []*user.User{ada}, Labels: []*plan.Label{label},
			Milestone: goal, Locked: &yes, Notes: 2, CreatedAt: now, UpdatedAt: now,
		},
		Confidential: true, DueDate: "2026-12-01",
	}
	done := &plan.Issue{Issuable: plan.Issuable{ID: 2, IID: 2, ProjectPath: "g/p", Title: "U", State: plan.Closed, Author: ada, ClosedBy: ada, ClosedAt: &now, CreatedAt: now}}
	rows := []issueRow{{Issue: issue, Path: "/g/p/-/issues/1", Ref: "#1"}, {Issue: done, Path: "/g/p/-/issues/2", Ref: "#2"}}
	requests := []mergeRow{newMergeRow(&merge.MergeRequest{Issuable: plan.Issuable{IID: 1, ProjectPath: "g/p", Title: "T", State: merge.Opened, Author: ada, CreatedAt: now}}, false)}
	comments := discussions{At: "/g/p/-/issues/1", Base: "/g/p/-/", Noun: "issue", May: true, Settles: true, Insider: true, Locked: true, Event: "close"}
	bad := form{Errors: map[string][]string{"title": {"is wrong"}, "name": {"is wrong"}}, Error: "no"}
	boxes, goals := []choice{{Value: "1", Label: "x", On: true, Chip: label}, {Value: "2", Label: "Ada", User: ada}}, []option{{"0", "None"}, {"1", "1.0"}}
	development := &board.Board{ID: 1, Name: "Development", Lists: []*board.List{{ID: 1, Label: label}}}
	columns := []columnView{{Column: &board.Column{}, Cards: rows, Name: "Open", At: "/x", Base: "/y", Adds: "/z", Next: "/m", Plans: true}, {Column: &board.Column{}, Name: "Closed"}}
	reached := goalRow{Milestone: goal, Counts: plan.Counts{All: 2, Opened: 1, Closed: 1}, Page: "/g/p/-/milestones/1", Late: true, Own: true}
	return []content{
		issuesPage{issuableList: issuableList{planHead: at("issues"), Query: issuableQuery{State: "opened", Labels: []string{"bug"}}, Counts: plan.Counts{All: 2}, Labels: []string{"bug"}, Milestones: []string{"1.0"}}, Rows: rows},
		issuesPage{issuableList: issuableList{planHead: above, Query: issuableQuery{State: "all"}}}, issuesPage{issuableList: issuableList{Own: true, Query: issuableQuery{Scope: "assigned_to_me"}}},
		issuePage{issuableView: issuableView{planHead: at("issues"), Text: "<p>x</p>", Done: 1, Tasks: 2, Participants: []*user.User{ada}, Discussions: comments, Edits: true, Deletes: true}, issueRow: rows[0],
			Links: []linkRow{{rows[1], 1, "blocks"}}, Merges: requests, Member: true},
		issuePage{issuableView: issuableView{planHead: at("issues")}, issueRow: rows[1]},
		wherePage{planHead: above, Rows: []whereRow{{in, "/g/p/-/issues/new"}}}, wherePage{planHead: above, Search: "x"}, wherePage{planHead: above},
		movePage{planHead: at("issues"), issueRow: rows[0], Form: bad},
		issueForm{planForm: planForm{planHead: at("issues"), Form: bad, Preview: "<p>x</p>", Chooses: true, Labels: boxes, Assignees: boxes, Goals: goals}, Hides: true},
		issueForm{planForm: planForm{planHead: at("issues"), IID: 1, Form: filled("title", "T")}},
		partPage{planHead: at("issues"), List: option{"issues", "Issues"}, Ref: "#1", Path: "/a/b/-/issues/1", Which: "labels", Choices: boxes}, partPage{planHead: at("issues"), List: option{"issues", "Issues"}, Ref: "#1", Path: "/a/b/-/issues/1", Which: "milestone", Goals: goals, Form: bad},
		partPage{planHead: at("issues"), List: option{"issues", "Issues"}, Ref: "#1", Path: "/a/b/-/issues/1", Which: "due_date"}, partPage{planHead: at("issues"), List: option{"issues", "Issues"}, Ref: "#1", Path: "/a/b/-/issues/1", Which: "assignees"},
		writing{planHead: at("issues"), Action: "/x", Back: "/y", Head: "Comment", Form: bad, Looks: true, Preview: "<p>x</p>", Insider: true, Internal: true},
		labelsPage{planHead: at("labels"), Rows: []labelRow{{Label: label, Own: true, Promotes: true}, {Label: label, Above: true}}}, labelsPage{planHead: at("labels"), Search: "x"}, labelsPage{planHead: above},
		labelForm{planHead: at("labels"), Form: bad}, labelForm{planHead: at("labels"), ID: 1, Form: filled("name", "bug", "color", "#ff0000")},
		milestonesPage{planHead: at("milestones"), State: "active", Rows: []goalRow{reached}}, milestonesPage{planHead: above, State: "closed"},
		milestonePage{planHead: at("milestones"), goalRow: reached, Text: "<p>x</p>", Shown: "opened", Issues: rows, Merges: requests, More: true, Promotes: true}, milestonePage{planHead: at("milestones"), goalRow: goalRow{Milestone: goal}, Shown: "closed"},
		milestoneForm{planHead: at("milestones"), Form: bad, Look: "<p>x</p>"}, milestoneForm{planHead: at("milestones"), IID: 1, Form: filled("title", "1.0")},
		boardPage{planHead: at("boards"), Board: development, Boards: []*board.Board{development, {ID: 2, Name: "Other"}}, Columns: columns}, boardPage{planHead: at("boards"), Board: development, Columns: columns[:1], Only: true},
		boardFormPage{planHead: at("boards"), Board: development, Form: bad, Labels: goals, Users: goals, Goals: goals},
		cardPage{boardPage: boardPage{planHead: at("boards"), Board: development}, Card: 1, Title: "T", From: "open", Targets: goals},
		activityPage{P: &head{Project: in}, Kind: "issue"}, activityPage{G: group}, activityPage{},
		badgesPage{setup: setup{P: &head{Project: in}, Base: "/g/p/-/"}, Form: bad, Badges: []badgeView{{Badge: &badge.Badge{ID: 1, Name: "build"}, Own: true}, {Badge: &badge.Badge{ID: 2}, Picture: "/x.svg"}}},
	}
}
