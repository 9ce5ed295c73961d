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

// Item is a job as administrators see it. The arguments are left out, because they
// may contain secrets.
type Item struct {
	ID      int64
	Kind    string
	Lane    string
	State   State
	Try     int // number of tries so far
	Tries   int // maximum number of tries
	AddedAt time.Time
	DueAt   time.Time
	Error   string // error of the last try
}

// List returns the jobs that have not succeeded, newest first. An empty state
// selects all.
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

// Again retries a job immediately after tx is committed, even if it has failed
// permanently. NotFound; Conflict if it is running or finished.
func (q *Queue) Again(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	i, err := q.editable(ctx, tx, id)
	if err != nil {
		return i, err
	}
	if _, err := q.inserter.JobRetryTx(ctx, tx.SQL(), id); err != nil {
		return i, fmt.Errorf("try work %d again: %w", id, err)
	}
	tx.AfterCommit(func() { q.wake(i.Lane) })
	return i, nil
}

// Drop deletes a job from the queue. NotFound; Conflict if it is running or
// finished.
func (q *Queue) Drop(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	i, err := q.editable(ctx, tx, id)
	if err != nil {
		return i, err
	}
	if _, err := q.inserter.JobDeleteTx(ctx, tx.SQL(), id); err != nil {
		return i, fmt.Errorf("drop work %d: %w", id, err)
	}
	return i, nil
}

// editable returns a job that can be retried or deleted.
func (q *Queue) editable(ctx context.Context, tx *db.Tx, id int64) (Item, error) {
	row, err := q.inserter.JobGetTx(ctx, tx.SQL(), id)
	if errors.Is(err, rivertype.ErrNotFound) || err == nil && row.Kind == everyKind {
		return Item{}, errs.NotFound("Background job")
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
