package api

import (
	"strconv"

	"svc/internal/alert"
	"svc/internal/plan"
	"svc/internal/todo"
)

func (a *API) todoRoutes() {
	a.tag("To-do items")
	handle(a, "GET /todos", readAPI, a.listTodos, summary("List to-do items"))
	handle(a, "POST /todos/{id}/mark_as_done", writeAPI, a.markTodoDone, summary("Mark a to-do item as done"))
	handle(a, "POST /todos/mark_as_done", writeAPI, a.markTodosDone, summary("Mark all to-do items as done"))
	handle(a, "POST /projects/{id}/issues/{issue_iid}/todo", writeAPI, a.createIssueTodo, summary("Create a to-do item for an issue"))
	handle(a, "POST /projects/{id}/merge_requests/{merge_request_iid}/todo", writeAPI, a.createMergeTodo, summary("Create a to-do item for a merge request"))
}

type todoJSON struct {
	ID         int64            `json:"id"`
	Project    *projectNameJSON `json:"project"` // null for a group
	Group      *namespaceJSON   `json:"group,omitempty"`
	Author     *userPublicJSON  `json:"author"`
	ActionName string           `json:"action_name"`
	TargetType string           `json:"target_type"`
	Target     any              `json:"target"` // by target_type
	TargetURL  string           `json:"target_url"`
	Body       string           `json:"body"`
	State      string           `json:"state"`
	CreatedAt  stamp            `json:"created_at"`
	UpdatedAt  stamp            `json:"updated_at"`
}

// todoCommitJSON is the target of a to-do item for a commit.
type todoCommitJSON struct {
	ID      string `json:"id"`
	ShortID string `json:"short_id"`
	Title   string `json:"title"`
	WebURL  string `json:"web_url"`
}

// todoAlertJSON is the target of a to-do item for an alert.
type todoAlertJSON struct {
	IID   int64  `json:"iid"`
	Title string `json:"title"`
}

func (a *API) toTodo(c *call, t *todo.Item) todoJSON {
	now := a.Now()
	out := todoJSON{
		ID: t.ID, Author: toUserOrNull(c.site, t.Author, now), ActionName: string(t.Action), TargetType: string(t.On.Kind), Body: t.Body(),
		State: string(t.State), CreatedAt: toStamp(t.CreatedAt), UpdatedAt: toStamp(t.UpdatedAt),
	}
	if t.Project != nil {
		in := toProjectName(t.Project)
		out.Project = &in
	}
	switch t.On.Kind {
	case plan.IssueKind:
		issue := toIssue(c.site, t.Issue, false, now)
		out.Target, out.TargetURL = issue, issue.WebURL
	case plan.MergeKind:
		request := toMergeRequest(c.site, t.Request, false, now)
		out.Target, out.TargetURL = request, request.WebURL
	case plan.CommitKind:
		out.TargetURL = c.site.URL + "/" + t.Project.FullPath + "/-/commit/" + t.Commit.SHA
		out.Target = todoCommitJSON{t.Commit.SHA, t.Commit.SHA[:min(8, len(t.Commit.SHA))], t.Commit.Title, out.TargetURL}
		out.TargetURL += "#note_" + strconv.FormatInt(t.Commit.CommentID, 10)
	case alert.NoteKind:
		out.TargetURL = c.site.URL + "/" + t.Project.FullPath + "/-/alert_management/" + strconv.FormatInt(t.Alert.IID, 10) + "/details"
		out.Target = todoAlertJSON{t.Alert.IID, t.Alert.Title}
	case todo.GroupKind:
		group := toNamespace(c.site, t.Group)
		out.Group, out.Target, out.TargetURL = &group, group, group.WebURL+"/-/settings/members"
	default:
		out.Target, out.TargetURL = out.Project, c.site.URL+"/"+t.Project.FullPath+"/-/settings/members"
	}
	if t.NoteID != nil {
		out.TargetURL += "#note_" + strconv.FormatInt(*t.NoteID, 10)
	}
	return out
}

type listTodosParams struct {
	Action    string `param:"action" enum:"assigned,mentioned,build_failed,marked,approval_required,unmergeable,directly_addressed,merge_train_removed,member_access_requested,review_requested,review_submitted"`
	AuthorID  int64  `param:"author_id" doc:"ID of the user who caused the item."`
	ProjectID int64  `param:"project_id"`
	GroupID   int64  `param:"group_id" doc:"ID of a group. Projects of its subgroups are included."`
	State     string `param:"state" enum:"pending,done" default:"pending"`
	Type      string `param:"type" enum:"Issue,MergeRequest,Commit,Epic,DesignManagement::Design,AlertManagement::Alert,Project,Namespace,Vulnerability,WikiPage::Meta" doc:"Type of the target. There are items for issues, merge requests, commits, alerts, and access requests for projects and groups (Namespace)."`
	pageParams
}

// listTodos: https://docs.gitlab.com/api/todos/#get-a-list-of-to-do-items
func (a *API) listTodos(c *call, p listTodosParams) (page[todoJSON], error) {
	f := todo.Filter{
		Action: todo.Action(p.Action), State: todo.State(p.State), Kind: plan.Kind(p.Type), AuthorID: p.AuthorID, ProjectID: p.ProjectID, GroupID: p.GroupID,
	}
	list, err := a.Todos.List(c, c.actor, f, p.paging())
	if err != nil {
		return page[todoJSON]{}, err
	}
	return offsetPageWhile(c, p.pageParams, list, func(t *todo.Item) todoJSON { return a.toTodo(c, t) })
}

type todoParams struct {
	ID int64 `param:"id" doc:"ID of the to-do item."`
}

// markTodoDone: https://docs.gitlab.com/api/todos/#mark-a-to-do-item-as-done
func (a *API) markTodoDone(c *call, p todoParams) (todoJSON, error) {
	t, err := a.Todos.MarkDone(c, c.actor, p.ID)
	if err != nil {
		return todoJSON{}, err
	}
	return a.toTodo(c, t), nil
}

// markTodosDone: https://docs.gitlab.com/api/todos/#mark-all-to-do-items-as-done
func (a *API) markTodosDone(c *call, _ struct{}) (none, error) {
	return none{}, a.Todos.MarkAllDone(c, c.actor, todo.Filter{})
}

// createIssueTodo: https://docs.gitlab.com/api/issues/#create-a-to-do-item
func (a *API) createIssueTodo(c *call, p issueParams) (unchanged[todoJSON], error) {
	t, added, err := a.Todos.AddIssue(c, c.actor, p.Project, p.Issue)
	return a.presentNewTodo(c, t, added, err)
}

// createMergeTodo: https://docs.gitlab.com/api/merge_requests/#create-a-to-do-item
func (a *API) createMergeTodo(c *call, p mergeParams) (unchanged[todoJSON], error) {
	t, added, err := a.Todos.AddMergeRequest(c, c.actor, p.Project, p.Request)
	return a.presentNewTodo(c, t, added, err)
}

func (a *API) presentNewTodo(c *call, t *todo.Item, added bool, err error) (unchanged[todoJSON], error) {
	if err != nil || !added {
		return unchanged[todoJSON]{same: true}, err
	}
	return unchanged[todoJSON]{value: a.toTodo(c, t)}, nil
}
