package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

// findLogin finds an account by username or confirmed address. If there is none,
// the account has no user and the error is NotFound.
func findLogin(ctx context.Context, q db.Q, login string) (account, error) {
	if login != clip(login, maxEmail+1) {
		return account{}, errs.NotFound("User")
	}
	find := findByUsername
	if strings.Contains(login, "@") {
		find = findByEmail
	}
	u, err := find(ctx, q, login)
	if err != nil {
		return account{}, err
	}
	a := account{user: u}
	err = q.QueryRowContext(ctx, `SELECT password_hash, failed_attempts FROM users WHERE id = ?`, u.ID).Scan(&a.hash, &a.failed)
	if err != nil {
		return account{}, db.NotFound(err, "User")
	}
	return a, nil
}

// saveSignIn returns ErrNoRows if the password has changed since it was checked.
func saveSignIn(ctx context.Context, q db.Q, a *account, ip string, now time.Time) error {
	return db.ExecOne(ctx, q, `
		UPDATE users SET sign_in_count = sign_in_count + 1,
			last_sign_in_at = COALESCE(current_sign_in_at, ?),
			last_sign_in_ip = CASE WHEN current_sign_in_at IS NULL THEN ? ELSE current_sign_in_ip END,
			current_sign_in_at = ?, current_sign_in_ip = ?, last_activity_on = ?,
			failed_attempts = 0, locked_until = NULL, password_hash = ?
		WHERE id = ? AND password_hash = ?`,
		now, ip, now, ip, now.UTC().Format(time.DateOnly), a.rehashed, a.user.ID, a.hash)
}

func replaceHash(ctx context.Context, q db.Q, userID int64, was, now string) error {
	_, err := q.ExecContext(ctx, `UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?`, now, userID, was)
	return err
}

func findFailures(ctx context.Context, q db.Q, userID int64) (failed int64, lockedUntil *time.Time, err error) {
	err = q.QueryRowContext(ctx, `SELECT failed_attempts, locked_until FROM users WHERE id = ?`, userID).
		Scan(&failed, db.NullTime(&lockedUntil))
	return failed, lockedUntil, db.NotFound(err, "User")
}

func saveFailures(ctx context.Context, q db.Q, userID, failed int64, lockedUntil *time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE users SET failed_attempts = ?, locked_until = ? WHERE id = ?`, failed, lockedUntil, userID)
}

func forgiveFailures(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `
		UPDATE users SET failed_attempts = 0, locked_until = NULL WHERE id = ? AND failed_attempts > 0`, userID)
	return err
}
