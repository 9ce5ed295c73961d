package web

import (
	"fmt"
	"strings"

	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/project"
)

func (w *Web) runnerPages() {
	for page, do := range map[string]func(*visit, setup) error{
		"GET %s": w.runners, "POST %s": w.createRunner, "POST %s/{id}": w.changeRunner, "POST %s/{id}/pause": w.pauseRunner(true),
		"POST %s/{id}/resume": w.pauseRunner(false), "POST %s/{id}/token": w.resetRunner, "POST %s/{id}/delete": w.deleteRunner,
	} {
		w.settingsPage(fill(page, "settings/runners"), func(v *visit, in project.Place) error {
			s, err := w.setup(v, in, "runners")
			if err != nil {
				return err
			}
			return do(v, s)
		})
		w.page(fill(page, "/admin/runners"), admins, func(v *visit) error { return do(v, setup{Part: "runners", Owner: true}) })
	}
	w.projectPage("POST settings/runners/{id}/enable", signedIn, ofProject(w.enableRunner))
	w.projectPage("POST settings/runners/{id}/disable", signedIn, ofProject(w.disableRunner))
}

// fill inserts a path into the pattern of a page.
func fill(pattern, at string) string { return strings.Replace(pattern, "%s", at, 1) }

type runnersPage struct {
	setup
	Admin     bool
	At        string
	Form      form
	Status    string
	Statuses  []option
	Runners   []runnerRow
	Available []runnerRow     // of other projects that the visitor manages
	Made      *runners.Runner // with its token if it was just created
	Commands  []string        // the commands that start it
	Pager     pager
}

type runnerRow struct {
	*runners.Runner
	Status runners.Status
	Kept   bool   // the visitor may change it here
	Shared bool   // from another project: it can be removed here
	Scope  string // whose jobs it takes: Instance, Group or Project
}

// TagList returns the tags as the form shows them.
func (r runnerRow) TagList() string { return strings.Join(r.Tags, ", ") }

// Title returns the description of the runner, or its number.
func (r runnerRow) Title() string {
	if r.Description != "" {
		return r.Description
	}
	return fmt.Sprintf("Runner #%d", r.ID)
}

func (runnersPage) view() string { return "shared/settings_runners" }
func (p runnersPage) title() string {
	if p.Admin {
		return "Runners · Admin area"
	}
	return "Runners · " + p.Name()
}

// runnersAt returns the URL of the list of runners.
func runnersAt(s setup) string {
	if s.Base == "" {
		return "/admin/runners"
	}
	return s.Base + "runners"
}

func (w *Web) runners(v *visit, s setup) error {
	return w.showRunners(v, s, filled("run_untagged", "1"), nil)
}

func (w *Web) showRunners(v *visit, s setup, f form, made *runners.Runner) error {
	p := runnersPage{setup: s, Admin: s.Base == "", At: runnersAt(s), Status: v.param("status"), Made: made,
		Statuses: []option{{"", "All"}, {"online", "Online"}, {"offline", "Offline"}, {"stale", "Stale"}, {"never_contacted", "Never contacted"}, {"paused", "Paused"}}}
	filter := runners.Filter{Status: p.Status}
	var page db.Page[*runners.Runner]
	var err error
	switch {
	case p.Admin:
		page, err = w.CI.Runners.ListAll(v, v.actor, filter, v.paging())
	case s.G != nil:
		page, err = w.CI.Runners.ListOfGroup(v, v.actor, s.Place.Ref, filter, v.paging())
	default:
		page, err = w.CI.Runners.ListOfProject(v, v.actor, s.Place.Ref, filter, v.paging())
	}
	if err != nil {
		return err
	}
	p.Pager = v.pager(page.More)
	here := map[int64]bool{}
	for _, r := range page.Items {
		here[r.ID] = true
		p.Runners = append(p.Runners, w.runnerRow(v, s, r))
	}
	if s.P != nil {
		own, err := w.CI.Runners.ListOwned(v, v.actor, runners.Filter{Type: runners.ProjectType}, allOf())
		if err != nil {
			return err
		}
		for _, r := range own.Items {
			if !here[r.ID] && !r.Locked {
				p.Available = append(p.Available, w.runnerRow(v, s, r))
			}
		}
	}
	f.only("description", "tags", "maximum_timeout")
	p.Form = f
	if made != nil {
		p.Commands = []string{
			fmt.Sprintf("SVC_RUNNER_URL=%s SVC_RUNNER_TOKEN=%s svc runner", w.Site.URL, made.Secret),
			fmt.Sprintf("gitlab-runner register --url %s --token %s", w.Site.URL, made.Secret),
		}
	}
	return v.showForm(p, f)
}

func (w *Web) runnerRow(v *visit, s setup, r *runners.Runner) runnerRow {
	row := runnerRow{Runner: r, Status: r.Status(w.Now())}
	switch r.Type {
	case runners.InstanceType:
		row.Scope, row.Kept = "Instance", v.actor.Admin && s.Base == ""
	case runners.GroupType:
		row.Scope, row.Kept = "Group", s.Base == "" || s.G != nil && r.GroupID != nil && *r.GroupID == s.G.Group.ID
	default:
		row.Scope, row.Kept, row.Shared = "Project", true, s.P != nil && r.OwnerProjectID != s.P.Project.ID
	}
	return row
}

// runnerChange returns the submitted change.
func (v *visit) runnerChange(f *form) runners.Change {
	description, untagged, protected, locked := v.text("description"), v.ticked("run_untagged"), v.ticked("ref_protected"), v.ticked("locked")
	tags := strings.Split(v.text("tags"), ",")
	c := runners.Change{Description: &description, RunUntagged: &untagged, ProtectedOnly: &protected, Locked: &locked, Tags: &tags}
	var timeout *int64
	if minutes := v.whole(f, "maximum_timeout"); minutes > 0 {
		seconds := minutes * 60
		timeout = &seconds
	}
	c.MaximumTimeout = &timeout
	return c
}

func (w *Web) createRunner(v *visit, s setup) error {
	f := v.sent()
	n := runners.NewRunner{Type: runners.InstanceType, Change: v.runnerChange(&f)}
	switch {
	case s.G != nil:
		n.Type, n.Group = runners.GroupType, s.Place.Ref
	case s.P != nil:
		n.Type, n.Project = runners.ProjectType, s.Place.Ref
	}
	if f.bad() {
		return w.showRunners(v, s, f, nil)
	}
	made, err := w.CI.Runners.Create(v, v.actor, n)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showRunners(v, s, f, nil)
	}
	return w.showRunners(v, s, filled("run_untagged", "1"), made)
}

func (w *Web) changeRunner(v *visit, s setup) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f := v.sent()
	c := v.runnerChange(&f)
	if f.bad() {
		v.setFlash("bad", "The maximum job timeout must be a number of minutes.")
		return v.redirect(runnersAt(s))
	}
	_, err = w.CI.Runners.Update(v, v.actor, id, c)
	return v.redirectWithFlash(err, "The runner was saved.", runnersAt(s))
}

func (w *Web) pauseRunner(paused bool) func(*visit, setup) error {
	done := map[bool]string{true: "The runner was paused.", false: "The runner was resumed."}[paused]
	return func(v *visit, s setup) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		_, err = w.CI.Runners.Update(v, v.actor, id, runners.Change{Paused: &paused})
		return v.redirectWithFlash(err, done, runnersAt(s))
	}
}

func (w *Web) resetRunner(v *visit, s setup) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	made, err := w.CI.Runners.ResetToken(v, v.actor, id)
	if err != nil {
		return v.redirectWithFlash(err, "", runnersAt(s))
	}
	return w.showRunners(v, s, filled("run_untagged", "1"), made)
}

func (w *Web) deleteRunner(v *visit, s setup) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.CI.Runners.Delete(v, v.actor, id, nil), "The runner was removed.", runnersAt(s))
}

func (w *Web) enableRunner(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.CI.Runners.Enable(v, v.actor, in.Ref, id)
	return v.redirectWithFlash(err, "The runner was enabled for this project.", settingsOf(in, "runners"))
}

func (w *Web) disableRunner(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.CI.Runners.Disable(v, v.actor, in.Ref, id), "The runner was disabled for this project.", settingsOf(in, "runners"))
}
