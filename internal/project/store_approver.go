package project

import (
	"context"
	"slices"

	"svc/internal/db"
)

// findAccess reads the access that a query for grants gives to active users.
func findAccess(ctx context.Context, q db.Q, grants string, args []any, found map[int64]Access) error {
	_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
		var id, direct, any int64
		err := s.Scan(&id, &direct, &any)
		found[id] = Access{Direct: Level(direct), Group: Level(any)}
		return struct{}{}, err
	}, `
		SELECT g.user_id, MAX(CASE WHEN g.depth = -1 THEN g.level ELSE 0 END), MAX(g.level)
		FROM (`+grants+`) g JOIN users u ON u.id = g.user_id
		WHERE u.state = 'active' AND u.deleted_at IS NULL GROUP BY g.user_id`, args...)
	return err
}

func isActive(ctx context.Context, q db.Q, userID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM users u WHERE u.id = ? AND u.state = 'active' AND u.deleted_at IS NULL`, userID)
}

// findDirectMembers reads the members of groups by group, up to a total limit.
// Users in always are included regardless of the limit.
func findDirectMembers(ctx context.Context, q db.Q, today string, groupIDs, always []int64, limit int, found map[int64][]int64) error {
	seen := map[[2]int64]bool{}
	read := func(more string, args ...any) error {
		_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
			var row [2]int64
			err := s.Scan(&row[0], &row[1])
			if !seen[row] {
				found[row[0]] = append(found[row[0]], row[1])
			}
			seen[row] = true
			return struct{}{}, err
		}, `
			SELECT m.namespace_id, m.user_id FROM members m
			WHERE m.namespace_id IN `+db.In(len(groupIDs))+` AND m.access_level > 5 AND `+activeMember+more,
			append(append(db.Any(groupIDs), today), args...)...)
		return err
	}
	if err := read(` ORDER BY m.namespace_id, m.user_id LIMIT ?`, limit); err != nil {
		return err
	}
	for part := range slices.Chunk(always, 300) {
		if err := read(` AND m.user_id IN `+db.In(len(part)), db.Any(part)...); err != nil {
			return err
		}
	}
	return nil
}

func findRoleMembers(ctx context.Context, q db.Q, today string, projectID int64, level Level, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT m.user_id FROM members m WHERE m.project_id = ? AND m.access_level = ? AND `+activeMember+` ORDER BY m.user_id LIMIT ?`,
		projectID, int64(level), today, limit)
}

func findNamespacesByPath(ctx context.Context, q db.Q, paths []string) ([]*Namespace, error) {
	lower := "(lower(?)"
	for range paths[1:] {
		lower += ", lower(?)"
	}
	return db.All(ctx, q, scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces n
		WHERE lower(n.full_path) IN `+lower+`) AND n.deleted_at IS NULL`, db.Any(paths)...)
}
