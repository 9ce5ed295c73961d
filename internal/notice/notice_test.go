package notice_test

import (
	"errors"
	"fmt"
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
	"svc/internal/waittest"
)

// ear records the notices that it receives.
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

// wait waits until the received notices are the wanted text.
func (e *ear) wait(t *testing.T, want string) {
	t.Helper()
	waittest.For(t, fmt.Sprintf("the notices %.100q", want), func() bool { return e.all() == want })
}

// waitOne waits for the first notice, which must be the wanted one.
func (e *ear) waitOne(t *testing.T, want string) {
	t.Helper()
	waittest.For(t, "a notice", func() bool { return len(e.list()) > 0 })
	if got := e.list(); !slices.Equal(got, []string{want}) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// cut closes the connections with which the nodes receive notices from a PostgreSQL
// database.
func cut(t *testing.T, by *db.DB, name string) {
	t.Helper()
	_, err := by.SQL().ExecContext(t.Context(), `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'svc notices' AND datname = $1`, name)
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, d *db.DB) (*notice.Bus, *ear) {
	t.Helper()
	return startLogged(t, d, slog.New(slog.DiscardHandler))
}

func startLogged(t *testing.T, d *db.DB, log *slog.Logger) (*notice.Bus, *ear) {
	t.Helper()
	b, e := notice.New(notice.Deps{DB: d, Log: log, Now: time.Now}), &ear{}
	b.Subscribe("thing", e.hear)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop() })
	e.forget() // discard the reset of Start
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
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d := src.Open(t)
		b, e := start(t, d)
		if !b.Fresh() {
			t.Error("not fresh")
		}
		send(t, d, b, "1", nil)
		if got := e.all(); got != "1" {
			t.Errorf("received %q after the commit", got)
		}
		undone := errors.New("undone")
		send(t, d, b, "2", undone)
		if err := d.Tx(t.Context(), func(tx *db.Tx) error { return b.Send(t.Context(), tx, "other", "3") }); err != nil {
			t.Fatal(err)
		}
		send(t, d, b, "two words", nil)
		want := "1,two words"
		if d.Postgres() { // notices arrive in order, so this node's own notices were not delivered twice if a later one has arrived
			there := src.Open(t)
			other, _ := start(t, there)
			send(t, there, other, "4", nil)
			want += ",4"
		}
		waittest.For(t, "the last notice", func() bool { return len(e.all()) >= len(want) })
		if got := e.all(); got != want {
			t.Errorf("heard %q, want %q", got, want)
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
			want = "" // of another process, only the fact of a change is known
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

// databaseName returns the name of a PostgreSQL database.
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
			return // SQLite has no connection for notices
		}
		here, there := src.Open(t), src.Open(t)
		a, heard := start(t, here)
		b, _ := start(t, there)
		cut(t, there, databaseName(t, src))
		// One reset when the connection was lost, one when it was back.
		waittest.For(t, "both connections are back", func() bool {
			return strings.HasPrefix(heard.all(), ",") && a.Fresh() && b.Fresh()
		})
		if heard.all() != "," {
			t.Fatalf("heard %q, want two resets; fresh %v and %v", heard.list(), a.Fresh(), b.Fresh())
		}
		heard.forget()
		send(t, there, b, "again", nil)
		heard.wait(t, "again")
	})
}

// TestUnsureCommits checks that a node receives its own notices although it does not learn
// that they were committed, or if they are committed after it has lost the connection.
func TestUnsureCommits(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, proxy *dbtest.Proxy) {
		d := proxy.Open(t)
		b, e := start(t, d)
		fail := func(key string) {
			t.Helper()
			err := d.Tx(t.Context(), func(tx *db.Tx) error { return b.Send(t.Context(), tx, "thing", key) })
			if err == nil || !proxy.CommitLost() {
				t.Errorf("sent %s: %v", key, err)
			}
			if got := e.list(); !slices.Contains(got, key) {
				t.Errorf("received %q after the unsure commit of %s", got, key)
			}
		}
		proxy.LoseCommit("pg_notify")
		fail("1")
		proxy.DelayCommit("pg_notify")
		fail("2")
		send(t, d, b, "3", nil)
		waittest.For(t, "the notice 3 again", func() bool { // so all earlier ones have arrived
			return len(slices.DeleteFunc(e.list(), func(key string) bool { return key != "3" })) == 2
		})
		e.forget()
		proxy.ReleaseCommit()
		e.waitOne(t, "2")
	})
}
