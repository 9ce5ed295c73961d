package web

import (
	"fmt"
	"strconv"

	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/project"
)

func (w *Web) pathLockPages() {
	w.projectPage("GET path_locks", anyone, w.pathLocks)
	w.projectPage("POST path_locks/{id}/delete", signedIn, w.deletePathLock)
}

// pathLocksPage is the list of the files of a project that are locked with Git LFS.
type pathLocksPage struct {
	head
	Locks []lockRow
	Adds  bool // the visitor may lock files
	Pager pager
}

// lockRow is a locked file.
type lockRow struct {
	*lfs.Lock
	Page    string // of the file; empty without a default branch
	Unlocks bool   // the visitor may unlock it
	Own     bool
}

func (pathLocksPage) view() string    { return "project/path_locks" }
func (p pathLocksPage) title() string { return "Locked files · " + p.Project.FullName() }

// lfsProject returns a project that uses LFS. It is NotFound where LFS is disabled.
func (w *Web) lfsProject(v *visit, ref project.Ref, op lfs.Operation) (*project.Project, error) {
	p, err := w.LFS.Project(v, v.actor, ref, op)
	if errs.Is(err, errs.KindNotAllowed) {
		return nil, errs.NotFound("")
	}
	return p, err
}

func (w *Web) pathLocks(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "path_locks")
	if err != nil {
		return err
	}
	in, err := w.lfsProject(v, h.in(), lfs.Download)
	if err != nil {
		return err
	}
	p := pathLocksPage{head: h, Adds: w.LFS.CanLock(v.actor, in)}
	filter := lfs.LockFilter{Limit: perPage}
	if from, err := strconv.ParseInt(v.param("from"), 10, 64); err == nil {
		filter.From = from
	}
	list, next, err := w.LFS.Locks(v, in, filter)
	if err != nil {
		return err
	}
	for _, l := range list {
		row := lockRow{Lock: l, Unlocks: w.LFS.CanUnlock(v.actor, in, l), Own: v.actor.Is(l.UserID)}
		if in.DefaultBranch != "" {
			row.Page = pathTo(in.FullPath) + "/-/blob" + pathTo(in.DefaultBranch) + pathTo(l.Path)
		}
		p.Locks = append(p.Locks, row)
	}
	if filter.From > 0 {
		p.Pager.Before = "?"
	}
	if next > 0 {
		p.Pager.After = fmt.Sprintf("?from=%d", next)
	}
	return v.show(p)
}

func (w *Web) deletePathLock(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	in, err := w.lfsProject(v, ref, lfs.Upload)
	if err != nil {
		return err
	}
	l, err := w.LFS.Unlock(v, v.actor, in, id, true)
	if err != nil {
		return err
	}
	return w.doneWith(v, ref, l.Path+" was unlocked.", "path_locks")
}
