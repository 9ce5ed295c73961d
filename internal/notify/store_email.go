package notify

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
)

// state is the delivery state of an email.
type state string

const (
	waiting state = "waiting" // for more events about the same target
	closed  state = "closed"  // to be sent
	sending state = "sending" // being handed to the mail server
	sent    state = "sent"
	dropped state = "dropped" // no event that the recipient may see, or no address
	refused state = "refused" // permanently rejected by the mail server
	unclear state = "unclear" // the mail server may have accepted it
)

// email is a notification email to one user about one target.
type email struct {
	id       int64
	userID   int64
	kind     string
	targetID int64
	state    state
}

// item is an event in an email.
type item struct {
	event  *Event
	reason Reason
}

// openEmail returns the waiting email to a user about the target of an event. made
// reports whether it was created.
func openEmail(ctx context.Context, tx *db.Tx, userID int64, e *Event, now time.Time) (id int64, made bool, err error) {
	for range 3 { // an email that is closed in between is not found
		err = tx.QueryRowContext(ctx, `
			INSERT INTO notification_letters (user_id, kind, thing_id, state, created_at, updated_at) VALUES (?, ?, ?, 'waiting', ?, ?)
			ON CONFLICT (user_id, kind, thing_id) WHERE state = 'waiting' DO NOTHING RETURNING id`, userID, e.TargetKind, e.TargetID, now, now).Scan(&id)
		if !errors.Is(err, db.ErrNoRows) {
			return id, true, err
		}
		// The update locks the row, so that the email is not closed before this
		// transaction ends.
		err = tx.QueryRowContext(ctx, `
			UPDATE notification_letters SET updated_at = ? WHERE user_id = ? AND kind = ? AND thing_id = ? AND state = 'waiting' RETURNING id`,
			now, userID, e.TargetKind, e.TargetID).Scan(&id)
		if !errors.Is(err, db.ErrNoRows) {
			break
		}
	}
	return id, false, err
}

// hasItem reports whether an email to the user already contains the event.
func hasItem(ctx context.Context, q db.Q, eventID, userID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM notification_items WHERE act_id = ? AND user_id = ?`, eventID, userID)
}

func insertItem(ctx context.Context, tx *db.Tx, eventID, userID, emailID int64, r Reason) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO notification_items (act_id, user_id, letter_id, reason) VALUES (?, ?, ?, ?)`, eventID, userID, emailID, string(r))
	return err
}

// findEmail returns nil for an email that was deleted with its recipient.
func findEmail(ctx context.Context, q db.Q, id int64) (*email, error) {
	var l email
	err := q.QueryRowContext(ctx, `SELECT id, user_id, kind, thing_id, state FROM notification_letters WHERE id = ?`, id).
		Scan(&l.id, &l.userID, &l.kind, &l.targetID, (*string)(&l.state))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &l, err
}

// moveEmail changes the state of an email if it is in the expected state, and
// reports whether it was.
func moveEmail(ctx context.Context, q db.Q, id int64, from, to state, now time.Time) (bool, error) {
	res, err := q.ExecContext(ctx, `UPDATE notification_letters SET state = ?, updated_at = ? WHERE id = ? AND state = ?`, string(to), now, id, string(from))
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func findItems(ctx context.Context, q db.Q, emailID int64) ([]item, error) {
	return db.All(ctx, q, func(s db.Scanner) (i item, err error) {
		i.event, err = scanEvent(s, (*string)(&i.reason))
		return i, err
	}, `SELECT `+eventColumns+`, i.reason FROM notification_items i JOIN notification_acts a ON a.id = i.act_id WHERE i.letter_id = ? ORDER BY a.id`, emailID)
}
