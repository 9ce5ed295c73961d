package web

import (
	"net/http"
	"strconv"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) issueFormPages() {
	w.projectPage("GET issues/new", signedIn, w.newIssue)
	w.groupPage("GET issues/new", signedIn, w.newGroupIssue)
	w.projectPage("POST issues", signedIn, w.createIssue)
	w.projectPage("GET issues/{id}/edit", signedIn, w.editIssue)
	w.projectPage("POST issues/{id}", signedIn, w.updateIssue)
}

// issueForm is the form of a new or an existing issue.
type issueForm struct {
	planForm
	Hides   bool                 // the user may make it confidential
	Follows *merge.FollowUpIssue // threads that it continues; nil for none
}

func (issueForm) view() string { return "project/issue_form" }
func (p issueForm) title() string {
	if p.IID == 0 {
		return "New issue · " + p.Name()
	}
	return "Edit #" + strconv.FormatInt(p.IID, 10) + " · " + p.Name()
}

func (w *Web) newIssue(v *visit, ref project.Ref) error {
	f := filled("title", v.param("title"), "description", v.param("description"), "milestone_id", v.param("milestone_id"))
	f.Values["labels"] = v.r.URL.Query()["labels"]
	return w.showIssueForm(v, ref, nil, f)
}

// followUp reads which threads a new issue continues; nil for none.
func (v *visit) followUp() (*merge.FollowUp, error) {
	value := v.text
	if v.r.Method == http.MethodGet {
		value = v.param
	}
	text := value("merge_request_to_resolve_discussions_of")
	if text == "" {
		return nil, nil
	}
	iid, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errs.NotFound("Merge Request").Because(err)
	}
	return &merge.FollowUp{Request: iid, Discussion: value("discussion_to_resolve")}, nil
}

// fillFollowUp reads the threads that a new issue continues. They are the default
// title and description.
func (w *Web) fillFollowUp(v *visit, ref project.Ref, p *issueForm) error {
	of, err := v.followUp()
	if err != nil || of == nil {
		return err
	}
	if p.Follows, err = w.Merges.FollowUp(v, v.actor, ref, *of); err != nil || v.r.Method != http.MethodGet {
		return err
	}
	for name, text := range map[string]string{"title": p.Follows.Title, "description": p.Follows.Description} {
		if p.Form.Get(name) == "" {
			p.Form.Values.Set(name, text)
		}
	}
	return nil
}

// showIssueForm shows the form of an issue, or of a new one if it is nil.
func (w *Web) showIssueForm(v *visit, ref project.Ref, i *plan.Issue, f form) error {
	h, err := w.planned(v, ref)
	if err != nil {
		return err
	}
	if err := plan.CheckCreate(v.actor, h.P.Project); err != nil {
		return err
	}
	p := issueForm{planForm: planForm{planHead: h, Form: f, Chooses: h.Plans}, Hides: h.Plans}
	var goal *plan.Milestone
	if i == nil {
		// Members plan the issues that they create; others can only hide them.
		p.Chooses, p.Hides = plan.CanIn(v.actor, h.P.Project).Choose, true
		if err := w.fillFollowUp(v, ref, &p); err != nil {
			return err
		}
		if err := w.fillTemplates(v, &p.planForm, h.P.Project, plan.IssueKind); err != nil {
			return err
		}
	} else {
		p.IID, goal = i.IID, i.Milestone
		if !i.Can(v.actor, h.P.Project).Edit {
			return errs.Forbidden("")
		}
	}
	if err := w.fillPlanForm(v, &p.planForm, h.Place, goal, false); err != nil {
		return err
	}
	p.Form.only("title", "description", "due_date", "weight", "milestone_id")
	return v.showForm(p, p.Form)
}

// issueFields reads the fields of a form and adds errors to the form.
func (v *visit) issueFields(f *form) plan.IssueFields {
	c, hidden := v.readFields(f, "labels", "assignees", "milestone", "due_date", "weight"), v.ticked("confidential")
	return plan.IssueFields{Fields: c.Fields, DueDate: c.DueDate, SetWeight: c.SetWeight, Weight: c.Weight, Confidential: &hidden}
}

func (w *Web) createIssue(v *visit, ref project.Ref) error {
	f := v.sent()
	fields := v.issueFields(&f)
	if v.ticked("preview") || f.bad() {
		return w.showIssueForm(v, ref, nil, f)
	}
	of, err := v.followUp()
	if err != nil {
		return err
	}
	var i *plan.Issue
	if of != nil {
		i, err = w.Merges.CreateIssue(v, v.actor, ref, plan.NewIssue{IssueFields: fields}, *of)
	} else {
		i, err = w.Plan.CreateIssue(v, v.actor, ref, plan.NewIssue{IssueFields: fields})
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showIssueForm(v, ref, nil, f)
	}
	v.flashCommands(i.Commands)
	return v.redirect(issuePath(i))
}

func (w *Web) editIssue(v *visit, ref project.Ref) error {
	_, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	f := editForm(&i.Issuable, "confidential", on(i.Confidential), "due_date", i.DueDate, "weight", numberOrEmpty(i.Weight))
	return w.showIssueForm(v, ref, i, f)
}

func (w *Web) updateIssue(v *visit, ref project.Ref) error {
	_, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	fields := v.issueFields(&f)
	v.checkStale(&f, &i.Issuable, "issue")
	if v.ticked("preview") || f.bad() {
		return w.showIssueForm(v, ref, i, f)
	}
	now, err := w.Plan.UpdateIssue(v, v.actor, ref, i.IID, fields)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showIssueForm(v, ref, i, f)
	}
	return v.doneWithCommands("The issue was updated.", now.Commands, issuePath(i))
}
