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

// OfProfile lists the events of a user that the actor can see; empty if the
// profile is private. Unlike OfUser, it requires no permissions, like the profile
// page.
func (s *Service) OfProfile(ctx context.Context, by actor.Actor, u *user.User, f Filter, p db.Paging) (db.Page[*Event], error) {
	if !user.MayReadProfile(by, u) {
		return db.Page[*Event]{Items: []*Event{}}, nil
	}
	return s.ofAuthor(ctx, by, u.ID, f, p)
}

// maxGroup is the maximum number of projects of a group that are searched, the
// most recently active first.
const maxGroup = 500

// OfGroup lists the events of the projects of a group and its subgroups that the
// actor can see. NotFound.
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

// Days counts the contributions of a user that the actor can see by day, from a
// start day on. The keys are dates in UTC, 2006-01-02. It is empty if the profile of
// the user is private.
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
	var days map[string]int
	err = s.DB.Search(ctx, func(ctx context.Context) (err error) {
		days, err = q.days(ctx, s.DB)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("days of user %d: %w", u.ID, err)
	}
	return days, nil
}
