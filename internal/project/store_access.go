package project

import (
	"context"
	"errors"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
)

// Conditions on memberships and shares that have not expired. Each takes the
// current date as its argument.
const (
	activeMember = `m.requested_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?)`
	activeShare  = `(s.expires_at IS NULL OR s.expires_at > ?) AND EXISTS (SELECT 1 FROM namespaces shared WHERE shared.id = s.group_id AND shared.deleted_at IS NULL)`
)

// lesser is the level that a share grants: the minimum of the level of the share
// and of the member in the invited group.
const lesser = `CASE WHEN s.access_level < m.access_level THEN s.access_level ELSE m.access_level END`

// findPlaces reads the IDs and namespaces of projects that are not deleted.
func findPlaces(ctx context.Context, q db.Q, ids []int64) ([]*Project, error) {
	return db.All(ctx, q, func(s db.Scanner) (*Project, error) {
		var p Project
		err := s.Scan(&p.ID, &p.NamespaceID)
		return &p, err
	}, `SELECT p.id, p.namespace_id FROM projects p WHERE p.deleted_at IS NULL AND p.id IN `+db.In(len(ids)), db.Any(ids)...)
}

// namespaceLevels returns the effective level of a user in namespaces: by
// membership in them or their ancestors, by shares with groups that they are a
// member of, and as the owner of their own namespace. Minimal is not inherited.
//
// SQLite reads the tables of a CROSS JOIN in their order: from the shares, which are limited.
// From the user it would read all groups below those that they are a member of.
func namespaceLevels(ctx context.Context, q db.Q, userID int64, today string, ids []int64) (map[int64]Level, error) {
	in := db.In(len(ids))
	var args []any
	args = append(append(args, db.Any(ids)...), userID, today)
	args = append(append(args, db.Any(ids)...), userID, today, today)
	args = append(append(args, db.Any(ids)...), userID)
	type row struct {
		id    int64
		level Level
	}
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.id, (*int64)(&r.level))
		return r, err
	}, `
		SELECT id, MAX(level) FROM (
			SELECT t.descendant_id AS id, m.access_level AS level
			FROM namespace_tree t CROSS JOIN members m
			WHERE t.descendant_id IN `+in+` AND m.namespace_id = t.ancestor_id AND m.user_id = ? AND (m.access_level > 5 OR t.depth = 0) AND `+activeMember+`
			UNION ALL
			SELECT t.descendant_id, `+lesser+`
			FROM namespace_tree t CROSS JOIN group_shares s CROSS JOIN namespace_tree g CROSS JOIN members m
			WHERE t.descendant_id IN `+in+` AND s.namespace_id = t.ancestor_id AND g.descendant_id = s.group_id AND m.namespace_id = g.ancestor_id AND m.user_id = ? AND m.access_level > 5 AND `+activeMember+` AND `+activeShare+`
			UNION ALL
			SELECT n.id, 50 FROM namespaces n WHERE n.id IN `+in+` AND n.user_id = ?
		) AS grants GROUP BY id`, args...)
	found := make(map[int64]Level, len(rows))
	for _, r := range rows {
		found[r.id] = r.level
	}
	return found, err
}

// projectLevels returns the levels of a user in projects by membership in and
// shares of the projects themselves.
func projectLevels(ctx context.Context, q db.Q, userID int64, today string, ids []int64) (map[int64]Access, error) {
	in := db.In(len(ids))
	var args []any
	args = append(append(args, db.Any(ids)...), userID, today)
	args = append(append(args, db.Any(ids)...), userID, today, today)
	type row struct {
		id     int64
		direct bool
		level  Level
	}
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.id, &r.direct, (*int64)(&r.level))
		return r, err
	}, `
		SELECT m.project_id, TRUE, m.access_level FROM members m
		WHERE m.project_id IN `+in+` AND m.user_id = ? AND `+activeMember+`
		UNION ALL
		SELECT s.project_id, FALSE, `+lesser+`
		FROM group_shares s CROSS JOIN namespace_tree g CROSS JOIN members m
		WHERE s.project_id IN `+in+` AND g.descendant_id = s.group_id AND m.namespace_id = g.ancestor_id AND m.user_id = ? AND m.access_level > 5 AND `+activeMember+` AND `+activeShare, args...)
	found := make(map[int64]Access, len(rows))
	for _, r := range rows {
		a := found[r.id]
		if r.direct {
			a.Direct = max(a.Direct, r.level)
		} else {
			a.Group = max(a.Group, r.level)
		}
		found[r.id] = a
	}
	return found, err
}

// memberProjects returns the condition on projects p in which the user has at
// least a level. It starts from the memberships, so its cost depends on their
// number and not on the number of projects.
func memberProjects(userID int64, today string, minLevel Level) (string, []any) {
	level := int64(max(minLevel, Guest))
	return `
		p.id IN (SELECT m.project_id FROM members m
			WHERE m.user_id = ? AND m.project_id IS NOT NULL AND m.access_level >= ? AND ` + activeMember + `)
		OR p.namespace_id IN (SELECT t.descendant_id FROM members m JOIN namespace_tree t ON t.ancestor_id = m.namespace_id
			WHERE m.user_id = ? AND m.access_level >= ? AND ` + activeMember + `)
		OR p.id IN (SELECT s.project_id FROM members m JOIN namespace_tree g ON g.ancestor_id = m.namespace_id
				JOIN group_shares s ON s.group_id = g.descendant_id
			WHERE m.user_id = ? AND s.project_id IS NOT NULL AND m.access_level >= ? AND s.access_level >= ? AND ` + activeMember + ` AND ` + activeShare + `)
		OR p.namespace_id IN (SELECT t.descendant_id FROM members m JOIN namespace_tree g ON g.ancestor_id = m.namespace_id
				JOIN group_shares s ON s.group_id = g.descendant_id JOIN namespace_tree t ON t.ancestor_id = s.namespace_id
			WHERE m.user_id = ? AND m.access_level >= ? AND s.access_level >= ? AND ` + activeMember + ` AND ` + activeShare + `)
		OR p.namespace_id IN (SELECT own.id FROM namespaces own WHERE own.user_id = ?)`,
		[]any{
			userID, level, today,
			userID, level, today,
			userID, level, level, today, today,
			userID, level, level, today, today,
			userID,
		}
}

// memberGroups returns the condition on groups n in which the user has at least a
// level, by membership or share, direct or inherited.
func memberGroups(userID int64, today string, minLevel Level) (string, []any) {
	level := int64(minLevel)
	return `
		n.id IN (SELECT t.descendant_id FROM members m JOIN namespace_tree t ON t.ancestor_id = m.namespace_id
			WHERE m.user_id = ? AND m.access_level >= ? AND (m.access_level > 5 OR t.depth = 0) AND ` + activeMember + `)
		OR n.id IN (SELECT t.descendant_id FROM members m JOIN namespace_tree g ON g.ancestor_id = m.namespace_id
				JOIN group_shares s ON s.group_id = g.descendant_id JOIN namespace_tree t ON t.ancestor_id = s.namespace_id
			WHERE m.user_id = ? AND m.access_level > 5 AND m.access_level >= ? AND s.access_level >= ? AND ` + activeMember + ` AND ` + activeShare + `)`,
		[]any{
			userID, level, today,
			userID, level, level, today, today,
		}
}

// insideGroups returns the condition on groups n that contain a group or project
// that the user is a member of.
func insideGroups(userID int64, today string) (string, []any) {
	return `
		n.id IN (SELECT t.ancestor_id FROM members m JOIN namespace_tree t ON t.descendant_id = m.namespace_id
			WHERE m.user_id = ? AND ` + activeMember + `)
		OR n.id IN (SELECT t.ancestor_id FROM members m JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
				JOIN namespace_tree t ON t.descendant_id = p.namespace_id
			WHERE m.user_id = ? AND ` + activeMember + `)`, []any{userID, today, userID, today}
}

// joinedGroups returns the condition on groups n that the user is a member of, or
// that contain a group or project that they are a member of.
func joinedGroups(userID int64, today string) (string, []any) {
	member, args := memberGroups(userID, today, Minimal)
	inside, insideArgs := insideGroups(userID, today)
	return anyOf(member, inside), append(args, insideArgs...)
}

// visibleGroups returns the condition on groups n that the actor can see, which is
// that of RequireGroup.
func visibleGroups(by actor.Actor, today string) (string, []any) {
	switch {
	case by.Admin || by.Auditor:
		return "1 = 1", nil
	case by.Anonymous():
		return "n.visibility = 'public'", nil
	}
	open := "n.visibility IN ('public', 'internal')"
	if by.External {
		open = "n.visibility = 'public'"
	}
	joined, args := joinedGroups(by.ID, today)
	return anyOf(open, joined), args
}

// anyOf joins conditions with OR.
func anyOf(conds ...string) string { return "(" + strings.Join(conds, ") OR (") + ")" }

// ownMembership reports whether a user is a direct member, or has requested
// access.
func ownMembership(ctx context.Context, q db.Q, in source, userID int64, today string) (member, asked bool, err error) {
	column, id := in.column()
	err = q.QueryRowContext(ctx, `
		SELECT m.requested_at IS NOT NULL FROM members m WHERE `+column+` = ? AND m.user_id = ? AND (m.expires_at IS NULL OR m.expires_at > ?)`,
		id, userID, today).Scan(&asked)
	if errors.Is(err, db.ErrNoRows) {
		return false, false, nil
	}
	return !asked, asked, err
}

// findGranted returns the users to whom a query for grants gives at least a level.
func findGranted(ctx context.Context, q db.Q, grants string, args []any, minLevel Level) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT g.user_id FROM (`+grants+`) g GROUP BY g.user_id HAVING max(g.level) >= ? ORDER BY 1`, append(args, int64(minLevel))...)
}

// insideOf reports whether the actor is a member of something in a group.
func (s *Service) insideOf(ctx context.Context, q db.Q, by actor.Actor, groupID int64) (bool, error) {
	if by.Anonymous() {
		return false, nil
	}
	sql, args := insideGroups(by.ID, s.today())
	return db.Exists(ctx, q, `SELECT 1 FROM namespaces n WHERE n.id = ? AND (`+sql+`)`, append([]any{groupID}, args...)...)
}
