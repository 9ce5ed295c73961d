package user

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/db"
	"svc/internal/secret"
)

func (s *Service) ticketOwner(ctx context.Context, q db.Q, p purpose, token string) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT user_id FROM user_tickets WHERE digest = ? AND purpose = ? AND created_at > ?`,
		secret.Digest(token), string(p), s.Now().Add(-ticketLife)).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, errOldTicket()
	}
	if err != nil {
		return 0, fmt.Errorf("find ticket: %w", err)
	}
	return id, nil
}

// useTicket deletes a ticket and the others of the user for the same purpose.
func (s *Service) useTicket(ctx context.Context, tx *db.Tx, p purpose, token string, userID int64) error {
	err := db.ExecOne(ctx, tx, `DELETE FROM user_tickets WHERE digest = ? AND purpose = ? AND user_id = ?`, secret.Digest(token), string(p), userID)
	if errors.Is(err, db.ErrNoRows) {
		return errOldTicket()
	}
	if err != nil {
		return err
	}
	return dropTickets(ctx, tx, userID, p)
}

// addTicket creates a ticket. Earlier ones stay valid, because emails may arrive
// out of order.
func (s *Service) addTicket(ctx context.Context, tx *db.Tx, userID int64, p purpose) (string, error) {
	token := secret.Token("")
	_, err := tx.ExecContext(ctx, `INSERT INTO user_tickets (digest, user_id, purpose, created_at) VALUES (?, ?, ?, ?)`,
		secret.Digest(token), userID, string(p), s.Now())
	return token, err
}

func dropTickets(ctx context.Context, q db.Q, userID int64, p purpose) error {
	_, err := q.ExecContext(ctx, `DELETE FROM user_tickets WHERE user_id = ? AND purpose = ?`, userID, string(p))
	return err
}

// purgeTickets deletes expired tickets.
func (s *Service) purgeTickets(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM user_tickets WHERE created_at <= ?`, s.Now().Add(-ticketLife))
	if err != nil {
		return fmt.Errorf("purge tickets: %w", err)
	}
	return nil
}

// findByAnyEmail also finds an unconfirmed address if it is the primary one: a
// reset email confirms it.
func findByAnyEmail(ctx context.Context, q db.Q, email string) (*User, error) {
	return scanUser(q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM `+userTables+` JOIN emails e ON e.user_id = u.id
		WHERE lower(e.email) = lower(?) AND (e.confirmed_at IS NOT NULL OR lower(u.email) = lower(e.email)) AND u.deleted_at IS NULL`, email))
}

func renewConfirmation(ctx context.Context, q db.Q, address, digest string) error {
	return db.ExecOne(ctx, q, `
		UPDATE emails SET confirmation_digest = ? WHERE lower(email) = lower(?) AND confirmed_at IS NULL`, digest, address)
}

func passwordHash(ctx context.Context, q db.Q, userID int64) (string, error) {
	var hash string
	err := q.QueryRowContext(ctx, `SELECT password_hash FROM users WHERE id = ?`, userID).Scan(&hash)
	return hash, db.NotFound(err, "User")
}
