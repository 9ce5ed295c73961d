package merge

import (
	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// Can is what an actor may do with a merge request, for interfaces that offer
// it. Each answer comes from the rule that the operation asks.
type Can struct {
	Edit       bool // its title, description, branch and state
	Plan       bool // all of it
	Delete     bool
	Merge      bool
	Rebase     bool
	CancelAuto bool // cancel the merge that waits for a pipeline
}

// Can says what an actor, who was given the merge request by Get, may do with it
// in its project.
func (m *MergeRequest) Can(by actor.Actor, in *project.Project) Can {
	edit, change := m.CheckEdit(by, in) == nil, changeable(by, in) == nil
	return Can{
		Edit: edit, Plan: edit && plans(by, in), Delete: deletable(by, in) == nil, Merge: change && m.CanMerge, Rebase: change && m.CanRebase,
		CancelAuto: change && m.cancels(by, m.CanMerge),
	}
}

// CheckEdit refuses an actor who may change nothing of a merge request that they
// see: Developers and above may, its author and its assignees.
func (m *MergeRequest) CheckEdit(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if in.Enough(by, project.Developer) != nil && !m.IsOwn(by) {
		return errs.Forbidden("")
	}
	return in.Change(by, project.MergePart, project.NoAccess)
}

// plans reports whether one who may edit a merge request may plan it too.
func plans(by actor.Actor, in *project.Project) bool { return in.Enough(by, project.Planner) == nil }

// deletable refuses an actor who may not delete merge requests.
func deletable(by actor.Actor, in *project.Project) error {
	return in.Change(by, project.MergePart, project.Owner)
}

// changeable refuses an actor for whom nothing happens to merge requests here:
// they have not signed in, or the project is archived.
func changeable(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return in.Change(by, project.MergePart, project.NoAccess)
}

// cancels reports whether an actor may cancel the merge that waits for a
// pipeline: those who may merge, and the author.
func (m *MergeRequest) cancels(by actor.Actor, mayMerge bool) bool {
	return mayMerge || by.Is(m.AuthorID)
}

// CheckSource refuses an actor who may not ask for branches of a project to be
// merged. The project was given to them.
func CheckSource(by actor.Actor, source *project.Project) error {
	if err := source.View(by, project.CodePart); err != nil {
		return err
	}
	if err := by.RequireUser(); err != nil {
		return err
	}
	return source.Enough(by, project.Developer)
}

// CheckTarget refuses an actor who may not ask for something to be merged into a
// project that was given to them.
func CheckTarget(by actor.Actor, target *project.Project) error {
	return target.Change(by, project.MergePart, project.NoAccess)
}

// CanCreate reports whether an actor may create merge requests from the branches
// of a project that was given to them into the same project.
func CanCreate(by actor.Actor, in *project.Project) bool {
	return CheckSource(by, in) == nil && CheckTarget(by, in) == nil
}

// Chooses reports whether an actor may plan the merge request that they make:
// members of the target may.
func Chooses(by actor.Actor, target *project.Project) bool {
	return target.Enough(by, project.Guest) == nil
}
