package notice_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/notice"
	"svc/internal/waittest"
)

func TestManySubscribersAndOneThatPanics(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var log bytes.Buffer
		b := notice.New(notice.Deps{DB: d, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
		var first, last ear
		b.Subscribe("thing", first.hear)
		b.Subscribe("thing", func(string) { panic("oh dear") })
		b.Subscribe("thing", last.hear)
		send(t, d, b, "1", nil) // the own notices are received even before Start
		if first.all() != "1" || last.all() != "1" {
			t.Errorf("heard %q and %q", first.all(), last.all())
		}
		if !strings.Contains(log.String(), "oh dear") || !strings.Contains(log.String(), "bus_test.go") {
			t.Error(log.String())
		}
		if b.Fresh() == d.Postgres() {
			t.Error("on PostgreSQL, Fresh must be false without a connection; on SQLite, true")
		}
		b.Stop() // never started
	})
}

func TestKeysOfAllKinds(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		here, there := src.Open(t), src.Open(t)
		a, heard := start(t, here)
		b, _ := start(t, there)
		keys := []string{"1", "it's", `"x" \ y`, "ü\n\x00", strings.Repeat("k", 7000)}
		for _, key := range keys {
			send(t, here, a, key, nil)
			if got := heard.all(); got != key {
				t.Errorf("sent %q, heard %q", key, got)
			}
			heard.forget()
			if src.URL == "" {
				continue
			}
			send(t, there, b, key, nil)
			heard.wait(t, key) // sent by another node
			heard.forget()
		}
		err := here.Tx(t.Context(), func(tx *db.Tx) error { return a.Send(t.Context(), tx, "thing", "\xff") })
		if err == nil || heard.all() != "" {
			t.Errorf("a key that is not valid text: %v, heard %q", err, heard.all())
		}
	})
}

// TestManyNotices checks that all notices arrive, in the order of their commits.
func TestManyNotices(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite supports one node only
	}
	src := dbtest.Postgres(t)
	_, heard := start(t, src.Open(t))
	there := src.Open(t)
	b, _ := start(t, there)
	want := []string{}
	for i := range 200 {
		send(t, there, b, strconv.Itoa(i), nil)
		want = append(want, strconv.Itoa(i))
	}
	heard.wait(t, strings.Join(want, ","))
}

// TestSilentConnection checks that a heartbeat confirms nothing if its connection is
// open but receives nothing.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		var moved, read atomic.Int64
		b := notice.New(notice.Deps{DB: p.Open(t), Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
			read.Add(1)
			return time.Now().Add(time.Duration(moved.Load()))
		}})
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Stop)
		before := read.Load()
		waittest.For(t, "two heartbeats", func() bool { return read.Load() >= before+2 })
		waittest.For(t, "confirmed notices", b.Fresh)

		p.Stall("svc notices")
		moved.Store(int64(time.Minute))
		before = read.Load()
		waittest.For(t, "a heartbeat", func() bool { return read.Load() > before })
		for range 100 { // check during the sending of the heartbeat, too
			if b.Fresh() {
				t.Fatal("notices count as confirmed by a heartbeat that did not come back")
			}
		}
		p.Resume()
		waittest.For(t, "confirmed notices", b.Fresh)
	})
}

func TestUnreadableNotice(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite supports one node only
	}
	d := dbtest.Postgres(t).Open(t)
	b, heard := start(t, d)
	if _, err := d.ExecContext(t.Context(), "SELECT pg_notify('svc_notice', 'what?')"); err != nil {
		t.Fatal(err)
	}
	heard.waitOne(t, "")
	if !b.Fresh() {
		t.Error("not fresh")
	}
}

// TestLongLoss checks that the bus is not fresh while there is no connection, and
// that it calls all subscribers when the connection is back.
func TestLongLoss(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // SQLite has no connection for notices
	}
	src := dbtest.Postgres(t)
	name := databaseName(t, src)
	admin := dbtest.Source{URL: os.Getenv("TEST_POSTGRES")}.Open(t)
	here, there := src.Open(t), src.Open(t)
	var attempts attempts
	a, heard := startLogged(t, here, slog.New(&attempts))
	b, _ := start(t, there)
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false")
	cut(t, admin, name)
	waittest.For(t, "the loss is noticed", func() bool { return !a.Fresh() && !b.Fresh() })
	send(t, there, b, "missed", nil)
	failed := attempts.Load()
	waittest.For(t, "several attempts", func() bool { return attempts.Load() >= failed+3 })
	if a.Fresh() {
		t.Error("fresh without a connection")
	}
	heard.forget()
	exec("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true")
	waittest.For(t, "the connection is back", a.Fresh)
	heard.waitOne(t, "")
	b.Stop()
	if b.Fresh() {
		t.Error("fresh after the end")
	}
}

// attempts counts the log messages about failed connection attempts.
type attempts struct{ atomic.Int64 }

// Enabled implements slog.Handler.
func (*attempts) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (a *attempts) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "no connection for notices yet" {
		a.Add(1)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (a *attempts) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup implements slog.Handler.
func (a *attempts) WithGroup(string) slog.Handler { return a }

func TestStartAgain(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d, other := src.Open(t), src.Open(t)
		b, heard := start(t, d)
		if err := b.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		b.Stop()
		b.Stop()
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := heard.list(); !slices.Equal(got, []string{""}) {
			t.Errorf("heard %q at the second start", got)
		}
		heard.forget()
		there, _ := start(t, other)
		want := "x"
		if src.URL == "" {
			want = ""
		}
		err := other.Tx(t.Context(), func(tx *db.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings VALUES ('a', 'b')"); err != nil {
				return err
			}
			return there.Send(t.Context(), tx, "thing", "x")
		})
		if err != nil {
			t.Fatal(err)
		}
		heard.waitOne(t, want)
	})
}

// TestOwnWritesAreNoOutsideChanges checks that writes of this process are not
// mistaken for writes of another process.
func TestOwnWritesAreNoOutsideChanges(t *testing.T) {
	t.Parallel()
	src := dbtest.SQLite(t)
	d := src.Open(t)
	_, heard := start(t, d)
	outside := func() int64 {
		t.Helper()
		version, err := d.OutsideChanges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	before := outside()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20 {
				key := strconv.Itoa(100*n + i)
				if _, err := d.ExecContext(t.Context(), "INSERT INTO settings VALUES (?, '')", key); err != nil {
					t.Error(err)
				}
				if err := d.QueryRowContext(t.Context(), "SELECT key FROM settings WHERE key = ?", key).Scan(new(string)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if after := outside(); after != before {
		t.Errorf("the version is %d, was %d", after, before)
	}
	if got := heard.list(); len(got) != 0 {
		t.Errorf("heard %q", got)
	}
	if _, err := src.Open(t).ExecContext(t.Context(), "INSERT INTO settings VALUES ('other', '')"); err != nil {
		t.Fatal(err)
	}
	heard.waitOne(t, "") // sent because of a write of another process
}
