package web

import (
	"time"

	"svc/internal/emoji"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/todo"
	"svc/internal/user"
)

// inboxContents are the to-do list, the start page of merge requests and the page
// of reactions.
func inboxContents() []content {
	p := &project.Project{ID: 1, Name: "P", Path: "p", FullPath: "g/p", Visibility: project.Public, Namespace: project.Namespace{FullPath: "g", FullName: "G"}}
	h := head{Project: p, Parents: crumbs("g", "G"), SignedIn: true}
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	m := &merge.MergeRequest{Issuable: plan.Issuable{Kind: plan.MergeKind, IID: 1, Title: "T", Author: u, ProjectPath: "g/p", State: plan.Closed}}
	note := int64(1)
	var rows []todoRow
	for _, a := range todo.Actions() {
		rows = append(rows, newTodoRow(&todo.Item{ID: 1, UserID: 2, AuthorID: 1, Action: a, Author: u, Project: p, Request: m, CreatedAt: time.Unix(0, 0), NoteID: &note, NoteText: "hello"}))
	}
	return []content{
		todosPage{Query: todoQuery{State: "pending"}, Rows: rows, Undo: 1, Projects: []*project.Project{p}, Actions: []option{{"", "Any"}}},
		todosPage{Query: todoQuery{State: "done", Action: "assigned", Type: "Issue", Project: 1}, Rows: rows},
		todosPage{Query: todoQuery{State: "pending"}}, todosPage{Query: todoQuery{State: "done"}}, todosPage{Query: todoQuery{State: "done", Type: "Issue"}},
		mergeInboxPage{Empty: true},
		mergeInboxPage{Active: []mergeSection{{Name: "N", Text: "T", Rows: []mergeRow{{MergeRequest: m}}, More: true, Total: 1}, {Name: "E"}}, Waiting: []mergeSection{{Name: "E"}}},
		reactPage{planHead: planHead{P: &h, Base: "/g/p/-/"}, Back: "/g/p/-/issues/1", Action: "/g/p/-/issues/1/react", Groups: []emojiGroup{{"G", emoji.All()[:3]}}},
	}
}
