package project

import (
	"context"

	"svc/internal/db"
)

// findAvatar returns the name of the avatar of a project or group.
func findAvatar(ctx context.Context, q db.Q, group bool, id int64) (name string, err error) {
	table := "projects"
	if group {
		table = "namespaces"
	}
	err = q.QueryRowContext(ctx, `SELECT avatar FROM `+table+` WHERE id = ? AND deleted_at IS NULL`, id).Scan(&name)
	return name, err
}

// avatarOf is an avatar and the project or group that it belongs to.
type avatarOf struct {
	id   int64
	name string
}

func projectAvatar(ctx context.Context, q db.Q, id int64) ([]avatarOf, error) {
	return findAvatars(ctx, q, `projects WHERE id = ?`, id)
}

// deletedGroupAvatars returns the avatars of a deleted group and its descendants.
func deletedGroupAvatars(ctx context.Context, q db.Q, id int64) ([]avatarOf, error) {
	return findAvatars(ctx, q, `namespaces WHERE deleted_at IS NOT NULL AND id IN `+below, id)
}

func findAvatars(ctx context.Context, q db.Q, from string, id int64) ([]avatarOf, error) {
	return db.All(ctx, q, func(sc db.Scanner) (avatarOf, error) {
		var a avatarOf
		err := sc.Scan(&a.id, &a.name)
		return a, err
	}, `SELECT id, avatar FROM `+from+` AND avatar <> ''`, id)
}
