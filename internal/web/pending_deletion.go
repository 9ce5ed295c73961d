package web

import (
	"strings"
	"time"

	"svc/internal/project"
)

func (w *Web) pendingDeletionPages() {
	w.page("GET /dashboard/projects/removed", signedIn, w.ownPending)
	w.page("GET /admin/pending_deletion", admins, w.adminPending)
	w.page("POST /-/pending_deletion/projects/{id}/restore", signedIn, w.restorePending(false))
	w.page("POST /-/pending_deletion/projects/{id}/delete", signedIn, w.deletePending(false))
	w.page("POST /-/pending_deletion/groups/{id}/restore", signedIn, w.restorePending(true))
	w.page("POST /-/pending_deletion/groups/{id}/delete", signedIn, w.deletePending(true))
	w.page("POST /admin/pending_deletion/projects/{id}/restore", admins, w.restorePending(false))
	w.page("POST /admin/pending_deletion/projects/{id}/delete", admins, w.deletePending(false))
	w.page("POST /admin/pending_deletion/groups/{id}/restore", admins, w.restorePending(true))
	w.page("POST /admin/pending_deletion/groups/{id}/delete", admins, w.deletePending(true))
}

// pendingPage has the projects and groups that are marked for deletion.
type pendingPage struct {
	Admin    bool
	At       string // where its forms go
	Groups   []pendingRow
	Projects []pendingRow
	Pager    pager
}

// pendingRow is a project or group that is marked for deletion.
type pendingRow struct {
	ID        int64
	Kind      string // projects or groups
	Name      string
	FullPath  string
	MarkedAt  time.Time
	DeletedOn time.Time // when it is deleted permanently
}

func (pendingPage) view() string { return "shared/pending_deletion" }

func (p pendingPage) title() string {
	if p.Admin {
		return "Pending deletion · Admin area"
	}
	return "Pending deletion"
}

const (
	ownPendingAt   = "/dashboard/projects/removed"
	adminPendingAt = "/admin/pending_deletion"
)

func (w *Web) ownPending(v *visit) error {
	return w.showPending(v, pendingPage{At: "/-/pending_deletion/"})
}

func (w *Web) adminPending(v *visit) error {
	return w.showPending(v, pendingPage{Admin: true, At: adminPendingAt + "/"})
}

func (w *Web) showPending(v *visit, p pendingPage) error {
	row := func(kind string, id int64, name, path string, marked *time.Time) (pendingRow, error) {
		r := pendingRow{ID: id, Kind: kind, Name: name, FullPath: path}
		if marked == nil {
			return r, nil
		}
		r.MarkedAt = *marked
		var err error
		r.DeletedOn, err = w.Projects.DeletionDate(v, *marked)
		return r, err
	}
	groups, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Marked: project.OnlyMarked, Owned: !p.Admin, AllAvailable: true},
		project.Sort{By: "name"}, v.paging())
	if err != nil {
		return err
	}
	for _, n := range groups.Items {
		r, err := row("groups", n.ID, n.FullName, n.FullPath, n.MarkedAt)
		if err != nil {
			return err
		}
		p.Groups = append(p.Groups, r)
	}
	projects, err := w.Projects.List(v, v.actor, project.Filter{Marked: project.OnlyMarked, Owned: !p.Admin}, project.Sort{By: "name"}, v.paging())
	if err != nil {
		return err
	}
	for _, one := range projects.Items {
		r, err := row("projects", one.ID, one.FullName(), one.FullPath, one.MarkedAt)
		if err != nil {
			return err
		}
		p.Projects = append(p.Projects, r)
	}
	p.Pager = v.pager(groups.More || projects.More)
	return v.show(p)
}

// pendingBack returns the list that a form of pending deletions was on.
func (v *visit) pendingBack() string {
	if strings.HasPrefix(v.r.URL.Path, adminPendingAt) {
		return adminPendingAt
	}
	return ownPendingAt
}

func (w *Web) restorePending(group bool) func(*visit) error {
	return func(v *visit) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		if group {
			n, err := w.Projects.RestoreGroup(v, v.actor, project.RefTo(id))
			if err != nil {
				return v.redirectWithFlash(err, "", v.pendingBack())
			}
			return v.done("Group "+n.FullName+" was restored.", "/"+n.FullPath)
		}
		p, err := w.Projects.Restore(v, v.actor, project.RefTo(id))
		if err != nil {
			return v.redirectWithFlash(err, "", v.pendingBack())
		}
		return v.done("Project "+p.FullName()+" was restored.", "/"+p.FullPath)
	}
}

func (w *Web) deletePending(group bool) func(*visit) error {
	return func(v *visit) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		d, done := project.Deletion{Permanently: true, FullPath: v.text("full_path")}, "The project is being deleted."
		if group {
			done = "The group is being deleted."
			err = w.Projects.DeleteGroup(v, v.actor, project.RefTo(id), d)
		} else {
			err = w.Projects.Delete(v, v.actor, project.RefTo(id), d)
		}
		return v.redirectWithFlash(err, done, v.pendingBack())
	}
}
