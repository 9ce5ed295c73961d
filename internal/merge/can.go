package merge

import (
	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// Can is what an actor may do with a merge request. Interfaces use it to decide
// which actions to offer. Each field applies the same rule as the operation
// itself.
type Can struct {
	Edit       bool // change title, description, target branch and state
	Plan       bool // change all fields
	Delete     bool
	Merge      bool
	Rebase     bool
	CancelAuto bool // cancel the automatic merge

	RequestChanges bool
	RequestReview  bool // request another review from a reviewer
	Bypass         bool // bypass requested changes
	FollowUp       bool // create issues that resolve threads
}

// Can returns what an actor may do with a merge request that Get returned to this
// actor.
func (m *MergeRequest) Can(by actor.Actor, in *project.Project) Can {
	edit, change := m.CheckEdit(by, in) == nil, changeable(by, in) == nil
	return Can{
		Edit: edit, Plan: edit && plans(by, in), Delete: deletable(by, in) == nil, Merge: change && m.CanMerge, Rebase: change && m.CanRebase,
		CancelAuto: change && m.cancels(by, m.CanMerge), RequestChanges: m.requestsChanges(by, in), RequestReview: edit && plans(by, in),
		Bypass:   change && m.CanMerge && m.State == Opened && m.ChangeRequests > 0,
		FollowUp: change && m.settles(by, in) && in.MayRead(by, project.IssuePart) && plan.CheckCreate(by, in) == nil,
	}
}

// settles reports whether an actor may resolve threads: Developers and above, and
// the author.
func (m *MergeRequest) settles(by actor.Actor, in *project.Project) bool {
	return in.Enough(by, project.Developer) == nil || by.Is(m.AuthorID)
}

// CheckEdit returns an error if the actor may not change a merge request that
// they can see. Developers and above, the author and the assignees may.
func (m *MergeRequest) CheckEdit(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if in.Enough(by, project.Developer) != nil && !m.IsOwn(by) {
		return errs.Forbidden("")
	}
	return in.Change(by, project.MergePart, project.NoAccess)
}

// plans reports whether an actor who may edit a merge request may also change
// its planning fields.
func plans(by actor.Actor, in *project.Project) bool { return in.Enough(by, project.Planner) == nil }

// deletable returns an error if the actor may not delete merge requests.
func deletable(by actor.Actor, in *project.Project) error {
	return in.Change(by, project.MergePart, project.Owner)
}

// changeable returns an error if the actor is not signed in or cannot change
// merge requests here, for example because the project is archived.
func changeable(by actor.Actor, in *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return in.Change(by, project.MergePart, project.NoAccess)
}

// cancels reports whether an actor may cancel the automatic merge: users who
// may merge, and the author.
func (m *MergeRequest) cancels(by actor.Actor, mayMerge bool) bool {
	return mayMerge || by.Is(m.AuthorID)
}

// CheckSource returns an error if the actor may not create merge requests from
// the branches of a project that they can see.
func CheckSource(by actor.Actor, source *project.Project) error {
	if err := source.View(by, project.CodePart); err != nil {
		return err
	}
	if err := by.RequireUser(); err != nil {
		return err
	}
	return source.Enough(by, project.Developer)
}

// CheckTarget returns an error if the actor may not create merge requests into
// a project that they can see.
func CheckTarget(by actor.Actor, target *project.Project) error {
	return target.Change(by, project.MergePart, project.NoAccess)
}

// CanCreate reports whether an actor may create merge requests within a project
// that they can see.
func CanCreate(by actor.Actor, in *project.Project) bool {
	return CheckSource(by, in) == nil && CheckTarget(by, in) == nil
}

// Chooses reports whether an actor may set the planning fields of a new merge
// request: members of the target project may.
func Chooses(by actor.Actor, target *project.Project) bool {
	return target.Enough(by, project.Guest) == nil
}
