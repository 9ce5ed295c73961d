package user

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Delete deletes an account. It is hidden immediately; a background job deletes
// everything that belongs to it. Contributions are moved to the ghost user, or
// deleted if hard is set. Requires an administrator. Conflict if the account
// cannot be deleted.
func (s *Service) Delete(ctx context.Context, by actor.Actor, id int64, hard bool, unmodifiedSince *time.Time) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	u, err := s.find(ctx, s.DB, by, id)
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(u.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	if u.Internal() {
		return errs.Conflict("User cannot be removed.")
	}
	return s.delete(ctx, by, u, hard, "user_deleted")
}

// deleteWork is the background job that deletes an account.
type deleteWork struct {
	UserID int64 `json:"user_id"`
	Hard   bool  `json:"hard"`
}

// Kind implements queue.Work.
func (deleteWork) Kind() string { return "user_delete" }

func (s *Service) delete(ctx context.Context, by actor.Actor, u *User, hard bool, event string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.beginDelete(ctx, tx, by, u, hard, event) })
	if err != nil {
		return fmt.Errorf("delete user %d: %w", u.ID, err)
	}
	return nil
}

// beginDelete hides an account and adds the background job that deletes it.
func (s *Service) beginDelete(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, hard bool, event string) error {
	if u.Admin {
		if err := requireOtherAdmin(ctx, tx, u.ID); err != nil {
			return err
		}
	}
	if err := s.Events.Deleting.Publish(ctx, tx, Deletion{UserID: u.ID, Hard: hard}); err != nil {
		return err
	}
	if err := hideUser(ctx, tx, u.ID, s.Now()); err != nil {
		return db.NotFound(err, "User")
	}
	if err := revokeTokens(ctx, tx, u.ID, s.Now()); err != nil {
		return err
	}
	if err := s.revokeSessions(ctx, tx, u.ID, 0); err != nil {
		return err
	}
	if err := s.record(ctx, tx, by, u, event, audit.Details{Remove: "user", Message: "User " + u.Username + " scheduled for deletion"}); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, deleteWork{UserID: u.ID, Hard: hard})
}

// requireOtherAdmin returns an error if the user is the last administrator.
func requireOtherAdmin(ctx context.Context, q db.Q, id int64) error {
	ok, err := hasOtherAdmin(ctx, q, id)
	if err != nil {
		return err
	}
	if !ok {
		return errs.Conflict("The last administrator cannot be removed.")
	}
	return nil
}

func (s *Service) finishDelete(ctx context.Context, w deleteWork) error {
	var avatar string
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "users", w.UserID); err != nil {
			return err
		}
		var err error
		avatar, err = findHiddenAvatar(ctx, tx, w.UserID)
		if errors.Is(err, db.ErrNoRows) {
			return nil // done by an earlier try
		}
		if err != nil {
			return err
		}
		ghost, err := ghostID(ctx, tx)
		if err != nil {
			return err
		}
		if err := s.Events.Deleted.Publish(ctx, tx, Deletion{UserID: w.UserID, GhostID: ghost, Hard: w.Hard}); err != nil {
			return err
		}
		if err := dropFollows(ctx, tx, w.UserID); err != nil {
			return err
		}
		return deleteUser(ctx, tx, w.UserID)
	})
	if err != nil {
		return fmt.Errorf("finish deletion of user %d: %w", w.UserID, err)
	}
	if avatar != "" {
		return s.Blobs.Delete(ctx, s.avatars().Key(w.UserID, avatar))
	}
	return nil
}
