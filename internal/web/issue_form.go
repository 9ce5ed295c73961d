package web

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) issueFormPages() {
	w.projectPage("GET issues/new", signedIn, w.newIssue)
	w.groupPage("GET issues/new", signedIn, w.newGroupIssue)
	w.projectPage("POST issues", signedIn, w.createIssue)
	w.projectPage("GET issues/{id}/edit", signedIn, w.editIssue)
	w.projectPage("POST issues/{id}", signedIn, w.updateIssue)
	w.projectPage("GET issues/{id}/edit/{part}", signedIn, w.editPart)
	w.projectPage("POST issues/{id}/edit/{part}", signedIn, w.savePart)
}

// issueForm is a new issue, or one that is changed.
type issueForm struct {
	planHead
	IID       int64 // 0 is a new one
	Form      form
	Preview   template.HTML
	Chooses   bool // the visitor may say what is planned
	Hides     bool // and whether it is confidential
	Labels    []choice
	Assignees []choice
	Goals     []option
}

// choice is something that can be ticked in a list of many.
type choice struct {
	Value, Label, Note string
	On                 bool
	Chip               *plan.Label
	User               *user.User
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

// showIssueForm shows the form of an issue; nil is a new one.
func (w *Web) showIssueForm(v *visit, ref project.Ref, i *plan.Issue, f form) error {
	h, err := w.planned(v, ref)
	if err != nil {
		return err
	}
	if err := plan.CheckCreate(v.actor, h.P.Project); err != nil {
		return err
	}
	p := issueForm{planHead: h, Form: f, Chooses: h.Plans, Hides: h.Plans}
	if i == nil {
		// Members plan what they write; others can only hide it.
		p.Chooses, p.Hides = plan.CanIn(v.actor, h.P.Project).Choose, true
	} else {
		p.IID = i.IID
		if !i.Can(v.actor, h.P.Project).Edit {
			return errs.Forbidden("")
		}
	}
	if v.r.PostForm.Get("preview") != "" {
		if p.Preview, err = w.preview(v, h.Place, f.Get("description")); err != nil {
			return err
		}
	}
	p.Form.only("title", "description", "due_date", "milestone_id")
	if p.Chooses {
		if p.Labels, err = w.labelChoices(v, h.Place, f.Values["labels"]); err != nil {
			return err
		}
		if p.Assignees, err = w.peopleChoices(v, h.Place, f.Values["assignee_ids"]); err != nil {
			return err
		}
		var goal *plan.Milestone
		if i != nil {
			goal = i.Milestone
		}
		if p.Goals, err = w.goalOptions(v, h.Place, goal); err != nil {
			return err
		}
	}
	return v.showForm(p, p.Form)
}

// labelChoices are the labels of a place with those ticked that are chosen.
func (w *Web) labelChoices(v *visit, in project.Place, chosen []string) ([]choice, error) {
	page, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Ancestors: true}, allOf())
	var list []choice
	for _, l := range page.Items {
		list = append(list, choice{Value: l.Name, Label: l.Name, Note: l.Description, On: slices.Contains(chosen, l.Name), Chip: l})
	}
	for _, name := range chosen { // there may be more labels than are shown
		if !slices.ContainsFunc(list, func(c choice) bool { return c.Value == name }) {
			list = append(list, choice{Value: name, Label: name, On: true, Chip: &plan.Label{Name: name, Color: "#8a8fa3"}})
		}
	}
	return list, err
}

// peopleChoices are the members of a project, and those who are chosen.
func (w *Web) peopleChoices(v *visit, in project.Place, chosen []string) ([]choice, error) {
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true}, allOf())
	if err != nil {
		return nil, err
	}
	var list []choice
	add := func(u *user.User) {
		id := strconv.FormatInt(u.ID, 10)
		if !slices.ContainsFunc(list, func(c choice) bool { return c.Value == id }) {
			list = append(list, choice{Value: id, Label: u.Name, Note: "@" + u.Username, On: slices.Contains(chosen, id), User: u})
		}
	}
	for _, m := range page.Items {
		add(m.User)
	}
	var others []int64
	for _, text := range chosen {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			others = append(others, id)
		}
	}
	known, err := w.Users.FindAll(v, others)
	for _, id := range others {
		if u := known[id]; u != nil {
			add(u)
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int { return int(on1(b.On)) - int(on1(a.On)) })
	return list, err
}

func on1(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// goalOptions are the milestones that something can work towards, and the one
// that it has.
func (w *Web) goalOptions(v *visit, in project.Place, has *plan.Milestone) ([]option, error) {
	page, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{State: plan.ActiveMilestone, Ancestors: true}, allOf())
	list := []option{{"0", "No milestone"}}
	for _, m := range page.Items {
		list = append(list, option{strconv.FormatInt(m.ID, 10), m.Title})
	}
	if has != nil && !slices.ContainsFunc(list, func(o option) bool { return o.Value == milestoneID(has) }) {
		list = append(list, option{milestoneID(has), has.Title})
	}
	return list, err
}

// issueFields reads what the form of an issue says; what is wrong is noted in
// the form.
func (v *visit) issueFields(f *form) plan.IssueFields {
	title, text, hidden := v.text("title"), v.prose("description"), v.ticked("confidential")
	fields := plan.IssueFields{Title: &title, Description: &text, Confidential: &hidden}
	if v.ticked("planned") {
		v.planFields(f, &fields, "labels", "assignees", "milestone", "due_date")
	}
	return fields
}

// planFields reads parts of what is planned.
func (v *visit) planFields(f *form, to *plan.IssueFields, parts ...string) {
	for _, part := range parts {
		switch part {
		case "labels":
			labels := slices.Clone(v.r.PostForm["labels"])
			if added := v.text("new_label"); added != "" {
				labels = append(labels, added)
			}
			to.Labels = &labels
		case "assignees":
			people := v.ids("assignee_ids")
			to.Assignees = &people
		case "milestone":
			id := v.whole(f, "milestone_id")
			to.Milestone = &id
		case "due_date":
			day := v.text("due_date")
			if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
				f.wrong("due_date", "is not a date")
			}
			to.DueDate = &day
		}
	}
}

// ids are the numbers that were ticked in a list.
func (v *visit) ids(name string) []int64 {
	list := []int64{}
	for _, text := range v.r.PostForm[name] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			list = append(list, id)
		}
	}
	return list
}

func (w *Web) createIssue(v *visit, ref project.Ref) error {
	f := v.sent()
	fields := v.issueFields(&f)
	if v.ticked("preview") || f.bad() {
		return w.showIssueForm(v, ref, nil, f)
	}
	i, err := w.Plan.CreateIssue(v, v.actor, ref, plan.NewIssue{IssueFields: fields})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showIssueForm(v, ref, nil, f)
	}
	return v.redirect(issuePath(i))
}

func (w *Web) editIssue(v *visit, ref project.Ref) error {
	_, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	f := filled("title", i.Title, "description", i.Description, "confidential", on(i.Confidential), "due_date", i.DueDate, "milestone_id", milestoneID(i.Milestone), "was", digest(i.Description))
	f.Values["labels"], f.Values["assignee_ids"] = labelNames(i.Labels), userIDs(i.Assignees)
	return w.showIssueForm(v, ref, i, f)
}

func milestoneID(m *plan.Milestone) string {
	if m == nil {
		return "0"
	}
	return strconv.FormatInt(m.ID, 10)
}

func labelNames(labels []*plan.Label) (list []string) {
	for _, l := range labels {
		list = append(list, l.Name)
	}
	return list
}

func userIDs(users []*user.User) (list []string) {
	for _, u := range users {
		list = append(list, strconv.FormatInt(u.ID, 10))
	}
	return list
}

// digest tells one text from another: a form says with it which one it began
// with.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (w *Web) updateIssue(v *visit, ref project.Ref) error {
	_, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	fields := v.issueFields(&f)
	if !v.ticked("preview") && v.text("was") != digest(i.Description) {
		f.Error = "Another user changed the description in the meantime. Review the issue, then save again to overwrite it."
		f.Values.Set("was", digest(i.Description))
	}
	if v.ticked("preview") || f.bad() {
		return w.showIssueForm(v, ref, i, f)
	}
	if _, err := w.Plan.UpdateIssue(v, v.actor, ref, i.IID, fields); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showIssueForm(v, ref, i, f)
	}
	return v.done("The issue was updated.", issuePath(i))
}

// partPage changes one part of what is planned of an issue or a merge request.
// The script shows its form beside that.
type partPage struct {
	planHead
	Thing     option // what the page is about, for its way back
	Ref, Path string
	Which     string // labels, assignees, reviewers, milestone or due_date
	Form      form
	Choices   []choice
	Goals     []option
}

func (partPage) view() string    { return "project/issue_part" }
func (p partPage) title() string { return words(p.Which) + " of " + p.Ref + " · " + p.Name() }

// part is the part that the address names, of those that there are: NotFound.
func (v *visit) part(parts ...string) (string, error) {
	which := chi.URLParam(v.r, "part")
	if !slices.Contains(parts, which) {
		return "", errs.NotFound("")
	}
	return which, nil
}

// showPart shows the form of a part; goal is the milestone that there is.
func (w *Web) showPart(v *visit, p partPage, f form, goal *plan.Milestone) (err error) {
	p.Form = f
	switch p.Which {
	case "labels":
		p.Choices, err = w.labelChoices(v, p.Place, f.Values["labels"])
	case "assignees":
		p.Choices, err = w.peopleChoices(v, p.Place, f.Values["assignee_ids"])
	case "reviewers":
		p.Choices, err = w.peopleChoices(v, p.Place, f.Values["reviewer_ids"])
	case "milestone":
		p.Goals, err = w.goalOptions(v, p.Place, goal)
	}
	if err != nil {
		return err
	}
	return v.showForm(p, f)
}

// issuePart finds the issue of such a form, for those who may plan it.
func (w *Web) issuePart(v *visit, ref project.Ref) (partPage, *plan.Issue, error) {
	h, i, err := w.plannedIssue(v, ref)
	if err != nil {
		return partPage{}, nil, err
	}
	if !h.Plans {
		return partPage{}, nil, errs.Forbidden("") // the feature would leave it as it is
	}
	which, err := v.part("labels", "assignees", "milestone", "due_date")
	return partPage{planHead: h, Thing: option{"issues", "Issues"}, Ref: "#" + strconv.FormatInt(i.IID, 10), Path: issuePath(i), Which: which}, i, err
}

func (w *Web) editPart(v *visit, ref project.Ref) error {
	p, i, err := w.issuePart(v, ref)
	if err != nil {
		return err
	}
	f := filled("due_date", i.DueDate, "milestone_id", milestoneID(i.Milestone))
	f.Values["labels"], f.Values["assignee_ids"] = labelNames(i.Labels), userIDs(i.Assignees)
	return w.showPart(v, p, f, i.Milestone)
}

func (w *Web) savePart(v *visit, ref project.Ref) error {
	p, i, err := w.issuePart(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	var fields plan.IssueFields
	if v.planFields(&f, &fields, p.Which); f.bad() {
		return w.showPart(v, p, f, i.Milestone)
	}
	if _, err := w.Plan.UpdateIssue(v, v.actor, ref, i.IID, fields); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPart(v, p, f, i.Milestone)
	}
	return v.redirect(p.Path)
}
