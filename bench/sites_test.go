package bench

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app"
	"svc/internal/ci/artifact"
	"svc/internal/config"
	"svc/internal/git/gittest"
)

// siteHost is the host name of the Pages site of root.
const siteHost = "root.pages.test"

// BenchmarkSites compares how many files of a Pages site per second the server
// serves with the rate of http.FileServer, for a directory with the same files, on a
// separate listener in the same process.
func BenchmarkSites(b *testing.B) {
	t := &table{}
	s := serve(b, "", withSites)
	files := map[string]string{"small.html": strings.Repeat("A line of a page.\n", 57), "large.bin": strings.Repeat("x", 100_000)}
	publish(b, s, files)
	dir := b.TempDir()
	for name, content := range files {
		check(b, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	plain := httptest.NewServer(http.FileServer(http.Dir(dir)))
	b.Cleanup(plain.Close)
	for _, f := range []struct {
		name, file string
		least      float64
	}{
		{"small file of a site", "small.html", 0.5},
		{"file of 100 kB of a site", "large.bin", 0},
	} {
		b.Run(f.file, func(b *testing.B) {
			ours, theirs := newHostLoad(b, "http://"+s.PagesAddr()+"/bench/"+f.file, siteHost), newLeanLoad(b, plain.URL+"/"+f.file, "")
			ours.run(b, requestRound)
			theirs.run(b, requestRound)
			var ratios, shown, served []float64
			for b.Loop() {
				for range requestRounds {
					shown, served = append(shown, ours.run(b, requestRound)), append(served, theirs.run(b, requestRound))
					ratios = append(ratios, shown[len(shown)-1]/served[len(served)-1])
				}
			}
			t.add(b, figure{
				name: f.name, measured: median(ratios), limit: f.least, atLeast: true, informational: f.least == 0, unit: "of http.FileServer",
				note: fmt.Sprintf("%.0f of %.0f requests/s, %d bytes", median(shown), median(served), len(files[f.file])),
			})
		})
	}
	t.finish(b)
}

// withSites enables Pages sites.
func withSites(c *config.Config) { c.PagesAddr, c.PagesURL = "127.0.0.1:0", "http://pages.test" }

// publish publishes files with a job of the project bench, and waits until they are
// served.
func publish(b testing.TB, s *app.Server, files map[string]string) {
	b.Helper()
	p := newSite(b, s.Addr())
	res, err := send(p, http.MethodPut, fmt.Sprintf("projects/%d?visibility=public&pages_access_level=public", p.project))
	if err != nil || res != http.StatusOK {
		b.Fatalf("open the site: %d, %v", res, err)
	}
	res, err = send(p, http.MethodPatch, fmt.Sprintf("projects/%d/pages?pages_unique_domain_enabled=false", p.project))
	if err != nil || res != http.StatusOK {
		b.Fatalf("put the site on the host of its namespace: %d, %v", res, err)
	}
	r := p.newRunner(b)
	g := gittest.New(b)
	g.Commit(gittest.Commit{Message: "Publish\n", Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: "pages: {script: [make], artifacts: {paths: [public]}}\n"}}})
	g.Git("push", "-q", p.remote(), "main")
	j, err := r.await()
	check(b, err)
	check(b, r.state(j, "running", nil))
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, content := range files {
		w, err := z.Create("public/" + name)
		check(b, err)
		_, err = w.Write([]byte(content))
		check(b, err)
	}
	check(b, z.Close())
	_, _, err = s.CI.AddArtifact(b.Context(), j.ID, j.Token, artifact.Upload{Kind: artifact.Archive, Content: &archive})
	check(b, err)
	check(b, r.state(j, "success", nil))
	check(b, s.Queue.Idle(b.Context()))
}

// send sends an API request without a body.
func send(s site, method, path string) (status int, err error) {
	q, err := http.NewRequest(method, "http://"+s.addr+"/api/v4/"+path, nil)
	if err != nil {
		return 0, err
	}
	q.Header.Set("PRIVATE-TOKEN", rootToken)
	res, err := s.client.Do(q)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// TestSites checks that the compared servers send the same files.
func TestSites(t *testing.T) {
	t.Parallel()
	s := serve(t, "", withSites)
	publish(t, s, map[string]string{"a.html": "A page"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.PagesAddr()+"/bench/a.html", nil)
	check(t, err)
	r.Host = siteHost
	res, err := http.DefaultClient.Do(r)
	check(t, err)
	defer res.Body.Close()
	var text strings.Builder
	check(t, res.Write(&text))
	if res.StatusCode != http.StatusOK || !strings.HasSuffix(text.String(), "\r\n\r\nA page") {
		t.Errorf("got %s", text.String())
	}
	newHostLoad(t, "http://"+s.PagesAddr()+"/bench/a.html", siteHost).run(t, requestRound)
}
