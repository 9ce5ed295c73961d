package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// HasStarred reports whether the actor has starred a project that they can see.
func (s *Service) HasStarred(ctx context.Context, by actor.Actor, projectID int64) (bool, error) {
	if by.Anonymous() {
		return false, nil
	}
	starred, err := hasStar(ctx, s.DB, projectID, by.ID)
	if err != nil {
		return false, fmt.Errorf("star of project %d: %w", projectID, err)
	}
	return starred, nil
}

// Rights are what a user may do in a group. Pages use them to decide what to show;
// the operations check permissions again.
type Rights struct {
	Level                                  Level // level of the actor
	AddProjects, AddGroups, ChangeSettings bool
	Plan                                   bool // change labels, milestones and boards
}

// RightsIn returns what the actor may do in a group that they can see.
func (s *Service) RightsIn(ctx context.Context, by actor.Actor, n *Namespace) (Rights, error) {
	if by.Anonymous() {
		return Rights{}, nil
	}
	have, err := s.GroupLevel(ctx, by, n.ID)
	return Rights{
		AddProjects: n.mayHoldProjectOf(by, have) == nil, AddGroups: n.mayHoldGroupOf(by, have) == nil, ChangeSettings: enough(by, have, Owner) == nil,
		Plan: enough(by, have, Planner) == nil, Level: have,
	}, err
}
