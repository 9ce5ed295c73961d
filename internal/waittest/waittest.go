// Package waittest waits for conditions in tests. Whether a test that sleeps passes
// depends on the speed of the machine; a test that waits for a condition does not.
// internal/arch rejects time.Sleep, time.After and time.Tick in all other tests.
package waittest

import (
	"testing"
	"time"
)

const (
	// limit is much longer than any condition takes on a busy machine. It ends a
	// test that would wait forever.
	limit = 5 * time.Minute

	// pause is the time between two checks of a condition.
	pause = 5 * time.Millisecond
)

// For waits until done returns true. It fails the test if that takes five
// minutes; what names the condition in the message. done runs in the goroutine
// of the caller, so it may call t.Fatal.
func For(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for: %s", limit, what)
		}
	}
}

// Receive waits for a value from c and returns it, or the zero value if c is
// closed. It fails the test if that takes five minutes.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("waited %s for: %s", limit, what)
		panic("unreachable")
	}
}

// Pause lets other goroutines and processes run for a moment, in a loop that
// generates load until it is stopped. Nothing may depend on its length.
func Pause() { time.Sleep(pause) }
