package user

import (
	"context"

	"svc/internal/db"
	"svc/internal/pgp"
)

const gpgKeyColumns = `k.id, k.user_id, k.key, k.fingerprint, k.created_at`

func scanGPGKey(s db.Scanner) (GPGKey, error) {
	var k GPGKey
	err := s.Scan(&k.ID, &k.UserID, &k.Key, &k.Fingerprint, db.Time(&k.CreatedAt))
	return k, err
}

func listGPGKeys(ctx context.Context, d *db.DB, userID int64, p db.Paging) (db.Page[GPGKey], error) {
	var where db.Where
	where.And("k.user_id = ?", userID)
	return db.List(ctx, d, db.Query[GPGKey]{
		Columns: gpgKeyColumns, From: "gpg_keys k", Where: where, Order: []db.Order{{Name: "k.id"}},
		Scan: scanGPGKey, Keys: func(k GPGKey) []any { return []any{k.ID} },
	}, p)
}

func findUserGPGKey(ctx context.Context, q db.Q, userID, id int64) (*GPGKey, error) {
	k, err := scanGPGKey(q.QueryRowContext(ctx, `
		SELECT `+gpgKeyColumns+` FROM gpg_keys k JOIN users u ON u.id = k.user_id
		WHERE k.id = ? AND k.user_id = ? AND u.deleted_at IS NULL`, id, userID))
	if err != nil {
		return nil, db.NotFound(err, "GPG Key")
	}
	return &k, nil
}

func findSigningGPGKeys(ctx context.Context, q db.Q, fingerprint, keyID string) ([]GPGKey, error) {
	column, value := "fingerprint", fingerprint
	if fingerprint == "" {
		column, value = "key_id", keyID
	}
	return db.All(ctx, q, scanGPGKey, `
		SELECT `+gpgKeyColumns+` FROM gpg_key_parts p JOIN gpg_keys k ON k.id = p.gpg_key_id JOIN users u ON u.id = k.user_id
		WHERE p.`+column+` = ? AND u.deleted_at IS NULL ORDER BY k.id LIMIT 5`, value)
}

func countGPGKeys(ctx context.Context, q db.Q, userID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM gpg_keys WHERE user_id = ?`, userID).Scan(&n)
	return n, err
}

func insertGPGKey(ctx context.Context, q db.Q, k *GPGKey, parts []pgp.Part) error {
	err := q.QueryRowContext(ctx, `INSERT INTO gpg_keys (user_id, key, fingerprint, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		k.UserID, k.Key, k.Fingerprint, k.CreatedAt).Scan(&k.ID)
	if err != nil {
		return err
	}
	for _, p := range parts {
		_, err := q.ExecContext(ctx, `INSERT INTO gpg_key_parts (gpg_key_id, fingerprint, key_id) VALUES (?, ?, ?)`, k.ID, p.Fingerprint, p.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteGPGKeys deletes all GPG keys of a user.
func deleteGPGKeys(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM gpg_keys WHERE user_id = ?`, userID)
	return err
}

func deleteGPGKey(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM gpg_keys WHERE id = ?`, id)
}
