package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// column returns the column that refers to the source, and its value.
func (in source) column() (string, int64) {
	if in.group != nil {
		return "m.namespace_id", in.group.ID
	}
	return "m.project_id", in.project.ID
}

const memberColumns = `m.id, m.user_id, m.access_level, COALESCE(m.expires_at, ''), m.created_by, m.created_at, m.requested_at`

func scanMember(s db.Scanner) (*Member, error) {
	m := &Member{}
	return m, s.Scan(&m.ID, &m.UserID, (*int64)(&m.Level), &m.ExpiresAt, &m.CreatedBy, db.Time(&m.CreatedAt), db.NullTime(&m.RequestedAt))
}

func listMembers(ctx context.Context, d *db.DB, w db.Where, p db.Paging) (db.Page[*Member], error) {
	return db.List(ctx, d, db.Query[*Member]{
		Columns: memberColumns, From: "members m JOIN users u ON u.id = m.user_id", Where: w,
		Order: []db.Order{{Name: "m.user_id"}}, Scan: scanMember, Keys: func(m *Member) []any { return []any{m.UserID} },
	}, p)
}

// lockMember locks and returns a membership or an access request.
func lockMember(ctx context.Context, tx *db.Tx, in source, userID int64, request bool) (*Member, error) {
	column, id := in.column()
	state := "IS NULL"
	if request {
		state = "IS NOT NULL"
	}
	query := `SELECT ` + memberColumns + ` FROM members m WHERE ` + column + ` = ? AND m.user_id = ? AND m.requested_at ` + state
	m, err := scanMember(tx.QueryRowContext(ctx, query, id, userID))
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	if err := tx.Lock(ctx, "members", m.ID); err != nil {
		return nil, db.NotFound(err, "")
	}
	m, err = scanMember(tx.QueryRowContext(ctx, query, id, userID))
	return m, db.NotFound(err, "")
}

func insertMember(ctx context.Context, q db.Q, in source, m *Member) error {
	namespaceID, projectID := in.ids()
	err := q.QueryRowContext(ctx, `
		INSERT INTO members (namespace_id, project_id, user_id, access_level, expires_at, created_by, created_at, requested_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		namespaceID, projectID, m.UserID, int64(m.Level), db.NullText(m.ExpiresAt), m.CreatedBy, m.CreatedAt, m.RequestedAt).Scan(&m.ID)
	if db.IsUnique(err, "members_namespace_id_user_id") || db.IsUnique(err, "members_project_id_user_id") {
		return errs.Conflict("Member already exists")
	}
	return err
}

// saveOwner makes a user an Owner of a project without expiration, replacing any
// other membership.
func saveOwner(ctx context.Context, q db.Q, projectID, userID int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO members (project_id, user_id, access_level, created_by, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (project_id, user_id) DO UPDATE SET access_level = excluded.access_level, expires_at = NULL, requested_at = NULL`,
		projectID, userID, int64(Owner), userID, at)
	return err
}

func saveMember(ctx context.Context, q db.Q, m *Member) error {
	err := db.ExecOne(ctx, q, `UPDATE members SET access_level = ?, expires_at = ?, created_by = ?, requested_at = ? WHERE id = ?`,
		int64(m.Level), db.NullText(m.ExpiresAt), m.CreatedBy, m.RequestedAt, m.ID)
	return db.NotFound(err, "")
}

func deleteMember(ctx context.Context, q db.Q, in source, m *Member, onlyThere bool) error {
	if err := deleteMemberByID(ctx, q, m.ID); err != nil || in.group == nil || onlyThere {
		return err
	}
	if _, err := q.ExecContext(ctx, `DELETE FROM members WHERE user_id = ? AND namespace_id IN `+below, m.UserID, in.group.ID); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, `
		DELETE FROM members WHERE user_id = ? AND project_id IN (SELECT p.id FROM projects p WHERE p.namespace_id IN `+below+`)`, m.UserID, in.group.ID)
	return err
}

// grants returns a query for everything that gives a user a level in the source:
// ID of the membership, user, level, and distance; only for some users, unless there are
// none. Shares are included for members only. For the joins see namespaceLevels.
func (s *Service) grants(by actor.Actor, in source, users []int64) (string, []any) {
	place, project := in.tree()
	sharePlace, shareProject := int64(0), int64(0)
	if by.Admin || in.have > NoAccess {
		sharePlace, shareProject = place, project
	}
	today, of := s.today(), ``
	if len(users) > 0 {
		of = ` AND m.user_id IN ` + db.In(len(users))
	}
	var args []any
	for _, part := range [][]any{{project, today}, {place, project, today}, {shareProject, today, today}, {sharePlace, today, today}} {
		args = append(append(args, part...), db.Any(users)...)
	}
	return `
		SELECT m.id, m.user_id, m.access_level AS level, -1 AS depth FROM members m WHERE m.project_id = ? AND ` + activeMember + of + `
		UNION ALL
		SELECT m.id, m.user_id, m.access_level, t.depth FROM namespace_tree t CROSS JOIN members m
		WHERE t.descendant_id = ? AND m.namespace_id = t.ancestor_id AND (m.access_level > 5 OR t.depth = 0 AND CAST(? AS BIGINT) = 0) AND ` + activeMember + of + `
		UNION ALL
		SELECT m.id, m.user_id, ` + lesser + `, 100 + g.depth FROM group_shares s CROSS JOIN namespace_tree g CROSS JOIN members m
		WHERE s.project_id = ? AND g.descendant_id = s.group_id AND m.namespace_id = g.ancestor_id AND m.access_level > 5 AND ` + activeMember + ` AND ` + activeShare + of + `
		UNION ALL
		SELECT m.id, m.user_id, ` + lesser + `, 100 + t.depth + g.depth
		FROM namespace_tree t CROSS JOIN group_shares s CROSS JOIN namespace_tree g CROSS JOIN members m
		WHERE t.descendant_id = ? AND s.namespace_id = t.ancestor_id AND g.descendant_id = s.group_id AND m.namespace_id = g.ancestor_id AND m.access_level > 5 AND ` + activeMember + ` AND ` + activeShare + of, args
}

// userOf returns the user of a member, for audit events.
func (s *Service) userOf(ctx context.Context, tx *db.Tx, id int64) (*user.User, error) {
	u := &user.User{ID: id}
	err := tx.QueryRowContext(ctx, `SELECT username, name FROM users WHERE id = ?`, id).Scan(&u.Username, &u.Name)
	return u, db.NotFound(err, "User")
}

// findMembers returns the direct members of the source among ids.
func findMembers(ctx context.Context, q db.Q, in source, ids []int64) ([]*Member, error) {
	column, id := in.column()
	return db.All(ctx, q, scanMember, `SELECT `+memberColumns+` FROM members m WHERE `+column+` = ? AND m.user_id IN `+db.In(len(ids)),
		append([]any{id}, db.Any(ids)...)...)
}

func findMember(ctx context.Context, q db.Q, in source, userID int64) (*Member, error) {
	column, id := in.column()
	return scanMember(q.QueryRowContext(ctx, `SELECT `+memberColumns+` FROM members m WHERE `+column+` = ? AND m.user_id = ?`, id, userID))
}

// saveExpiry sets the expiration date of a membership; empty means never.
func saveExpiry(ctx context.Context, q db.Q, in source, userID int64, day string) error {
	column, id := in.column()
	_, err := q.ExecContext(ctx, `UPDATE members SET expires_at = ? WHERE `+column[2:]+` = ? AND user_id = ?`, db.NullText(day), id, userID)
	return err
}

// deleteMemberships deletes all memberships of a user.
func deleteMemberships(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM members WHERE user_id = ?`, userID)
	return err
}

func (s *Service) membersWhere(by actor.Actor, in source, f MemberFilter) db.Where {
	var w db.Where
	if f.All {
		sql, args := s.grants(by, in, f.Users)
		w.And(`m.id IN (SELECT r.id FROM (SELECT g.id, ROW_NUMBER() OVER (PARTITION BY g.user_id ORDER BY g.level DESC, g.depth, g.id) AS place
			FROM (`+sql+`) g) r WHERE r.place = 1)`, args...)
	} else {
		column, id := in.column()
		w.And(column+" = ? AND m.requested_at IS NULL", id)
		w.And(`m.expires_at IS NULL OR m.expires_at > ?`, s.today())
	}
	w.And("u.deleted_at IS NULL")
	if f.Query != "" {
		w.And(`fold(u.name) LIKE ? ESCAPE '\' OR fold(u.username) LIKE ? ESCAPE '\' OR lower(u.public_email) = lower(?)`,
			db.Like(f.Query), db.Like(f.Query), f.Query)
	}
	if len(f.Users) > 0 {
		w.And(`m.user_id IN `+db.In(len(f.Users)), db.Any(f.Users)...)
	}
	if len(f.Skip) > 0 {
		w.And(`m.user_id NOT IN `+db.In(len(f.Skip)), db.Any(f.Skip)...)
	}
	return w
}

// grantedLevels returns the effective levels of members in the source.
func (s *Service) grantedLevels(ctx context.Context, by actor.Actor, in source, list []*Member) (map[int64]Level, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var users []int64
	for _, m := range list {
		users = append(users, m.UserID)
	}
	sql, args := s.grants(by, in, users)
	levels := map[int64]Level{}
	type row struct {
		user  int64
		level Level
	}
	err := db.Each(ctx, s.DB, func(sc db.Scanner) (row, error) {
		var r row
		err := sc.Scan(&r.user, (*int64)(&r.level))
		return r, err
	}, func(r row) error {
		levels[r.user] = r.level
		return nil
	}, `SELECT g.user_id, MAX(g.level) FROM (`+sql+`) g GROUP BY g.user_id`, args...)
	return levels, err
}

// listRequests lists the access requests.
func listRequests(ctx context.Context, d *db.DB, in source, p db.Paging) (db.Page[*Member], error) {
	column, id := in.column()
	var w db.Where
	w.And(column+" = ? AND m.requested_at IS NOT NULL", id)
	w.And("u.deleted_at IS NULL")
	return listMembers(ctx, d, w, p)
}

// inheritedLevel returns the highest level of a user in an ancestor group, and the
// name of that group. ErrNoRows if there is none.
func inheritedLevel(ctx context.Context, q db.Q, in source, userID int64, today string) (level Level, group string, err error) {
	place, _ := in.tree()
	err = q.QueryRowContext(ctx, `
		SELECT m.access_level, n.name FROM namespace_tree t JOIN members m ON m.namespace_id = t.ancestor_id JOIN namespaces n ON n.id = m.namespace_id
		WHERE t.descendant_id = ? AND m.user_id = ? AND (t.depth > 0 OR ?) AND m.access_level > 5 AND `+activeMember+`
		ORDER BY m.access_level DESC LIMIT 1`, place, userID, in.project != nil, today).Scan((*int64)(&level), &group)
	return level, group, err
}

// hasOtherOwner reports whether another user is an Owner of a group, directly or
// inherited.
func hasOtherOwner(ctx context.Context, q db.Q, groupID, userID int64, today string) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM namespace_tree t JOIN members m ON m.namespace_id = t.ancestor_id JOIN users u ON u.id = m.user_id
		WHERE t.descendant_id = ? AND m.user_id <> ? AND m.access_level = 50 AND u.kind = 'human' AND `+activeMember+` LIMIT 1`, groupID, userID, today)
}

// listMemberships lists the direct memberships of a user. Invalid for an unknown
// kind.
func listMemberships(ctx context.Context, d *db.DB, userID int64, kind, today string, p db.Paging) (db.Page[Membership], error) {
	var w db.Where
	w.And("m.user_id = ?", userID)
	w.And(activeMember, today)
	w.And("COALESCE(p.deleted_at, n.deleted_at) IS NULL")
	switch kind {
	case "":
	case "Project":
		w.And("m.project_id IS NOT NULL")
	case "Namespace":
		w.And("m.namespace_id IS NOT NULL")
	default:
		return db.Page[Membership]{}, errs.Invalid("type does not have a valid value")
	}
	return db.List(ctx, d, db.Query[Membership]{
		Columns: "m.id, COALESCE(m.project_id, m.namespace_id), COALESCE(p.name, n.name), m.project_id IS NOT NULL, m.access_level",
		From:    "members m LEFT JOIN projects p ON p.id = m.project_id LEFT JOIN namespaces n ON n.id = m.namespace_id",
		Where:   w, Order: []db.Order{{Name: "m.id"}},
		Scan: func(sc db.Scanner) (Membership, error) {
			var m Membership
			err := sc.Scan(&m.ID, &m.Source, &m.Name, &m.Project, (*int64)(&m.Level))
			return m, err
		},
		Keys: func(m Membership) []any { return []any{m.ID} },
	}, p)
}

// expired is an expired membership.
type expired struct {
	id   int64
	user audit.Target
	in   audit.Entity
}

// findExpired returns a batch of expired memberships. With the + of its order, SQLite reads
// the index of the expiration dates instead of all memberships.
func findExpired(ctx context.Context, q db.Q, today string) ([]expired, error) {
	return db.All(ctx, q, func(sc db.Scanner) (expired, error) {
		var e expired
		err := sc.Scan(&e.id, &e.user.ID, &e.user.Details, &e.in.Type, &e.in.ID, &e.in.Path)
		return e, err
	}, `
		SELECT m.id, m.user_id, u.username, CASE WHEN m.project_id IS NULL THEN 'Group' ELSE 'Project' END,
			COALESCE(m.project_id, m.namespace_id), COALESCE(p.full_path, n.full_path)
		FROM members m JOIN users u ON u.id = m.user_id LEFT JOIN projects p ON p.id = m.project_id LEFT JOIN namespaces n ON n.id = m.namespace_id
		WHERE m.expires_at <= ? ORDER BY +m.id LIMIT 1000`, today)
}

func deleteMemberByID(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM members WHERE id = ?`, id)
	return err
}

// countNewMembers counts the direct members of a group that joined after a time, up
// to a limit.
func countNewMembers(ctx context.Context, q db.Q, groupID int64, since time.Time, limit int) (n int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM (SELECT 1 FROM members m WHERE m.namespace_id = ? AND m.requested_at IS NULL AND m.created_at >= ? LIMIT ?) t`, groupID, since, limit).Scan(&n)
	return n, err
}
