package signin

import (
	"context"
	"time"

	"svc/internal/db"
)

// saveUse reports whether an answer was not used before.
func saveUse(ctx context.Context, q db.Q, digest string, until time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `INSERT INTO sign_in_uses (digest, expires_at) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`, digest, until)
}

func deleteUses(ctx context.Context, q db.Q, now time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM sign_in_uses WHERE expires_at < ?`, now)
	return err
}

// saveAnswer keeps a verified answer for the browser that has the reference.
func saveAnswer(ctx context.Context, q db.Q, digest, provider, answer string, until time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO sign_in_answers (digest, provider, answer, expires_at) VALUES (?, ?, ?, ?)`, digest, provider, answer, until)
	return err
}

// takeAnswer removes an answer and returns it. db.ErrNoRows.
func takeAnswer(ctx context.Context, q db.Q, digest, provider string, now time.Time) (string, error) {
	var answer string
	err := q.QueryRowContext(ctx, `DELETE FROM sign_in_answers WHERE digest = ? AND provider = ? AND expires_at > ? RETURNING answer`, digest, provider, now).Scan(&answer)
	return answer, err
}

func deleteAnswers(ctx context.Context, q db.Q, now time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM sign_in_answers WHERE expires_at < ?`, now)
	return err
}

func listMemberships(ctx context.Context, q db.Q, userID int64, provider string) (map[int64]bool, error) {
	rows, err := q.QueryContext(ctx, `SELECT namespace_id FROM provider_memberships WHERE user_id = ? AND provider = ?`, userID, provider)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[int64]bool)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		found[id] = true
	}
	return found, rows.Err()
}

func saveMembership(ctx context.Context, q db.Q, userID int64, provider string, namespaceID int64) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO provider_memberships (user_id, provider, namespace_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, userID, provider, namespaceID)
	return err
}

func deleteMembership(ctx context.Context, q db.Q, userID int64, provider string, namespaceID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM provider_memberships WHERE user_id = ? AND provider = ? AND namespace_id = ?`, userID, provider, namespaceID)
	return err
}
