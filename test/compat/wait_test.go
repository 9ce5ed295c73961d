package compat

import (
	"testing"
	"time"
)

// waitLimit is much longer than any condition takes on a busy machine. It ends a
// test that would wait forever.
const waitLimit = 5 * time.Minute

// waitFor waits until done returns true. It is internal/waittest for this module.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for: %s", waitLimit, what)
		}
	}
}
