package user

import (
	"context"

	"svc/internal/db"
)

// attributesOfAll returns the attributes of several users, by key; those
// without any have an empty list.
func attributesOfAll(ctx context.Context, q db.Q, ids []int64) (map[int64][]Attribute, error) {
	return ofAll(ctx, q, ids, func(a *Attribute) []any { return []any{&a.Key, &a.Value} }, `
		SELECT user_id, key, value FROM user_custom_attributes
		WHERE user_id IN `+db.In(len(ids))+` ORDER BY user_id, key`)
}

func findAttribute(ctx context.Context, q db.Q, userID int64, key string) (Attribute, error) {
	a := Attribute{Key: key}
	err := q.QueryRowContext(ctx, `SELECT value FROM user_custom_attributes WHERE user_id = ? AND key = ?`, userID, key).Scan(&a.Value)
	return a, db.NotFound(err, "Custom Attribute")
}

func saveAttribute(ctx context.Context, q db.Q, userID int64, a Attribute) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO user_custom_attributes (user_id, key, value) VALUES (?, ?, ?)
		ON CONFLICT (user_id, key) DO UPDATE SET value = excluded.value`, userID, a.Key, a.Value)
	return err
}

func deleteAttribute(ctx context.Context, q db.Q, userID int64, key string) error {
	return db.ExecOne(ctx, q, `DELETE FROM user_custom_attributes WHERE user_id = ? AND key = ?`, userID, key)
}

// identitiesOfAll returns the identities of several users, by provider; those
// without any have an empty list.
func identitiesOfAll(ctx context.Context, q db.Q, ids []int64) (map[int64][]Identity, error) {
	return ofAll(ctx, q, ids, func(i *Identity) []any { return []any{&i.Provider, &i.ExternUID, &i.SAMLProviderID} }, `
		SELECT user_id, provider, extern_uid, saml_provider_id FROM identities
		WHERE user_id IN `+db.In(len(ids))+` ORDER BY user_id, provider`)
}

func saveIdentity(ctx context.Context, q db.Q, userID int64, i Identity) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO identities (user_id, provider, extern_uid, saml_provider_id) VALUES (?, ?, ?, ?)
		ON CONFLICT (user_id, provider) DO UPDATE SET extern_uid = excluded.extern_uid, saml_provider_id = excluded.saml_provider_id`,
		userID, i.Provider, i.ExternUID, i.SAMLProviderID)
	return err
}

func deleteIdentity(ctx context.Context, q db.Q, userID int64, provider string) error {
	return db.ExecOne(ctx, q, `DELETE FROM identities WHERE user_id = ? AND provider = ?`, userID, provider)
}

// deleteIdentities deletes all identities of a user.
func deleteIdentities(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM identities WHERE user_id = ?`, userID)
	return err
}

// findByIdentity finds a user by their identity, whose UID is returned as stored.
func findByIdentity(ctx context.Context, q db.Q, provider, externUID string) (*User, string, error) {
	var id int64
	var stored string
	err := q.QueryRowContext(ctx, `SELECT user_id, extern_uid FROM identities WHERE provider = ? AND lower(extern_uid) = lower(?)`, provider, externUID).
		Scan(&id, &stored)
	if err != nil {
		return nil, "", db.NotFound(err, "User")
	}
	u, err := findUser(ctx, q, id)
	return u, stored, err
}

func usernameTaken(ctx context.Context, q db.Q, name string) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM namespaces WHERE lower(full_path) = lower(?)
		UNION ALL SELECT 1 FROM users WHERE lower(username) = lower(?)`, name, name)
}

func adminWithIdentity(ctx context.Context, q db.Q, providers []string) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM identities i JOIN users u ON u.id = i.user_id
		WHERE u.admin AND u.state = 'active' AND u.kind = 'human' AND u.deleted_at IS NULL AND i.provider IN `+db.In(len(providers)), db.Any(providers)...)
}

func otherAdmin(ctx context.Context, q db.Q, userID int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM users WHERE admin AND state = 'active' AND kind = 'human' AND deleted_at IS NULL AND id <> ?`, userID)
}

func findLinked(ctx context.Context, q db.Q, provider string, after int64, limit int) (ids []int64, uids []string, err error) {
	rows, err := q.QueryContext(ctx, `
		SELECT u.id, i.extern_uid FROM identities i JOIN users u ON u.id = i.user_id
		WHERE i.provider = ? AND u.id > ? AND u.state IN ('active', 'deactivated') AND u.kind = 'human' AND u.deleted_at IS NULL ORDER BY u.id LIMIT ?`, provider, after, limit)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var uid string
		if err := rows.Scan(&id, &uid); err != nil {
			return nil, nil, err
		}
		ids, uids = append(ids, id), append(uids, uid)
	}
	return ids, uids, rows.Err()
}
