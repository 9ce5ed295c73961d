package user

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Follow makes the actor follow a user, and returns that user. changed is false if
// the actor follows them already, or is that user. Requires a signed-in user.
// NotFound.
func (s *Service) Follow(ctx context.Context, by actor.Actor, userID int64) (u *User, changed bool, err error) {
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	if u, err = s.find(ctx, s.DB, by, userID); err != nil {
		return nil, false, err
	}
	if by.Is(userID) {
		return u, false, nil
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if changed, err = insertFollow(ctx, tx, by.ID, userID, s.Now()); err != nil || !changed {
			return err
		}
		return countFollow(ctx, tx, by.ID, userID, 1)
	})
	if db.IsForeignKey(err) {
		return nil, false, errs.NotFound("User").Because(err)
	}
	if err != nil {
		return nil, false, fmt.Errorf("follow user %d: %w", userID, err)
	}
	return u, changed, nil
}

// Unfollow is the reverse of Follow.
func (s *Service) Unfollow(ctx context.Context, by actor.Actor, userID int64) (u *User, changed bool, err error) {
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	if u, err = s.find(ctx, s.DB, by, userID); err != nil {
		return nil, false, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if changed, err = deleteFollow(ctx, tx, by.ID, userID); err != nil || !changed {
			return err
		}
		return countFollow(ctx, tx, by.ID, userID, -1)
	})
	if err != nil {
		return nil, false, fmt.Errorf("unfollow user %d: %w", userID, err)
	}
	return u, changed, nil
}

// Followers lists the followers of a user by ID. Requires a signed-in user.
// NotFound, also if the profile is private.
func (s *Service) Followers(ctx context.Context, by actor.Actor, userID int64, p db.Paging) (db.Page[*User], error) {
	if err := s.requireProfile(ctx, by, userID); err != nil {
		return db.Page[*User]{}, err
	}
	return listFollows(ctx, s.DB, by, "f.follower_id", "f.followed_id", userID, p)
}

// Following lists the users that a user follows. Permissions are those of
// Followers.
func (s *Service) Following(ctx context.Context, by actor.Actor, userID int64, p db.Paging) (db.Page[*User], error) {
	if err := s.requireProfile(ctx, by, userID); err != nil {
		return db.Page[*User]{}, err
	}
	return listFollows(ctx, s.DB, by, "f.followed_id", "f.follower_id", userID, p)
}

func (s *Service) requireProfile(ctx context.Context, by actor.Actor, userID int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	u, err := s.find(ctx, s.DB, by, userID)
	if err != nil {
		return err
	}
	if !MayReadProfile(by, u) {
		return errs.NotFound("User")
	}
	return nil
}
