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
