package project

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
)

// Can is what an actor may do in a project, for interfaces that offer it. Each
// answer comes from the rule that the operation asks.
type Can struct {
	Configure       bool // open the settings
	Administer      bool // change what only Owners change: path, visibility, archive
	Push            bool // write to the repository, as far as protected refs allow it
	SeeStatistics   bool
	RegisterRunners bool // and see the token for that
	// CreateMergeRequests from here or from a fork, into this project.
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
	Owner         bool // change what only Owners change
	ChangeMembers bool // add, change and remove them; approve access requests
	Share         bool // invite groups
	by            actor.Actor
	in            source
}

// Setup returns the settings of a project to its Maintainers and those of a
// group to its Owners. NotFound, Forbidden.
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

// OverrideRoles are the values of ci_pipeline_variables_minimum_override_role
// that the actor may save in the project, the present one among them.
func (u Setup) OverrideRoles() []string {
	return slices.DeleteFunc(slices.Clone(overrideRoles), func(role string) bool {
		next := u.in.project.Settings
		next.CIPipelineVariablesMinimumOverrideRole = role
		return !u.Owner && u.in.project.Settings.overrideRoleForOwners(&next)
	})
}

// Levels are those that the actor may grant to a member, lowest first. Minimal
// access is not offered.
func (u Setup) Levels() []Level {
	return slices.DeleteFunc([]Level{Guest, Planner, Reporter, Developer, Maintainer, Owner}, func(l Level) bool { return !u.Grants(l) })
}

// Grants reports whether the actor may grant a level, and change members who
// have it.
func (u Setup) Grants(l Level) bool { return u.in.mayGive(u.by, l) == nil }
