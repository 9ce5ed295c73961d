package activity

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// OfProfile returns what a user did whom the actor was shown, as far as they
// see it: nothing when the user keeps their profile to themselves. Unlike
// OfUser it is for everyone, as the page of the user is.
func (s *Service) OfProfile(ctx context.Context, by actor.Actor, u *user.User, f Filter, p db.Paging) (db.Page[*Event], error) {
	if !user.MayReadProfile(by, u) {
		return db.Page[*Event]{Items: []*Event{}}, nil
	}
	return s.ofAuthor(ctx, by, u.ID, f, p)
}

// maxGroup is how many projects of a group are looked at, those first that were
// active last: what is new is in them.
const maxGroup = 500

// OfGroup returns what was done in the projects of a group and of those below
// it, as far as the actor sees it; NotFound when they do not see the group.
func (s *Service) OfGroup(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, p db.Paging) (db.Page[*Event], error) {
	page, err := s.Projects.GroupProjects(ctx, by, ref, project.GroupFilter{Subgroups: true}, project.Filter{}, project.Sort{By: "last_activity_at", Desc: true}, db.Paging{Limit: maxGroup})
	if err != nil {
		return db.Page[*Event]{}, err
	}
	var ids []int64
	for _, one := range page.Items {
		ids = append(ids, one.ID)
	}
	in, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return db.Page[*Event]{}, err
	}
	return s.list(ctx, by, 0, in, f, p)
}

// Days counts what a user contributed on each day from one on, whom the actor
// was shown, as far as the actor sees it. The keys are days in UTC, 2006-01-02.
// There is nothing when the user keeps their profile to themselves.
func (s *Service) Days(ctx context.Context, by actor.Actor, u *user.User, from time.Time) (map[string]int, error) {
	if !user.MayReadProfile(by, u) {
		return map[string]int{}, nil
	}
	ids, err := findContributed(ctx, s.DB, u.ID, from)
	if err != nil {
		return nil, fmt.Errorf("projects of user %d: %w", u.ID, err)
	}
	in, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return nil, err
	}
	q := s.search(by, u.ID, in, Filter{After: &from})
	days, err := q.days(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("days of user %d: %w", u.ID, err)
	}
	return days, nil
}
