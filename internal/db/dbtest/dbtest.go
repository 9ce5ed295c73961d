// Package dbtest gives each test a fresh, migrated database: a SQLite file,
// and a PostgreSQL database as well when TEST_POSTGRES names a server.
package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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
	each(t, SQLite, func(t testing.TB) Source {
		t.Helper()
		return postgres(t, true)
	}, f)
}

// EachEmpty is EachSource with databases without any migrations.
func EachEmpty(t *testing.T, f func(t *testing.T, src Source)) {
	t.Helper()
	each(t, func(t testing.TB) Source {
		return Source{Path: filepath.Join(t.TempDir(), "svc.db")}
	}, bare, f)
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
	d.FailNestedWrites(InsideTx)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	return d
}

// InsideTx reports whether the calling goroutine runs the function of a transaction. It
// walks the stack, so it is for tests only: see db.FailNestedWrites.
func InsideTx() bool {
	pcs := make([]uintptr, 512)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/db.(*Tx).run") {
			return true
		}
		if !more {
			return false
		}
	}
}

// SQLite creates a migrated file in a directory of the test.
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

// sqliteTemplate is a migrated file, which tests copy.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) { return once("sqlite", makeFile) })

func makeFile() ([]byte, error) {
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
