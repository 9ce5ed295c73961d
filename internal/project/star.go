package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/user"
)

// Star stars a project that the signed-in actor can see. changed is false if it
// was starred already.
func (s *Service) Star(ctx context.Context, by actor.Actor, ref Ref) (p *Project, changed bool, err error) {
	return s.star(ctx, by, ref, func(tx *db.Tx, projectID int64) (bool, error) { return insertStar(ctx, tx, projectID, by.ID, s.Now()) })
}

// Unstar removes the star. changed is false if there was none.
func (s *Service) Unstar(ctx context.Context, by actor.Actor, ref Ref) (p *Project, changed bool, err error) {
	return s.star(ctx, by, ref, func(tx *db.Tx, projectID int64) (bool, error) { return deleteStar(ctx, tx, projectID, by.ID) })
}

func (s *Service) star(ctx context.Context, by actor.Actor, ref Ref, change func(tx *db.Tx, projectID int64) (bool, error)) (*Project, bool, error) {
	found, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, false, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	changed := false
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		changed, err = change(tx, found.ID)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("star project %d: %w", found.ID, err)
	}
	p, err := s.Get(ctx, by, RefTo(found.ID))
	return p, changed, err
}

// Starrer is a user who has starred a project.
type Starrer struct {
	Since time.Time
	User  *user.User
}

// Starrers lists the users who have starred a project that the actor can see.
// Users with private profiles are left out.
func (s *Service) Starrers(ctx context.Context, by actor.Actor, ref Ref, search string, p db.Paging) (db.Page[Starrer], error) {
	found, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[Starrer]{}, err
	}
	page, err := listStarrers(ctx, s.DB, by, found.ID, search, p)
	if err != nil {
		return page, fmt.Errorf("list starrers: %w", err)
	}
	var ids []int64
	for _, r := range page.Items {
		ids = append(ids, r.User.ID)
	}
	users, err := s.Users.FindAll(ctx, ids)
	for i, r := range page.Items {
		if u := users[r.User.ID]; u != nil {
			page.Items[i].User = u
		}
	}
	return page, err
}
