package api_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// bench is a project whose jobs are executed by a runner of the test, with the same
// requests as the public runner.
type bench struct {
	t       testing.TB
	s       *apptest.Server
	owner   string // token of alice, who owns the project
	project int64
	runner  string // token of an instance runner
}

// newBench creates a project with the CI/CD configuration, and an instance runner.
func newBench(t testing.TB, s *apptest.Server, yaml string) *bench {
	t.Helper()
	_, alice := s.User(t, "alice")
	b := &bench{t: t, s: s, owner: alice}
	b.project = b.newProject("code", yaml)
	b.runner = newRunner(t, s, root, `{"runner_type":"instance_type","tag_list":["a","b"]}`)
	return b
}

func (b *bench) newProject(path, yaml string) int64 {
	b.t.Helper()
	id := newProject(b.t, b.s, b.owner, path, "")
	b.s.Repository(b.t, id, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{
		{Path: ".gitlab-ci.yml", Content: yaml}, {Path: "go.sum", Content: "x\n"},
	}})
	return id
}

func newRunner(t testing.TB, s *apptest.Server, as, body string) string {
	t.Helper()
	var made struct{ Token string }
	s.Check(t, apptest.Call{Do: "POST /user/runners", As: as, JSON: body, Status: 201}).JSON(t, &made)
	return made.Token
}

// pipeline creates a pipeline and returns its ID.
func (b *bench) pipeline(projectID int64) int64 {
	b.t.Helper()
	_, p, err := b.s.CI.CreatePipeline(b.t.Context(), actorOf(b.t, b.s, b.owner), project.RefTo(projectID), ci.NewPipeline{Ref: "main"})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.ID
}

// assigned is the part of an assignment that the tests read.
type assigned struct {
	ID      int64
	Token   string
	JobInfo struct{ Name string } `json:"job_info"`
	GitInfo struct {
		RepoURL  string `json:"repo_url"`
		Refspecs []string
		SHA      string
	} `json:"git_info"`
	Variables []struct {
		Key, Value string
		Masked     bool
	}
	Steps []struct {
		Name, When string
		Script     []string
	}
	Dependencies []struct {
		ID    int64
		Token string
	}
}

// take requests a job; the status is 201 or 204.
func (b *bench) take(token string, status int, more string) *assigned {
	b.t.Helper()
	a := b.s.Check(b.t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"%s}`, token, more), Status: status})
	if status != 201 || a.Status != 201 {
		return nil
	}
	var got assigned
	a.JSON(b.t, &got)
	return &got
}

// run takes a job that starts at once.
func (b *bench) run() *assigned {
	b.t.Helper()
	j := b.take(b.runner, 201, "")
	if j == nil {
		b.t.FailNow()
	}
	return j
}

func (b *bench) update(j *assigned, status int, body string) apptest.Answer {
	b.t.Helper()
	return b.s.Check(b.t, apptest.Call{Do: fmt.Sprintf("PUT /jobs/%d", j.ID), Header: map[string]string{"JOB-TOKEN": j.Token}, JSON: body, Status: status})
}

// patch sends a part of the log.
func (b *bench) patch(j *assigned, at int, text string, status int) apptest.Answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "PATCH", fmt.Sprintf("%s/api/v4/jobs/%d/trace?debug_trace=false", b.s.URL, j.ID), strings.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("JOB-TOKEN", j.Token)
	r.Header.Set("Content-Type", "text/plain")
	if at >= 0 {
		r.Header.Set("Content-Range", fmt.Sprintf("%d-%d", at, at+len(text)-1))
	}
	a := b.s.Exchange(b.t, r)
	if a.Status != status {
		b.t.Errorf("patch at %d: status %d, want %d: %s", at, a.Status, status, a.Body)
	}
	return a
}

// upload sends a file as the public runner does.
func (b *bench) upload(j *assigned, query string, content []byte, status int) apptest.Answer {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	w, err := form.CreateFormFile("file", "artifacts.zip")
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", fmt.Sprintf("%s/api/v4/jobs/%d/artifacts?%s", b.s.URL, j.ID, query), &body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("JOB-TOKEN", j.Token)
	r.Header.Set("Content-Type", form.FormDataContentType())
	a := b.s.Exchange(b.t, r)
	if a.Status != status {
		b.t.Errorf("upload %s: status %d, want %d: %s", query, a.Status, status, a.Body)
	}
	return a
}

// putAway packs the logs of finished jobs.
func (b *bench) putAway() {
	b.t.Helper()
	b.s.Clock.Move(time.Minute)
	if err := b.s.CI.Artifacts.SweepLogs(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.settled()
}

// settled waits until the background jobs are done.
func (b *bench) settled() {
	b.t.Helper()
	if err := b.s.Queue.Idle(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) at(path string, args ...any) string {
	return fmt.Sprintf("/projects/%d", b.project) + fmt.Sprintf(path, args...)
}

// status returns the state of a job.
func (b *bench) status(jobID int64) string {
	b.t.Helper()
	var state string
	if err := b.s.DB.QueryRowContext(b.t.Context(), `SELECT status FROM jobs WHERE id = ?`, jobID).Scan(&state); err != nil {
		b.t.Fatal(err)
	}
	return state
}

func crc(text string) string {
	return fmt.Sprintf(`{"state":"success","output":{"checksum":"crc32:%08x","bytesize":%d}}`, crc32.ChecksumIEEE([]byte(text)), len(text))
}

func zipped(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decode(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func jsonBody(res *http.Response, into any) error { return json.NewDecoder(res.Body).Decode(into) }
