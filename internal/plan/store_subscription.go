package plan

import (
	"context"
	"time"

	"svc/internal/db"
)

// saveSubscription reports whether the subscription changed. A user without a row
// is not subscribed.
func saveSubscription(ctx context.Context, tx *db.Tx, of Target, userID int64, subscribe bool, at time.Time) (bool, error) {
	if !subscribe {
		return db.ExecAny(ctx, tx, `UPDATE subscriptions SET subscribed = FALSE WHERE kind = ? AND thing_id = ? AND user_id = ? AND subscribed`,
			string(of.Kind), of.ID, userID)
	}
	changed, err := db.ExecAny(ctx, tx, `
		INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) VALUES (?, ?, ?, TRUE, ?)
		ON CONFLICT (kind, thing_id, user_id) DO UPDATE SET subscribed = TRUE WHERE NOT subscriptions.subscribed`, string(of.Kind), of.ID, userID, at)
	if err != nil {
		return false, err
	}
	// A participant who subscribes explicitly becomes a subscriber.
	_, err = tx.ExecContext(ctx, `UPDATE subscriptions SET asked = TRUE WHERE kind = ? AND thing_id = ? AND user_id = ? AND NOT asked`, string(of.Kind), of.ID, userID)
	return changed, err
}

// leaveSubscription unsubscribes a user from a target, including notifications for
// other reasons, such as a mention.
func leaveSubscription(ctx context.Context, tx *db.Tx, of Target, userID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) VALUES (?, ?, ?, FALSE, ?)
		ON CONFLICT (kind, thing_id, user_id) DO UPDATE SET subscribed = FALSE, asked = FALSE`, string(of.Kind), of.ID, userID, at)
	return err
}

// subscription is a row of the table subscriptions.
type subscription struct {
	userID            int64
	subscribed, asked bool
}

func findSubscriptions(ctx context.Context, q db.Q, of Target) ([]subscription, error) {
	return db.All(ctx, q, func(s db.Scanner) (r subscription, err error) {
		err = s.Scan(&r.userID, &r.subscribed, &r.asked)
		return r, err
	}, `SELECT user_id, subscribed, asked FROM subscriptions WHERE kind = ? AND thing_id = ? ORDER BY user_id`, string(of.Kind), of.ID)
}

func findLabelSubscribers(ctx context.Context, q db.Q, labels []int64) ([]int64, error) {
	if len(labels) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT user_id FROM subscriptions WHERE kind = 'Label' AND subscribed AND thing_id IN `+db.In(len(labels))+` ORDER BY 1`, db.Any(labels)...)
}

// joinSubscription subscribes a participant unless they have unsubscribed.
func joinSubscription(ctx context.Context, tx *db.Tx, of Target, userID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscriptions (kind, thing_id, user_id, subscribed, created_at) VALUES (?, ?, ?, TRUE, ?)
		ON CONFLICT (kind, thing_id, user_id) DO NOTHING`, string(of.Kind), of.ID, userID, at)
	return err
}

// findSubscribed returns the targets among ids that the user is subscribed to.
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
