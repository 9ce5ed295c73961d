package web

import (
	"fmt"
	"html/template"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

func (w *Web) milestonePages() {
	w.placePage("GET milestones", anyone, w.milestones)
	w.placePage("GET milestones/new", signedIn, w.newMilestone)
	w.placePage("POST milestones", signedIn, w.createMilestone)
	w.placePage("GET milestones/{id}", anyone, w.milestone)
	w.placePage("GET milestones/{id}/edit", signedIn, w.editMilestone)
	w.placePage("POST milestones/{id}", signedIn, w.updateMilestone)
	w.placePage("POST milestones/{id}/turn", signedIn, w.turnMilestone)
	w.placePage("POST milestones/{id}/delete", signedIn, w.deleteMilestone)
	w.projectPage("POST milestones/{id}/promote", signedIn, ofProject(w.promoteMilestone))
}

type milestonesPage struct {
	planHead
	State string // active, closed or all
	Rows  []goalRow
	Pager pager
}

// goalRow is a milestone with its progress.
type goalRow struct {
	*plan.Milestone
	plan.Counts
	Page string // its URL
	Late bool
	Own  bool // not inherited
}

// Share returns the completed percentage.
func (r goalRow) Share() int64 {
	if r.All == 0 {
		return 0
	}
	return r.Counts.Closed * 100 / r.All
}

func (milestonesPage) view() string    { return "shared/milestones" }
func (p milestonesPage) title() string { return "Milestones · " + p.Name() }

func (w *Web) milestones(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "milestones")
	if err != nil {
		return err
	}
	p := milestonesPage{planHead: h, State: v.param("state")}
	f := plan.MilestoneFilter{Ancestors: true, Descendants: in.Group}
	switch p.State {
	case "closed":
		f.State = plan.ClosedMilestone
	case "all":
	default:
		p.State, f.State = "active", plan.ActiveMilestone
	}
	page, err := w.Plan.Milestones(v, v.actor, h.Place, f, v.paging())
	if err != nil {
		return err
	}
	if p.Rows, err = w.goalRows(v, h, page.Items...); err != nil {
		return err
	}
	p.Pager = v.pager(page.More)
	return v.show(p)
}

func (w *Web) goalRows(v *visit, h planHead, list ...*plan.Milestone) ([]goalRow, error) {
	ids := make([]int64, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	counts, err := w.Plan.CountByMilestone(v, v.actor, h.Place, ids...)
	var rows []goalRow
	for _, m := range list {
		late := m.State == plan.ActiveMilestone && w.late(m.DueDate)
		rows = append(rows, goalRow{m, counts[m.ID], milestonePath(m), late, h.owns(m.ProjectID, m.GroupID)})
	}
	return rows, err
}

// milestonePage is a milestone with its issues.
type milestonePage struct {
	planHead
	goalRow
	Text     template.HTML
	Shown    string // opened or closed
	Issues   []issueRow
	Merges   []mergeRow // the newest
	More     bool       // there are more than these
	Pager    pager
	Promotes bool
}

func (milestonePage) view() string    { return "shared/milestone" }
func (p milestonePage) title() string { return p.Milestone.Title + " · " + p.Name() }

// goal returns the milestone that the URL names.
func (w *Web) goal(v *visit, in project.Place) (*plan.Milestone, error) {
	iid, err := v.number("id")
	if err != nil {
		return nil, err
	}
	page, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{IIDs: []int64{iid}}, allOf())
	if err == nil && len(page.Items) == 0 {
		err = errs.NotFound("Milestone")
	}
	if err != nil {
		return nil, err
	}
	return page.Items[0], nil
}

func (w *Web) milestone(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "milestones")
	if err != nil {
		return err
	}
	m, err := w.goal(v, h.Place)
	if err != nil {
		return err
	}
	rows, err := w.goalRows(v, h, m)
	if err != nil {
		return err
	}
	p := milestonePage{planHead: h, goalRow: rows[0], Shown: v.param("state"), Promotes: h.Plans && h.grouped()}
	if p.Shown != "closed" {
		p.Shown = "opened"
	}
	if h.G != nil || h.P.Issues { // otherwise it has only merge requests
		f := plan.IssueFilter{Filter: listing.Filter{State: plan.State(p.Shown)}, Match: listing.Match{MilestoneID: fmt.Sprint(m.ID)}}
		page, err := w.Plan.PlaceIssues(v, v.actor, h.Place, f, listing.Sort{By: "relative_position"}, v.paging())
		if err != nil {
			return err
		}
		p.Issues, p.Pager = w.issueRows(page.Items, h.G != nil), v.pager(page.More)
	}
	if h.G != nil || h.P.Merges {
		const most = 20
		page, err := w.Merges.OfMilestone(v, v.actor, h.Place, m.ID, db.Paging{Limit: most})
		if err != nil {
			return err
		}
		p.Merges, p.More = newMergeRows(page.Items, h.G != nil), page.More
	}
	if p.Text, err = w.preview(v, h.Place, m.Description); err != nil {
		return err
	}
	return v.show(p)
}

// milestoneForm is the form of a new or an existing milestone.
type milestoneForm struct {
	planHead
	IID  int64 // 0 for a new one
	Form form
	Look template.HTML
}

func (milestoneForm) view() string { return "shared/milestone_form" }
func (p milestoneForm) title() string {
	if p.IID == 0 {
		return "New milestone · " + p.Name()
	}
	return "Edit milestone · " + p.Name()
}

func (w *Web) newMilestone(v *visit, in project.Place) error {
	return w.showMilestone(v, in, 0, filled())
}

func (w *Web) showMilestone(v *visit, in project.Place, iid int64, f form) error {
	h, err := w.planHead(v, in, "milestones")
	if err != nil {
		return err
	}
	if !h.Plans {
		return errs.Forbidden("")
	}
	f.only("title", "description", "start_date", "due_date")
	p := milestoneForm{planHead: h, IID: iid, Form: f}
	if v.r.PostForm.Get("preview") != "" {
		if p.Look, err = w.preview(v, h.Place, f.Get("description")); err != nil {
			return err
		}
	}
	return v.showForm(p, f)
}

func (w *Web) editMilestone(v *visit, in project.Place) error {
	m, err := w.goal(v, in)
	if err != nil {
		return err
	}
	return w.showMilestone(v, in, m.IID, filled("title", m.Title, "description", m.Description, "start_date", m.StartDate, "due_date", m.DueDate))
}

// saveMilestone creates or changes a milestone, and shows the form again if it
// is refused.
func (w *Web) saveMilestone(v *visit, in project.Place, iid int64, done string, save func(plan.MilestoneFields) (*plan.Milestone, error)) error {
	f := v.sent()
	title, text, from, until := v.text("title"), v.prose("description"), v.text("start_date"), v.text("due_date")
	for name, day := range map[string]string{"start_date": from, "due_date": until} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			f.wrong(name, "is not a date")
		}
	}
	if !f.bad() && !v.ticked("preview") {
		m, err := save(plan.MilestoneFields{Title: &title, Description: &text, StartDate: &from, DueDate: &until})
		if err == nil {
			return v.done(done, milestonePath(m))
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showMilestone(v, in, iid, f)
}

func (w *Web) createMilestone(v *visit, in project.Place) error {
	return w.saveMilestone(v, in, 0, "The milestone was created.", func(f plan.MilestoneFields) (*plan.Milestone, error) {
		return w.Plan.CreateMilestone(v, v.actor, in, f)
	})
}

func (w *Web) updateMilestone(v *visit, in project.Place) error {
	m, err := w.goal(v, in)
	if err != nil {
		return err
	}
	return w.saveMilestone(v, in, m.IID, "The milestone was updated.", func(f plan.MilestoneFields) (*plan.Milestone, error) {
		return w.Plan.UpdateMilestone(v, v.actor, in, m.ID, f)
	})
}

func (w *Web) turnMilestone(v *visit, in project.Place) error {
	m, err := w.goal(v, in)
	if err != nil {
		return err
	}
	event := v.text("event")
	done := map[string]string{"close": "The milestone was closed.", "activate": "The milestone was reopened."}[event]
	if done == "" {
		return errs.Invalid("Unknown action for a milestone.")
	}
	_, err = w.Plan.UpdateMilestone(v, v.actor, in, m.ID, plan.MilestoneFields{Event: event})
	return v.redirectWithFlash(err, done, milestonePath(m))
}

func (w *Web) deleteMilestone(v *visit, in project.Place) error {
	m, err := w.goal(v, in)
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Plan.DeleteMilestone(v, v.actor, in, m.ID, nil), "The milestone was deleted.", pathTo(placePath(in))+"/-/milestones")
}

func (w *Web) promoteMilestone(v *visit, in project.Place) error {
	m, err := w.goal(v, in)
	if err != nil {
		return err
	}
	made, err := w.Plan.PromoteMilestone(v, v.actor, in.Ref, m.ID)
	if err != nil {
		return v.redirectWithFlash(err, "", milestonePath(m))
	}
	return v.done("The milestone was promoted to a group milestone.", milestonePath(made))
}
