package web

import (
	"strconv"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) advancedPages() {
	w.settingsPage("GET settings/danger", w.advancedSettings)
	w.settingsPage("POST settings/danger/path", w.changePath)
	w.settingsPage("POST settings/danger/transfer", w.transferPlace)
	w.settingsPage("POST settings/danger/delete", w.deletePlace)
	w.projectPage("POST settings/danger/archive", signedIn, w.setArchived(true))
	w.projectPage("POST settings/danger/unarchive", signedIn, w.setArchived(false))
	w.projectPage("POST settings/housekeeping", signedIn, w.housekeep)
}

type advancedPage struct {
	setup
	Form   form
	Places []option // namespaces to transfer it to
	Own    string   // its last part of the path
	Days   int      // days for which it can be restored after deletion
}

func (advancedPage) view() string    { return "shared/settings_advanced" }
func (p advancedPage) title() string { return "Advanced · " + p.Name() }

func (w *Web) advancedSettings(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "danger")
	if err != nil {
		return err
	}
	return w.showAdvanced(v, s, form{})
}

func (w *Web) showAdvanced(v *visit, s setup, f form) error {
	p := advancedPage{setup: s}
	if s.G != nil {
		p.Own = s.G.Group.Path
	} else {
		p.Own = s.P.Project.Path
	}
	if f.Values == nil {
		f.Values = filled("path", p.Own).Values
	}
	f.only("path", "namespace_id", "confirm")
	p.Form = f
	var err error
	if p.Days, err = w.Projects.DeletionDays(v); err != nil {
		return err
	}
	if p.Places, err = w.destinations(v, s); err != nil {
		return err
	}
	return v.showForm(p, f)
}

// destinations returns the namespaces that a project or group can be
// transferred to.
func (w *Web) destinations(v *visit, s setup) ([]option, error) {
	var list []option
	add := func(n *project.Namespace) {
		list = append(list, option{strconv.FormatInt(n.ID, 10), n.FullPath})
	}
	if s.G == nil {
		page, err := w.Projects.Namespaces(v, v.actor, project.NamespaceFilter{}, db.Paging{Limit: 200})
		for _, n := range page.Items {
			if n.ID != s.P.Project.NamespaceID {
				add(n)
			}
		}
		return list, err
	}
	if s.G.Group.ParentID != nil {
		list = append(list, option{"", "No parent (top-level group)"})
	}
	page, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{MinLevel: project.Maintainer}, project.Sort{By: "path"}, db.Paging{Limit: 200})
	for _, n := range page.Items {
		if n.ID != s.G.Group.ID && (s.G.Group.ParentID == nil || n.ID != *s.G.Group.ParentID) {
			add(n)
		}
	}
	return list, err
}

// changeAdvanced runs an action of the advanced settings of a project or group, and redirects to the
// settings at the new path.
func (w *Web) changeAdvanced(v *visit, in project.Place, do func(f *form) (project.Place, error), done string) error {
	s, err := w.setup(v, in, "danger")
	if err != nil {
		return err
	}
	f := v.sent()
	at, err := do(&f)
	if err != nil {
		if err := f.refusedInPlace(err, "namespace_id"); err != nil {
			return err
		}
	}
	if f.bad() {
		return w.showAdvanced(v, s, f)
	}
	return v.done(done, settingsOf(at, "danger"))
}

func (w *Web) changePath(v *visit, in project.Place) error {
	path := v.text("path")
	return w.changeAdvanced(v, in, func(f *form) (project.Place, error) {
		var err error
		if in.Group {
			var n *project.Namespace
			if n, err = w.Projects.UpdateGroup(v, v.actor, in.Ref, project.GroupChange{Path: &path}); err == nil {
				in.Ref = project.Ref(n.FullPath)
			}
		} else {
			var p *project.Project
			if p, err = w.Projects.Update(v, v.actor, in.Ref, project.Change{Path: &path}); err == nil {
				in.Ref = project.Ref(p.FullPath)
			}
		}
		if errs.Is(err, errs.KindForbidden) {
			f.wrong("path", "can be changed only by Owners")
			return in, nil
		}
		return in, err
	}, "The path was changed. The old path redirects to it.")
}

func (w *Web) transferPlace(v *visit, in project.Place) error {
	return w.changeAdvanced(v, in, func(f *form) (project.Place, error) {
		to, err := strconv.ParseInt(v.text("namespace_id"), 10, 64)
		if err != nil && (!in.Group || v.text("namespace_id") != "") {
			f.wrong("namespace_id", "is not a namespace")
			return in, nil
		}
		if !in.Group {
			p, err := w.Projects.Transfer(v, v.actor, in.Ref, project.RefTo(to))
			if err == nil {
				in.Ref = project.Ref(p.FullPath)
			}
			return in, err
		}
		var parent *int64
		if err == nil {
			parent = &to
		}
		n, err := w.Projects.TransferGroup(v, v.actor, in.Ref, parent)
		if err == nil {
			in.Ref = project.Ref(n.FullPath)
		}
		return in, err
	}, "The transfer is complete. The old path redirects here.")
}

func (w *Web) setArchived(archived bool) func(*visit, project.Ref) error {
	done := map[bool]string{true: "The project was archived. It is now read-only.", false: "The project was unarchived."}[archived]
	return func(v *visit, ref project.Ref) error {
		_, err := w.Projects.SetArchived(v, v.actor, ref, archived)
		return v.redirectWithFlash(err, done, settingsOf(project.Place{Ref: ref}, "danger"))
	}
}

// deletePlace deletes a project or group after its path was typed as a
// confirmation.
func (w *Web) deletePlace(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "danger")
	if err != nil {
		return err
	}
	if v.text("confirm") != s.Path() {
		var f form
		f.wrong("confirm", "is not "+s.Path())
		return w.showAdvanced(v, s, f)
	}
	if in.Group {
		err = w.Projects.DeleteGroup(v, v.actor, in.Ref, project.Deletion{})
	} else {
		err = w.Projects.Delete(v, v.actor, in.Ref, project.Deletion{})
	}
	if err != nil {
		return err
	}
	days, err := w.Projects.DeletionDays(v)
	if err != nil {
		return err
	}
	if days == 0 {
		return v.done(s.Name()+" was deleted.", "/")
	}
	return v.done(s.Name()+" is pending deletion. It can be restored for "+plural(days, "day")+".", ownPendingAt)
}

func (w *Web) housekeep(v *visit, ref project.Ref) error {
	err := w.Repos.Housekeep(v, v.actor, ref)
	return v.redirectWithFlash(err, "Housekeeping was started.", settingsOf(project.Place{Ref: ref}, "danger"))
}
