// Package dbtest gives each test a fresh, migrated database: a SQLite file,
// and a PostgreSQL database as well when TEST_POSTGRES names a server.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/db"
)

// Source names a database that a test may open: one of URL and Path is set.
type Source struct {
	URL  string
	Path string
}

// Each runs f once per kind of database, as parallel subtests.
func Each(t *testing.T, f func(t *testing.T, d *db.DB)) {
	EachSource(t, func(t *testing.T, src Source) { f(t, src.Open(t)) })
}

// EachSource is Each for tests that open the database themselves.
func EachSource(t *testing.T, f func(t *testing.T, src Source)) {
	t.Helper()
	each(t, SQLite, Postgres, f)
}

// EachEmpty is EachSource with databases that nobody has migrated yet.
func EachEmpty(t *testing.T, f func(t *testing.T, src Source)) {
	t.Helper()
	each(t, func(t testing.TB) Source {
		return Source{Path: filepath.Join(t.TempDir(), "svc.db")}
	}, func(t testing.TB) Source {
		return postgres(t, "template0")
	}, f)
}

func each(t *testing.T, sqlite, postgres func(testing.TB) Source, f func(t *testing.T, src Source)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, sqlite(t))
	})
	if os.Getenv("TEST_POSTGRES") == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, postgres(t))
	})
}

// Open opens the database and closes it when the test ends.
func (s Source) Open(t testing.TB) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), s.URL, s.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	return d
}

// SQLite makes a migrated file in a directory of the test.
func SQLite(t testing.TB) Source {
	t.Helper()
	template, err := sqliteTemplate()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "svc.db")
	if err := os.WriteFile(path, template, 0o600); err != nil {
		t.Fatal(err)
	}
	return Source{Path: path}
}

// Migrating takes longer than most tests, so it is done once per process and
// copied.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "svc-dbtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "svc.db")
	if err := migrate("", path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

var (
	postgresTemplate = sync.OnceValues(func() (string, error) {
		if err := sweep(); err != nil {
			return "", err
		}
		name := fmt.Sprintf("%s%d_template", prefix(), os.Getpid())
		if err := admin("CREATE DATABASE " + name); err != nil {
			return "", err
		}
		return name, migrate(databaseURL(name), "")
	})
	postgresCount atomic.Int64
)

// Postgres makes a migrated database on the server of TEST_POSTGRES and drops
// it when the test ends.
func Postgres(t testing.TB) Source {
	t.Helper()
	template, err := postgresTemplate()
	if err != nil {
		t.Fatal(err)
	}
	return postgres(t, template)
}

func postgres(t testing.TB, template string) Source {
	t.Helper()
	name := fmt.Sprintf("%s%d_%d", prefix(), os.Getpid(), postgresCount.Add(1))
	if err := admin("CREATE DATABASE " + name + " TEMPLATE " + template + " STRATEGY file_copy"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return Source{URL: databaseURL(name)}
}

// prefix starts the names of the databases of this machine's tests; the
// number of their process follows.
func prefix() string {
	host, _ := os.Hostname() // without a name all machines look alike, as they do to the server
	return fmt.Sprintf("svc_test_%08x_", crc32.ChecksumIEEE([]byte(host)))
}

// sweep drops what processes that are gone have left: a process has no last
// moment in which it could drop its template.
func sweep() error {
	d, err := db.Open(context.Background(), os.Getenv("TEST_POSTGRES"), "")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := db.All(context.Background(), d, db.Value[string], "SELECT datname FROM pg_database WHERE starts_with(datname, ?)", prefix())
	if err != nil {
		return err
	}
	for _, name := range names {
		var pid int
		if _, err := fmt.Sscanf(name[len(prefix()):], "%d_", &pid); err != nil {
			continue
		}
		if pid != os.Getpid() && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		_ = admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") // another process may be at it
	}
	return nil
}

// admin serialises its statements: PostgreSQL copies a template only while
// nobody is connected to it.
func admin(statement string) error {
	adminMu.Lock()
	defer adminMu.Unlock()
	d, err := db.Open(context.Background(), os.Getenv("TEST_POSTGRES"), "")
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.SQL().Exec(statement)
	return err
}

var adminMu sync.Mutex

func databaseURL(name string) string {
	u, err := url.Parse(os.Getenv("TEST_POSTGRES"))
	if err != nil {
		panic(fmt.Sprintf("TEST_POSTGRES: %v", err))
	}
	u.Path = "/" + strings.TrimPrefix(name, "/")
	return u.String()
}

func migrate(url, path string) error {
	d, err := db.Open(context.Background(), url, path)
	if err != nil {
		return err
	}
	if err := d.Migrate(context.Background()); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}
