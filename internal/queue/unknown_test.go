package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestUnknownKindStays checks that a node does not take jobs of a kind that only a newer
// release handles, and runs its own.
func TestUnknownKindStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		newer, _ := newQueue(Deps{DB: d})
		log := &runs{}
		var turns atomic.Int64
		newer.Every("newer", time.Millisecond, func(context.Context) error { turns.Add(1); return nil })
		if err := newer.ensureEvery(t.Context()); err != nil {
			t.Fatal(err)
		}
		add := func(w Work) {
			t.Helper()
			if err := d.Tx(t.Context(), func(tx *db.Tx) error { return newer.Add(t.Context(), tx, w) }); err != nil {
				t.Fatal(err)
			}
		}
		add(other{})
		older, _ := newQueue(Deps{DB: d})
		Handle(older, log.do)
		if err := older.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			add(job{N: n})
			waittest.For(t, "work of a known kind", func() bool { return len(log.numbers()) == n+1 })
		}
		if err := older.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		tried, err := db.All(t.Context(), d, db.Value[int64], `SELECT attempt FROM river_job WHERE kind IN ('test.other', 'queue.every')`)
		if err != nil || len(tried) != 2 || tried[0] != 0 || tried[1] != 0 {
			t.Errorf("tried %v, %v", tried, err)
		}

		var done atomic.Bool
		Handle(newer, func(context.Context, other) error { done.Store(true); return nil })
		Handle(newer, log.do)
		if err := newer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "the newer release does it", func() bool { return done.Load() && turns.Load() > 0 })
		if err := newer.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
