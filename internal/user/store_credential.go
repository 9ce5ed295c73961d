package user

import (
	"context"
	"time"

	"svc/internal/db"
)

// accountColumns are the columns of the account of a credential.
const accountColumns = `u.id, u.kind, u.username, u.name, u.email, u.commit_email, u.admin, u.auditor, u.external, u.state, COALESCE(u.last_activity_on, '')`

// account scans accountColumns into the actor of a credential.
func (s *Service) account(c *credential, scan func(into ...any) error) error {
	var u User
	if err := scan(&u.ID, &u.Kind, &u.Username, &u.Name, &u.Email, &u.CommitEmail, &u.Admin, &u.Auditor, &u.External, &c.state, &c.active); err != nil {
		return err
	}
	c.actor = s.toActor(&u, "")
	return nil
}

func (s *Service) readCredential(ctx context.Context, digest string) (*credential, error) {
	var c credential
	row := s.DB.QueryRowContext(ctx, `
		SELECT `+tokenColumns+`, `+accountColumns+` FROM access_tokens t JOIN users u ON u.id = t.user_id
		WHERE t.digest = ? AND u.deleted_at IS NULL`, digest)
	if err := s.account(&c, func(into ...any) error { return scanTokenInto(row, &c.token, into...) }); err != nil {
		return nil, err
	}
	c.actor.Scopes, c.actor.TokenID = c.token.Scopes, c.token.ID
	return &c, nil
}

func (s *Service) readOAuth(ctx context.Context, token *OAuthToken) (*credential, error) {
	c := credential{oauth: token}
	row := s.DB.QueryRowContext(ctx, `SELECT `+accountColumns+` FROM users u WHERE u.id = ? AND u.deleted_at IS NULL`, token.UserID)
	if err := s.account(&c, row.Scan); err != nil {
		return nil, err
	}
	c.actor.Scopes, c.actor.OAuthTokenID = token.Scopes, token.ID
	return &c, nil
}

func touchToken(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE access_tokens SET last_used_at = ? WHERE id = ? AND COALESCE(last_used_at, 0) < ?`, now, id, now)
	return err
}

func saveActivity(ctx context.Context, q db.Q, userID int64, today string, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		UPDATE users SET last_activity_on = ?, current_sign_in_at = ? WHERE id = ? AND COALESCE(last_activity_on, '') < ?`,
		today, now, userID, today)
	return err
}

func findKeyCredential(ctx context.Context, q db.Q, fingerprint string) (*keyCredential, error) {
	var c keyCredential
	a := &c.actor
	err := q.QueryRowContext(ctx, `
		SELECT k.id, k.usage_type, k.expires_at, k.last_used_at,
			u.id, u.username, u.name, u.email, u.admin, u.auditor, u.external, u.state, COALESCE(u.last_activity_on, '')
		FROM ssh_keys k JOIN users u ON u.id = k.user_id WHERE k.sha256 = ? AND u.kind = ? AND u.deleted_at IS NULL`, fingerprint, string(Human)).
		Scan(&c.id, &c.usage, db.NullTime(&c.expiresAt), db.NullTime(&c.lastUsedAt),
			&a.ID, &a.Username, &a.Name, &a.Email, &a.Admin, &a.Auditor, &a.External, &c.state, &c.active)
	return &c, err
}

func touchKey(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE ssh_keys SET last_used_at = ? WHERE id = ? AND COALESCE(last_used_at, 0) < ?`, now, id, now)
	return err
}
