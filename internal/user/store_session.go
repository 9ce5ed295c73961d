package user

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
)

const sessionColumns = `s.id, s.user_id, s.csrf_token, s.acting_as, s.ip, s.user_agent, s.created_at, s.last_seen_at, s.expires_at`

func (s *Session) columns() []any {
	return []any{&s.ID, &s.UserID, &s.CSRF, &s.actingAs, &s.IP, &s.UserAgent, db.Time(&s.CreatedAt), db.Time(&s.LastSeenAt), db.Time(&s.ExpiresAt)}
}

func scanSession(sc db.Scanner) (Session, error) {
	var s Session
	err := sc.Scan(s.columns()...)
	return s, err
}

// findSession returns ErrNoRows if the session or its user does not exist.
func findSession(ctx context.Context, q db.Q, digest string) (*Session, *User, error) {
	s, u := &Session{}, &User{}
	err := q.QueryRowContext(ctx, `
		SELECT `+sessionColumns+`, `+userColumns+` FROM `+userTables+` JOIN sessions s ON s.user_id = u.id
		WHERE s.digest = ? AND u.deleted_at IS NULL`, digest).Scan(append(s.columns(), u.columns()...)...)
	if err != nil {
		return nil, nil, err
	}
	return s, u, nil
}

func listSessions(ctx context.Context, q db.Q, userID int64, now time.Time) ([]Session, error) {
	return db.All(ctx, q, scanSession, `
		SELECT `+sessionColumns+` FROM sessions s WHERE s.user_id = ? AND s.expires_at > ? ORDER BY s.id DESC`, userID, now)
}

func insertSession(ctx context.Context, q db.Q, s *Session) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO sessions (digest, user_id, csrf_token, ip, user_agent, created_at, last_seen_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		secret.Digest(s.Token), s.UserID, s.CSRF, s.IP, s.UserAgent, s.CreatedAt, s.LastSeenAt, s.ExpiresAt).Scan(&s.ID)
}

// saveSeen saves the last use, unless a concurrent request has saved a later one.
func saveSeen(ctx context.Context, q db.Q, s *Session, was time.Time) error {
	_, err := q.ExecContext(ctx, `
		UPDATE sessions SET ip = ?, last_seen_at = ?, expires_at = ? WHERE id = ? AND last_seen_at = ?`,
		s.IP, s.LastSeenAt, s.ExpiresAt, s.ID, was)
	return err
}

func saveActingAs(ctx context.Context, q db.Q, id int64, userID *int64) error {
	return db.ExecOne(ctx, q, `UPDATE sessions SET acting_as = ? WHERE id = ?`, userID, id)
}

// deleteSession returns the user of the session. ErrNoRows.
func deleteSession(ctx context.Context, q db.Q, digest string) (userID int64, err error) {
	err = q.QueryRowContext(ctx, `DELETE FROM sessions WHERE digest = ? RETURNING user_id`, digest).Scan(&userID)
	return userID, err
}

func deleteOwnSession(ctx context.Context, q db.Q, userID, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM sessions WHERE id = ? AND user_id = ?`, id, userID)
}

func deleteOtherSessions(ctx context.Context, q db.Q, userID, keep int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = ? AND id <> ?`, userID, keep)
	return err
}

// deleteEnded deletes up to limit rows and reports whether there may be more.
func deleteEnded(ctx context.Context, q db.Q, now time.Time, limit int) (bool, error) {
	return db.ExecAny(ctx, q, `
		DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, now, limit)
}
