package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git"
	"svc/internal/limit"
)

// TestBusyFiles reads a file that needs a separate git process while all slots for
// such processes are in use.
func TestBusyFiles(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Transfers: 4, Wait: time.Millisecond}}, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","visibility":"public"}`, Status: 201})
		const at = "/projects/ada%2Fp/repository"
		content := strings.Repeat("large", 300_000)
		s.Check(t, apptest.Call{Do: "POST " + at + "/files/large", As: ada, Status: 201,
			JSON: `{"branch":"main","commit_message":"add","content":"` + content + `"}`})
		blob := struct {
			ID string `json:"blob_id"`
		}{}
		s.Check(t, apptest.Call{Do: "GET " + at + "/files/large?ref=main", Status: 200}).JSON(t, &blob)
		reads := []string{"/files/large?ref=main", "/files/large/raw?ref=main", "/blobs/" + blob.ID, "/blobs/" + blob.ID + "/raw"}
		for _, read := range reads {
			s.Check(t, apptest.Call{Do: "GET " + at + read, Status: 200})
		}
		// Each slot from another address, because slots per address are limited. On a busy
		// machine a free slot may not be taken in time.
		for n, refused := 0, 0; refused < 50; n++ {
			release, err := s.Git.Transfers().Acquire(limit.WithAddress(t.Context(), fmt.Sprintf("192.0.2.%d:1", n%250)))
			if err != nil {
				refused++
				continue
			}
			refused = 0
			defer release()
		}
		for _, read := range reads {
			if a := s.Check(t, apptest.Call{Do: "GET " + at + read, Status: 503}); a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %v", read, a.Header)
			}
		}
	})
}
