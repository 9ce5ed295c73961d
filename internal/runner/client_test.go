package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// pollClient returns a client of a test server with a fixed clock.
func pollClient(t testing.TB, h http.HandlerFunc, pace Pace) *client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := newClient(Deps{URL: s.URL, Token: "glrt-x", Now: func() time.Time { return time.Unix(1, 0) }, Pace: pace.withDefaults()}, "r_1", "bash")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPauseAfterRequestThatWasNotHeld checks that a request that the server did not
// hold is not repeated immediately, even if each response has a different cursor.
func TestPauseAfterRequestThatWasNotHeld(t *testing.T) {
	t.Parallel()
	n := 0
	c := pollClient(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		if r.Header.Get("Prefer") != "wait=20" {
			t.Errorf("Prefer: %q", r.Header.Get("Prefer"))
		}
		w.Header().Set("X-GitLab-Last-Update", fmt.Sprintf("node%d-1", n))
		w.WriteHeader(http.StatusNoContent)
	}, Pace{})
	for i, want := range []bool{true, false, false} {
		if _, again, err := c.request(t.Context()); again != want || err != nil {
			t.Errorf("request %d is repeated at once: %t, %v", i, again, err)
		}
	}
}

// TestCallsEnd checks that a server that does not respond does not block the runner.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	frozen := make(chan struct{})
	c := pollClient(t, func(http.ResponseWriter, *http.Request) { <-frozen }, Pace{Hold: time.Millisecond, Call: time.Millisecond})
	t.Cleanup(func() { close(frozen) }) // before the server is closed
	for name, call := range map[string]func(context.Context) error{
		"request": func(ctx context.Context) error { _, _, err := c.request(ctx); return err },
		"verify":  func(ctx context.Context) error { _, err := c.verify(ctx); return err },
		"update":  func(ctx context.Context) error { _, err := c.update(ctx, 1, update{State: "running"}); return err },
		"patch":   func(ctx context.Context) error { _, err := c.patch(ctx, 1, "x", 0, []byte("log"), false); return err },
	} {
		if err := call(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
