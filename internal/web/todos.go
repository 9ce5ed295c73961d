package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"svc/internal/alert"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/todo"
)

func (w *Web) todoPages() {
	w.page("GET /dashboard/todos", signedIn, w.todos)
	w.page("POST /dashboard/todos/done", signedIn, w.markTodosDone)
	w.page("POST /dashboard/todos/{id}/done", signedIn, w.markTodoDone)
	w.page("POST /dashboard/todos/{id}/restore", signedIn, w.restoreTodo)
	w.page("GET /-/inbox", signedIn, w.inboxEvents)
	w.page("GET /-/emojis", signedIn, w.emojis)
}

// todosPage is the to-do list.
type todosPage struct {
	Query    todoQuery
	Rows     []todoRow
	Pager    pager
	Projects []*project.Project
	Actions  []option
	Kinds    []option
	Undo     int64 // the item that was just marked as done; 0 for none
}

func (todosPage) view() string  { return "user/todos" }
func (todosPage) title() string { return "To-do list" }

// todoQuery is the filter of the list, as the address has it.
type todoQuery struct {
	State, Action, Type string
	Project             int64
}

func (v *visit) todoQuery() todoQuery {
	q := todoQuery{State: string(todo.Pending), Action: v.param("action"), Type: v.param("type")}
	if v.param("state") == string(todo.Done) {
		q.State = string(todo.Done)
	}
	if _, known := actionNames()[todo.Action(q.Action)]; !known {
		q.Action = ""
	}
	if kindNames()[plan.Kind(q.Type)] == "" {
		q.Type = ""
	}
	q.Project, _ = strconv.ParseInt(v.param("project_id"), 10, 64)
	return q
}

func (q todoQuery) filter() todo.Filter {
	return todo.Filter{State: todo.State(q.State), Action: todo.Action(q.Action), Kind: plan.Kind(q.Type), ProjectID: q.Project}
}

// Narrow reports whether the list is filtered.
func (q todoQuery) Narrow() bool { return q.Action != "" || q.Type != "" || q.Project != 0 }

// Link returns the URL of the list with another state.
func (q todoQuery) Link(state string) string { return "?" + q.values(state).Encode() }

// Encoded returns the query, for forms.
func (q todoQuery) Encoded() string { return q.values(q.State).Encode() }

func (q todoQuery) values(state string) url.Values {
	values := url.Values{}
	if state != string(todo.Pending) {
		values.Set("state", state)
	}
	for name, value := range map[string]string{"action": q.Action, "type": q.Type} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Project != 0 {
		values.Set("project_id", strconv.FormatInt(q.Project, 10))
	}
	return values
}

// todoRow is an item of the list.
type todoRow struct {
	*todo.Item
	Path string
	Ref  string // group/project#1
	Who  string // "Alice" or "You"
	What string // "assigned you"
	Note string // the beginning of the comment

	TargetState string // of an issue or merge request that is not open
}

// actionNames are the names of actions in filters.
func actionNames() map[todo.Action]string {
	return map[todo.Action]string{
		todo.Assigned: "Assigned", todo.ReviewRequested: "Review requested", todo.ApprovalRequired: "Approval required", todo.Mentioned: "Mentioned",
		todo.DirectlyAddressed: "Directly addressed", todo.BuildFailed: "Pipelines", todo.Unmergeable: "Unmergeable",
		todo.ReviewSubmitted: "Review submitted", todo.AccessRequested: "Access requested", todo.Marked: "Marked",
	}
}

// kindNames are the names of the types of targets in filters.
func kindNames() map[plan.Kind]string {
	return map[plan.Kind]string{
		plan.IssueKind: "Issue", plan.MergeKind: "Merge request", plan.CommitKind: "Commit", alert.NoteKind: "Alert",
		todo.ProjectKind: "Project", todo.GroupKind: "Group",
	}
}

func newTodoRow(t *todo.Item) todoRow {
	r := todoRow{Item: t, Who: t.Author.Name, Note: t.NoteText}
	r.Path, r.Ref = todoTarget(t)
	if on := t.Target(); on != nil && on.State != plan.Opened {
		r.TargetState = string(on.State)
	}
	you := "you"
	if t.Own() {
		r.Who, you = "You", "yourself"
	}
	switch t.Action {
	case todo.Assigned:
		r.What = "assigned " + you
	case todo.ReviewRequested:
		r.What = "requested a review from " + you
	case todo.ApprovalRequired:
		r.What = "set " + you + " as an approver"
	case todo.Mentioned, todo.DirectlyAddressed:
		r.What = "mentioned " + you
	case todo.BuildFailed:
		r.Who, r.What = "", "The pipeline failed"
	case todo.Unmergeable:
		r.Who, r.What = "", "Could not merge: there are conflicts"
	case todo.ReviewSubmitted:
		r.What = "reviewed your merge request"
	case todo.AccessRequested:
		r.What = "requested access"
	default:
		r.What = "added a to-do item"
	}
	const most = 200
	if text := []rune(strings.Join(strings.Fields(r.Note), " ")); len(text) > most {
		r.Note = string(text[:most]) + "…"
	} else {
		r.Note = string(text)
	}
	return r
}

// todoTarget returns the path and the name of the target of an item.
func todoTarget(t *todo.Item) (path, name string) {
	switch t.On.Kind {
	case todo.GroupKind:
		return "/groups/" + t.Group.FullPath + "/-/settings/members", t.Group.FullPath
	case todo.ProjectKind:
		return "/" + t.Project.FullPath + "/-/settings/members", t.Project.FullPath
	}
	base := "/" + t.Project.FullPath + "/-/"
	switch t.On.Kind {
	case plan.CommitKind:
		return fmt.Sprintf("%scommit/%s?comment=%[3]d#note_%[3]d", base, t.Commit.SHA, t.Commit.CommentID), t.Project.FullPath + "@" + t.Commit.SHA[:min(8, len(t.Commit.SHA))]
	case alert.NoteKind:
		return fmt.Sprintf("%salert_management/%d/details", base, t.Alert.IID), fmt.Sprintf("%s^alert#%d", t.Project.FullPath, t.Alert.IID)
	}
	kind, mark, iid := "issues", "#", t.Target().IID
	if t.Request != nil {
		kind, mark = "merge_requests", "!"
	}
	path = fmt.Sprintf("%s%s/%d", base, kind, iid)
	if t.NoteID != nil {
		path += fmt.Sprintf("#note_%d", *t.NoteID)
	}
	return path, fmt.Sprintf("%s%s%d", t.Project.FullPath, mark, iid)
}

func (w *Web) todos(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	p := todosPage{Query: v.todoQuery()}
	page, err := w.Todos.List(v, v.actor, p.Query.filter(), v.paging())
	if err != nil {
		return err
	}
	for _, t := range page.Items {
		p.Rows = append(p.Rows, newTodoRow(t))
	}
	p.Pager = v.pager(page.More)
	if p.Projects, err = w.Todos.ProjectsOf(v, v.actor, todo.State(p.Query.State)); err != nil {
		return err
	}
	p.Actions = []option{{"", "Any action"}}
	for _, a := range todo.Actions() {
		p.Actions = append(p.Actions, option{string(a), actionNames()[a]})
	}
	p.Kinds = []option{{"", "Any type"}}
	for _, k := range todo.Kinds() {
		p.Kinds = append(p.Kinds, option{string(k), kindNames()[k]})
	}
	p.Undo, _ = strconv.ParseInt(v.param("undo"), 10, 64)
	return v.show(p)
}

// todosPath returns the URL of the list with the filter that a form was sent from.
func (v *visit) todosPath(add ...string) string {
	values, err := url.ParseQuery(v.text("back"))
	if err != nil || len(v.text("back")) > 1000 {
		values = url.Values{}
	}
	for i := 0; i < len(add); i += 2 {
		values.Set(add[i], add[i+1])
	}
	if len(values) == 0 {
		return "/dashboard/todos"
	}
	return "/dashboard/todos?" + values.Encode()
}

func (w *Web) markTodoDone(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, err := w.Todos.MarkDone(v, v.actor, id); err != nil {
		return err
	}
	return v.redirect(v.todosPath("undo", strconv.FormatInt(id, 10)))
}

func (w *Web) restoreTodo(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	t, err := w.Todos.Restore(v, v.actor, id)
	if err != nil {
		return err
	}
	if t.State != todo.Pending {
		v.setFlash("bad", "There is another to-do item for this already.")
		return v.redirect(v.todosPath())
	}
	return v.done("The to-do item was restored.", v.todosPath())
}

func (w *Web) markTodosDone(v *visit) error {
	project, err := strconv.ParseInt("0"+v.text("project_id"), 10, 64)
	if err != nil {
		project = 0
	}
	f := todo.Filter{Action: todo.Action(v.text("action")), Kind: plan.Kind(v.text("type")), ProjectID: project}
	return v.redirectWithFlash(w.Todos.MarkAllDone(v, v.actor, f), "All to-do items were marked as done.", v.todosPath())
}

// inboxEvents sends the counters of the header when they change.
func (w *Web) inboxEvents(v *visit) error {
	out := v.events()
	return out.end(w.Todos.Follow(v, v.reader(), func(c *todo.Counts) error {
		if c == nil {
			return out.send("", nil)
		}
		return out.send("counts", map[string]int{"todos": c.Todos, "issues": c.Issues, "merges": c.Merges})
	}))
}

// toggleTodo adds a to-do item for an issue or merge request, or marks it as done.
func (w *Web) toggleTodo(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		want := v.ticked("want")
		done := "The to-do item was marked as done."
		if want {
			done = "The to-do item was added."
		}
		return w.actOn(v, ref, k, done, func(iid int64) error {
			if want {
				return k.todo(v, ref, iid)
			}
			on, err := k.find(v, ref)
			if err != nil {
				return err
			}
			id, err := w.Todos.PendingFor(v, v.actor, on.Target)
			if err != nil || id == 0 {
				return err
			}
			_, err = w.Todos.MarkDone(v, v.actor, id)
			return err
		})
	}
}
