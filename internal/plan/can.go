package plan

import (
	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// Can is what an actor may do with the planned work of a project, for interfaces
// that offer it. Each answer comes from the rule that the operation asks.
type Can struct {
	Create bool // write issues
	Choose bool // choose labels, assignees and a milestone for a new issue
	Plan   bool // change labels, milestones and boards
}

// CanIn returns what an actor may do in a project that they can see.
func CanIn(by actor.Actor, in *project.Project) Can {
	return Can{
		Create: CheckCreate(by, in) == nil, Choose: chooses(by, in), Plan: changes(by, in, project.Planner) == nil,
	}
}

// CheckCreate refuses an actor who may not write issues in a project that was
// given to them.
func CheckCreate(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return in.Change(by, project.IssuePart, project.NoAccess)
}

// chooses reports whether an actor may plan the issue that they write: members
// may.
func chooses(by actor.Actor, in *project.Project) bool {
	return in.Enough(by, project.Guest) == nil
}

// changes refuses an actor who has less than the level, and all where the
// project is archived. Labels are for merge requests as well, so this does not
// ask whether the actor reads issues.
func changes(by actor.Actor, in *project.Project, level project.Level) error {
	return in.Change(by, project.WholePart, level)
}

// IssueCan is what an actor may do with an issue.
type IssueCan struct {
	Edit   bool // its title, description and state
	Plan   bool // all of it
	Delete bool
	Link   bool // to other issues
}

// Can says what an actor, who sees the issue, may do with it in its project.
func (i *Issue) Can(by actor.Actor, in *project.Project) IssueCan {
	edit := i.editable(by, in) == nil
	return IssueCan{
		Edit: edit, Plan: edit && planner(by, in), Delete: i.deletable(by, in) == nil, Link: in.MayChange(by, project.IssuePart, project.Guest),
	}
}

// editable refuses an actor who may change nothing of an issue that they see.
func (i *Issue) editable(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if !planner(by, in) && !i.IsOwn(by) {
		return errs.Forbidden("")
	}
	return in.Change(by, project.WholePart, project.NoAccess)
}

// deletable refuses an actor who may not delete an issue that they see: Owners
// may, and those who plan and do nothing else.
func (i *Issue) deletable(by actor.Actor, in *project.Project) error {
	if in.Access.Level() != project.Planner {
		if err := in.Enough(by, project.Owner); err != nil {
			return err
		}
	}
	return in.Change(by, project.WholePart, project.NoAccess)
}

// CanComment reports whether an actor, who sees the target, may comment on it.
func (on Noteable) CanComment(by actor.Actor) bool { return on.mayComment(by) == nil }

// CanResolve reports whether they may resolve its threads.
func (on Noteable) CanResolve(by actor.Actor) bool { return on.maySettle(by) == nil }

// CanEdit reports whether they may change and delete a note on it.
func (on Noteable) CanEdit(by actor.Actor, n *Note) bool { return on.editable(by, n) == nil }

// editable refuses an actor who may not change a note: its author may, and
// Maintainers and above. What the program says stays.
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
