package project

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
)

// Can is what an actor may do in a project. Interfaces use it to decide what to
// show; the operations apply the same rules.
type Can struct {
	Configure       bool // see the settings
	Administer      bool // change path, visibility and archived state
	Push            bool // push to branches that are not protected
	SeeStatistics   bool
	RegisterRunners bool // and see the registration token
	// CreateMergeRequests is permission to create merge requests into this project,
	// from it or from a fork.
	CreateMergeRequests bool
}

// Can returns what an actor may do in a project that they can see.
func (p *Project) Can(by actor.Actor) Can {
	configure := p.View(by, SettingsPart) == nil
	return Can{
		Configure: configure, Administer: p.Enough(by, Owner) == nil, Push: p.pushable(by) == nil,
		SeeStatistics: p.Enough(by, Reporter) == nil, RegisterRunners: configure && by.Job == nil,
		CreateMergeRequests: !by.Anonymous() && p.MayChange(by, MergePart, NoAccess),
	}
}

// Setup is what an actor may do on the settings pages of a project or group.
type Setup struct {
	Owner         bool // may change settings that require Owner
	ChangeMembers bool // may manage members and access requests
	Share         bool // may invite groups
	by            actor.Actor
	in            source
}

// Setup returns the permissions on the settings pages. Requires Maintainer of a
// project or Owner of a group. NotFound; Forbidden.
func (s *Service) Setup(ctx context.Context, by actor.Actor, at Place) (Setup, error) {
	in, err := s.source(ctx, s.DB, by, at, at.managerLevel())
	if err != nil {
		return Setup{}, err
	}
	u := Setup{Owner: enough(by, in.have, Owner) == nil, by: by, in: in}
	locked := s.membersLocked(ctx, s.DB, by, in)
	if u.ChangeMembers = locked == nil; !u.ChangeMembers && !errs.IsRefusal(locked) {
		return u, locked
	}
	refused := s.mayShare(ctx, by, in)
	if u.Share = refused == nil; !u.Share && !errs.IsRefusal(refused) {
		return u, refused
	}
	return u, nil
}

// OverrideRoles returns the values of ci_pipeline_variables_minimum_override_role
// that the actor may save in the project, including the current one.
func (u Setup) OverrideRoles() []string {
	return slices.DeleteFunc(slices.Clone(overrideRoles), func(role string) bool {
		next := u.in.project.Settings
		next.CIPipelineVariablesMinimumOverrideRole = role
		return !u.Owner && u.in.project.Settings.overrideRoleForOwners(&next)
	})
}

// Levels returns the levels that the actor may grant to a member, lowest first,
// without Minimal.
func (u Setup) Levels() []Level {
	return slices.DeleteFunc([]Level{Guest, Planner, Reporter, Developer, Maintainer, Owner}, func(l Level) bool { return !u.Grants(l) })
}

// Grants reports whether the actor may grant a level, and change members who have
// it.
func (u Setup) Grants(l Level) bool { return u.in.mayGive(u.by, l) == nil }
