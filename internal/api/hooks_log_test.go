package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// TestHookSecrets checks that the delivery log masks secrets in responses: in their encoded
// forms, and where texts are cut.
func TestHookSecrets(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		const token = `begin&of<the>secret"and\its end`
		echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token := r.Header.Get("X-Gitlab-Token")
			w.Header().Set("Location", "/?token="+token)
			w.Header().Set("X-Query", r.URL.RawQuery)
			w.Header().Set("X-Long", strings.Repeat("x", 990)+token)
			_, _ = w.Write([]byte(strings.Repeat("x", 8<<10-10) + token))
		}))
		defer echo.Close()
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"p"}`})
		s.Check(t, apptest.Call{Do: "POST " + at + "/hooks", As: alice, Status: 201,
			JSON: fmt.Sprintf(`{"url":"%s/?key={key}","url_variables":[{"key":"key","value":"begin<of>the-key"}],"token":%q,"push_events":false,"issues_events":true}`, echo.URL, token)})
		s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, Status: 201, JSON: `{"title":"a"}`})
		s.Settled(t)
		var events []struct {
			ResponseStatus  string            `json:"response_status"`
			ResponseHeaders map[string]string `json:"response_headers"`
			ResponseBody    string            `json:"response_body"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/hooks/1/events", As: alice, Status: 200}).JSON(t, &events)
		if len(events) != 1 || events[0].ResponseStatus != "200" {
			t.Fatalf("events: %+v", events)
		}
		e := events[0]
		if got := e.ResponseHeaders["Location"]; got != "/?token=[REDACTED]" {
			t.Errorf("Location: %s", got)
		}
		if got := e.ResponseHeaders["X-Query"]; got != "key=[REDACTED]" {
			t.Errorf("X-Query: %s", got)
		}
		for name, text := range map[string]string{"X-Long": e.ResponseHeaders["X-Long"], "body": e.ResponseBody} {
			if len(text) < 900 || strings.Contains(text, "begin") {
				t.Errorf("%s ends with %q", name, text[max(0, len(text)-30):])
			}
		}
	})
}

// TestHookChains sends the UUIDs of webhook requests back: a webhook does not trigger itself,
// neither directly nor by another one, and no UUID stops the webhooks of others.
func TestHookChains(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		mine, theirs := newReceiver(t), newReceiver(t)
		_, alice := s.User(t, "alice")
		const at = "/projects/alice%2Fp"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"p"}`},
			{Do: "POST " + at + "/hooks", As: alice, Status: 201, JSON: `{"url":"` + mine.URL + `","push_events":false,"issues_events":true}`},
			{Do: "POST " + at + "/hooks", As: alice, Status: 201, JSON: `{"url":"` + theirs.URL + `","push_events":false,"issues_events":true}`},
		})
		add := func(title, cause string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"` + title + `"}`, Header: map[string]string{"X-Gitlab-Event-UUID": cause}, Status: 201})
		}
		got := func(r *receiver, title string) string {
			t.Helper()
			return r.event(t, "Issue Hook", "object_attributes.title", title).header.Get("X-Gitlab-Event-UUID")
		}
		add("first", "")
		cause := got(mine, "first")
		if cause == got(theirs, "first") {
			t.Error("two webhooks got the same UUID")
		}
		var second string
		for range 101 {
			add("second", cause)
		}
		second = got(theirs, "second")
		add("third", second)
		add("last", "")
		got(mine, "last")
		got(theirs, "last")
		count := func(r *receiver, title string) (n int) {
			for _, q := range r.all() {
				if q.field("object_attributes.title") == title {
					n++
				}
			}
			return n
		}
		for title, want := range map[string][2]int{"first": {1, 1}, "second": {0, 101}, "third": {0, 0}} {
			if have := [2]int{count(mine, title), count(theirs, title)}; have != want {
				t.Errorf("%s: %v requests, want %v", title, have, want)
			}
		}
	})
}
