package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/limit"
	"svc/internal/waittest"
)

// TestClientLeaves has clients disconnect while a page and a list are rendered. The
// log and the metrics have the status 499, and no server error.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{AnswerWait: time.Hour}, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public"}`, Status: 201})
		for range 7 {
			s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/issues", As: ada, JSON: `{"title":"long"}`, Status: 201})
		}
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE issues SET description = ?`, strings.Repeat("long text\n", 100_000)); err != nil {
			t.Fatal(err)
		}
		for n := range 2 { // anonymous requests find no free slot and wait
			release, err := s.Answers.Share().Acquire(limit.WithAddress(t.Context(), fmt.Sprintf("192.0.2.%d:1", n)))
			if err != nil {
				t.Fatal(err)
			}
			defer release()
		}
		for _, path := range []string{"/ada/p/-/issues", "/api/v4/projects/ada%2Fp/issues"} {
			ctx, leave := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				answer, err := http.DefaultClient.Do(r)
				if err == nil {
					err = fmt.Errorf("status %d: %w", answer.StatusCode, answer.Body.Close())
				}
				done <- err
			}()
			waittest.For(t, "the request", func() bool { return s.Answers.Share().Waiting() == 1 })
			leave()
			if err := <-done; !strings.Contains(err.Error(), context.Canceled.Error()) {
				t.Errorf("%s: %v", path, err)
			}
			waittest.For(t, "the end of the request", func() bool { return s.Answers.Share().Waiting() == 0 })
		}
		waittest.For(t, "the log", func() bool { return strings.Count(s.Log(), `"status":499`) == 2 })
		for line := range strings.SplitSeq(s.Log(), "\n") {
			if !strings.Contains(line, `"request_id"`) {
				continue // background jobs may time out on a busy machine
			}
			if strings.Contains(line, `"status":499`) && !strings.Contains(line, `"cut":true`) || strings.Contains(line, `"status":500`) || strings.Contains(line, `"level":"ERROR"`) {
				t.Error(line)
			}
		}
		answer, err := http.Get(s.URL + "/-/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), `status="499"`); n != 2 || strings.Contains(string(text), `status="500"`) {
			t.Errorf("the metrics have %d series of clients that left", n)
		}
	})
}
