package api_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/errortrack"
	"svc/internal/project"
)

func TestErrorTrackingSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "app", "")
		settings, keys := fmt.Sprintf("/projects/%d/error_tracking/settings", id), fmt.Sprintf("/projects/%d/error_tracking/client_keys", id)
		const none = `{"message":"404 Error Tracking Setting Not Found"}`
		s.Table(t, []apptest.Call{
			{Name: "not set up", Do: "GET " + settings, As: alice, Status: 404, Want: none},
			{Name: "nothing to change", Do: "PATCH " + settings, As: alice, JSON: `{"active":true}`, Status: 404, Want: none},
			{Name: "nothing said", Do: "PUT " + settings, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"active is missing, integrated is missing"}`},
			{Name: "not all said", Do: "PUT " + settings, As: alice, JSON: `{"active":true}`, Status: 400, Want: `{"error":"integrated is missing"}`},
			{Name: "no boolean", Do: "PUT " + settings, As: alice, JSON: `{"active":"maybe","integrated":true}`, Status: 400, Want: `{"error":"active is invalid"}`},
			{Name: "empty", Do: "PUT " + settings + "?active=&integrated=true", As: alice, Status: 400, Want: `{"error":"active is empty"}`},
			{Name: "no keys yet", Do: "GET " + keys, As: alice, Status: 200, Want: `[]`},
			{Name: "set up", Do: "PUT " + settings, As: alice, JSON: `{"active":true,"integrated":true}`, Status: 200,
				Want: `{"active":true,"project_name":null,"errsvc_external_url":null,"api_url":null,"integrated":true}`},
			{Name: "a first key", Do: "GET " + keys, As: alice, Status: 200, Want: `[{"id":"<any>","active":true,"public_key":"<any>","errsvc_dsn":"<any>"}]`},
			{Name: "turned off", Do: "PATCH " + settings, As: alice, JSON: `{"active":false}`, Status: 200, Want: `{"active":false,"integrated":true}`},
			{Name: "read again", Do: "GET " + settings, As: alice, Status: 200, Want: `{"active":false,"integrated":true}`},
			{Name: "elsewhere", Do: "PATCH " + settings, As: alice, JSON: `{"active":true,"integrated":false}`, Status: 200, Want: `{"active":true,"integrated":false}`},
			{Name: "said nothing of on or off", Do: "PATCH " + settings, As: alice, JSON: `{"integrated":true}`, Status: 400, Want: `{"error":"active is missing"}`},
			{Name: "set up again", Do: "PUT " + settings, As: alice, JSON: `{"active":true,"integrated":true}`, Status: 200, Want: `{"active":true,"integrated":true}`},
			{Name: "no second key by that", Do: "GET " + keys, As: alice, Status: 200, Want: `[{"active":true}]`},
		})
		var made struct {
			ID     int64
			Public string `json:"public_key"`
			DSN    string `json:"errsvc_dsn"`
		}
		s.Check(t, apptest.Call{Do: "POST " + keys, As: alice, Status: 201}).JSON(t, &made)
		if want := strings.Replace(s.URL, "://", "://"+made.Public+"@", 1) + fmt.Sprintf("/api/v4/error_tracking/collector/%d", id); made.DSN != want {
			t.Errorf("the DSN is %s, not %s", made.DSN, want)
		}
		one := fmt.Sprintf("%s/%d", keys, made.ID)
		s.Table(t, []apptest.Call{
			{Name: "two", Do: "GET " + keys + "?per_page=1", As: alice, Status: 200, Want: `[{}]`, WantHeader: map[string]string{"X-Total": "2", "X-Next-Page": "2"}},
			{Name: "the old one of another project", Do: fmt.Sprintf("DELETE /projects/%d/error_tracking/client_keys/%d", newProject(t, s, alice, "other", ""), made.ID), As: alice, Status: 404},
			{Name: "deleted", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "deleted twice", Do: "DELETE " + one, As: alice, Status: 404, Want: `{"message":"404 Not found"}`},
			{Name: "archived", Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Name: "nothing changes there", Do: "PATCH " + settings, As: alice, JSON: `{"active":false}`, Status: 403},
			{Name: "but is read", Do: "GET " + settings, As: alice, Status: 200},
		})
		// Neither the stored key nor the audit log reveals the client key.
		var stored string
		if err := s.DB.QueryRowContext(t.Context(), `SELECT sealed FROM error_keys`).Scan(&stored); err != nil || strings.Contains(stored, made.Public) {
			t.Errorf("stored: %q, %v", stored, err)
		}
		audit := s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/audit_events", id), As: alice, Status: 200})
		for _, want := range []string{`"change":"active","from":"true","to":"false"`, `"add":"error_tracking_client_key"`, `"remove":"error_tracking_client_key"`} {
			if !bytes.Contains(audit.Body, []byte(want)) {
				t.Errorf("the audit events have no %s", want)
			}
		}
		if bytes.Contains(audit.Body, []byte(made.Public)) {
			t.Error("the key stands in the audit events")
		}
	})
}

// TestErrorTrackingNames checks that identifiers contain the configured name of the
// external service.
func TestErrorTrackingNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		at := fmt.Sprintf("/projects/%d/error_tracking", newProject(t, s, root, "app", ""))
		s.Table(t, []apptest.Call{
			{Do: "PUT " + at + "/settings", As: root, JSON: `{"active":true,"integrated":true}`, Status: 200, Want: `{"sentry_external_url":null}`},
			{Do: "GET " + at + "/client_keys", As: root, Status: 200, Want: `[{"sentry_dsn":"<any>"}]`},
		})
	}, apptest.ErrorBackend("sentry"))
}

// tracked is a project with error tracking.
type tracked struct {
	*apptest.Server
	id    int64
	key   string
	owner string
}

func track(t *testing.T, s *apptest.Server) *tracked {
	t.Helper()
	_, alice := s.User(t, "alice")
	tr := &tracked{s, newProject(t, s, alice, "app", ""), "", alice}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d/error_tracking/settings", tr.id), As: alice, JSON: `{"active":true,"integrated":true}`, Status: 200})
	var keys []struct {
		Public string `json:"public_key"`
	}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/error_tracking/client_keys", tr.id), As: alice, Status: 200}).JSON(t, &keys)
	tr.key = keys[0].Public
	return tr
}

// post sends a body as an SDK does, with headers in the form "Name: value".
func (tr *tracked) post(t testing.TB, path string, body []byte, headers ...string) apptest.Answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/api/v4/error_tracking/collector/api/%d/%s", tr.URL, tr.id, path), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return tr.Exchange(t, r)
}

func (tr *tracked) auth() string {
	return "X-Sentry-Auth: Sentry sentry_version=7, sentry_client=test/1, sentry_key=" + tr.key
}

// errors returns the errors of the project.
func (tr *tracked) errors(t testing.TB, f errortrack.Filter) []*errortrack.Error {
	t.Helper()
	page, err := tr.Errors.Errors(t.Context(), actor.System(), project.RefTo(tr.id), f, db.Paging{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// envelope returns an envelope with the event.
func envelope(event string) []byte {
	return fmt.Appendf(nil, "{}\n{\"type\":\"event\",\"length\":%d}\n%s\n", len(event), event)
}

const aPanic = `{"event_id":"%032x","platform":"go","release":"1.0","environment":"staging","user":{"id":%d},"tags":{"os":"linux"},
	"exception":[{"type":"*errors.errorString","value":"no more room","stacktrace":{"frames":[
		{"filename":"main.go","module":"main","function":"main","lineno":3,"in_app":true},
		{"filename":"room.go","module":"main","function":"find","lineno":7,"in_app":true,"pre_context":["func find() {"],"context_line":"panic(err)","post_context":["}"]}]}}]}`

// TestErrorCollector sends events as SDKs do.
func TestErrorCollector(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		tr := track(t, s)
		event := envelope(fmt.Sprintf(aPanic, 1, 1))
		for _, tt := range []struct {
			name    string
			path    string
			body    []byte
			headers []string
			status  int
			want    string
		}{
			{"by a header", "envelope/", event, []string{tr.auth()}, 200, `{"id":"00000000000000000000000000000001"}`},
			{"sent again", "envelope/", event, []string{tr.auth()}, 200, `{"id":"00000000000000000000000000000001"}`},
			{"by the query", "envelope/?sentry_version=7&sentry_key=" + tr.key, envelope(fmt.Sprintf(aPanic, 2, 1)), []string{"Content-Type: text/plain;charset=UTF-8"}, 200, `{"id":"00000000000000000000000000000002"}`},
			{"by the header Authorization", "envelope/", envelope(fmt.Sprintf(aPanic, 3, 2)), []string{strings.Replace(tr.auth(), "X-Sentry-Auth", "Authorization", 1)}, 200, `0003"}`},
			{"by the DSN in the body", "envelope/", bytes.Replace(envelope(fmt.Sprintf(aPanic, 4, 2)), []byte("{}"), []byte(`{"dsn":"https://`+tr.key+`@example.org/1"}`), 1), nil, 200, `0004"}`},
			{"deprecated endpoint", "store/", fmt.Appendf(nil, aPanic, 5, 2), []string{tr.auth(), "Content-Type: application/json"}, 200, `0005"}`},
			{"without a length", "envelope/", []byte("{}\n{\"type\":\"event\"}\n" + strings.ReplaceAll(fmt.Sprintf(aPanic, 7, 3), "\n", "") + "\n"), []string{tr.auth()}, 200, `0007"}`},
			{"gzip", "envelope/", packed(envelope(fmt.Sprintf(aPanic, 8, 3)), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }), []string{tr.auth(), "Content-Encoding: gzip"}, 200, `0008"}`},
			{"deflate", "envelope/", packed(envelope(fmt.Sprintf(aPanic, 9, 3)), func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }), []string{tr.auth(), "Content-Encoding: deflate"}, 200, `0009"}`},
			{"deflate without a frame", "envelope/", packed(envelope(fmt.Sprintf(aPanic, 10, 3)), func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 5); return f }), []string{tr.auth(), "Content-Encoding: deflate"}, 200, `000a"}`},
			{"br", "envelope/", packed(envelope(fmt.Sprintf(aPanic, 11, 3)), func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }), []string{tr.auth(), "Content-Encoding: br"}, 200, `000b"}`},
			{"zstd", "envelope/", packed(envelope(fmt.Sprintf(aPanic, 12, 3)), func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }), []string{tr.auth(), "Content-Encoding: zstd"}, 200, `000c"}`},
			{"another way to compress", "envelope/", event, []string{tr.auth(), "Content-Encoding: lzma"}, 415, "content encoding"},
			{"compressed in name alone", "envelope/", event, []string{tr.auth(), "Content-Encoding: gzip"}, 400, "cannot be read"},
			{"cut off", "envelope/", packed(event, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })[:100], []string{tr.auth(), "Content-Encoding: gzip"}, 400, ""},
			{"a bomb", "envelope/", packed(append([]byte("{}\n{\"type\":\"attachment\"}\n"), bytes.Repeat([]byte{'x'}, 101<<20)...), func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }), []string{tr.auth(), "Content-Encoding: zstd"}, 413, "too large"},
			{"too large an event", "envelope/", envelope(`{"message":"` + strings.Repeat("x", errortrack.MaxEvent) + `"}`), []string{tr.auth()}, 413, ""},
			{"too large an event at the deprecated endpoint", "store/", []byte(`{"message":"` + strings.Repeat("x", errortrack.MaxEvent) + `"}`), []string{tr.auth()}, 413, ""},
			{"sessions", "envelope/", []byte("{}\n{\"type\":\"session\"}\n{\"sid\":\"x\"}\n{\"type\":\"client_report\",\"length\":2}\n{}\n{\"type\":\"later\"}\n?"), []string{tr.auth()}, 200, `{}`},
			{"an event among other things", "envelope/", bytes.Replace(envelope(fmt.Sprintf(aPanic, 13, 4)), []byte("{}"), []byte("{\"event_id\":\"0000000000000000000000000000000d\"}\n{\"type\":\"attachment\",\"length\":3}\n\n\n\n"), 1), []string{tr.auth()}, 200, `000d"}`},
			{"a message", "envelope/", envelope(`{"event_id":"00000000000000000000000000000100","message":"disk 7 is full","level":"warning"}`), []string{tr.auth()}, 200, `0100"}`},
			{"nothing in it", "envelope/", envelope(`{}`), []string{tr.auth()}, 200, `{"id":"`},
			{"no envelope", "envelope/", []byte("hello"), []string{tr.auth()}, 400, "header"},
			{"no event", "store/", []byte("[1]"), []string{tr.auth()}, 400, "JSON object"},
			{"empty", "envelope/", nil, []string{tr.auth()}, 400, ""},
			{"no key", "envelope/", event, nil, 401, "401 Unauthorized"},
			{"another key", "envelope/?sentry_key=abc", event, nil, 404, `{"message":"404 Not found"}`},
			{"another way to sign in", "envelope/", event, []string{"Private-Token: " + tr.owner}, 401, ""},
		} {
			got := tr.post(t, tt.path, tt.body, tt.headers...)
			if got.Status != tt.status || !strings.Contains(string(got.Body), tt.want) {
				t.Errorf("%s: %d %.200s, want %d %s", tt.name, got.Status, got.Body, tt.status, tt.want)
			}
		}
		for level, status := range map[string]int{"disabled": 404, "enabled": 200} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", tr.id), As: tr.owner, JSON: `{"monitor_access_level":"` + level + `"}`, Status: 200})
			if got := tr.post(t, "envelope/", event, tr.auth()); got.Status != status {
				t.Errorf("monitor features are %s: status %d, want %d", level, got.Status, status)
			}
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", tr.id), As: tr.owner, JSON: `{"monitor_access_level":"enabled"}`, Status: 200})
		list := tr.errors(t, errortrack.Filter{Sort: errortrack.ByFrequency})
		if len(list) != 3 {
			t.Fatalf("%d errors, want 3", len(list))
		}
		if e := list[0]; e.Events != 12 || e.Users != 4 || e.Type != "*errors.errorString" || e.Title != "no more room" || e.Culprit != "find in main" || e.Status != errortrack.Unresolved || sum(e.Hours) != 12 || e.LastRelease != "1.0" {
			t.Errorf("the error is %+v", e)
		}
		for _, tt := range []struct {
			f    errortrack.Filter
			want int
		}{
			{errortrack.Filter{Environment: "staging"}, 1}, {errortrack.Filter{Environment: "production"}, 2}, {errortrack.Filter{Search: "NO MORE"}, 1},
			{errortrack.Filter{Search: "%"}, 0}, {errortrack.Filter{Status: errortrack.Resolved}, 0}, {errortrack.Filter{Status: errortrack.Unresolved}, 3},
		} {
			if n := len(tr.errors(t, tt.f)); n != tt.want {
				t.Errorf("%+v finds %d, want %d", tt.f, n, tt.want)
			}
		}
		tr.reopens(t, list[0].ID)
		tr.answersBrowsers(t)
		tr.isLimited(t)
		tr.isClosed(t)
	})
}

func packed(text []byte, by func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := by(&b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// reopens checks that a new event reopens a resolved error and not an ignored one.
func (tr *tracked) reopens(t *testing.T, id int64) {
	t.Helper()
	n := 1000
	for _, tt := range []struct{ said, then errortrack.Status }{
		{errortrack.Resolved, errortrack.Unresolved}, {errortrack.Ignored, errortrack.Ignored}, {errortrack.Unresolved, errortrack.Unresolved},
	} {
		if err := tr.Errors.Mark(t.Context(), actor.System(), project.RefTo(tr.id), id, tt.said); err != nil {
			t.Fatal(err)
		}
		n++
		tr.post(t, "envelope/", envelope(fmt.Sprintf(aPanic, n, 1)), tr.auth())
		story, err := tr.Errors.Error(t.Context(), actor.System(), project.RefTo(tr.id), id, "")
		if err != nil || story.Status != tt.then {
			t.Errorf("after %s it is %v: %v", tt.said, story.Status, err)
		}
	}
}

// answersBrowsers checks the responses to CORS preflight requests.
func (tr *tracked) answersBrowsers(t *testing.T) {
	t.Helper()
	r, _ := http.NewRequest(http.MethodOptions, fmt.Sprintf("%s/api/v4/error_tracking/collector/api/%d/envelope/", tr.URL, tr.id), nil)
	for name, value := range map[string]string{"Origin": "https://shop.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-sentry-auth"} {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if h := res.Header; res.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "x-sentry-auth" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("asked before: %d %v", res.StatusCode, h)
	}
	// The document only has the path with a trailing slash.
	res, err = http.Post(strings.TrimSuffix(r.URL.String(), "/")+"?sentry_key="+tr.key, "text/plain", bytes.NewReader(envelope(`{}`)))
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("without the slash: %v %v", res, err)
	}
	res.Body.Close()
	got := tr.post(t, "envelope/?sentry_key="+tr.key, envelope(fmt.Sprintf(aPanic, 2000, 1)), "Origin: https://shop.example")
	if h := got.Header; got.Status != 200 || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-Sentry-Rate-Limits") {
		t.Errorf("sent: %d %v", got.Status, h)
	}
}

// isLimited checks that requests above the rate limit of a key get Retry-After.
func (tr *tracked) isLimited(t *testing.T) {
	t.Helper()
	rate := func(n int) {
		tr.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: fmt.Sprintf(`{"error_tracking_events_per_minute":%d}`, n), Status: 200})
	}
	rate(2)
	tr.Clock.Stop()
	for i, want := range []int{200, 200, 429, 429} {
		got := tr.post(t, "envelope/", envelope(fmt.Sprintf(aPanic, 3000+i, 1)), tr.auth())
		if h := got.Header; got.Status != want || want == 429 && (h.Get("Retry-After") != "30" || h.Get("X-Sentry-Rate-Limits") != "30::key") {
			t.Errorf("%d. request: %d %v", i, got.Status, h)
		}
	}
	if got := tr.post(t, "envelope/", []byte("{}\n"), tr.auth()); got.Status != 429 {
		t.Errorf("something else than an event: %d", got.Status)
	}
	tr.Clock.Move(time.Minute)
	if got := tr.post(t, "envelope/", envelope(fmt.Sprintf(aPanic, 3010, 1)), tr.auth()); got.Status != 200 {
		t.Errorf("after a minute: %d", got.Status)
	}
	rate(0)
}

// isClosed checks that no events are accepted if the key or the integration is
// disabled, or the project is archived.
func (tr *tracked) isClosed(t *testing.T) {
	t.Helper()
	at := fmt.Sprintf("/projects/%d", tr.id)
	try := func(name string, want int) {
		if got := tr.post(t, "envelope/", envelope(`{}`), tr.auth()); got.Status != want {
			t.Errorf("%s: %d, want %d", name, got.Status, want)
		}
	}
	var keys []struct{ ID int64 }
	tr.Check(t, apptest.Call{Do: "GET " + at + "/error_tracking/client_keys", As: tr.owner, Status: 200}).JSON(t, &keys)
	turn := func(active bool) {
		if err := tr.Errors.TurnKey(t.Context(), actor.System(), project.RefTo(tr.id), keys[0].ID, active); err != nil {
			t.Fatal(err)
		}
	}
	turn(false)
	try("a key that was turned off", 404)
	turn(true)
	try("and on", 200)
	for _, change := range []struct{ off, on string }{
		{`{"active":false}`, `{"active":true}`}, {`{"active":true,"integrated":false}`, `{"active":true,"integrated":true}`},
	} {
		tr.Check(t, apptest.Call{Do: "PATCH " + at + "/error_tracking/settings", As: tr.owner, JSON: change.off, Status: 200})
		try(change.off, 404)
		tr.Check(t, apptest.Call{Do: "PATCH " + at + "/error_tracking/settings", As: tr.owner, JSON: change.on, Status: 200})
	}
	tr.Check(t, apptest.Call{Do: "POST " + at + "/archive", As: tr.owner, Status: 201})
	try("archived", 404)
	tr.Check(t, apptest.Call{Do: "POST " + at + "/unarchive", As: tr.owner, Status: 201})
	try("brought back", 200)
	tr.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/error_tracking/client_keys/%d", at, keys[0].ID), As: tr.owner, Status: 204})
	try("a key that is gone", 404)
}

// TestErrorsAtOnce sends events concurrently and checks that each is counted once.
func TestErrorsAtOnce(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		tr := track(t, s)
		const senders, each = 20, 12
		var wait sync.WaitGroup
		for sender := range senders {
			wait.Go(func() {
				for i := range each {
					n := sender*each + i
					for range 1 + i%2 { // every second one is sent twice
						if got := tr.post(t, "envelope/", envelope(fmt.Sprintf(aPanic, n+1, n%7)), tr.auth()); got.Status != 200 {
							t.Errorf("%d: %d %s", n, got.Status, got.Body)
						}
					}
				}
			})
		}
		wait.Wait()
		list := tr.errors(t, errortrack.Filter{})
		if len(list) != 1 || list[0].Events != senders*each || list[0].Users != 7 || sum(list[0].Hours) != senders*each {
			t.Fatalf("%d errors, the first is %+v", len(list), list[0])
		}
		story, err := tr.Errors.Error(t.Context(), actor.System(), project.RefTo(tr.id), list[0].ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if story.Environments[0].Events != senders*each || sum(story.Frequency.Days) != senders*each || story.Kept != errortrack.KeptEvents {
			t.Errorf("the story is %+v", story)
		}
		var kept int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM error_events`).Scan(&kept); err != nil || kept > errortrack.KeptEvents+9 {
			t.Errorf("%d events are kept: %v", kept, err)
		}
		// Errors without recent events are deleted after the retention period.
		s.Clock.Move(91 * 24 * time.Hour)
		if err := s.Errors.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"errors", "error_events", "error_hours", "error_environments", "error_users", "error_seen"} {
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&kept); err != nil || kept > 0 {
				t.Errorf("%s has %d rows: %v", table, kept, err)
			}
		}
	})
}

// TestErrorLimits checks the limits of what is counted and stored. States that would
// take many requests are written to the tables.
func TestErrorLimits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		tr := track(t, s)
		n := 0
		send := func(user int, more string) {
			t.Helper()
			n++
			event := strings.Replace(fmt.Sprintf(aPanic, n, user), `"environment":"staging"`, more, 1)
			if got := tr.post(t, "envelope/", envelope(event), tr.auth()); got.Status != 200 {
				t.Fatalf("%d: %d %s", n, got.Status, got.Body)
			}
		}
		exec := func(statement string, args ...any) {
			t.Helper()
			if _, err := s.DB.ExecContext(t.Context(), statement, args...); err != nil {
				t.Fatal(err)
			}
		}
		const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `
		send(1, `"environment":"first"`)
		id := tr.errors(t, errortrack.Filter{})[0].ID

		// Users and environments are counted up to a limit; events without one.
		exec(`UPDATE errors SET users = ? WHERE id = ?`, errortrack.CountedUsers-1, id)
		exec(fmt.Sprintf(numbers, 98)+`INSERT INTO error_environments (error_id, project_id, name, events) SELECT ?, ?, 'host-' || i, 1 FROM n`, id, tr.id)
		send(2, `"environment":"last"`)
		send(3, `"environment":"one too many"`)
		send(2, `"environment":"last"`)
		story, err := tr.Errors.Error(t.Context(), actor.System(), project.RefTo(tr.id), id, "")
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, e := range story.Environments {
			counts[e.Value] = e.Events
		}
		if _, over := counts["one too many"]; story.Events != 4 || story.Users != errortrack.CountedUsers || over {
			t.Errorf("%d events, %d users, environments %v", story.Events, story.Users, counts)
		}
		var environments int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM error_environments WHERE error_id = ?`, id).Scan(&environments); err != nil || environments != 100 {
			t.Errorf("%d environments: %v", environments, err)
		}

		// Of more than 10,000 errors of a project, the newest are kept.
		exec(fmt.Sprintf(numbers, 10_000)+`
			INSERT INTO errors (project_id, fingerprint, type, title, culprit, platform, level, status, events, users, first_seen_at, last_seen_at, first_release, last_release)
			SELECT ?, 'made ' || i, '', 'old', '', 'go', 'error', 'unresolved', 1, 0, CAST(? AS BIGINT), CAST(? AS BIGINT) + i, '', '' FROM n`, tr.id, s.Clock.Now().Add(-time.Hour), s.Clock.Now().Add(-time.Hour))
		exec(`UPDATE errors SET title = 'the oldest' WHERE fingerprint = 'made 1'`)
		if err := s.Errors.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept, oldest int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*), count(CASE WHEN title = 'the oldest' THEN 1 END) FROM errors`).Scan(&kept, &oldest); err != nil || kept != 10_000 || oldest != 0 {
			t.Errorf("%d errors are kept, the oldest %d times: %v", kept, oldest, err)
		}
		if found := tr.errors(t, errortrack.Filter{Search: "no more room"}); len(found) != 1 {
			t.Errorf("the newest is found %d times", len(found))
		}

		// The number of keys of a project and the size of a body are limited.
		for range 49 {
			if _, err := s.Errors.CreateKey(t.Context(), actor.System(), project.RefTo(tr.id)); err != nil {
				t.Fatal(err)
			}
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/error_tracking/client_keys", tr.id), As: tr.owner, Status: 400,
			Want: `{"message":"400 Bad request - A project has at most 50 client keys: delete one first"}`})
		attached := append([]byte("{}\n{\"type\":\"attachment\"}\n"), make([]byte, 20<<20)...)
		if got := tr.post(t, "envelope/", attached, tr.auth()); got.Status != 413 {
			t.Errorf("too large a body: %d %s", got.Status, got.Body)
		}
	})
}

// sum returns the sum of all hours or days, because a test may run past the end of
// one.
func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestCollectorAdmitsFirst checks that the body of a request without a valid key is not
// read beyond the header of the envelope.
func TestCollectorAdmitsFirst(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		tr := track(t, s)
		const malformed = "not the header of an item\n"
		for header, status := range map[string]int{
			"{}\n": 401,
			`{"dsn":"https://00000000000000000000000000000000@example.org/1"}` + "\n": 404,
			fmt.Sprintf(`{"dsn":"https://%s@example.org/%d"}`, tr.key, tr.id) + "\n":  400,
		} {
			if got := tr.post(t, "envelope/", []byte(header+malformed)).Status; got != status {
				t.Errorf("%s: status %d, want %d", header, got, status)
			}
		}
		if got := tr.post(t, "store/", []byte(malformed)).Status; got != 401 {
			t.Errorf("event without a key: status %d, want 401", got)
		}
	})
}
