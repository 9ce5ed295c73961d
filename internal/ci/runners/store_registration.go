package runners

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
)

// where is the condition that selects the token of the owner.
func (r registration) where() (string, []any) {
	switch {
	case r.projectID != nil:
		return "project_id = ?", []any{*r.projectID}
	case r.groupID != nil:
		return "namespace_id = ?", []any{*r.groupID}
	}
	return "project_id IS NULL AND namespace_id IS NULL", nil
}

// findSealedRegistration returns the encrypted token of an owner; empty if there
// is none.
func findSealedRegistration(ctx context.Context, q db.Q, r registration) (sealed string, err error) {
	where, args := r.where()
	err = q.QueryRowContext(ctx, `SELECT sealed FROM runner_registration_tokens WHERE `+where+` ORDER BY id DESC LIMIT 1`, args...).Scan(&sealed)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return sealed, err
}

// replaceRegistration makes a token the only one of its owner.
func replaceRegistration(ctx context.Context, tx *db.Tx, r registration, token, sealed string, at time.Time) error {
	where, args := r.where()
	if _, err := tx.ExecContext(ctx, `DELETE FROM runner_registration_tokens WHERE `+where, args...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO runner_registration_tokens (project_id, namespace_id, digest, sealed, created_at) VALUES (?, ?, ?, ?, ?)`,
		r.projectID, r.groupID, []byte(secret.Digest(token)), sealed, at)
	return err
}

// findRegistration returns the owner of a registration token.
func findRegistration(ctx context.Context, q db.Q, token string) (r registration, found bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT project_id, namespace_id FROM runner_registration_tokens WHERE digest = ?`, []byte(secret.Digest(token))).Scan(&r.projectID, &r.groupID)
	if errors.Is(err, db.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}
