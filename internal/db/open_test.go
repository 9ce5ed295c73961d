package db_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
)

func TestOpenSQLite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"svc.db", "a b.db", "what?.db", "50%25.db", "a#b.db", "ü&x=1.db"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		d, err := db.Open(t.Context(), "", path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		must(t, d, "CREATE TABLE a (b BIGINT)", "INSERT INTO a VALUES (1)")
		if err := d.Ping(t.Context()); err != nil || d.Postgres() || d.URL() != "" || len(d.Stats()) != 2 {
			t.Error(err, d.Stats())
		}
		// Killing a process does not show whether commits reach the disk, so check the settings.
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
			var got string
			if err := d.SQL().QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %s, not %s, %v", pragma, got, want, err)
			}
		}
		// Before Close the rows are in the write-ahead log, after it in the file.
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
			t.Errorf("%s: no write-ahead log: %v", name, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != name {
			t.Errorf("%s: the directory holds %v, %v", name, entries, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		d, err = db.Open(t.Context(), "", path)
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, d, "a"); n != 1 {
			t.Errorf("%s: the row is gone", name)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := db.Open(t.Context(), "", filepath.Join(dir, "missing", "svc.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("This is no database. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Open(t.Context(), "", text); err == nil {
		t.Error("a text file was opened")
	}
	for _, url := range []string{"mysql://localhost/x", "postgres://user:secret@127.0.0.1:port/x"} {
		if _, err := db.Open(t.Context(), url, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := db.Open(t.Context(), "postgres://user:secret@127.0.0.1:1/x", "")
	if !errs.Is(err, errs.KindUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	var pages int
	if err := d.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	var limit int
	if err := d.SQL().QueryRow("PRAGMA max_page_count = " + "1").Scan(&limit); err != nil || limit != pages {
		t.Fatal(limit, pages, err)
	}
	big := strings.Repeat("x", 1<<20)
	_, err := d.ExecContext(t.Context(), "INSERT INTO settings VALUES ('a', ?)", big)
	if !errs.Is(err, errs.KindUnavailable) || !strings.Contains(err.Error(), "full") {
		t.Error(err)
	}
	err = d.Tx(t.Context(), func(tx *db.Tx) error {
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings VALUES ('b', ?)", big); err == nil {
			t.Error("no error in the transaction")
		}
		// The rest of the transaction must not be committed on its own.
		if _, err := tx.ExecContext(t.Context(), "DELETE FROM settings"); err == nil {
			t.Error("the transaction goes on")
		}
		return nil
	})
	if !errs.Is(err, errs.KindUnavailable) {
		t.Error(err)
	}
	if n := count(t, d, "settings"); n != 0 {
		t.Errorf("%d rows", n)
	}
	must(t, d, "PRAGMA max_page_count = 1000000", "INSERT INTO settings VALUES ('a', 'small')")
}
