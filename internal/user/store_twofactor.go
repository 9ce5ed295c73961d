package user

import (
	"context"
	"time"

	"svc/internal/db"
)

func findOTP(ctx context.Context, q db.Q, userID int64) (otpRow, error) {
	var o otpRow
	err := q.QueryRowContext(ctx, `SELECT otp_secret, otp_last_step FROM users WHERE id = ?`, userID).Scan(&o.sealed, &o.lastStep)
	return o, db.NotFound(err, "User")
}

func saveOTP(ctx context.Context, q db.Q, userID int64, sealed string, enabledAt *time.Time, lastStep int64) error {
	return db.ExecOne(ctx, q, `UPDATE users SET otp_secret = ?, otp_enabled_at = ?, otp_last_step = ? WHERE id = ?`,
		sealed, enabledAt, lastStep, userID)
}

func useStep(ctx context.Context, q db.Q, userID, step int64) error {
	return db.ExecOne(ctx, q, `UPDATE users SET otp_last_step = ? WHERE id = ? AND otp_last_step < ?`, step, userID, step)
}

func insertRecoveryCode(ctx context.Context, q db.Q, userID int64, digest string) error {
	_, err := q.ExecContext(ctx, `INSERT INTO recovery_codes (user_id, digest) VALUES (?, ?)`, userID, digest)
	return err
}

func deleteRecoveryCode(ctx context.Context, q db.Q, userID int64, digest string) error {
	return db.ExecOne(ctx, q, `DELETE FROM recovery_codes WHERE user_id = ? AND digest = ?`, userID, digest)
}

func deleteRecoveryCodes(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM recovery_codes WHERE user_id = ?`, userID)
	return err
}

func countRecoveryCodes(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM recovery_codes WHERE user_id = ?`, userID).Scan(&n)
	return n, err
}
