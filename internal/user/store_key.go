package user

import (
	"context"

	"svc/internal/db"
)

const keyColumns = `k.id, k.user_id, k.title, k.key, k.fingerprint, k.sha256, k.usage_type, k.created_at, k.expires_at, k.last_used_at`

func scanKey(s db.Scanner) (Key, error) {
	var k Key
	err := s.Scan(&k.ID, &k.UserID, &k.Title, &k.Key, &k.Fingerprint, &k.SHA256, &k.Usage, db.Time(&k.CreatedAt),
		db.NullTime(&k.ExpiresAt), db.NullTime(&k.LastUsedAt))
	return k, err
}

func listKeys(ctx context.Context, d *db.DB, userID int64, p db.Paging) (db.Page[Key], error) {
	var where db.Where
	where.And("k.user_id = ?", userID)
	return db.List(ctx, d, db.Query[Key]{
		Columns: keyColumns, From: "ssh_keys k", Where: where, Order: []db.Order{{Name: "k.id"}},
		Scan: scanKey, Keys: func(k Key) []any { return []any{k.ID} },
	}, p)
}

func findUserKey(ctx context.Context, q db.Q, userID, id int64) (*Key, error) {
	return findKey(ctx, q, "k.id = ? AND k.user_id = ?", id, userID)
}

// findKey finds a key of an existing user.
func findKey(ctx context.Context, q db.Q, cond string, args ...any) (*Key, error) {
	k, err := scanKey(q.QueryRowContext(ctx, `
		SELECT `+keyColumns+` FROM ssh_keys k JOIN users u ON u.id = k.user_id
		WHERE `+cond+` AND u.deleted_at IS NULL ORDER BY k.id LIMIT 1`, args...))
	if err != nil {
		return nil, db.NotFound(err, "Key")
	}
	return &k, nil
}

func insertKey(ctx context.Context, q db.Q, k *Key) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO ssh_keys (user_id, title, key, fingerprint, sha256, usage_type, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		k.UserID, k.Title, k.Key, k.Fingerprint, k.SHA256, string(k.Usage), k.CreatedAt, k.ExpiresAt).Scan(&k.ID)
}

func deleteKey(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM ssh_keys WHERE id = ?`, id)
}

// deleteKeys deletes all SSH keys of a user.
func deleteKeys(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM ssh_keys WHERE user_id = ?`, userID)
	return err
}

func hasKey(ctx context.Context, q db.Q, fingerprint string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM ssh_keys WHERE sha256 = ?`, fingerprint)
}

func hasDeployKey(ctx context.Context, q db.Q, fingerprint string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM deploy_keys WHERE sha256 = ?`, fingerprint)
}

func findKeyByID(ctx context.Context, q db.Q, id int64) (*Key, error) {
	return findKey(ctx, q, "k.id = ?", id)
}

func findKeyBySHA256(ctx context.Context, q db.Q, fingerprint string) (*Key, error) {
	return findKey(ctx, q, "k.sha256 = ?", fingerprint)
}

func findKeyByMD5(ctx context.Context, q db.Q, fingerprint string) (*Key, error) {
	return findKey(ctx, q, "k.fingerprint = ?", fingerprint)
}
