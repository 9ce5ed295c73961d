package db

import (
	"crypto/sha256"
	"testing"
	"time"
)

// LockForTest holds the lock of migrations.
func LockForTest(t *testing.T, d *DB) (unlock func()) {
	t.Helper()
	unlock, err := d.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// CountedAt returns when a cached total of PostgreSQL was counted.
func (d *DB) CountedAt(from string, args ...any) time.Time {
	text, _ := countKey(from, args)
	n, _ := d.snapshots.get(sha256.Sum256([]byte(text)))
	return n.at
}

// Planned returns the database for queries with generic plans.
func (d *DB) Planned() Q { return d.planned() }
