package project

import (
	"context"
	"slices"

	"svc/internal/actor"
)

// Can is what an actor may do in a project, for interfaces that offer it. Each
// answer comes from the rule that the operation asks.
type Can struct {
	Configure       bool // open the settings
	Administer      bool // change what only Owners change: path, visibility, archive
	Push            bool // write to the repository, as far as protected refs allow it
	SeeStatistics   bool
	RegisterRunners bool // and see the token for that
}

// Can says what an actor may do in the project, which was given to them.
func (p *Project) Can(by actor.Actor) Can {
	configure := p.View(by, SettingsPart) == nil
	return Can{
		Configure: configure, Administer: p.Enough(by, Owner) == nil, Push: p.pushable(by) == nil,
		SeeStatistics: p.Enough(by, Reporter) == nil, RegisterRunners: configure && by.Job == nil,
	}
}

// Setup is what an actor may do on the settings pages of a project or group.
type Setup struct {
	Owner bool // change what only Owners change
	by    actor.Actor
	in    source
}

// Setup gives the settings of a project to its Maintainers and those of a group
// to its Owners. NotFound, Forbidden.
func (s *Service) Setup(ctx context.Context, by actor.Actor, at Place) (Setup, error) {
	in, err := s.source(ctx, s.DB, by, at, at.keeper())
	if err != nil {
		return Setup{}, err
	}
	return Setup{Owner: enough(by, in.have, Owner) == nil, by: by, in: in}, nil
}

// Levels are those that the actor may grant to a member, lowest first. Minimal
// access is not offered.
func (u Setup) Levels() []Level {
	return slices.DeleteFunc([]Level{Guest, Planner, Reporter, Developer, Maintainer, Owner}, func(l Level) bool { return !u.Grants(l) })
}

// Grants reports whether the actor may grant a level, and change members who
// have it.
func (u Setup) Grants(l Level) bool { return u.in.mayGive(u.by, l) == nil }
