package notice_test

import (
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/notice"
)

// ear remembers what it heard.
type ear struct {
	mu    sync.Mutex
	heard []string
}

func (e *ear) hear(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, key)
}

func (e *ear) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.heard)
}

func (e *ear) all() string { return strings.Join(e.list(), ",") }

func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = nil
}

// wait waits until all that was heard is the wanted text.
func (e *ear) wait(t *testing.T, want string) {
	t.Helper()
	if !soon(func() bool { return e.all() == want }) {
		t.Errorf("heard %q, want %q", e.all(), want)
	}
}

// waitOne waits until something was heard, which must be that alone.
func (e *ear) waitOne(t *testing.T, want string) {
	t.Helper()
	soon(func() bool { return len(e.list()) > 0 })
	if got := e.list(); !slices.Equal(got, []string{want}) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// soon waits for something that must come, and reports whether it did.
func soon(f func() bool) bool {
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// cut ends the connections by which the nodes on a PostgreSQL database listen.
func cut(t *testing.T, by *db.DB, name string) {
	t.Helper()
	_, err := by.SQL().ExecContext(t.Context(), `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = $1`, name)
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, d *db.DB) (*notice.Bus, *ear) {
	t.Helper()
	b, e := notice.New(notice.Deps{DB: d, Log: slog.New(slog.DiscardHandler)}), &ear{}
	b.Subscribe("thing", e.hear)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop() })
	e.forget() // what was said before we listened
	return b, e
}

func send(t *testing.T, d *db.DB, b *notice.Bus, key string, err error) {
	t.Helper()
	got := d.Tx(t.Context(), func(tx *db.Tx) error {
		if err := b.Send(t.Context(), tx, "thing", key); err != nil {
			return err
		}
		return err
	})
	if !errors.Is(got, err) {
		t.Fatal(got)
	}
}

func TestOwnNotices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b, e := start(t, d)
		if !b.Healthy() {
			t.Error("not healthy")
		}
		send(t, d, b, "1", nil)
		if got := e.all(); got != "1" {
			t.Errorf("heard %q when the transaction had been committed", got)
		}
		undone := errors.New("undone")
		send(t, d, b, "2", undone)
		if err := d.Tx(t.Context(), func(tx *db.Tx) error { return b.Send(t.Context(), tx, "other", "3") }); err != nil {
			t.Fatal(err)
		}
		send(t, d, b, "two words", nil)
		time.Sleep(50 * time.Millisecond) // our own notices must not come back
		if got := e.all(); got != "1,two words" {
			t.Errorf("heard %q", got)
		}
		for _, key := range []string{"", strings.Repeat("x", 8000)} {
			if err := d.Tx(t.Context(), func(tx *db.Tx) error { return b.Send(t.Context(), tx, "thing", key) }); err == nil {
				t.Errorf("a key of %d bytes was sent", len(key))
			}
		}
	})
}

func TestOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		here, there := src.Open(t), src.Open(t)
		a, heardHere := start(t, here)
		b, heardThere := start(t, there)
		want := "9"
		if src.URL == "" {
			want = "" // another process tells only that something changed
		}
		write := func(d *db.DB, bus *notice.Bus) {
			t.Helper()
			err := d.Tx(t.Context(), func(tx *db.Tx) error {
				if _, err := tx.ExecContext(t.Context(), `INSERT INTO settings (key, value) VALUES ('k', '1') ON CONFLICT (key) DO UPDATE SET value = settings.value || '1'`); err != nil {
					return err
				}
				return bus.Send(t.Context(), tx, "thing", "9")
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write(there, b)
		heardHere.waitOne(t, want)
		if got := heardThere.all(); got != "9" {
			t.Errorf("the node itself heard %q", got)
		}
		write(here, a)
		heardThere.wait(t, "9,"+want)
	})
}

// databaseName is that of a PostgreSQL database.
func databaseName(t *testing.T, src dbtest.Source) string {
	t.Helper()
	u, err := url.Parse(src.URL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func TestLostConnection(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		if src.URL == "" {
			return // there is no connection to lose
		}
		here, there := src.Open(t), src.Open(t)
		a, heard := start(t, here)
		b, _ := start(t, there)
		cut(t, there, databaseName(t, src))
		// Once when the connection was lost, once when it was back.
		if !soon(func() bool { return strings.HasPrefix(heard.all(), ",") && a.Healthy() && b.Healthy() }) || heard.all() != "," {
			t.Fatalf("heard %q, want two resets; healthy %v and %v", heard.list(), a.Healthy(), b.Healthy())
		}
		heard.forget()
		send(t, there, b, "again", nil)
		heard.wait(t, "again")
	})
}
