package user

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// AuthenticateKey returns the actor for the SSH key with this SHA-256 fingerprint.
// Unauthorized if no user has the key, or it has expired or is for signing only;
// Forbidden if the account may not be used.
func (s *Service) AuthenticateKey(ctx context.Context, fingerprint, ip string) (actor.Actor, error) {
	now := s.Now()
	c, err := findKeyCredential(ctx, s.DB, fingerprint)
	if errors.Is(err, db.ErrNoRows) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate key: %w", err)
	}
	if c.usage == SigningKey || c.expiresAt != nil && !now.Before(*c.expiresAt) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err := c.state.refusal(); err != nil {
		return actor.Actor{}, err
	}
	if err := s.noteActivity(ctx, c.actor.ID, c.active, now); err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate key: %w", err)
	}
	if c.lastUsedAt == nil || now.Sub(*c.lastUsedAt) >= tokenTouch {
		if err := touchKey(ctx, s.DB, c.id, now); err != nil {
			return actor.Actor{}, fmt.Errorf("authenticate key: %w", err)
		}
	}
	c.actor.IP = ip
	return c.actor, nil
}

// keyCredential is an SSH key with its account.
type keyCredential struct {
	id                    int64
	usage                 KeyUsage
	expiresAt, lastUsedAt *time.Time
	actor                 actor.Actor
	state                 State
	active                string // last_activity_on
}

// requireNoDeployKey returns an error if the key is a deploy key, because a key
// must identify its owner.
func requireNoDeployKey(ctx context.Context, q db.Q, fingerprint string) error {
	there, err := hasDeployKey(ctx, q, fingerprint)
	if err != nil {
		return err
	}
	if there {
		return keyTaken()
	}
	return nil
}

// RequireNoKey returns an error if a user has the key. Features with their own
// keys call it in the transaction that adds a key.
func (s *Service) RequireNoKey(ctx context.Context, q db.Q, fingerprint string) error {
	there, err := hasKey(ctx, q, fingerprint)
	if err != nil {
		return err
	}
	if there {
		return keyTaken()
	}
	return nil
}
