package sites_test

import (
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"svc/internal/app/apptest"
	"svc/internal/pages/cert/certtest"
)

const root = apptest.RootToken

// visit is a request to a site with the expected response.
type visit struct {
	name   string
	at     string // URL; without a scheme it is http
	method string
	header map[string]string
	status int
	want   string            // text that the body contains
	has    map[string]string // headers; "-" if the header must not exist
}

func (v visit) do(t *testing.T, c *http.Client) *http.Response {
	t.Helper()
	at := v.at
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	if v.method == "" {
		v.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), v.method, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise the transport would request gzip and decompress it.
	r.Header.Set("Accept-Encoding", "identity")
	for name, value := range v.header {
		r.Header.Set(name, value)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", v.name, at, err)
	}
	defer res.Body.Close()
	var body io.Reader = res.Body
	switch res.Header.Get("Content-Encoding") {
	case "gzip":
		if body, err = gzip.NewReader(res.Body); err != nil {
			t.Fatal(err)
		}
	case "br":
		body = brotli.NewReader(res.Body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Errorf("%s %s: %v", v.name, at, err)
	}
	if res.StatusCode != v.status || !strings.Contains(string(text), v.want) {
		t.Errorf("%s %s: %d %.200q, want %d %q", v.name, at, res.StatusCode, text, v.status, v.want)
	}
	for name, want := range v.has {
		if got := res.Header.Get(name); want == "-" && got != "" || want != "-" && got != want {
			t.Errorf("%s %s: %s is %q, want %q", v.name, at, name, got, want)
		}
	}
	return res
}

// newProject creates a project whose site is on the host of its namespace.
func newProject(t *testing.T, s *apptest.Server, token, body string) int64 {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: body, Status: 201}).JSON(t, &made)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PATCH /projects/%d/pages", made.ID), As: token, JSON: `{"pages_unique_domain_enabled":false}`, Status: 200})
	return made.ID
}

// TestUniqueDomains creates projects with and without a unique domain by default,
// and the project with the site of a namespace.
func TestUniqueDomains(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const open = `","visibility":"public","pages_access_level":"public"}`
		at := func(path string) string {
			var got struct {
				URL    string
				Unique bool `json:"is_unique_domain_enabled"`
			}
			s.Check(t, apptest.Call{Do: "GET /projects/alice%2F" + path + "/pages", As: alice, Status: 200}).JSON(t, &got)
			if shared := strings.HasPrefix(got.URL, "http://alice.pages.test"); shared == got.Unique {
				t.Errorf("%s is at %s; unique domain: %t", path, got.URL, got.Unique)
			}
			return got.URL
		}
		var site struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"My.Site` + open, Status: 201}).JSON(t, &site)
		url := at("My.Site")
		if !strings.HasPrefix(url, "http://my-site-") {
			t.Fatalf("the site is at %s", url)
		}
		s.Publish(t, site.ID, map[string]string{"public/index.html": "Home", "public/a.txt": "A"})
		c := s.Browser(t)
		visit{name: "its own host", at: url + "/a.txt", status: 200, want: "A"}.do(t, c)
		visit{name: "host of the namespace", at: "alice.pages.test/my.site/a.txt", status: 308, has: map[string]string{"Location": url + "/a.txt"}}.do(t, c)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", site.ID), As: alice, JSON: `{"path":"other"}`, Status: 200})
		visit{name: "kept when the project is renamed", at: url + "/a.txt", status: 200, want: "A"}.do(t, c)

		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"path":"alice.pages.test` + open, Status: 201},
			{Do: "GET /application/settings", As: root, Status: 200, Want: `{"pages_unique_domain_default_enabled":true}`},
			{Do: "PUT /application/settings?pages_unique_domain_default_enabled=false", As: root, Status: 200, Want: `{"pages_unique_domain_default_enabled":false}`},
			{Do: "POST /projects", As: alice, JSON: `{"path":"shared` + open, Status: 201},
		})
		if got := at("alice.pages.test"); got != "http://alice.pages.test" {
			t.Errorf("the site of the namespace is at %s", got)
		}
		if got := at("shared"); got != "http://alice.pages.test/shared" {
			t.Errorf("without the default the site is at %s", got)
		}
	}, apptest.Pages)
}

var long = strings.Repeat("many words that are all the same ", 100)

func TestSite(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "Alice")
		id := newProject(t, s, alice, `{"path":"Site","visibility":"public","pages_access_level":"public"}`)
		c := s.Browser(t)
		visit{name: "nothing yet", at: "alice.pages.test/site/", status: 302}.do(t, c)
		s.Publish(t, id, map[string]string{
			"public/index.html": "<h1>Home</h1>", "public/404.html": "<h1>Lost</h1>", "public/docs/index.html": "Docs", "public/docs/a b.txt": "spaces",
			"public/about.html": "About", "public/long.txt": long, "public/own.js": long, "public/own.js.br": "not really", "public/.env": "SECRET",
			"public/.git/config": "SECRET", "public/.well-known/x.txt": "known", "public/empty/x": "no type", "public/link.txt": "-> long.txt",
			"public/_redirects": "/site/old /site/docs/ 302\n/site/away/* https://example.org/:splat\n/site/app/* /site/index.html 200\n/site/about.html /site/never\n",
			"other/secret.txt":  "SECRET",
		})
		etag := visit{at: "alice.pages.test/site/long.txt", status: 200, want: long}.do(t, c).Header.Get("ETag")
		for _, v := range []visit{
			{name: "home", at: "alice.pages.test/site/", status: 200, want: "Home", has: map[string]string{"Content-Type": "text/html; charset=utf-8",
				"Cache-Control": "max-age=600", "Access-Control-Allow-Origin": "*", "Accept-Ranges": "bytes"}},
			{name: "any case", at: "ALICE.pages.test:80/SITE/docs/", status: 200, want: "Docs"},
			{name: "no slash", at: "alice.pages.test/site?a=b", status: 302, has: map[string]string{"Location": "/site/?a=b"}},
			{name: "a directory", at: "alice.pages.test/site/docs", status: 302, has: map[string]string{"Location": "/site/docs/"}},
			{name: "a directory without an index", at: "alice.pages.test/site/empty/", status: 404, want: "Lost"},
			{name: "without its ending", at: "alice.pages.test/site/about", status: 200, want: "About"},
			{name: "spaces", at: "alice.pages.test/site/docs/a%20b.txt", status: 200, want: "spaces"},
			{name: "a link", at: "alice.pages.test/site/link.txt", status: 200, want: "many words"},
			{name: "well known", at: "alice.pages.test/site/.well-known/x.txt", status: 200, want: "known"},
			{name: "sniffed", at: "alice.pages.test/site/empty/x", status: 200, has: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
			{name: "head", at: "alice.pages.test/site/long.txt", method: "HEAD", status: 200, has: map[string]string{"Content-Length": fmt.Sprint(len(long))}},
			{name: "not changed", at: "alice.pages.test/site/long.txt", header: map[string]string{"If-None-Match": etag}, status: 304},
			{name: "a part", at: "alice.pages.test/site/long.txt", header: map[string]string{"Range": "bytes=5-9", "Accept-Encoding": "br"}, status: 206, want: "words",
				has: map[string]string{"Content-Range": fmt.Sprintf("bytes 5-9/%d", len(long)), "Content-Encoding": "-"}},
			{name: "beyond", at: "alice.pages.test/site/long.txt", header: map[string]string{"Range": "bytes=999999-"}, status: 416},
			{name: "brotli", at: "alice.pages.test/site/long.txt", header: map[string]string{"Accept-Encoding": "gzip, br"}, status: 200, want: long,
				has: map[string]string{"Content-Encoding": "br", "Vary": "Accept-Encoding", "Etag": strings.TrimSuffix(etag, `"`) + `-br"`}},
			{name: "gzip", at: "alice.pages.test/site/long.txt", header: map[string]string{"Accept-Encoding": "gzip, br;q=0"}, status: 200, want: long, has: map[string]string{"Content-Encoding": "gzip"}},
			{name: "gzip of choice", at: "alice.pages.test/site/long.txt", header: map[string]string{"Accept-Encoding": "gzip, br;q=0.1"}, status: 200, want: long, has: map[string]string{"Content-Encoding": "gzip"}},
			{name: "brotli not changed", at: "alice.pages.test/site/long.txt", header: map[string]string{"Accept-Encoding": "br", "If-None-Match": strings.TrimSuffix(etag, `"`) + `-br"`}, status: 304},
			{name: "small is not packed", at: "alice.pages.test/site/", header: map[string]string{"Accept-Encoding": "br"}, status: 200, want: "Home", has: map[string]string{"Content-Encoding": "-"}},
			{name: "lost", at: "alice.pages.test/site/none", status: 404, want: "Lost"},
			{name: "lost, head", at: "alice.pages.test/site/none", method: "HEAD", status: 404},
			{name: "redirect", at: "alice.pages.test/site/old?q=1", status: 302, has: map[string]string{"Location": "/site/docs/?q=1"}},
			{name: "redirect away", at: "alice.pages.test/site/away/x/y", status: 301, has: map[string]string{"Location": "https://example.org/x/y"}},
			{name: "rewrite", at: "alice.pages.test/site/app/deep/link", status: 200, want: "Home"},
			{name: "a file comes first", at: "alice.pages.test/site/about.html", status: 200, want: "About"},
			{name: "hidden", at: "alice.pages.test/site/.env", status: 404, want: "Lost"},
			{name: "hidden directory", at: "alice.pages.test/site/.git/config", status: 404},
			{name: "out of it", at: "alice.pages.test/site/../other/secret.txt", status: 404},
			{name: "out of it, encoded", at: "alice.pages.test/site/%2e%2e/other/secret.txt", status: 404},
			{name: "encoded slash", at: "alice.pages.test/site/docs%2findex.html", status: 404},
			{name: "backslash", at: `alice.pages.test/site/docs%5cindex.html`, status: 404},
			{name: "zero", at: "alice.pages.test/site/a%00b", status: 404},
			{name: "two slashes", at: "alice.pages.test/site//docs/", status: 404},
			{name: "slashes to a host", at: "alice.pages.test//evil.example/..", status: 302},
			{name: "no writing", at: "alice.pages.test/site/", method: "POST", status: 405, has: map[string]string{"Allow": "GET, HEAD"}},
			{name: "another project", at: "alice.pages.test/other/", status: 302},
			{name: "another host", at: "bob.pages.test/site/", status: 302},
			{name: "no host of ours", at: "www.example.org/", status: 404},
			{name: "the host itself", at: "pages.test/", status: 404},
		} {
			v.do(t, c)
		}
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /projects/%d/pages", id), As: alice, Status: 200, Want: `{"url":"http://alice.pages.test/Site","is_unique_domain_enabled":false,"force_https":true,
				"deployments":[{"created_at":"<any>","url":"http://alice.pages.test/Site","path_prefix":"","root_directory":"public"}],"primary_domain":null}`},
			{Name: "no domain of ours", Do: fmt.Sprintf("PATCH /projects/%d/pages", id), As: alice, JSON: `{"pages_primary_domain":"x.example.org"}`, Status: 400},
			{Name: "a host of its own", Do: fmt.Sprintf("PATCH /projects/%d/pages", id), As: alice, JSON: `{"pages_unique_domain_enabled":true}`, Status: 200, Want: `{"is_unique_domain_enabled":true}`},
		})
		var own struct{ URL string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pages", id), As: alice, Status: 200}).JSON(t, &own)
		visit{name: "moved", at: "alice.pages.test/site/docs/?x", status: 308, has: map[string]string{"Location": own.URL + "/docs/?x"}}.do(t, c)
		visit{name: "its own", at: own.URL + "/docs/", status: 200, want: "Docs"}.do(t, c)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PATCH /projects/%d/pages", id), As: alice, JSON: `{"pages_unique_domain_enabled":false}`, Status: 200})
		t.Run("versions", func(t *testing.T) {
			for _, c := range []struct{ name, yaml, file, want string }{
				{"link to nowhere", "pages: {script: [x]}\n", "-> ../other/secret.txt", "does not point to a file"},
				{"no directory", "pages: {script: [x], publish: dist}\n", "x", "no directory"},
			} {
				s.PublishBy(t, id, c.yaml, map[string]string{"public/index.html": c.file})
				s.Settled(t)
				visit{name: c.name, at: "alice.pages.test/site/", status: 200, want: "Home"}.do(t, s.Browser(t))
				var failure string
				if err := s.DB.QueryRowContext(t.Context(), `SELECT failure FROM pages_projects`).Scan(&failure); err != nil || !strings.Contains(failure, c.want) {
					t.Errorf("%s: failure is %q, %v; want %q", c.name, failure, err, c.want)
				}
			}
			s.PublishBy(t, id, "site: {script: [x], pages: {publish: dist}}\n", map[string]string{"dist/index.html": "<h1>Second</h1>"})
			s.PublishBy(t, id, "site: {script: [x], pages: {publish: dist, path_prefix: Review/1}}\n", map[string]string{"dist/index.html": "<h1>Review</h1>"})
			s.PublishBy(t, id, "site: {script: [x]}\n", map[string]string{"public/index.html": "<h1>Nothing</h1>"})
			s.Settled(t)
			visit{name: "second", at: "alice.pages.test/site/", status: 200, want: "Second"}.do(t, s.Browser(t))
			visit{name: "review", at: "alice.pages.test/site/review-1/", status: 200, want: "Review"}.do(t, s.Browser(t))
			visit{name: "gone", at: "alice.pages.test/site/docs/", status: 404}.do(t, s.Browser(t))
			s.Clock.Move(time.Hour)
			if err := s.Pages.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range s.Blobs.List(t.Context(), "pages/") {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != 2 {
				t.Errorf("%d archives are kept, want 2", n)
			}
		})
		t.Run("path prefixes", func(t *testing.T) {
			fill := func(projectID int64, from, to int) {
				t.Helper()
				for n := from; n < to; n++ {
					if _, err := s.DB.ExecContext(t.Context(), `
						INSERT INTO pages_sites (project_id, prefix, job_id, root, blob, files, size, created_at)
						VALUES (?, ?, 1, 'public', 'pages/none', 1, 1, 0)`, projectID, fmt.Sprintf("p%d", n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			review := func(prefix, failure string) {
				t.Helper()
				s.PublishBy(t, id, "site: {script: [x], pages: {publish: dist, path_prefix: "+prefix+"}}\n", map[string]string{"dist/index.html": "<h1>" + prefix + "</h1>"})
				s.Settled(t)
				var got string
				if err := s.DB.QueryRowContext(t.Context(), `SELECT failure FROM pages_projects WHERE project_id = ?`, id).Scan(&got); err != nil || got != failure {
					t.Errorf("%s: failure is %q, %v; want %q", prefix, got, err, failure)
				}
			}
			fill(id, 0, 99)
			review("more", "The project has reached its limit of 100 deployments with a path prefix")
			review("review-1", "") // replaces one
			review("p1", "")
			if _, err := s.DB.ExecContext(t.Context(), `DELETE FROM pages_sites WHERE prefix <> '' AND prefix <> 'review-1'`); err != nil {
				t.Fatal(err)
			}
			other := newProject(t, s, alice, `{"path":"prefixes"}`)
			fill(other, 0, 999)
			review("more", "The namespace has reached its limit of 1000 deployments with a path prefix")
			if _, err := s.DB.ExecContext(t.Context(), `UPDATE pages_sites SET expires_at = 1 WHERE project_id = ?`, other); err != nil {
				t.Fatal(err)
			}
			review("more", "")
			visit{name: "more", at: "alice.pages.test/site/more/", status: 200, want: "more"}.do(t, s.Browser(t))
			visit{name: "not published", at: "alice.pages.test/site/p2/", status: 404}.do(t, s.Browser(t))
		})
		s.Check(t, apptest.Call{Name: "turned off", Do: fmt.Sprintf("PUT /projects/%d", id), As: root, JSON: `{"pages_access_level":"disabled"}`, Status: 200})
		visit{name: "turned off", at: "alice.pages.test/site/", status: 302}.do(t, c)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: root, JSON: `{"pages_access_level":"public","path":"moved"}`, Status: 200})
		visit{name: "renamed", at: "alice.pages.test/moved/", status: 200, want: "Second"}.do(t, c)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/pages", id), As: root, Status: 204})
		visit{name: "unpublished", at: "alice.pages.test/moved/", status: 302}.do(t, c)
	}, apptest.Pages)
}

func TestHosts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var group, sub struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: root, JSON: `{"name":"G","path":"g","visibility":"public"}`, Status: 201}).JSON(t, &group)
		s.Check(t, apptest.Call{Do: "POST /groups", As: root, JSON: fmt.Sprintf(`{"name":"Sub","path":"sub","visibility":"public","parent_id":%d}`, group.ID), Status: 201}).JSON(t, &sub)
		for path, in := range map[string]int64{"deep": sub.ID, "g.pages.test": group.ID} {
			id := newProject(t, s, root, fmt.Sprintf(`{"path":%q,"namespace_id":%d,"visibility":"public","pages_access_level":"enabled"}`, path, in))
			s.Publish(t, id, map[string]string{"public/index.html": "This is " + path, "public/sub/index.html": "A directory of " + path})
			if path == "deep" {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pages/domains", id), As: root, JSON: `{"domain":"www.example.org"}`, Status: 201})
				for _, primary := range [][2]string{{"https://WWW.example.org/", `"www.example.org"`}, {"", "null"}} {
					s.Check(t, apptest.Call{Do: fmt.Sprintf("PATCH /projects/%d/pages", id), As: root,
						JSON: fmt.Sprintf(`{"pages_primary_domain":%q}`, primary[0]), Status: 200, Want: `{"primary_domain":` + primary[1] + `}`})
				}
			}
		}
		c := s.Browser(t)
		for _, v := range []visit{
			{name: "root", at: "g.pages.test/", status: 200, want: "This is g.pages.test"},
			{name: "root without a path", at: "g.pages.test", status: 200, want: "This is g.pages.test"},
			{name: "directory of the root", at: "g.pages.test/sub/", status: 200, want: "A directory of g.pages.test"},
			{name: "nested", at: "g.pages.test/sub/deep/", status: 200, want: "This is deep"},
			{name: "nested directory", at: "g.pages.test/sub/deep/sub", status: 302, has: map[string]string{"Location": "/sub/deep/sub/"}},
			{name: "domain", at: "www.example.org/sub/", status: 200, want: "A directory of deep"},
			{name: "domain with a port", at: "WWW.example.org:8080/", status: 200, want: "This is deep"},
			{name: "subgroup as a host", at: "sub.pages.test/deep/", status: 302},
		} {
			v.do(t, c)
		}
		t.Run("certificates", func(t *testing.T) { testCertificates(t, s) })
	}, apptest.Pages)
}

// testCertificates changes the certificate of www.example.org while it is in use.
func testCertificates(t *testing.T, s *apptest.Server) {
	one, two := certtest.New(t), certtest.New(t)
	put := func(ca *certtest.Authority) {
		t.Helper()
		certificate, key := ca.Below("Middle").Issue(s.Clock.Now().AddDate(0, 1, 0), "www.example.org")
		var list []struct {
			ID int64 `json:"project_id"`
		}
		s.Check(t, apptest.Call{Do: "GET /pages/domains", As: root, Status: 200}).JSON(t, &list)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d/pages/domains/www.example.org", list[0].ID), As: root, Status: 200,
			JSON: fmt.Sprintf(`{"certificate":%q,"key":%q}`, certificate, key)})
	}
	secure := func(ca *certtest.Authority) *http.Client {
		c := s.Browser(t)
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: ca.Pool(), Time: s.Clock.Now}
		return c
	}
	if _, err := secure(one).Get("https://www.example.org/"); err == nil {
		t.Error("there is a certificate before one was given")
	}
	put(one)
	visit{at: "https://www.example.org/sub/", status: 200, want: "A directory of deep"}.do(t, secure(one))
	_, port, _ := strings.Cut(s.PagesTLSAddr(), ":")
	visit{name: "to HTTPS", at: "www.example.org/sub/?x=1", status: 301, has: map[string]string{"Location": "https://www.example.org:" + port + "/sub/?x=1"}}.do(t, s.Browser(t))
	put(two)
	visit{name: "another at once", at: "https://www.example.org/", status: 200, want: "deep"}.do(t, secure(two))
	if _, err := secure(one).Get("https://www.example.org/"); err == nil {
		t.Error("the old certificate is still shown")
	}
}

func TestPrivateSite(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		s.User(t, "carl")
		id := newProject(t, s, alice, `{"path":"site","visibility":"public","pages_access_level":"private"}`)
		s.Publish(t, id, map[string]string{"public/index.html": "Members only", "public/b.html": "More"})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, bobID), Status: 201})
		bob, carl := s.Browser(t), s.Browser(t)
		signIn(t, s, bob, "bob")
		signIn(t, s, carl, "carl")
		if to := request(t, s.Browser(t), "http://alice.pages.test/site/b.html?x=1"); !strings.HasPrefix(to.String(), s.URL+"/oauth/authorize?") {
			t.Fatalf("sent to %s", to)
		}
		got, last := follow(t, bob, "http://alice.pages.test/site/b.html?x=1")
		if last != "http://alice.pages.test/site/b.html?x=1" || !strings.Contains(got, "More") {
			t.Errorf("bob ends at %s: %s", last, got)
		}
		visit{name: "bob again", at: "alice.pages.test/site/", status: 200, want: "Members", has: map[string]string{"Cache-Control": "private, no-cache", "Access-Control-Allow-Origin": "-"}}.do(t, bob)
		if got, last := follow(t, carl, "http://alice.pages.test/site/"); !strings.Contains(got, "404") {
			t.Errorf("carl ends at %s: %s", last, got)
		}
		t.Run("what is not begun here", func(t *testing.T) {
			// A sign-in that another browser started is rejected.
			began := request(t, s.Browser(t), "http://alice.pages.test/site/")
			state := began.Query().Get("state")
			back := visit{at: began.String(), status: 303}.do(t, carl).Header.Get("Location")
			visit{name: "another browser", at: back, status: 400}.do(t, carl)
			for name, at := range map[string]string{
				"no state": "projects.pages.test/auth?code=x", "a forged state": "projects.pages.test/auth?code=x&state=s1.x", "no request": "projects.pages.test/auth/begin",
				"a state as request": "projects.pages.test/auth/begin?request=" + url.QueryEscape(state), "another path": "projects.pages.test/",
				"no code": "alice.pages.test/-/pages/auth?state=" + url.QueryEscape(state),
			} {
				if res := (visit{name: name, at: at}).status0(t, s.Browser(t)); res != 400 && res != 404 {
					t.Errorf("%s: status %d", name, res)
				}
			}
		})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/members/%d", id, bobID), As: alice, Status: 204})
		visit{name: "bob is out", at: "alice.pages.test/site/", status: 404}.do(t, bob)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"pages_access_level":"enabled"}`, Status: 200})
		visit{name: "for all who see the project", at: "alice.pages.test/site/", status: 200}.do(t, s.Browser(t))
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"visibility":"private"}`, Status: 200})
		visit{name: "private", at: "alice.pages.test/site/", status: 302}.do(t, s.Browser(t))
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", bobID), As: root, Status: 201})
		visit{name: "blocked", at: "alice.pages.test/site/", status: 302}.do(t, bob)
	}, apptest.Pages)
}

func (v visit) status0(t *testing.T, c *http.Client) int {
	t.Helper()
	res, err := c.Get("http://" + v.at)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// follow follows redirects like a browser, and returns the last body and URL.
func follow(t *testing.T, c *http.Client, at string) (text, last string) {
	t.Helper()
	for range 20 {
		res, err := c.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		to := res.Header.Get("Location")
		if to == "" {
			return string(body), at
		}
		next, err := res.Request.URL.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		at = next.String()
	}
	t.Fatalf("no end at %s", at)
	return "", ""
}

// signIn signs a user in at the instance.
func signIn(t *testing.T, s *apptest.Server, c *http.Client, name string) {
	t.Helper()
	page, _ := follow(t, c, s.URL+"/users/sign_in")
	_, rest, _ := strings.Cut(page, `name="authenticity_token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	res, err := c.PostForm(s.URL+"/users/sign_in", url.Values{"authenticity_token": {token}, "login": {name}, "password": {"a good password"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther && res.StatusCode != http.StatusFound {
		t.Fatalf("sign in as %s: %d", name, res.StatusCode)
	}
}
