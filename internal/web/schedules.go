package web

import (
	"slices"
	"strings"

	"svc/internal/ci/schedule"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) schedulePages() {
	w.projectPage("GET pipeline_schedules", anyone, w.schedules)
	w.projectPage("GET pipeline_schedules/new", signedIn, w.newSchedule)
	w.projectPage("POST pipeline_schedules", signedIn, w.createSchedule)
	w.projectPage("GET pipeline_schedules/{id}/edit", signedIn, w.editSchedule)
	w.projectPage("POST pipeline_schedules/{id}", signedIn, w.updateSchedule)
	w.projectPage("POST pipeline_schedules/{id}/play", signedIn, w.playSchedule)
	w.projectPage("POST pipeline_schedules/{id}/take_ownership", signedIn, w.takeSchedule)
	w.projectPage("POST pipeline_schedules/{id}/delete", signedIn, w.deleteSchedule)
}

// schedulesPage is the list of schedules.
type schedulesPage struct {
	ciHead
	Schedules []scheduleRow
	Pager     pager
}

// scheduleRow is a schedule with the permissions of the visitor.
type scheduleRow struct {
	*schedule.Schedule
	RefName string
	Can     schedule.Can
}

func (schedulesPage) view() string    { return "project/schedules" }
func (p schedulesPage) title() string { return "Schedules · " + p.Project.FullName() }

func (w *Web) schedules(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "schedules")
	if err != nil {
		return err
	}
	found, err := w.CI.Schedules.List(v, v.actor, h.in(), nil, v.paging())
	if err != nil {
		return err
	}
	p := schedulesPage{ciHead: h, Pager: v.pager(found.More)}
	can, err := w.CI.Schedules.Can(v, v.actor, h.Project, found.Items)
	if err != nil {
		return err
	}
	for i, s := range found.Items {
		p.Schedules = append(p.Schedules, scheduleRow{Schedule: s, RefName: shortRef(s.Ref), Can: can[i]})
	}
	return v.show(p)
}

// shortRef returns the name of a branch or tag without refs/heads/ or
// refs/tags/.
func shortRef(full string) string {
	return strings.TrimPrefix(strings.TrimPrefix(full, "refs/heads/"), "refs/tags/")
}

// schedulePage is the form of a schedule.
type schedulePage struct {
	ciHead
	ID       int64 // 0 for a new one
	Form     form
	Branches []string
	Tags     []string
	SetsVars bool // the visitor may set variables
	Rows     []variable.Given
}

func (schedulePage) view() string { return "project/schedule" }
func (p schedulePage) title() string {
	if p.ID == 0 {
		return "New schedule · " + p.Project.FullName()
	}
	return "Edit schedule · " + p.Project.FullName()
}

// refChoice is a list of branches and tags to choose from, for the part
// "refselect".
type refChoice struct {
	Ref            string
	Branches, Tags []string
}

func newRefs(f form, branches, tags []string) refChoice {
	return refChoice{f.Get("ref"), branches, tags}
}

func (w *Web) newSchedule(v *visit, ref project.Ref) error {
	return w.showSchedule(v, ref, 0, filled("cron", "0 4 * * *", "cron_timezone", "UTC", "active", "1"), nil)
}

func (w *Web) showSchedule(v *visit, ref project.Ref, id int64, f form, rows []variable.Given) error {
	h, err := w.ciHead(v, ref, "schedules")
	if err != nil {
		return err
	}
	if !h.May {
		return errs.Forbidden("")
	}
	f.only("description", "cron", "cron_timezone", "ref")
	p := schedulePage{ciHead: h, ID: id, Form: f, SetsVars: variable.MayGive(v.actor, h.Project), Rows: append(slices.Clone(rows), variable.Given{})}
	if p.Branches, p.Tags, err = w.refNames(v, h.in()); err != nil {
		return err
	}
	if p.Form.Get("ref") == "" {
		p.Form.Values.Set("ref", h.Project.DefaultBranch)
	}
	return v.showForm(p, f)
}

func (w *Web) editSchedule(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	s, err := w.CI.Schedules.Get(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	if !s.CanEdit {
		return errs.Forbidden("The schedule belongs to another user. Take ownership first.")
	}
	f := filled("description", s.Description, "cron", s.Cron, "cron_timezone", s.Timezone, "ref", shortRef(s.Ref))
	if s.Active {
		f.Values.Set("active", "1")
	}
	return w.showSchedule(v, ref, id, f, s.Variables)
}

// scheduleChange returns the submitted fields.
func (v *visit) scheduleChange() schedule.Change {
	description, ref, cron, zone, active := v.text("description"), v.text("ref"), v.text("cron"), v.text("cron_timezone"), v.text("active") == "1"
	c := schedule.Change{Description: &description, Ref: &ref, Cron: &cron, Timezone: &zone, Active: &active}
	if v.r.PostForm.Has("variable_key") { // the form has variables if the user may set them
		variables := v.pairs()
		c.Variables = &variables
	}
	return c
}

func (w *Web) createSchedule(v *visit, ref project.Ref) error {
	if _, err := w.CI.Schedules.Create(v, v.actor, ref, v.scheduleChange()); err != nil {
		return w.scheduleAgain(v, ref, 0, err)
	}
	return w.doneWith(v, ref, "The schedule was created.", "pipeline_schedules")
}

func (w *Web) updateSchedule(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, err := w.CI.Schedules.Update(v, v.actor, ref, id, v.scheduleChange()); err != nil {
		return w.scheduleAgain(v, ref, id, err)
	}
	return w.doneWith(v, ref, "The schedule was updated.", "pipeline_schedules")
}

// scheduleAgain shows the form again with its errors.
func (w *Web) scheduleAgain(v *visit, ref project.Ref, id int64, fault error) error {
	f := v.sent()
	if err := f.refused(fault); err != nil {
		return err
	}
	return w.showSchedule(v, ref, id, f, v.pairs())
}

func (w *Web) playSchedule(v *visit, ref project.Ref) error {
	return w.onSchedule(v, ref, "The pipeline of the schedule was started.", func(id int64) error { return w.CI.Schedules.Play(v, v.actor, ref, id) })
}

func (w *Web) takeSchedule(v *visit, ref project.Ref) error {
	return w.onSchedule(v, ref, "You are now the owner of the schedule.", func(id int64) error {
		_, err := w.CI.Schedules.TakeOwnership(v, v.actor, ref, id)
		return err
	})
}

func (w *Web) deleteSchedule(v *visit, ref project.Ref) error {
	return w.onSchedule(v, ref, "The schedule was deleted.", func(id int64) error { return w.CI.Schedules.Delete(v, v.actor, ref, id, nil) })
}

func (w *Web) onSchedule(v *visit, ref project.Ref, text string, do func(id int64) error) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := do(id); err != nil {
		return err
	}
	return w.doneWith(v, ref, text, "pipeline_schedules")
}
