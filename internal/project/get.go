package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/project/topic"
)

// Get returns a project that the actor can see. NotFound; an old path returns
// Moved.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	if err := s.complete(ctx, by, p); err != nil {
		return nil, fmt.Errorf("project %d: %w", p.ID, err)
	}
	p.Shares, err = s.shares(ctx, by, source{project: p, have: p.Access.Level()})
	return p, err
}

// complete reads the related objects of projects.
func (s *Service) complete(ctx context.Context, by actor.Actor, list ...*Project) error {
	if err := s.origins(ctx, by, list...); err != nil {
		return err
	}
	return s.details(ctx, list...)
}

func (s *Service) details(ctx context.Context, list ...*Project) error {
	if len(list) == 0 {
		return nil
	}
	if err := s.topicsAndForks(ctx, list...); err != nil {
		return err
	}
	var ids, owners []int64
	for _, p := range list {
		ids = append(ids, p.ID)
		if owner := p.Namespace.UserID; owner != nil && !slices.Contains(owners, *owner) {
			owners = append(owners, *owner)
		}
	}
	statistics, err := findStatistics(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, p := range list {
		p.Statistics = statistics[p.ID]
	}
	if len(owners) == 0 {
		return nil
	}
	users, err := s.Users.FindAll(ctx, owners)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Namespace.UserID != nil {
			p.Owner = users[*p.Namespace.UserID]
		}
	}
	return nil
}

func (s *Service) topicsAndForks(ctx context.Context, list ...*Project) error {
	byID := make(map[int64]*Project, len(list))
	var ids []int64
	for _, p := range list {
		p.Topics = []string{}
		byID[p.ID] = p
		ids = append(ids, p.ID)
	}
	topics, err := topic.Of(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, t := range topics {
		byID[t.ProjectID].Topics = append(byID[t.ProjectID].Topics, t.Name)
	}
	forks, err := countForks(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, c := range forks {
		byID[c.projectID].Forks = c.forks
	}
	return nil
}
