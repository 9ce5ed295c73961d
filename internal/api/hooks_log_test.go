package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestHookSizes queues large events for a receiver that does not respond: only the newest
// are kept.
func TestHookSizes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		r.answer(503)
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"p"}`})
		s.Check(t, apptest.Call{Do: "POST " + at + "/hooks", As: alice, Status: 201, JSON: `{"url":"` + r.URL + `","push_events":false,"issues_events":true}`})
		const size, events, limit = 300 << 10, 12, 1 << 20
		s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, Status: 201, JSON: fmt.Sprintf(`{"title":"0","description":%q}`, strings.Repeat("x", size))})
		for i := 1; i < events; i++ {
			s.Check(t, apptest.Call{Do: "PUT " + at + "/issues/1", As: alice, Status: 200, JSON: fmt.Sprintf(`{"title":"%d"}`, i)})
		}
		s.Settled(t)
		stored := func() (n, newest int64) {
			t.Helper()
			err := s.DB.QueryRowContext(t.Context(), `SELECT CAST(coalesce(sum(length(payload)), 0) AS BIGINT), coalesce(max(id), 0) FROM hook_events`).Scan(&n, &newest)
			if err != nil {
				t.Fatal(err)
			}
			return n, newest
		}
		before, newest := stored()
		if before < events*size {
			t.Fatalf("%d bytes are stored", before)
		}
		if err := s.Hooks.TrimSizes(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		after, still := stored()
		if after < size || after > 2*limit || still != newest { // the limit of the queue and that of the log
			t.Errorf("%d bytes are stored, the newest is event %d, want %d", after, still, newest)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/hooks/1/events", As: alice, Status: 200})
	})
}
