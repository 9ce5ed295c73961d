package api_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/limit"
)

// longTexts creates a public project with n issues with long texts, the first of
// which has n notes with long texts.
func longTexts(t *testing.T, s *apptest.Server, n int, text string) (project int64) {
	t.Helper()
	_, ada := s.User(t, "ada")
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &made)
	at := fmt.Sprintf("/projects/%d/issues", made.ID)
	for i := range n {
		s.Check(t, apptest.Call{Do: "POST " + at, As: ada, JSON: fmt.Sprintf(`{"title":"issue %d"}`, i), Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/notes", As: ada, JSON: fmt.Sprintf(`{"body":"note %d"}`, i), Status: 201})
	}
	for _, change := range []string{`UPDATE issues SET description = ?`, `UPDATE notes SET body = ?`} {
		if _, err := s.DB.ExecContext(t.Context(), change, text); err != nil {
			t.Fatal(err)
		}
	}
	return made.ID
}

// TestLargeResponsesTakeMemory reads lists with a megabyte per row. A list takes the
// memory of its rows: the encoded body is not buffered, and HEAD encodes none.
func TestLargeResponsesTakeMemory(t *testing.T) { // not parallel: it measures the allocations of the process
	const n, size = 50, 900_000
	var alone sync.Mutex
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		alone.Lock()
		defer alone.Unlock()
		project := longTexts(t, s, n, strings.Repeat("long text\n", size/10))
		for _, do := range []string{"GET issues", "GET issues/1/notes", "GET issues/1/discussions", "HEAD issues"} {
			method, path, _ := strings.Cut(do, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("%s/api/v4/projects/%d/%s?per_page=100", s.URL, project, path), nil)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.Copy(io.Discard, answer.Body)
			if err != nil || answer.Body.Close() != nil || answer.StatusCode != 200 {
				t.Fatalf("%s: %d, %v", do, answer.StatusCode, err)
			}
			runtime.ReadMemStats(&after)
			if method == http.MethodGet && body < n*size || method == http.MethodHead && body != 0 {
				t.Errorf("%s: %d bytes", do, body)
			}
			if total := answer.Header.Get("X-Per-Page"); total != "100" {
				t.Errorf("%s: X-Per-Page %q", do, total)
			}
			got := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s: %d MB for rows of %d MB", do, got>>20, n*size>>20)
			if got > 4*n*size {
				t.Errorf("%s allocates %d bytes for rows of %d", do, got, n*size)
			}
		}
	})
}

// TestLargeResponsesShareSlots uses all slots for large responses that anonymous
// callers can have: another one is refused; small responses and users are not
// affected.
func TestLargeResponsesShareSlots(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{AnswerWait: time.Millisecond}, func(t *testing.T, s *apptest.Server) {
		project := longTexts(t, s, 10, strings.Repeat("long text\n", 50_000))
		_, eve := s.User(t, "eve")
		issues := fmt.Sprintf("GET /projects/%d/issues?per_page=", project)
		s.Check(t, apptest.Call{Do: issues + "100", Status: 200})
		held := 0
		for ; ; held++ { // each from another address
			release, err := s.Answers.Share().Acquire(limit.WithAddress(t.Context(), fmt.Sprintf("192.0.2.%d:1", held)))
			if err != nil {
				break
			}
			defer release()
		}
		if held == 0 {
			t.Fatal("no large answer is possible")
		}
		busy := "The server is busy with other large responses."
		answer := s.Check(t, apptest.Call{Do: issues + "100", Status: 503})
		if answer.Header.Get("Retry-After") == "" || !strings.Contains(string(answer.Body), busy) {
			t.Errorf("%v, %s", answer.Header, answer.Body)
		}
		if status, body := page(t, s, "/ada/p/-/issues/1"); status != 503 || !strings.Contains(body, busy) {
			t.Errorf("the page: %d", status)
		}
		s.Check(t, apptest.Call{Do: issues + "2", Status: 200})
		if status, _ := page(t, s, "/ada/p/-/issues/2"); status != 200 {
			t.Errorf("the page of a small issue: %d", status)
		}
		// The slots that are reserved for users are released after each response.
		for range 5 {
			s.Check(t, apptest.Call{Do: issues + "100", As: eve, Status: 200})
		}
		if n := s.Answers.Share().Held(); n != held {
			t.Errorf("%d slots are held, want %d", n, held)
		}
	})
}

// TestLargestResponse requests more than the maximum size of a response.
func TestLargestResponse(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		project := longTexts(t, s, 30, strings.Repeat("\x01", 1<<20)) // six bytes each in JSON
		issues := fmt.Sprintf("GET /projects/%d/issues?per_page=", project)
		s.Check(t, apptest.Call{Do: issues + "30", Status: 400, Want: `{"message":"400 Bad request - The response would exceed 128 MiB. Request fewer items at a time."}`})
		if n := len(s.Check(t, apptest.Call{Do: issues + "10", Status: 200}).Body); n < 60<<20 {
			t.Errorf("%d bytes", n)
		}
	})
}
