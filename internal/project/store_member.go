package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// column is the column of members that names the source, and its value.
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

// lockMember reads a membership, or a request to become a member, that the
// transaction will change.
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
		return nil, err
	}
	m, err = scanMember(tx.QueryRowContext(ctx, query, id, userID))
	return m, db.NotFound(err, "")
}

func insertMember(ctx context.Context, q db.Q, in source, m *Member) error {
	namespaceID, projectID := in.ids()
	err := q.QueryRowContext(ctx, `
		INSERT INTO members (namespace_id, project_id, user_id, access_level, expires_at, created_by, created_at, requested_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		namespaceID, projectID, m.UserID, int64(m.Level), textOrNull(m.ExpiresAt), m.CreatedBy, m.CreatedAt, m.RequestedAt).Scan(&m.ID)
	if db.IsUnique(err, "members_namespace_id_user_id") || db.IsUnique(err, "members_project_id_user_id") {
		return errs.Conflict("Member already exists")
	}
	return err
}

// saveOwner makes a user an Owner of a project for good, whatever they were there.
func saveOwner(ctx context.Context, q db.Q, projectID, userID int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO members (project_id, user_id, access_level, created_by, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (project_id, user_id) DO UPDATE SET access_level = excluded.access_level, expires_at = NULL, requested_at = NULL`,
		projectID, userID, int64(Owner), userID, at)
	return err
}

func saveMember(ctx context.Context, q db.Q, m *Member) error {
	err := db.ExecOne(ctx, q, `UPDATE members SET access_level = ?, expires_at = ?, created_by = ?, requested_at = ? WHERE id = ?`,
		int64(m.Level), textOrNull(m.ExpiresAt), m.CreatedBy, m.RequestedAt, m.ID)
	return db.NotFound(err, "")
}

func deleteMember(ctx context.Context, q db.Q, in source, m *Member, onlyThere bool) error {
	if _, err := q.ExecContext(ctx, `DELETE FROM members WHERE id = ?`, m.ID); err != nil || in.group == nil || onlyThere {
		return err
	}
	if _, err := q.ExecContext(ctx, `DELETE FROM members WHERE user_id = ? AND namespace_id IN `+below, m.UserID, in.group.ID); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, `
		DELETE FROM members WHERE user_id = ? AND project_id IN (SELECT p.id FROM projects p WHERE p.namespace_id IN `+below+`)`, m.UserID, in.group.ID)
	return err
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// grants is a query for all that gives a user a level in the source: id of the
// membership, user, level, and how far away it is. Shares are shown to members.
func (s *Service) grants(by actor.Actor, in source) (string, []any) {
	place, project := in.tree()
	sharePlace, shareProject := int64(0), int64(0)
	if by.Admin || in.have > NoAccess {
		sharePlace, shareProject = place, project
	}
	today := s.today()
	return `
		SELECT m.id, m.user_id, m.access_level AS level, -1 AS depth FROM members m WHERE m.project_id = ? AND ` + activeMember + `
		UNION ALL
		SELECT m.id, m.user_id, m.access_level, t.depth FROM namespace_tree t JOIN members m ON m.namespace_id = t.ancestor_id
		WHERE t.descendant_id = ? AND (m.access_level > 5 OR t.depth = 0 AND CAST(? AS BIGINT) = 0) AND ` + activeMember + `
		UNION ALL
		SELECT m.id, m.user_id, ` + lesser + `, 100 + g.depth FROM group_shares s JOIN namespace_tree g ON g.descendant_id = s.group_id
			JOIN members m ON m.namespace_id = g.ancestor_id
		WHERE s.project_id = ? AND m.access_level > 5 AND ` + activeMember + ` AND ` + activeShare + `
		UNION ALL
		SELECT m.id, m.user_id, ` + lesser + `, 100 + t.depth + g.depth FROM namespace_tree t JOIN group_shares s ON s.namespace_id = t.ancestor_id
			JOIN namespace_tree g ON g.descendant_id = s.group_id JOIN members m ON m.namespace_id = g.ancestor_id
		WHERE t.descendant_id = ? AND m.access_level > 5 AND ` + activeMember + ` AND ` + activeShare,
		[]any{project, today, place, project, today, shareProject, today, today, sharePlace, today, today}
}

// userOf reads who a member is, for the record.
func (s *Service) userOf(ctx context.Context, tx *db.Tx, id int64) (*user.User, error) {
	u := &user.User{ID: id}
	err := tx.QueryRowContext(ctx, `SELECT username, name FROM users WHERE id = ?`, id).Scan(&u.Username, &u.Name)
	return u, db.NotFound(err, "User")
}
