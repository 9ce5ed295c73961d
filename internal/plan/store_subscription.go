package plan

import (
	"context"
	"time"

	"svc/internal/db"
)

// saveSubscription tells whether anything has changed. Somebody who never said
// anything is not subscribed.
func saveSubscription(ctx context.Context, tx *db.Tx, of Thing, userID int64, want bool, at time.Time) (bool, error) {
	if !want {
		return touched(ctx, tx, `UPDATE subscriptions SET subscribed = FALSE WHERE kind = ? AND thing_id = ? AND user_id = ? AND subscribed`,
			string(of.Kind), of.ID, userID)
	}
	return touched(ctx, tx, `
		INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) VALUES (?, ?, ?, TRUE, ?)
		ON CONFLICT (kind, thing_id, user_id) DO UPDATE SET subscribed = TRUE WHERE NOT subscriptions.subscribed`, string(of.Kind), of.ID, userID, at)
}

// joinSubscription subscribes one who takes part, unless he has said that he
// does not want it.
func joinSubscription(ctx context.Context, tx *db.Tx, of Thing, userID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) VALUES (?, ?, ?, TRUE, ?)
		ON CONFLICT (kind, thing_id, user_id) DO NOTHING`, string(of.Kind), of.ID, userID, at)
	return err
}

// findSubscribed gives those of the things that the user is subscribed to.
func findSubscribed(ctx context.Context, q db.Q, kind Kind, ids []int64, userID int64) (map[int64]bool, error) {
	found := map[int64]bool{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, db.Value[int64], `
		SELECT thing_id FROM subscriptions WHERE kind = ? AND user_id = ? AND subscribed AND thing_id IN `+db.In(len(ids)),
		append([]any{string(kind), userID}, db.Any(ids)...)...)
	for _, id := range list {
		found[id] = true
	}
	return found, err
}

func deleteSubscriptions(ctx context.Context, q db.Q, kind Kind, ids []int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM subscriptions WHERE kind = ? AND thing_id IN `+db.In(len(ids)), append([]any{string(kind)}, db.Any(ids)...)...)
	return err
}

func deleteProjectSubscriptions(ctx context.Context, q db.Q, projectID int64) error {
	_, err := q.ExecContext(ctx, `
		DELETE FROM subscriptions WHERE kind = 'Issue' AND thing_id IN (SELECT i.id FROM issues i WHERE i.project_id = ?)
			OR kind = 'Label' AND thing_id IN (SELECT l.id FROM labels l WHERE l.project_id = ?)`, projectID, projectID)
	return err
}
