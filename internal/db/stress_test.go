package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// acks records the rows whose writes were acknowledged.
type acks struct {
	mu   sync.Mutex
	keys []string
}

func (a *acks) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = append(a.keys, key)
}

// check checks that every acknowledged row exists.
func (a *acks) check(t *testing.T, d *db.DB) {
	t.Helper()
	keys, err := db.All(t.Context(), d, db.Value[string], "SELECT key FROM settings")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, key := range keys {
		found[key] = true
	}
	for _, key := range a.keys {
		if !found[key] {
			t.Errorf("%s was acknowledged and is gone", key)
		}
	}
}

// write inserts a row in one of three ways.
func write(ctx context.Context, d *db.DB, way int, key string) error {
	const insert = "INSERT INTO settings (key, value) VALUES (?, ?)"
	switch way % 3 {
	case 0:
		_, err := d.ExecContext(ctx, insert, key, key)
		return err
	case 1:
		return d.QueryRowContext(ctx, insert+" RETURNING key", key, key).Scan(new(string))
	}
	return d.Tx(ctx, func(tx *db.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM settings WHERE key = ?", key).Scan(&n); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insert, key, "first"); err != nil {
			return err
		}
		return db.ExecOne(ctx, tx, "UPDATE settings SET value = ? WHERE key = ?", key, key)
	})
}

// TestManyWritersAndReaders checks that no reader or writer gets the error that the database
// is locked. A second handle has its own connections, like another process.
func TestManyWritersAndReaders(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d, other := src.Open(t), src.Open(t)
		const goroutines, each = 64, 12
		var done acks
		var wg sync.WaitGroup
		for n := range goroutines {
			wg.Go(func() {
				handle := d
				if n%8 == 7 {
					handle = other
				}
				for i := range each {
					key := fmt.Sprintf("%d-%d", n, i)
					if err := write(t.Context(), handle, n+i, key); err != nil {
						t.Errorf("write: %v", err)
						return
					}
					done.add(key)
					var value string
					if err := handle.QueryRowContext(t.Context(), "SELECT value FROM settings WHERE key = ?", key).Scan(&value); err != nil || value != key {
						t.Errorf("read %s: %q, %v", key, value, err)
						return
					}
					if _, err := db.All(t.Context(), handle, db.Value[string], "SELECT key FROM settings ORDER BY value LIMIT 50"); err != nil {
						t.Errorf("list: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		if len(done.keys) != goroutines*each {
			t.Errorf("%d writes of %d", len(done.keys), goroutines*each)
		}
		done.check(t, d)
		done.check(t, other)
	})
}

// TestConcurrentCancellation checks that the end of a context affects only its caller.
func TestConcurrentCancellation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var done acks
		var wg sync.WaitGroup
		for n := range 32 {
			patient := n%2 == 0
			wg.Go(func() {
				for i := range 15 {
					ctx, cancel := context.WithCancel(t.Context())
					if !patient {
						ctx, cancel = context.WithTimeout(t.Context(), rand.N(10*time.Millisecond))
					}
					key := fmt.Sprintf("%d-%d", n, i)
					err := write(ctx, d, n/2+i, key)
					if err == nil {
						done.add(key)
						err = d.QueryRowContext(ctx, "SELECT value FROM settings WHERE key = ?", key).Scan(new(string))
					}
					if err != nil && (patient || !errors.Is(err, context.DeadlineExceeded)) {
						t.Errorf("patient %v: %v", patient, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		done.check(t, d)
		if half := count(t, d, "settings WHERE value = 'first'"); half != 0 {
			t.Errorf("%d half transactions", half)
		}
	})
}
