package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"

	"svc/internal/db"
	"svc/internal/errs"
)

// Item is a piece of work as those who look after the queue see it. What the
// work is about is not told: it may hold secrets.
type Item struct {
	ID      int64
	Kind    string
	Lane    string
	State   State
	Try     int // how often it was tried
	Tries   int // how often it may be
	AddedAt time.Time
	DueAt   time.Time
	Error   string // of the last try
}

// List returns work that is not finished well, the newest first; an empty state
// stands for all.
func (q *Queue) List(ctx context.Context, state State, p db.Paging) (db.Page[Item], error) {
	list, err := q.find(ctx, state, p.Limit+1, p.Offset)
	if err != nil {
		return db.Page[Item]{}, fmt.Errorf("list work: %w", err)
	}
	page := db.Page[Item]{Items: list}
	if page.More = len(list) > p.Limit; page.More {
		page.Items = list[:p.Limit]
	}
	return page, nil
}

// Again has work retried at once, also work that has failed for good, when tx
// is committed. NotFound when there is no such work; Conflict while it runs or
// after it was done.
func (q *Queue) Again(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	i, err := q.kept(ctx, tx, id)
	if err != nil {
		return i, err
	}
	if _, err := q.inserter.JobRetryTx(ctx, tx.SQL(), id); err != nil {
		return i, fmt.Errorf("try work %d again: %w", id, err)
	}
	tx.AfterCommit(func() { q.wake(i.Lane) })
	return i, nil
}

// Drop takes work out of the queue undone. NotFound when there is no such
// work; Conflict while it runs or after it was done.
func (q *Queue) Drop(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	i, err := q.kept(ctx, tx, id)
	if err != nil {
		return i, err
	}
	if _, err := q.inserter.JobDeleteTx(ctx, tx.SQL(), id); err != nil {
		return i, fmt.Errorf("drop work %d: %w", id, err)
	}
	return i, nil
}

// kept is work that someone may meddle with.
func (q *Queue) kept(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	row, err := q.inserter.JobGetTx(ctx, tx.SQL(), id)
	if errors.Is(err, rivertype.ErrNotFound) || err == nil && row.Kind == everyKind {
		return Item{}, errs.NotFound("Work")
	}
	if err != nil {
		return Item{}, fmt.Errorf("find work %d: %w", id, err)
	}
	switch row.State {
	case rivertype.JobStateRunning:
		return Item{}, errs.Conflict("This background job is running.")
	case rivertype.JobStateCompleted:
		return Item{}, errs.Conflict("This background job is finished.")
	}
	return Item{ID: row.ID, Kind: row.Kind, Lane: row.Queue}, nil
}
