package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/limit"
)

// TestSlowSearches uses all connections that anonymous callers can have for
// searches: another search is refused with 503. Other lists of anonymous callers and
// searches of users are not affected.
func TestSlowSearches(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.DB.LimitReads(db.ReadLimits{Timeout: time.Hour, Anonymous: time.Hour})
		_, ada := s.User(t, "ada")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &made)
		issues := fmt.Sprintf("GET /projects/%d/issues", made.ID)
		held := 0
		for n := 1; ; n++ { // each from another address
			ctx := limit.WithAddress(t.Context(), fmt.Sprintf("192.0.2.%d:1", n))
			release, err := s.DB.Searches().Acquire(ctx)
			if err != nil {
				break
			}
			defer release()
			held++
		}
		if held == 0 {
			t.Fatal("no search is possible")
		}
		answer := s.Check(t, apptest.Call{Do: issues + "?search=x", Status: 503, Want: `{"message":"503 Service Unavailable - The server is busy with other searches. Try again in a moment."}`})
		if answer.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if status, body := page(t, s, "/ada/p/-/issues?search=x"); status != 503 || !strings.Contains(body, "busy with other searches") {
			t.Errorf("the page: %d", status)
		}
		s.Check(t, apptest.Call{Do: issues, Status: 200})
		s.Check(t, apptest.Call{Do: issues + "?search=x", As: ada, Status: 200})
		if status, _ := page(t, s, "/ada/p/-/issues"); status != 200 {
			t.Errorf("the page without a search: %d", status)
		}
	})
}

// TestReadTimeout sets a very short timeout for the queries of anonymous callers:
// they get an error, and users are not affected.
func TestReadTimeout(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public"}`, Status: 201}).JSON(t, &made)
		s.DB.LimitReads(db.ReadLimits{Timeout: time.Hour, Anonymous: time.Nanosecond, Wait: time.Hour})
		issues := fmt.Sprintf("GET /projects/%d/issues?search=x", made.ID)
		s.Check(t, apptest.Call{Do: issues, Status: 503, Want: `{"message":"503 Service Unavailable - The search took too long. Narrow it with more filters or a smaller scope."}`})
		if status, body := page(t, s, "/ada/p/-/issues?search=x"); status != 503 || !strings.Contains(body, "The search took too long") {
			t.Errorf("the page: %d", status)
		}
		s.Check(t, apptest.Call{Do: issues, As: ada, Status: 200})
	})
}

// page requests a page as an anonymous visitor.
func page(t *testing.T, s *apptest.Server, at string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), "GET", s.URL+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
