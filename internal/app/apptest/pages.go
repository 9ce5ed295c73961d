package apptest

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"

	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/config"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// PagesHost is the parent domain of Pages sites in tests.
const PagesHost = "pages.test"

// Pages enables Pages over HTTP and TLS, on separate ports.
func Pages(c *config.Config) {
	c.PagesAddr, c.PagesTLSAddr, c.PagesURL = "127.0.0.1:0", "127.0.0.1:0", "http://"+PagesHost
}

// Browser returns a client that connects to the server for every host name. It keeps
// cookies and does not follow redirects.
func (s *Server) Browser(t testing.TB) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			switch _, port, _ := net.SplitHostPort(addr); {
			case addr == s.Addr():
			case port == "443", strings.HasSuffix(s.PagesTLSAddr(), ":"+port):
				addr = s.PagesTLSAddr()
			default:
				addr = s.PagesAddr()
			}
			return d.DialContext(ctx, network, addr)
		}},
	}
}

// pagesFile is the CI/CD configuration of a project that publishes its directory
// public.
const pagesFile = "pages: {script: [x], artifacts: {paths: [public]}}\n"

// Publish publishes a Pages site with a job of a project, with the API of runners,
// and waits until the site is served. files has the contents of the artifacts by
// path; content after "-> " is the target of a symbolic link.
func (s *Server) Publish(t testing.TB, projectID int64, files map[string]string) {
	t.Helper()
	s.PublishBy(t, projectID, pagesFile, files)
	s.Settled(t)
}

// PublishBy is Publish with another CI/CD configuration of one job. It returns the
// ID of the job and does not wait.
func (s *Server) PublishBy(t testing.TB, projectID int64, yaml string, files map[string]string) int64 {
	t.Helper()
	s.Repository(t, projectID, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: yaml}}})
	by, err := s.Users.Authenticate(t.Context(), RootToken, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.CI.CreatePipeline(t.Context(), by, project.RefTo(projectID), ci.NewPipeline{Ref: "main"})
	if err != nil {
		t.Fatal(err)
	}
	var runner struct{ Token string }
	s.Check(t, Call{Do: "POST /user/runners", As: RootToken, JSON: fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, projectID), Status: 201}).JSON(t, &runner)
	var job struct {
		ID    int64
		Token string
	}
	s.Check(t, Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, runner.Token), Status: 201}).JSON(t, &job)
	if _, _, err := s.CI.AddArtifact(t.Context(), job.ID, job.Token, artifact.Upload{Kind: artifact.Archive, Content: Zip(t, files)}); err != nil {
		t.Fatal(err)
	}
	s.Check(t, Call{Do: fmt.Sprintf("PUT /jobs/%d", job.ID), Header: map[string]string{"JOB-TOKEN": job.Token}, JSON: `{"state":"success"}`, Status: 200})
	return job.ID
}

// Zip creates a ZIP archive; content after "-> " is the target of a symbolic link.
func Zip(t testing.TB, files map[string]string) io.Reader {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &zip.FileHeader{Name: name, Method: zip.Deflate}
		content, link := strings.CutPrefix(files[name], "-> ")
		head.SetMode(0o644)
		if link {
			head.SetMode(fs.ModeSymlink | 0o777)
		}
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// Settled waits until the background jobs that were added so far have run.
func (s *Server) Settled(t testing.TB) {
	t.Helper()
	if err := s.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}
