package queue

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/waittest"
)

// TestKeep lists failed jobs, retries one and deletes one.
func TestKeep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		var well atomic.Bool
		holding := make(chan struct{})
		Handle(q, func(_ context.Context, j job) error {
			if !well.Load() {
				return errors.New("it rains\nin Spain")
			}
			return nil
		})
		Handle(q, func(context.Context, other) error {
			<-holding
			return nil
		})
		q.Every("sweep", time.Hour, func(context.Context) error { return nil })
		start(t, q)
		list := func(state State, p db.Paging) db.Page[Item] {
			t.Helper()
			page, err := q.List(t.Context(), state, p)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		for n := range 3 {
			add(t, q, job{N: n}, Tries(1))
		}
		waittest.For(t, "failure", func() bool { return len(list(Failed, db.Paging{Limit: 9}).Items) == 3 })
		all := list("", db.Paging{Limit: 2})
		if len(all.Items) != 2 || !all.More || all.Items[0].ID <= all.Items[1].ID {
			t.Errorf("%+v", all)
		}
		if rest := list("", db.Paging{Limit: 2, Offset: 2}); len(rest.Items) != 1 || rest.More {
			t.Errorf("%+v", rest)
		}
		one := all.Items[0]
		if one.Kind != "test.job" || one.State != Failed || one.Try != 1 || one.Tries != 1 || !strings.HasPrefix(one.Error, "it rains") ||
			time.Since(one.AddedAt).Abs() > time.Minute || time.Since(one.DueAt).Abs() > time.Minute {
			t.Errorf("%+v", one)
		}
		if n := len(list(Waiting, db.Paging{Limit: 9}).Items); n != 0 {
			t.Errorf("%d wait", n)
		}

		meddle := func(do func(context.Context, *db.Tx, int64) (Item, error), id int64) error {
			return d.Tx(t.Context(), func(tx *db.Tx) error {
				_, err := do(t.Context(), tx, id)
				return err
			})
		}
		well.Store(true)
		if err := meddle(q.Again, one.ID); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "success", func() bool { return len(list(Failed, db.Paging{Limit: 9}).Items) == 2 })
		idle(t, q)
		if err := meddle(q.Again, one.ID); !errs.Is(err, errs.KindConflict) {
			t.Errorf("done work is tried again: %v", err)
		}
		if err := meddle(q.Drop, all.Items[1].ID); err != nil {
			t.Fatal(err)
		}
		if err := meddle(q.Drop, all.Items[1].ID); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("dropped twice: %v", err)
		}
		add(t, q, other{})
		waittest.For(t, "running", func() bool { return len(list(Running, db.Paging{Limit: 9}).Items) == 1 })
		if err := meddle(q.Drop, list(Running, db.Paging{Limit: 9}).Items[0].ID); !errs.Is(err, errs.KindConflict) {
			t.Errorf("running work is dropped: %v", err)
		}
		close(holding)
		var every int64
		if err := d.QueryRowContext(t.Context(), "SELECT id FROM river_job WHERE kind = ?", everyKind).Scan(&every); err != nil {
			t.Fatal(err)
		}
		if err := meddle(q.Drop, every); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("periodic work is dropped: %v", err)
		}
	})
}
