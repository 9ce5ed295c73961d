package user

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Identity is the name of a user at a provider of sign-in.
type Identity struct {
	Provider       string
	ExternUID      string
	SAMLProviderID *int64 // of a group's own provider
}

// DeleteIdentity takes an identity from a user. Administrators only; NotFound
// when there is no such user or they have none at the provider.
func (s *Service) DeleteIdentity(ctx context.Context, by actor.Actor, userID int64, provider string) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := deleteIdentity(ctx, tx, userID, provider); err != nil {
			return db.NotFound(err, "Identity")
		}
		return s.record(ctx, tx, by, u, "user_identity_removed", audit.Details{Remove: "identity", Message: "Identity at " + provider + " removed"})
	})
	if err != nil {
		return fmt.Errorf("delete identity of user %d: %w", userID, err)
	}
	return nil
}

// setIdentity gives a user their identity at a provider, instead of the one
// they had there. Conflict when it belongs to someone else.
func setIdentity(ctx context.Context, tx *db.Tx, userID int64, i Identity) error {
	if len(i.Provider) > 255 {
		return errs.InvalidField("provider", "is too long (maximum is 255 characters)")
	}
	if len(i.ExternUID) > 255 {
		return errs.InvalidField("extern_uid", "is too long (maximum is 255 characters)")
	}
	return taken(saveIdentity(ctx, tx, userID, i))
}
