package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) issuePages() {
	w.projectPage("GET issues/{id}", anybody, w.issue)
	w.projectPage("POST issues/{id}/tasks", signedIn, w.tickTask)
	w.projectPage("POST issues/{id}/turn", signedIn, w.turnIssue)
	w.projectPage("POST issues/{id}/subscribe", signedIn, w.subscribeIssue)
	w.projectPage("GET issues/{id}/move", signedIn, w.askMove)
	w.projectPage("POST issues/{id}/move", signedIn, w.moveIssue)
	w.projectPage("POST issues/{id}/links", signedIn, w.linkIssue)
	w.projectPage("POST issues/{id}/links/{link}/delete", signedIn, w.unlinkIssue)
	w.projectPage("POST issues/{id}/delete", signedIn, w.deleteIssue)
	w.talkPages(w.issueTalk())
}

// issueTalk says how people talk about issues.
func (w *Web) issueTalk() talker {
	return talker{
		at: "issues/{id}", word: "issue", part: "issues",
		find: func(v *visit, ref project.Ref) (plan.Noteable, error) {
			iid, err := v.number("id")
			if err != nil {
				return plan.Noteable{}, err
			}
			return w.Plan.OnIssue(v, v.actor, ref, iid)
		},
		turn: func(v *visit, ref project.Ref, iid int64, event string) error {
			_, err := w.Plan.UpdateIssue(v, v.actor, ref, iid, plan.IssueFields{Event: event})
			return err
		},
	}
}

// issuePage is an issue with all that was said about it.
type issuePage struct {
	planHead
	issueRow
	Text    template.HTML
	Done    int // of its tasks
	Tasks   int
	Links   []linkRow
	Merges  []mergeRow // that name it
	People  []*user.User
	Talk    talk
	Edits   bool // its title, description and state
	Deletes bool
	Member  bool
}

// linkRow is an issue that has to do with this one.
type linkRow struct {
	issueRow
	ID  int64
	How string
}

func (issuePage) view() string    { return "project/issue" }
func (p issuePage) title() string { return p.Issue.Title + " (" + p.Ref + ") · " + p.Name() }

// Full is how the issue is called everywhere.
func (p issuePage) Full() string { return fmt.Sprintf("%s#%d", p.ProjectPath, p.IID) }

// Closed tells whether it is done.
func (p issuePage) Closed() bool { return p.Issue.State == plan.Closed }

// Shut tells whether only members may talk.
func (p issuePage) Shut() bool { return p.Locked != nil && *p.Locked }

func (w *Web) issue(v *visit, ref project.Ref) error {
	h, err := w.planned(v, ref)
	if err != nil {
		return err
	}
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	i, err := w.Plan.Issue(v, v.actor, h.Place.Ref, iid)
	if err != nil {
		return err
	}
	p := issuePage{planHead: h, issueRow: w.issueRow(i, false)}
	may := i.Can(v.actor, h.P.Project)
	p.Edits, p.Plans, p.Deletes, p.Member = may.Edit, may.Plan, may.Delete, may.Link
	tasks, err := w.Markup.Tasks(v, i.Description)
	if err != nil {
		return err
	}
	for _, done := range tasks {
		if p.Tasks++; done {
			p.Done++
		}
	}
	on, err := w.Plan.OnIssue(v, v.actor, h.Place.Ref, iid)
	if err != nil {
		return err
	}
	text := plan.Text{Source: i.Description}
	if p.Edits {
		text.Task = taskBox
	}
	var texts []template.HTML
	if p.Talk, texts, err = w.talk(v, on, w.issueTalk(), text); err != nil {
		return err
	}
	p.Text = texts[0]
	if p.Edits && p.Talk.May {
		p.Talk.Event = map[bool]string{true: "reopen", false: "close"}[p.Closed()]
	}
	if p.People, err = w.Plan.Participants(v, v.actor, h.Place.Ref, iid); err != nil {
		return err
	}
	if p.Links, err = w.linkRows(v, i, h.Place.Ref); err != nil {
		return err
	}
	if h.P.Merges {
		const most = 20
		page, err := w.Merges.OfIssue(v, v.actor, h.Place.Ref, iid, false, db.Paging{Limit: most})
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			p.Merges = append(p.Merges, newMergeRow(m, m.ProjectID != i.ProjectID))
		}
	}
	return v.show(p)
}

func (w *Web) linkRows(v *visit, i *plan.Issue, ref project.Ref) ([]linkRow, error) {
	list, err := w.Plan.IssueLinks(v, v.actor, ref, i.IID)
	var rows []linkRow
	for _, l := range list {
		rows = append(rows, linkRow{w.issueRow(l.Target, l.Target.ProjectID != i.ProjectID), l.ID, linkWords(l.Kind)})
	}
	return rows, err
}

func linkWords(kind plan.LinkKind) string {
	switch kind {
	case plan.Blocks:
		return "blocks"
	case plan.IsBlockedBy:
		return "is blocked by"
	}
	return "relates to"
}

// taskBox is a box of a list of tasks that can be ticked: a button of a form
// that stands elsewhere on the page.
func taskBox(n int, done bool) string {
	return fmt.Sprintf(`<button class="task" form="tasks" name="task" value="%d %t" role="checkbox" aria-checked="%t" aria-label="Task %d"></button> `, n, !done, done, n+1)
}

func (w *Web) tickTask(v *visit, ref project.Ref) error {
	number, state, _ := strings.Cut(v.text("task"), " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return errs.Invalid("The task does not exist.")
	}
	return w.onIssue(v, ref, "", "", func(iid int64) error {
		_, err := w.Plan.UpdateIssue(v, v.actor, ref, iid, plan.IssueFields{Tick: &plan.Tick{Task: n, Done: state == "true"}})
		return err
	})
}

// onIssue does something to the issue that the address names, and goes back to
// it.
func (w *Web) onIssue(v *visit, ref project.Ref, done, anchor string, do func(iid int64) error) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	in, err := w.Projects.RequireView(v, v.actor, ref, project.IssuePart)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("/%s/-/issues/%d%s", in.FullPath, iid, anchor)
	if err := do(iid); err != nil || done != "" {
		return v.redirectWithFlash(err, done, to)
	}
	return v.redirect(to)
}

// turnIssue is what the buttons at the top do: close and reopen, lock the
// discussion, hide the issue.
func (w *Web) turnIssue(v *visit, ref project.Ref) error {
	yes, no := true, false
	event := v.text("event")
	known := map[string]struct {
		done   string
		fields plan.IssueFields
	}{
		"close":   {"The issue was closed.", plan.IssueFields{Event: "close"}},
		"reopen":  {"The issue was reopened.", plan.IssueFields{Event: "reopen"}},
		"lock":    {"The discussion was locked to project members.", plan.IssueFields{Locked: &yes}},
		"unlock":  {"The discussion was unlocked.", plan.IssueFields{Locked: &no}},
		"hide":    {"The issue is now confidential.", plan.IssueFields{Confidential: &yes}},
		"publish": {"The issue is no longer confidential.", plan.IssueFields{Confidential: &no}},
	}
	turn, ok := known[event]
	if !ok {
		return errs.Invalid("Unknown action for an issue.")
	}
	return w.onIssue(v, ref, turn.done, "", func(iid int64) error {
		h, err := w.planned(v, ref)
		if err == nil && turn.fields.Event == "" && !h.Plans {
			err = errs.Forbidden("") // the feature would leave it as it is
		}
		if err == nil {
			_, err = w.Plan.UpdateIssue(v, v.actor, ref, iid, turn.fields)
		}
		return err
	})
}

func (w *Web) subscribeIssue(v *visit, ref project.Ref) error {
	want := v.ticked("want")
	done := map[bool]string{true: "You will be notified of changes.", false: "You will no longer be notified of changes."}[want]
	return w.onIssue(v, ref, done, "", func(iid int64) error {
		_, _, err := w.Plan.SubscribeIssue(v, v.actor, ref, iid, want)
		return err
	})
}

func (w *Web) linkIssue(v *visit, ref project.Ref) error {
	kind := plan.LinkKind(v.text("kind"))
	if kind != plan.Blocks && kind != plan.IsBlockedBy {
		kind = plan.RelatesTo
	}
	return w.onIssue(v, ref, "The issues were linked.", "", func(iid int64) error {
		to, number, err := readReference(ref, v.text("issue"))
		if err == nil {
			_, err = w.Plan.LinkIssues(v, v.actor, ref, iid, to, number, kind)
		}
		if errs.Is(err, errs.KindNotFound) {
			// That this issue is seen was asked before.
			err = errs.Invalid("The issue does not exist, or you don't have access to it.")
		}
		return err
	})
}

// readReference reads the name of an issue: a number, with the path of a
// project before it or not, or its address.
func readReference(here project.Ref, text string) (project.Ref, int64, error) {
	if at := strings.Index(text, "://"); at >= 0 {
		if _, rest, ok := strings.Cut(text[at+3:], "/"); ok {
			text = strings.Replace(rest, "/-/issues/", "#", 1)
		}
	}
	path, number, found := strings.Cut(text, "#")
	if !found {
		path, number = "", text
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || path != "" && !validPath(path) {
		return "", 0, errs.Invalid("Enter an issue reference such as #5 or group/project#5.")
	}
	if path == "" {
		return here, n, nil
	}
	return project.Ref(path), n, nil
}

func (w *Web) unlinkIssue(v *visit, ref project.Ref) error {
	return w.onIssue(v, ref, "The link was removed.", "", func(iid int64) error {
		id, err := v.number("link")
		if err == nil {
			_, err = w.Plan.UnlinkIssues(v, v.actor, ref, iid, id)
		}
		return err
	})
}

func (w *Web) deleteIssue(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Plan.DeleteIssue(v, v.actor, ref, iid, nil); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The issue was deleted.", "issues")
}

// movePage asks where an issue is to go.
type movePage struct {
	planHead
	issueRow
	Form form
}

func (movePage) view() string    { return "project/issue_move" }
func (p movePage) title() string { return "Move " + p.Ref + " · " + p.Name() }

func (w *Web) askMove(v *visit, ref project.Ref) error {
	return w.showMove(v, ref, filled())
}

func (w *Web) showMove(v *visit, ref project.Ref, f form) error {
	h, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	if !h.Plans {
		return errs.Forbidden("")
	}
	return v.showForm(movePage{h, w.issueRow(i, false), f}, f)
}

// plannedIssue gives the head of a page of an issue, and that.
func (w *Web) plannedIssue(v *visit, ref project.Ref) (planHead, *plan.Issue, error) {
	h, err := w.planned(v, ref)
	if err != nil {
		return h, nil, err
	}
	iid, err := v.number("id")
	if err != nil {
		return h, nil, err
	}
	i, err := w.Plan.Issue(v, v.actor, h.Place.Ref, iid)
	return h, i, err
}

func (w *Web) moveIssue(v *visit, ref project.Ref) error {
	_, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	f, path := v.sent(), strings.Trim(v.text("project"), "/")
	again := func(text string) error {
		f.wrong("project", text)
		return w.showMove(v, ref, f)
	}
	if path == "" || !validPath(path) {
		return again("does not exist, or you don't have access to it")
	}
	to, err := w.Projects.Require(v, v.actor, project.Ref(path), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return again("does not exist, or you don't have access to it")
	}
	if err != nil {
		return err
	}
	moved, err := w.Plan.MoveIssue(v, v.actor, ref, i.IID, to.ID)
	switch {
	case errs.Is(err, errs.KindNotFound), errs.Is(err, errs.KindForbidden):
		return again("requires at least the Planner role, here and in the project of the issue")
	case err != nil:
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showMove(v, ref, f)
	}
	return v.done("The issue was moved.", issuePath(moved))
}
