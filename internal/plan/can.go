package plan

import (
	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// Can is what an actor may do with the issues, labels and boards of a project.
// Interfaces use it to decide what to show; the operations apply the same rules.
type Can struct {
	Create bool // create issues
	Choose bool // set labels, assignees and the milestone of a new issue
	Plan   bool // change labels, milestones and boards
}

// CanIn returns what an actor may do in a project that they can see.
func CanIn(by actor.Actor, proj *project.Project) Can {
	return Can{
		Create: CheckCreate(by, proj) == nil, Choose: maySetPlan(by, proj), Plan: requireLevel(by, proj, project.Planner) == nil,
	}
}

// CheckCreate returns an error if the actor may not create issues in a project
// that they can see.
func CheckCreate(by actor.Actor, proj *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return proj.Change(by, project.IssuePart, project.NoAccess)
}

// maySetPlan reports whether an actor may set the planning fields of an issue that
// they create.
func maySetPlan(by actor.Actor, proj *project.Project) bool {
	return proj.Enough(by, project.Guest) == nil
}

// requireLevel returns an error if the actor has less than the level or the
// project is archived. It does not require read access to issues, because labels
// belong to merge requests as well.
func requireLevel(by actor.Actor, proj *project.Project, level project.Level) error {
	return proj.Change(by, project.WholePart, level)
}

// IssueCan is what an actor may do with an issue.
type IssueCan struct {
	Edit   bool // title, description and state
	Plan   bool // all fields
	Delete bool
	Link   bool // to other issues
}

// Can returns what an actor who can see the issue may do with it.
func (i *Issue) Can(by actor.Actor, proj *project.Project) IssueCan {
	edit := i.editable(by, proj) == nil
	return IssueCan{
		Edit: edit, Plan: edit && mayPlan(by, proj), Delete: i.deletable(by, proj) == nil, Link: proj.MayChange(by, project.IssuePart, project.Guest),
	}
}

// editable returns an error if the actor may not change any field of an issue that
// they can see.
func (i *Issue) editable(by actor.Actor, proj *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if !mayPlan(by, proj) && !i.IsOwn(by) {
		return errs.Forbidden("")
	}
	return proj.Change(by, project.WholePart, project.NoAccess)
}

// deletable returns an error if the actor may not delete an issue that they can
// see. Owners may, and members whose role is exactly Planner.
func (i *Issue) deletable(by actor.Actor, proj *project.Project) error {
	if proj.Access.Level() != project.Planner {
		if err := proj.Enough(by, project.Owner); err != nil {
			return err
		}
	}
	return proj.Change(by, project.WholePart, project.NoAccess)
}

// CanComment reports whether an actor who can see the target may comment on it.
func (on Noteable) CanComment(by actor.Actor) bool { return on.mayComment(by) == nil }

// CanResolve reports whether the actor may resolve threads of the target.
func (on Noteable) CanResolve(by actor.Actor) bool { return on.mayResolve(by) == nil }

// CanEdit reports whether the actor may change and delete a note on the target.
func (on Noteable) CanEdit(by actor.Actor, n *Note) bool { return on.editable(by, n) == nil }

// editable returns an error if the actor may not change a note. Requires the author
// or a Maintainer. System notes cannot be changed.
func (on Noteable) editable(by actor.Actor, n *Note) error {
	if err := on.In.Change(by, project.WholePart, project.NoAccess); err != nil {
		return err
	}
	if n.System != "" {
		return errs.Forbidden("")
	}
	if by.Is(n.AuthorID) {
		return nil
	}
	return on.In.Enough(by, project.Maintainer)
}
