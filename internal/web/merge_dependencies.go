package web

import (
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/project"
)

func (w *Web) mergeDependencyPages() {
	w.projectPage("POST merge_requests/{id}/blocks", signedIn, w.addDependency)
	w.projectPage("POST merge_requests/{id}/blocks/{block}/delete", signedIn, w.deleteDependency)
}

// dependencyView is the dependencies of a merge request, with the form to add one.
type dependencyView struct {
	Needs, Blocks []dependencyRow
	Path          string
	Edits         bool // the visitor may remove dependencies
	Adds          bool // the visitor may add one
	Open          bool // the merge request is open
}

// Dependencies returns the dependencies as they are shown.
func (p mergePage) Dependencies() *dependencyView {
	open := p.State == merge.Opened
	return &dependencyView{Needs: p.Needs, Blocks: p.Blocks, Path: p.Path, Edits: p.Edits, Adds: p.Edits && open, Open: open}
}

// dependencyRow is one of the merge requests at the ends of a dependency.
type dependencyRow struct {
	ID    int64     // of the dependency
	Other *mergeRow // the merge request at the other end; nil if the user cannot see it
}

// fillDependencies sets the dependencies of a merge request and those on it.
func (w *Web) fillDependencies(v *visit, p *mergePage) error {
	needs, err := w.Merges.DependenciesOf(v, v.actor, p.MergeRequest)
	if err != nil {
		return err
	}
	blocks, err := w.Merges.DependentsOf(v, v.actor, p.MergeRequest)
	if err != nil {
		return err
	}
	rows := func(list []*merge.Dependency, other func(*merge.Dependency) *merge.MergeRequest) (rows []dependencyRow) {
		for _, d := range list {
			row := dependencyRow{ID: d.ID}
			if m := other(d); m != nil {
				found := newMergeRow(m, m.ProjectID != p.ProjectID)
				row.Other = &found
			}
			rows = append(rows, row)
		}
		return rows
	}
	p.Needs = rows(needs, func(d *merge.Dependency) *merge.MergeRequest { return d.Blocking })
	p.Blocks = rows(blocks, func(d *merge.Dependency) *merge.MergeRequest { return d.Blocked })
	return nil
}

func (w *Web) addDependency(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "The dependency was added.", func(iid int64) error {
		if _, err := w.Merges.Get(v, v.actor, ref, iid); err != nil {
			return err
		}
		to, number, err := readReference(ref, v.text("merge_request"), "merge_requests", "!")
		if err != nil {
			return err
		}
		blocking, err := w.Merges.Get(v, v.actor, to, number)
		if errs.Is(err, errs.KindNotFound) {
			return errs.Invalid("The merge request does not exist, or you don't have access to it.")
		}
		if err != nil {
			return err
		}
		_, err = w.Merges.AddDependency(v, v.actor, ref, iid, blocking.ID)
		if errs.Is(err, errs.KindConflict) {
			err = errs.Conflict("The merge request has this dependency already.").Because(err)
		}
		return err
	})
}

func (w *Web) deleteDependency(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "The dependency was removed.", func(iid int64) error {
		id, err := v.number("block")
		if err != nil {
			return err
		}
		return w.Merges.DeleteDependency(v, v.actor, ref, iid, id)
	})
}
