package user

import (
	"context"

	"svc/internal/db"
)

const serviceAccountTables = `service_accounts a JOIN users u ON u.id = a.user_id`

// ownedBy returns the condition on service accounts a of a group or of the
// instance.
func ownedBy(groupID *int64) (string, []any) {
	if groupID == nil {
		return `a.namespace_id IS NULL`, nil
	}
	return `a.namespace_id = ?`, []any{*groupID}
}

// listServiceAccounts returns a page. An owner has at most maxServiceAccounts, so
// no index is needed for the order by username.
func listServiceAccounts(ctx context.Context, d *db.DB, groupID *int64, order Sort, p db.Paging) (db.Page[*User], error) {
	r := rows.Get().(*row)
	defer rows.Put(r)
	var w db.Where
	cond, args := ownedBy(groupID)
	w.And(cond, args...)
	w.And(`u.deleted_at IS NULL`)
	q := db.Query[*User]{
		Columns: userColumns, From: serviceAccountTables, Where: w, Desc: order.Desc, Scan: r.each(r.account),
		Order: []db.Order{{Name: "a.user_id"}}, Keys: func(u *User) []any { return []any{u.ID} },
	}
	if order.By == "username" {
		q.Order = []db.Order{{Name: "u.username", Text: true}, {Name: "a.user_id"}}
		q.Keys = func(u *User) []any { return []any{u.Username, u.ID} }
	}
	return db.List(ctx, d, q, p)
}

func isServiceAccount(ctx context.Context, q db.Q, groupID *int64, userID int64) (bool, error) {
	cond, args := ownedBy(groupID)
	return db.Exists(ctx, q, `SELECT 1 FROM service_accounts a WHERE a.user_id = ? AND `+cond, append([]any{userID}, args...)...)
}

func countServiceAccounts(ctx context.Context, q db.Q, groupID *int64) (n int, err error) {
	cond, args := ownedBy(groupID)
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM service_accounts a WHERE `+cond, args...).Scan(&n)
	return n, err
}

func insertServiceAccount(ctx context.Context, q db.Q, userID int64, groupID *int64) error {
	_, err := q.ExecContext(ctx, `INSERT INTO service_accounts (user_id, namespace_id) VALUES (?, ?)`, userID, groupID)
	return err
}
