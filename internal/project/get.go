package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
)

// Get returns a project to those who see it: NotFound otherwise, Moved for an
// old path.
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

// complete reads the related rows of projects.
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
	type topic struct {
		id   int64
		name string
	}
	topics, err := db.All(ctx, s.DB, func(s db.Scanner) (topic, error) {
		var t topic
		err := s.Scan(&t.id, &t.name)
		return t, err
	}, `SELECT project_id, name FROM project_topics WHERE project_id IN `+db.In(len(ids))+` ORDER BY project_id, position`, db.Any(ids)...)
	if err != nil {
		return err
	}
	for _, t := range topics {
		byID[t.id].Topics = append(byID[t.id].Topics, t.name)
	}
	type count struct{ id, forks int64 }
	forks, err := db.All(ctx, s.DB, func(s db.Scanner) (count, error) {
		var c count
		err := s.Scan(&c.id, &c.forks)
		return c, err
	}, `SELECT forked_from_id, count(*) FROM projects WHERE deleted_at IS NULL AND forked_from_id IN `+db.In(len(ids))+` GROUP BY forked_from_id`, db.Any(ids)...)
	if err != nil {
		return err
	}
	for _, c := range forks {
		byID[c.id].Forks = c.forks
	}
	return nil
}
