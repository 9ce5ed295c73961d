package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

func TestUnique(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 4})
		var r runs
		gate := make(chan struct{})
		Handle(q, func(ctx context.Context, j job) error { <-gate; return r.do(ctx, j) })
		Handle(q, func(context.Context, other) error { return nil })
		running := func(n int) {
			t.Helper()
			waittest.For(t, fmt.Sprint(n, " running"), func() bool { return strings.Contains(stats(t, q), fmt.Sprint("test.job running ", n)) })
		}
		for range 3 {
			add(t, q, job{N: 1}, Unique())
			add(t, q, other{}, Unique())
		}
		add(t, q, job{N: 2}, Unique(), Delay(time.Hour))
		add(t, q, job{N: 2}, Unique())
		if s := stats(t, q); s != "test.job waiting 2, test.other waiting 1" {
			t.Error(s)
		}
		start(t, q)
		running(1)
		// While the job runs, the same job is added again: once, because the second one
		// waits. It starts at once, so there are two workers, and the third job is added
		// while both run.
		add(t, q, job{N: 1}, Unique())
		running(2)
		add(t, q, job{N: 1}, Unique())
		running(3)
		close(gate)
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("ran %v", got)
		}
		add(t, q, job{N: 1}, Unique())
		idle(t, q)
		if got := r.numbers(); len(got) != 4 {
			t.Errorf("ran %v: a finished job counts as waiting", got)
		}
		if s := stats(t, q); s != "test.job waiting 1" {
			t.Error(s)
		}
	})
}

func TestUniqueWhileRunningWaitsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 1})
		var r runs
		gate := make(chan struct{})
		Handle(q, func(ctx context.Context, j job) error { <-gate; return r.do(ctx, j) })
		Handle(q, func(ctx context.Context, _ other) error { <-gate; return nil })
		start(t, q)
		add(t, q, job{N: 1}, Unique())
		add(t, q, other{}, Unique())
		waittest.For(t, "running", func() bool { return strings.Contains(stats(t, q), "test.job running 1") })
		for range 4 {
			add(t, q, job{N: 1}, Unique())
			add(t, q, other{}, Unique())
		}
		if s := stats(t, q); s != "test.job running 1, test.job waiting 1, test.other waiting 1" {
			t.Error(s)
		}
		close(gate)
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("ran %v", got)
		}
	})
}

func TestPriorityAndDelay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := &now{at: time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)}
		q, _ := newQueue(Deps{DB: d, Workers: 1, Now: clock.Now})
		var r runs
		Handle(q, r.do)
		add(t, q, job{N: 4}, Priority(4))
		add(t, q, job{N: 2}, Priority(2))
		add(t, q, job{N: 1})
		add(t, q, job{N: 9}, At(clock.Now().Add(time.Hour)))
		add(t, q, job{N: 5}, Delay(2*time.Second))
		start(t, q)
		waittest.For(t, "three", func() bool { return len(r.numbers()) >= 3 })
		idle(t, q)
		if got := r.numbers(); !slices.Equal(got, []int{1, 2, 4}) {
			t.Errorf("ran %v", got)
		}
		clock.forward(2 * time.Second)
		waittest.For(t, "the delayed", func() bool { return len(r.numbers()) == 4 })
		if r.numbers()[3] != 5 {
			t.Errorf("ran %v", r.numbers())
		}
		idle(t, q)
		if s := stats(t, q); s != "test.job waiting 1" {
			t.Error(s)
		}
	})
}

func TestLanes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d, Workers: 1})
		q.Lane("slow", 2)
		gate := make(chan struct{})
		var r runs
		Handle(q, r.do)
		Handle(q, func(context.Context, other) error { <-gate; return nil })
		start(t, q)
		for range 3 {
			add(t, q, other{}, In("slow"))
		}
		waittest.For(t, "a full lane", func() bool { return stats(t, q) == "test.other running 2, test.other waiting 1" })
		add(t, q, job{N: 1})
		waittest.For(t, "the other lane", func() bool { return len(r.numbers()) == 1 })
		if s := stats(t, q); !strings.Contains(s, "test.other running 2, test.other waiting 1") {
			t.Error(s)
		}
		close(gate)
		idle(t, q)
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q, _ := newQueue(Deps{DB: d})
		Handle(q, func(context.Context, job) error { return nil })
		for name, f := range map[string]func(){
			"two handlers": func() { Handle(q, func(context.Context, job) error { return nil }) },
			"a second name": func() {
				q.Every("a", time.Hour, nil)
				q.Every("a", time.Hour, nil)
			},
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
		start(t, q)
		if err := q.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		for name, f := range map[string]func(){
			"a late handler": func() { Handle(q, func(context.Context, other) error { return nil }) },
			"a late lane":    func() { q.Lane("x", 1) },
			"a late turn":    func() { q.Every("b", time.Hour, nil) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
		for name, c := range map[string]struct {
			work Work
			opts []AddOption
		}{
			"no handler":    {other{}, nil},
			"no lane":       {job{}, []AddOption{In("nowhere")}},
			"no struct":     {text("x"), nil},
			"no JSON":       {broken{}, nil},
			"bad priority":  {job{}, []AddOption{Priority(9)}},
			"no tries left": {job{}, []AddOption{Tries(-1)}},
		} {
			err := d.Tx(t.Context(), func(tx *db.Tx) error { return q.Add(t.Context(), tx, c.work, c.opts...) })
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if s := stats(t, q); s != "" {
			t.Error(s)
		}
	})
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

type text string

func (text) Kind() string { return "test.job" }

type broken struct{ F func() }

func (broken) Kind() string { return "test.job" }

// TestUniqueDoesNotWait checks that adding a unique job does not wait for running jobs to be
// completed, which could deadlock with River's batched completion.
func TestUniqueDoesNotWait(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if !d.Postgres() {
			return // SQLite has one writer at a time
		}
		q, _ := newQueue(Deps{DB: d})
		add(t, q, job{N: 1}, Unique())
		for _, state := range []string{"available", "running"} {
			err := d.Tx(t.Context(), func(held *db.Tx) error {
				if _, err := held.ExecContext(t.Context(), "UPDATE river_job SET state = ?", state); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				return d.Tx(ctx, func(tx *db.Tx) error { return q.Add(ctx, tx, job{N: 1}, Unique()) })
			})
			if err != nil {
				t.Errorf("%s: %v", state, err)
			}
		}
	})
}
