package invite

import (
	"context"

	"svc/internal/db"
)

const (
	columns = `i.id, i.project_id, i.namespace_id, i.email, i.access_level, i.expires_at, i.created_by, coalesce(u.name, ''), i.created_at`
	from    = `invitations i LEFT JOIN users u ON u.id = i.created_by`
)

func scan(sc db.Scanner) (*Invitation, error) {
	var i Invitation
	err := sc.Scan(&i.ID, &i.ProjectID, &i.GroupID, &i.Email, &i.Level, &i.ExpiresAt, &i.CreatedBy, &i.Inviter, db.Time(&i.CreatedAt))
	return &i, err
}

// where returns an SQL condition, with its argument, that selects the invitations i
// of the place.
func (in place) where() (string, int64) {
	if in.projectID != 0 {
		return `i.project_id = ?`, in.projectID
	}
	return `i.namespace_id = ?`, in.groupID
}

// list returns one page of invitations. A place has at most maxPending invitations,
// so the search needs no index.
func list(ctx context.Context, d *db.DB, in place, query string, p db.Paging) (db.Page[*Invitation], error) {
	var w db.Where
	cond, id := in.where()
	w.And(cond, id)
	if query != "" {
		w.And(`fold(i.email) LIKE ? ESCAPE '\'`, db.Like(query))
	}
	return db.List(ctx, d, db.Query[*Invitation]{
		Columns: columns, From: from, Where: w, Order: []db.Order{{Name: "i.email"}}, Scan: scan, Keys: func(i *Invitation) []any { return []any{i.Email} },
	}, p)
}

// lock locks the place, so that concurrent invitations do not exceed maxPending.
func (in place) lock(ctx context.Context, tx *db.Tx) error {
	if in.projectID != 0 {
		return tx.Lock(ctx, "projects", in.projectID)
	}
	return tx.Lock(ctx, "namespaces", in.groupID)
}

func count(ctx context.Context, q db.Q, in place) (n int, err error) {
	cond, id := in.where()
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM invitations i WHERE `+cond, id).Scan(&n)
	return n, err
}

func find(ctx context.Context, q db.Q, in place, email string) (*Invitation, error) {
	cond, id := in.where()
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+from+` WHERE `+cond+` AND i.email = ?`, id, email))
}

func findByDigest(ctx context.Context, q db.Q, digest string) (*Invitation, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+from+` WHERE i.digest = ?`, digest))
}

func findByEmails(ctx context.Context, q db.Q, emails []string, limit int) ([]*Invitation, error) {
	return db.All(ctx, q, scan, `SELECT `+columns+` FROM `+from+` WHERE i.email IN `+db.In(len(emails))+` ORDER BY i.id LIMIT ?`, append(db.Any(emails), limit)...)
}

func insert(ctx context.Context, q db.Q, i *Invitation, digest string) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO invitations (project_id, namespace_id, email, access_level, expires_at, digest, created_by, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.ProjectID, i.GroupID, i.Email, i.Level, i.ExpiresAt, digest, i.CreatedBy, i.CreatedAt).Scan(&i.ID)
}

func update(ctx context.Context, q db.Q, i *Invitation) error {
	return db.ExecOne(ctx, q, `UPDATE invitations SET access_level = ?, expires_at = ? WHERE id = ?`, i.Level, i.ExpiresAt, i.ID)
}

func remove(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM invitations WHERE id = ?`, id)
}
