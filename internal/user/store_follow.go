package user

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// listFollows selects the users in one column of follows by the other one.
func listFollows(ctx context.Context, d *db.DB, by actor.Actor, list, of string, userID int64, p db.Paging) (db.Page[*User], error) {
	var where db.Where
	where.And(of+" = ?", userID)
	where.And("u.deleted_at IS NULL")
	if !by.Admin { // see visible
		where.And("u.state NOT IN (?, ?) OR u.id = ?", string(Banned), string(PendingApproval), by.ID)
	}
	return db.List(ctx, d, db.Query[*User]{
		Columns: userColumns, From: "follows f JOIN users u ON u.id = " + list,
		Where: where, Order: []db.Order{{Name: list}},
		Scan: scanUser, Keys: func(u *User) []any { return []any{u.ID} },
	}, p)
}

func insertFollow(ctx context.Context, q db.Q, follower, followed int64, now time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `
		INSERT INTO follows (follower_id, followed_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, follower, followed, now)
}

func deleteFollow(ctx context.Context, q db.Q, follower, followed int64) (bool, error) {
	return db.ExecAny(ctx, q, `DELETE FROM follows WHERE follower_id = ? AND followed_id = ?`, follower, followed)
}

// countFollow updates the follower counts. Rows are updated in the order of IDs,
// so that two users who follow each other concurrently do not deadlock.
func countFollow(ctx context.Context, q db.Q, follower, followed, n int64) error {
	for _, id := range []int64{min(follower, followed), max(follower, followed)} {
		query := `UPDATE users SET followers = followers + ? WHERE id = ?`
		if id == follower {
			query = `UPDATE users SET following = following + ? WHERE id = ?`
		}
		if _, err := q.ExecContext(ctx, query, n, id); err != nil {
			return err
		}
	}
	return nil
}

// dropFollows removes a deleted user from the counts of others; the rows are
// deleted with the account. The caller has locked the account, so that no follow
// is added concurrently.
func dropFollows(ctx context.Context, q db.Q, userID int64) error {
	_, err := q.ExecContext(ctx, `
		UPDATE users SET followers = followers - 1 WHERE id IN (SELECT f.followed_id FROM follows f WHERE f.follower_id = ?)`, userID)
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `
		UPDATE users SET following = following - 1 WHERE id IN (SELECT f.follower_id FROM follows f WHERE f.followed_id = ?)`, userID)
	return err
}
