package user

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// RotateToken revokes a personal access token and returns a new one with the same
// name and scopes. Requires its owner or an administrator. A token that was
// already rotated or revoked cannot be rotated again: the caller or the owner has
// a stolen copy, so all tokens derived from it are revoked as well.
func (s *Service) RotateToken(ctx context.Context, by actor.Actor, id int64, expiresAt string) (*Token, error) {
	t, err := s.Token(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return s.rotate(ctx, by, t, expiresAt)
}

// RotateSelfToken rotates the token that the actor uses. NotAllowed for project
// and group access tokens.
func (s *Service) RotateSelfToken(ctx context.Context, by actor.Actor, expiresAt string) (*Token, error) {
	t, err := s.SelfToken(ctx, by)
	if err != nil {
		return nil, err
	}
	if t.Kind == OfBot {
		return nil, errs.NotAllowed("405 Method Not Allowed")
	}
	return s.rotate(ctx, by, t, expiresAt)
}

// rotatedDays is the default lifetime of a rotated token in days.
const rotatedDays = 7

func (s *Service) rotate(ctx context.Context, by actor.Actor, old *Token, expiresAt string) (*Token, error) {
	t, err := s.successor(ctx, old, expiresAt)
	if err != nil {
		return nil, err
	}
	reused := false
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if reused, err = s.replaceToken(ctx, tx, old, t); err != nil || reused {
			return err
		}
		return s.recordNew(ctx, tx, by, t)
	})
	if err != nil {
		return nil, fmt.Errorf("rotate token %d: %w", old.ID, err)
	}
	if reused {
		return nil, errReused()
	}
	return t, nil
}

func errReused() error { return errs.Invalid("token already revoked") }

// successor returns the replacement of a token.
func (s *Service) successor(ctx context.Context, old *Token, expiresAt string) (*Token, error) {
	if expiresAt == "" {
		expiresAt = s.Now().AddDate(0, 0, rotatedDays).Format(time.DateOnly)
	}
	t, err := s.newToken(ctx, old.Kind, NewToken{Name: old.Name, Description: old.Description, Scopes: old.Scopes, ExpiresAt: expiresAt})
	if err != nil {
		return nil, err
	}
	t.UserID = old.UserID
	return t, nil
}

// replaceToken revokes a token and inserts its replacement. If the token was
// inactive already, the tokens derived from it are revoked instead, and reused is
// true.
func (s *Service) replaceToken(ctx context.Context, tx *db.Tx, old, t *Token) (reused bool, err error) {
	now := s.Now()
	err = revokeToken(ctx, tx, old.ID, now)
	switch {
	case errors.Is(err, db.ErrNoRows):
		reused, err = true, revokeDescendants(ctx, tx, old.ID, now)
	case err == nil:
		err = insertToken(ctx, tx, t, secret.Digest(t.Secret), old.ID)
	}
	if err != nil {
		return false, err
	}
	return reused, s.dropActor(ctx, tx, old.UserID)
}
