package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/waittest"
)

const fullText = "The server's storage is full."

// TestUploadToFullStorage uploads while the object storage has no space left.
func TestUploadToFullStorage(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPut || r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusInsufficientStorage)
			_, _ = io.WriteString(w, `<Error><Code>XMinioStorageFull</Code><Message>Storage backend has reached its minimum free drive threshold.</Message></Error>`)
		}
	}))
	t.Cleanup(store.Close)
	bucket := "s3://bucket?region=us-east-1&path_style=true&endpoint=" + store.URL + "&access_key=a&secret_key=b"
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p"}`, Status: 201})
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "notes.txt")
		if err == nil {
			_, err = io.WriteString(part, "some notes")
		}
		if err != nil || form.Close() != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v4/projects/1/uploads", &body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", form.FormDataContentType())
		r.Header.Set("PRIVATE-TOKEN", apptest.RootToken)
		isFull(t, s.Exchange(t, r))
	}, apptest.Bucket(bucket))
}

// TestWriteToFullDatabase writes with the API while the database has no space left,
// and checks that nothing was changed.
func TestWriteToFullDatabase(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		s.Settled(t)
		fill(t, s, "issues")
		long := fmt.Sprintf(`{"title":"an issue","description":%q}`, strings.Repeat("long ", 100_000))
		isFull(t, s.Send(t, apptest.Call{Do: "POST /projects/1/issues", As: apptest.RootToken, JSON: long}))
		empty(t, s, "issues")
		s.Check(t, apptest.Call{Do: "GET /projects/1/issues", As: apptest.RootToken, Status: 200, Want: `[]`})
		s.Check(t, apptest.Call{Do: "POST /projects/1/issues", As: apptest.RootToken, JSON: long, Status: 201})
		if !s.DB.Postgres() {
			return
		}
		head := headOf(t, s)
		fill(t, s, "pushes")
		isFull(t, s.Send(t, commitCall("a.txt")))
		empty(t, s, "pushes")
		if now := headOf(t, s); now != head {
			t.Errorf("the branch is at %s after a commit that was refused, want %s", now, head)
		}
		s.Check(t, commitCall("a.txt"))
	})
}

// TestLandedCommitIsNoError commits while events cannot be recorded. The branch has
// moved, so the response is not an error, and the event is recorded later.
func TestLandedCommitIsNoError(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		s.Settled(t)
		head := headOf(t, s)
		fill(t, s, "activity_events")
		s.Check(t, commitCall("a.txt"))
		if now := headOf(t, s); now == head {
			t.Error("the response is a success, but the branch has not moved")
		}
		empty(t, s, "activity_events")
		for range 2 {
			if err := s.Repos.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := pushEvents(t, s, "add a.txt"); n != 1 {
			t.Errorf("%d events of the commit, want 1", n)
		}
	})
}

// TestCommitIsRecordedLater makes the database unavailable after a commit has moved
// the branch. The node records the event itself when the database is available
// again.
func TestCommitIsRecordedLater(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		s.Settled(t)
		fill(t, s, "activity_events")
		s.Check(t, commitCall("a.txt"))
		empty(t, s, "activity_events")
		waittest.For(t, "the event of the commit is recorded", func() bool { return pushEvents(t, s, "add a.txt") > 0 })
		if n := pushEvents(t, s, "add a.txt"); n != 1 {
			t.Errorf("%d events of the commit, want 1", n)
		}
	})
}

// pushEvents counts the push events of a commit.
func pushEvents(t *testing.T, s *apptest.Server, title string) (n int) {
	t.Helper()
	var events []struct {
		Push struct {
			Title string `json:"commit_title"`
		} `json:"push_data"`
	}
	s.Check(t, apptest.Call{Do: "GET /projects/1/events?action=pushed", As: apptest.RootToken, Status: 200}).JSON(t, &events)
	for _, e := range events {
		if e.Push.Title == title {
			n++
		}
	}
	return n
}

func commitCall(path string) apptest.Call {
	return apptest.Call{
		Do: "POST /projects/1/repository/commits", As: apptest.RootToken, Status: 201,
		JSON: fmt.Sprintf(`{"branch":"main","commit_message":"add %s","actions":[{"action":"create","file_path":%q,"content":"x"}]}`, path, path),
	}
}

func headOf(t *testing.T, s *apptest.Server) string {
	t.Helper()
	var branch struct{ Commit struct{ ID string } }
	s.Check(t, apptest.Call{Do: "GET /projects/1/repository/branches/main", As: apptest.RootToken, Status: 200}).JSON(t, &branch)
	return branch.Commit.ID
}

// fill makes inserts into a table fail: on PostgreSQL with the error of a full disk,
// on SQLite with that error for long rows and with another error for short ones.
func fill(t *testing.T, s *apptest.Server, table string) {
	t.Helper()
	switch {
	case s.DB.Postgres():
		run(t, s, "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$",
			"CREATE TRIGGER no_space BEFORE INSERT ON "+table+" EXECUTE FUNCTION no_space()")
	case table == "issues":
		run(t, s, "PRAGMA max_page_count = 1") // no further pages
	default:
		run(t, s, "CREATE TRIGGER no_space BEFORE INSERT ON "+table+" BEGIN SELECT RAISE(ABORT, 'no space'); END")
	}
}

// empty ends fill.
func empty(t *testing.T, s *apptest.Server, table string) {
	t.Helper()
	switch {
	case s.DB.Postgres():
		run(t, s, "DROP TRIGGER no_space ON "+table, "DROP FUNCTION no_space()")
	case table == "issues":
		run(t, s, "PRAGMA max_page_count = 1000000")
	default:
		run(t, s, "DROP TRIGGER no_space")
	}
}

func run(t *testing.T, s *apptest.Server, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := s.DB.SQL().ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

func isFull(t *testing.T, a apptest.Answer) {
	t.Helper()
	var body struct{ Message string }
	_ = json.Unmarshal(a.Body, &body)
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "60" || !strings.Contains(body.Message, fullText) {
		t.Errorf("status %d, Retry-After %q, body %s", a.Status, a.Header.Get("Retry-After"), a.Body)
	}
}

// TestReadinessBeforeDiskIsFull checks that the server is not ready if less than the
// configured minimum is free. The minimum is the whole disk, which is never free.
func TestReadinessBeforeDiskIsFull(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		a := s.Check(t, apptest.Call{Do: "GET //-/readiness", Status: 503, Want: `{"status":"failed","checks":{"database":"ok","blobs":"<any>"}}`})
		var body struct{ Checks map[string]string }
		a.JSON(t, &body)
		if !strings.Contains(body.Checks["disk"], "data directory") || !strings.Contains(body.Checks["disk"], "free, less than") {
			t.Errorf("the reason is %q", body.Checks["disk"])
		}
		s.Check(t, apptest.Call{Do: "GET /user", As: apptest.RootToken, Status: 200}) // requests are still served
	}, func(c *config.Config) { c.MinFreeDisk = config.DiskSpace{Percent: 100} })
}
