package notice_test

import (
	"errors"
	"log/slog"
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

func (e *ear) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.heard, ",")
}

func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = nil
}

// wait gives what was heard once it is the wanted text, or after a while.
func (e *ear) wait(want string) string {
	for range 500 {
		if e.all() == want {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return e.all()
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
		for range 500 {
			heardHere.mu.Lock()
			n := len(heardHere.heard)
			heardHere.mu.Unlock()
			if n > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		heardHere.mu.Lock()
		if len(heardHere.heard) != 1 || heardHere.heard[0] != want {
			t.Errorf("the other node heard %q, want %q", heardHere.heard, want)
		}
		heardHere.mu.Unlock()
		if got := heardThere.all(); got != "9" {
			t.Errorf("the node itself heard %q", got)
		}
		write(here, a)
		if got := heardThere.wait("9," + want); got != "9,"+want {
			t.Errorf("the first node heard %q", got)
		}
	})
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
		_, err := there.SQL().ExecContext(t.Context(), `
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			if strings.HasPrefix(heard.all(), ",") && a.Healthy() && b.Healthy() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		// Once when the connection was lost, once when it was back.
		if got := heard.all(); got != "," {
			t.Fatalf("heard %q, want two resets", got)
		}
		if !a.Healthy() {
			t.Fatal("not healthy again")
		}
		heard.forget()
		send(t, there, b, "again", nil)
		if got := heard.wait("again"); got != "again" {
			t.Errorf("heard %q", got)
		}
	})
}
