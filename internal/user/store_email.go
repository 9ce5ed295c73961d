package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
)

const emailColumns = `e.id, e.user_id, e.email, e.confirmed_at, e.created_at`

// Every address has a row, including the primary one. Users see only secondary
// addresses as their emails.
const (
	emailTables    = `emails e JOIN users u ON u.id = e.user_id`
	secondaryEmail = `lower(e.email) <> lower(u.email)`
)

func scanEmail(s db.Scanner) (Email, error) {
	var e Email
	err := s.Scan(&e.ID, &e.UserID, &e.Address, db.NullTime(&e.ConfirmedAt), db.Time(&e.CreatedAt))
	return e, err
}

func listEmails(ctx context.Context, d *db.DB, userID int64, p db.Paging) (db.Page[Email], error) {
	var where db.Where
	where.And("e.user_id = ?", userID)
	where.And(secondaryEmail)
	return db.List(ctx, d, db.Query[Email]{
		Columns: emailColumns, From: emailTables, Where: where, Order: []db.Order{{Name: "e.id"}},
		Scan: scanEmail, Keys: func(e Email) []any { return []any{e.ID} },
	}, p)
}

func findEmail(ctx context.Context, q db.Q, userID, id int64) (*Email, error) {
	e, err := scanEmail(q.QueryRowContext(ctx, `
		SELECT `+emailColumns+` FROM `+emailTables+` WHERE e.id = ? AND e.user_id = ? AND `+secondaryEmail, id, userID))
	if err != nil {
		return nil, db.NotFound(err, "Email")
	}
	return &e, nil
}

// findByPublicEmail searches the addresses, which have an index: a public email is
// always one of them.
func findByPublicEmail(ctx context.Context, q db.Q, address string) (*User, error) {
	return scanUser(q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM `+userTables+` JOIN emails e ON e.user_id = u.id
		WHERE lower(e.email) = lower(?) AND lower(u.public_email) = lower(e.email) AND u.deleted_at IS NULL`, address))
}

// findUnconfirmed returns ErrNoRows for an unknown digest. The second condition
// makes the index applicable.
func findUnconfirmed(ctx context.Context, q db.Q, digest string) (Email, error) {
	return scanEmail(q.QueryRowContext(ctx, `
		SELECT `+emailColumns+` FROM `+emailTables+`
		WHERE e.confirmation_digest = ? AND e.confirmation_digest <> '' AND u.deleted_at IS NULL`, digest))
}

// findAddress returns the user with an address, the stored spelling, and when it
// was confirmed. ErrNoRows.
func findAddress(ctx context.Context, q db.Q, address string) (owner int64, stored string, confirmed *time.Time, err error) {
	err = q.QueryRowContext(ctx, `SELECT user_id, email, confirmed_at FROM emails WHERE lower(email) = lower(?)`, address).
		Scan(&owner, &stored, db.NullTime(&confirmed))
	return owner, stored, confirmed, err
}

func hasConfirmed(ctx context.Context, q db.Q, userID int64, address string) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM emails WHERE user_id = ? AND lower(email) = lower(?) AND confirmed_at IS NOT NULL`, userID, address)
}

func confirmAddress(ctx context.Context, q db.Q, address string, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE emails SET confirmed_at = ?, confirmation_digest = '' WHERE lower(email) = lower(?)`, now, address)
	return err
}

// insertEmail inserts an address. A duplicate violates the index emails_email.
func insertEmail(ctx context.Context, q db.Q, userID int64, address string, confirmedAt *time.Time, confirmationDigest string, now time.Time) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `
		INSERT INTO emails (user_id, email, confirmed_at, confirmation_digest, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		userID, address, confirmedAt, confirmationDigest, now).Scan(&id)
	return id, err
}

// freeAddress deletes a secondary address that was added before a time and was not
// confirmed.
func freeAddress(ctx context.Context, q db.Q, address string, before time.Time) error {
	_, err := q.ExecContext(ctx, `
		DELETE FROM emails WHERE lower(email) = lower(?) AND confirmed_at IS NULL AND created_at < ?
			AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = emails.user_id AND lower(u.email) = lower(emails.email))`, address, before)
	return err
}

func countEmails(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM emails WHERE user_id = ?`, userID).Scan(&n)
	return n, err
}

func confirmEmail(ctx context.Context, q db.Q, id int64, digest string, now time.Time) error {
	return db.ExecOne(ctx, q, `
		UPDATE emails SET confirmed_at = ?, confirmation_digest = '' WHERE id = ? AND confirmation_digest = ?`, now, id, digest)
}

func deleteEmail(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM emails WHERE id = ?`, id)
}

// deleteSecondaryEmails deletes all addresses of a user except the primary one.
func deleteSecondaryEmails(ctx context.Context, q db.Q, userID int64, primary string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM emails WHERE user_id = ? AND lower(email) <> lower(?)`, userID, primary)
	return err
}

// eachConfirmed calls f for all confirmed addresses.
func eachConfirmed(ctx context.Context, q db.Q, f func(userID int64, address string)) error {
	type row struct {
		id      int64
		address string
	}
	return db.Each(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, &r.address)
		return r, err
	}, func(r row) error {
		f(r.id, r.address)
		return nil
	}, `SELECT e.user_id, e.email FROM emails e JOIN users u ON u.id = e.user_id
		WHERE e.confirmed_at IS NOT NULL AND u.deleted_at IS NULL AND u.kind = 'human'`)
}

// owner is the user who has confirmed an address.
type owner struct {
	address string // in lower case
	id      int64
}

func findOwners(ctx context.Context, q db.Q, addresses []string) ([]owner, error) {
	lower := make([]string, len(addresses))
	for i, address := range addresses {
		lower[i] = strings.ToLower(address)
	}
	return db.All(ctx, q, func(s db.Scanner) (owner, error) {
		var o owner
		err := s.Scan(&o.address, &o.id)
		return o, err
	}, `SELECT lower(email), user_id FROM emails WHERE confirmed_at IS NOT NULL AND lower(email) IN `+db.In(len(lower)), db.Any(lower)...)
}
