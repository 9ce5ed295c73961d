package db

import "testing"

// LockForTest holds the lock of migrations.
func LockForTest(t *testing.T, d *DB) (unlock func()) {
	t.Helper()
	unlock, err := d.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}
