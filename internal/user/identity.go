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

// identitiesOfAll returns the identities of several users, by provider; those
// without any have an empty list.
func identitiesOfAll(ctx context.Context, q db.Q, ids []int64) (map[int64][]Identity, error) {
	return ofAll(ctx, q, ids, func(i *Identity) []any { return []any{&i.Provider, &i.ExternUID, &i.SAMLProviderID} }, `
		SELECT user_id, provider, extern_uid, saml_provider_id FROM identities
		WHERE user_id IN `+db.In(len(ids))+` ORDER BY user_id, provider`)
}

func saveIdentity(ctx context.Context, q db.Q, userID int64, i Identity) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO identities (user_id, provider, extern_uid, saml_provider_id) VALUES (?, ?, ?, ?)
		ON CONFLICT (user_id, provider) DO UPDATE SET extern_uid = excluded.extern_uid, saml_provider_id = excluded.saml_provider_id`,
		userID, i.Provider, i.ExternUID, i.SAMLProviderID)
	return err
}

func deleteIdentity(ctx context.Context, q db.Q, userID int64, provider string) error {
	return db.ExecOne(ctx, q, `DELETE FROM identities WHERE user_id = ? AND provider = ?`, userID, provider)
}
