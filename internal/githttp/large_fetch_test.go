package githttp_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

// TestLargeFetchRequests checks that a client cannot fill the disk with fetch requests
// that it does not finish.
func TestLargeFetchRequests(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "p", "public")
		const slots, requests = 4, 7
		statuses := make(chan int, requests)
		var wg sync.WaitGroup
		var ends []func()
		for range requests {
			body, rest := io.Pipe()
			ends = append(ends, func() { rest.CloseWithError(io.ErrUnexpectedEOF) })
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/olga/p.git/git-upload-pack", io.MultiReader(strings.NewReader(strings.Repeat("x", 100<<10)), body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-git-upload-pack-request")
			wg.Go(func() {
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil { // it was ended by the client
					statuses <- 0
					return
				}
				statuses <- res.StatusCode
				res.Body.Close()
			})
		}
		for range requests - slots {
			if got := waittest.Receive(t, "a refusal", statuses); got != http.StatusServiceUnavailable {
				t.Errorf("a large request too many: %d", got)
			}
		}
		for _, end := range ends {
			end()
		}
		wg.Wait()
	})
}
