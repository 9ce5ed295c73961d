package notify

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
)

// state is how far a letter has come.
type state string

const (
	waiting state = "waiting" // for more that belongs into it
	closed  state = "closed"  // to be sent
	sending state = "sending" // the mail server is being given it
	sent    state = "sent"
	dropped state = "dropped" // there is nothing that he may know, or nobody to write to
	refused state = "refused" // by the mail server, for good
	unclear state = "unclear" // nobody knows whether it was taken
)

// email is a letter to one person about one thing.
type email struct {
	id      int64
	userID  int64
	kind    string
	targetID int64
	state   state
}

// item is an act that a letter tells of.
type item struct {
	event    *Event
	reason Reason
}

// openEmail gives the letter to which what is told now belongs, and makes it
// when there is none that waits.
func openEmail(ctx context.Context, tx *db.Tx, userID int64, a *Event, now time.Time) (id int64, made bool, err error) {
	for range 3 { // one that is closed meanwhile is no longer found
		err = tx.QueryRowContext(ctx, `
			INSERT INTO notification_letters (user_id, kind, thing_id, state, created_at, updated_at) VALUES (?, ?, ?, 'waiting', ?, ?)
			ON CONFLICT (user_id, kind, thing_id) WHERE state = 'waiting' DO NOTHING RETURNING id`, userID, a.TargetKind, a.TargetID, now, now).Scan(&id)
		if !errors.Is(err, db.ErrNoRows) {
			return id, true, err
		}
		// Touched, so that it is not closed before this transaction has ended.
		err = tx.QueryRowContext(ctx, `
			UPDATE notification_letters SET updated_at = ? WHERE user_id = ? AND kind = ? AND thing_id = ? AND state = 'waiting' RETURNING id`,
			now, userID, a.TargetKind, a.TargetID).Scan(&id)
		if !errors.Is(err, db.ErrNoRows) {
			break
		}
	}
	return id, false, err
}

// hasItem tells whether somebody is told of an act already.
func hasItem(ctx context.Context, q db.Q, actID, userID int64) (bool, error) {
	var one int
	err := q.QueryRowContext(ctx, `SELECT 1 FROM notification_items WHERE act_id = ? AND user_id = ?`, actID, userID).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func insertItem(ctx context.Context, tx *db.Tx, actID, userID, letterID int64, r Reason) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO notification_items (act_id, user_id, letter_id, reason) VALUES (?, ?, ?, ?)`, actID, userID, letterID, string(r))
	return err
}

// findEmail gives nil for a letter that is gone with its reader.
func findEmail(ctx context.Context, q db.Q, id int64) (*email, error) {
	var l email
	err := q.QueryRowContext(ctx, `SELECT id, user_id, kind, thing_id, state FROM notification_letters WHERE id = ?`, id).
		Scan(&l.id, &l.userID, &l.kind, &l.targetID, (*string)(&l.state))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &l, err
}

// moveEmail tells whether the letter was in the state that it is to leave.
func moveEmail(ctx context.Context, q db.Q, id int64, from, to state, now time.Time) (bool, error) {
	res, err := q.ExecContext(ctx, `UPDATE notification_letters SET state = ?, updated_at = ? WHERE id = ? AND state = ?`, string(to), now, id, string(from))
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func findItems(ctx context.Context, q db.Q, letterID int64) ([]item, error) {
	return db.All(ctx, q, func(s db.Scanner) (i item, err error) {
		i.event, err = scanEvent(s, (*string)(&i.reason))
		return i, err
	}, `SELECT `+eventColumns+`, i.reason FROM notification_items i JOIN notification_acts a ON a.id = i.act_id WHERE i.letter_id = ? ORDER BY a.id`, letterID)
}
