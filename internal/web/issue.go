package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) issuePages() {
	w.projectPage("GET issues/{id}", anyone, w.issue)
	w.projectPage("GET issues/{id}/move", signedIn, w.askMove)
	w.projectPage("POST issues/{id}/move", signedIn, w.moveIssue)
	w.projectPage("POST issues/{id}/branch", signedIn, w.branchIssue)
	w.projectPage("POST issues/{id}/links", signedIn, w.linkIssue)
	w.projectPage("POST issues/{id}/links/{link}/delete", signedIn, w.unlinkIssue)
	w.issuablePages(w.issueKind())
}

// issueKind describes issues to the pages that they share with merge requests.
func (w *Web) issueKind() issuableKind {
	k := issuableKind{
		title: "Issues", access: project.IssuePart, parts: []string{"labels", "assignees", "milestone", "due_date", "weight", "time"},
		participants: func(v *visit, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
			return w.Plan.IssueParticipants(v, by, ref, iid)
		},
		remove: func(v *visit, by actor.Actor, ref project.Ref, iid int64, since *time.Time) error {
			return w.Plan.DeleteIssue(v, by, ref, iid, since)
		},
	}
	update := func(v *visit, ref project.Ref, iid int64, f plan.IssueFields) error {
		_, err := w.Plan.UpdateIssue(v, v.actor, ref, iid, f)
		return err
	}
	k.commentable = commentable{
		at: "issues/{id}", noun: "issue", part: "issues",
		find: func(v *visit, ref project.Ref) (plan.Noteable, error) {
			iid, err := v.number("id")
			if err != nil {
				return plan.Noteable{}, err
			}
			return w.Plan.OnIssue(v, v.actor, ref, iid)
		},
		update: func(v *visit, ref project.Ref, iid int64, f plan.Fields) error {
			return update(v, ref, iid, plan.IssueFields{Fields: f})
		},
	}
	hide := func(want bool) func(*visit, project.Ref, int64) error {
		return func(v *visit, ref project.Ref, iid int64) error {
			return update(v, ref, iid, plan.IssueFields{Confidential: &want})
		}
	}
	k.events = map[string]issuableEvent{
		"hide":    {"The issue is now confidential.", true, hide(true)},
		"publish": {"The issue is no longer confidential.", true, hide(false)},
	}
	k.load = func(v *visit, ref project.Ref) (issuable, error) {
		h, i, err := w.plannedIssue(v, ref)
		if err != nil {
			return issuable{}, err
		}
		r := w.issueRow(i, false)
		return issuable{planHead: h, Issuable: &i.Issuable, Path: r.Path, Ref: r.Ref, DueDate: i.DueDate, Weight: i.Weight}, nil
	}
	k.save = func(v *visit, ref project.Ref, iid int64, c planChange) error {
		return update(v, ref, iid, plan.IssueFields{Fields: c.Fields, DueDate: c.DueDate, SetWeight: c.SetWeight, Weight: c.Weight})
	}
	k.todo = func(v *visit, ref project.Ref, iid int64) error {
		_, _, err := w.Todos.AddIssue(v, v.actor, ref, iid)
		return err
	}
	k.subscribe = func(v *visit, ref project.Ref, iid int64, want bool) error {
		_, _, err := w.Plan.SubscribeIssue(v, v.actor, ref, iid, want)
		return err
	}
	return k
}

// issuePage is an issue with its discussions.
type issuePage struct {
	issuableView
	issueRow
	Links   []linkRow
	Merges  []mergeRow // that mention it
	Closing []mergeRow // that close it when they are merged
	Member  bool

	Branches *plan.IssueBranches // nil if the user cannot read the code
	Proposes bool                // the user may create a merge request
}

// linkRow is a linked issue.
type linkRow struct {
	issueRow
	LinkID int64
	How    string
}

func (issuePage) view() string    { return "project/issue" }
func (p issuePage) title() string { return p.Issue.Title + " (" + p.Ref + ") · " + p.Name() }

// Full is the reference with the path of the project.
func (p issuePage) Full() string { return fmt.Sprintf("%s#%d", p.ProjectPath, p.IID) }

// Closed reports whether the issue is closed.
func (p issuePage) Closed() bool { return p.State == plan.Closed }

func (w *Web) issue(v *visit, ref project.Ref) error {
	h, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	p := issuePage{issuableView: issuableView{planHead: h}, issueRow: w.issueRow(i, false)}
	may := i.Can(v.actor, h.P.Project)
	p.Edits, p.Plans, p.Deletes, p.Member = may.Edit, may.Plan, may.Delete, may.Link
	if err := w.fillIssuable(v, &p.issuableView, w.issueKind(), &i.Issuable); err != nil {
		return err
	}
	if p.Links, err = w.linkRows(v, i, h.Place.Ref); err != nil {
		return err
	}
	if h.P.Merges {
		const most = 20
		page, err := w.Merges.OfIssue(v, v.actor, h.Place.Ref, i.IID, false, db.Paging{Limit: most})
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			p.Merges = append(p.Merges, newMergeRow(m, m.ProjectID != i.ProjectID))
		}
		if len(page.Items) > 0 {
			closing, err := w.Merges.OfIssue(v, v.actor, h.Place.Ref, i.IID, true, db.Paging{Limit: most})
			if err != nil {
				return err
			}
			for _, m := range closing.Items {
				p.Closing = append(p.Closing, newMergeRow(m, m.ProjectID != i.ProjectID))
			}
		}
	}
	if h.P.Code && h.P.Project.DefaultBranch != "" {
		if p.Branches, err = w.Plan.IssueBranches(v, v.actor, h.Place.Ref, i); err != nil {
			return err
		}
		p.Proposes = h.P.Proposes && p.Branches.Create && !i.Confidential
	}
	return v.show(p)
}

// branchIssue creates a branch for an issue and, if wanted, a draft merge request
// that closes it.
func (w *Web) branchIssue(v *visit, ref project.Ref) error {
	h, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	to := issuePath(i)
	from := v.text("ref")
	if from == "" {
		from = h.P.Project.DefaultBranch
	}
	_, b, err := w.Repos.CreateBranch(v, v.actor, h.Place.Ref, v.text("name"), from)
	if err != nil {
		return v.redirectWithFlash(err, "", to)
	}
	if v.text("do") != "merge_request" {
		return v.done("The branch "+b.Name+" was created.", pathTo(h.P.Project.FullPath, "-", "tree", b.Name))
	}
	target := h.P.Project.DefaultBranch
	if _, _, err := w.Repos.Branch(v, v.actor, h.Place.Ref, from); err == nil {
		target = from
	}
	f := merge.FieldsFor(i)
	f.TargetBranch, f.Assignees = &target, &[]int64{v.session.User.ID}
	m, err := w.Merges.Create(v, v.actor, h.Place.Ref, merge.NewRequest{SourceBranch: b.Name, Fields: f})
	if err != nil {
		return v.redirectWithFlash(err, "", to)
	}
	return v.done("The merge request was created.", fmt.Sprintf("/%s/-/merge_requests/%d", h.P.Project.FullPath, m.IID))
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

func (w *Web) linkIssue(v *visit, ref project.Ref) error {
	kind := plan.LinkKind(v.text("kind"))
	if kind != plan.Blocks && kind != plan.IsBlockedBy {
		kind = plan.RelatesTo
	}
	return w.actOn(v, ref, w.issueKind(), "The issues were linked.", func(iid int64) error {
		to, number, err := readReference(ref, v.text("issue"), "issues", "#")
		if err == nil {
			_, err = w.Plan.LinkIssues(v, v.actor, ref, iid, to, number, kind)
		}
		if errs.Is(err, errs.KindNotFound) {
			// Access to this issue was checked before.
			err = errs.Invalid("The issue does not exist, or you don't have access to it.")
		}
		return err
	})
}

// readReference reads the reference of an issue or merge request: its number, with
// or without its sign and the path of a project, or its address. The kind is
// "issues" or "merge_requests".
func readReference(here project.Ref, text, kind, sign string) (project.Ref, int64, error) {
	path, number, found := strings.Cut(text, sign)
	if !found {
		path, number = "", text
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		path, number, _ = strings.Cut(rest, "/-/"+kind+"/")
		number, _, _ = strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(number), "/")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || path != "" && !validPath(path) {
		noun := map[string]string{"issues": "an issue", "merge_requests": "a merge request"}[kind]
		return "", 0, errs.Invalid("Enter %s reference such as %s5 or group/project%[2]s5.", noun, sign)
	}
	if path == "" {
		return here, n, nil
	}
	return project.Ref(path), n, nil
}

func (w *Web) unlinkIssue(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.issueKind(), "The link was removed.", func(iid int64) error {
		id, err := v.number("link")
		if err == nil {
			_, err = w.Plan.UnlinkIssues(v, v.actor, ref, iid, id)
		}
		return err
	})
}

// movePage is the form to move an issue.
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

// plannedIssue returns the head of a page of an issue, and the issue.
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
