package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"svc/internal/api/apitest"
	"svc/internal/openapi"
)

// get sends a request to an API without services, which the documentation does not
// need.
func get(t *testing.T, a *API, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	for path, media := range map[string]string{
		"/api/v4/openapi.json":  "application/json",
		"/api/v4/docs":          "text/html; charset=utf-8",
		"/api/v4/docs/users":    "text/html; charset=utf-8",
		"/api/v4/docs/page.css": "text/css; charset=utf-8",
		"/api/v4/docs/page.js":  "text/javascript; charset=utf-8",
		"/api/v4/docs/icon.svg": "image/svg+xml",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			plain := get(t, a, "GET", path, "PRIVATE-TOKEN", "of nobody")
			text := body(t, plain)
			if plain.StatusCode != 200 || plain.Header.Get("Content-Type") != media || len(text) < 100 {
				t.Errorf("got %d, %q, %d bytes", plain.StatusCode, plain.Header.Get("Content-Type"), len(text))
			}
			if policy := plain.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self'; ") {
				t.Errorf("got the policy %q", policy)
			}
			tag := plain.Header.Get("Etag")
			if tag == "" {
				t.Fatal("no ETag")
			}
			if again := get(t, a, "GET", path, "If-None-Match", tag); again.StatusCode != 304 || body(t, again) != "" {
				t.Errorf("with its ETag: got %d", again.StatusCode)
			}
			if other := get(t, a, "GET", path, "If-None-Match", `"other"`); other.StatusCode != 200 {
				t.Errorf("with another ETag: got %d", other.StatusCode)
			}
			if head := get(t, a, "HEAD", path); head.StatusCode != 200 || head.Header.Get("Etag") != tag {
				t.Errorf("HEAD: got %d, ETag %s, want %s", head.StatusCode, head.Header.Get("Etag"), tag)
			}
			if post := get(t, a, "POST", path); post.StatusCode/100 != 4 {
				t.Errorf("POST: got %d", post.StatusCode)
			}
			packed := get(t, a, "GET", path, "Accept-Encoding", "br, gzip;q=0.8")
			if packed.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("got the encoding %q", packed.Header.Get("Content-Encoding"))
			}
			z, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			unpacked, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			if string(unpacked) != text {
				t.Error("packed and plain differ")
			}
		})
	}
}

var (
	pageID     = regexp.MustCompile(` id="([^"]+)"`)
	pageLink   = regexp.MustCompile(` (?:href|src)="([^"]+)"`)
	pageLabel  = regexp.MustCompile(` (?:for|aria-labelledby|aria-controls|aria-describedby)="([^"]+)"`)
	pageInline = regexp.MustCompile(`(?i)<style|<script(?: [^>]*)?>[^<]| style=| on[a-z]+="`)
)

// TestPages checks that each endpoint is on exactly one page, that links and IDs are
// valid, and that the content security policy allows what the pages contain.
func TestPages(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	data := openapi.NewPages(a.document())
	pages := map[string]string{"docs": body(t, get(t, a, "GET", "/api/v4/docs"))}
	for _, g := range data.Groups {
		pages["docs/"+g.Slug] = body(t, get(t, a, "GET", "/api/v4/docs/"+g.Slug))
	}
	ids, shown := map[string]map[string]bool{}, map[string]int{}
	for path, text := range pages {
		ids[path] = map[string]bool{}
		for _, m := range pageID.FindAllStringSubmatch(text, -1) {
			if ids[path][m[1]] {
				t.Errorf("%s: two elements have the id %s", path, m[1])
			}
			ids[path][m[1]] = true
			shown[m[1]]++
		}
	}
	for _, methods := range readDocument(a.document().JSON()).Paths {
		for _, op := range methods {
			if shown[op.ID] != 1 {
				t.Errorf("%s is on %d pages", op.ID, shown[op.ID])
			}
		}
	}
	good := map[string]bool{} // URLs of existing files
	for path, text := range pages {
		up := strings.Repeat("../", strings.Count(path, "/"))
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			to, name, _ := strings.Cut(m[1], "#")
			var found bool
			if to, found = strings.CutPrefix(to, up); to == "" && found || m[1][0] == '#' {
				to = path
			}
			switch {
			case strings.HasPrefix(to, "../../"): // pages of the web interface
			case pages[to] != "" && (name == "" || ids[to][name]), good[to]:
			case name != "":
				t.Errorf("%s: the link %s leads nowhere", path, m[1])
			default:
				// Relative to the page, so that it works behind a proxy with a path.
				if resp := get(t, a, "GET", "/api/v4/"+to); resp.StatusCode != 200 {
					t.Errorf("%s: %s answers %d", path, m[1], resp.StatusCode)
				}
				good[to] = true
			}
		}
		for _, m := range pageLabel.FindAllStringSubmatch(text, -1) {
			if !ids[path][m[1]] {
				t.Errorf("%s: %s: there is no such element", path, m[0])
			}
		}
		if m := pageInline.FindString(text); m != "" {
			t.Errorf("%s: the policy forbids %q", path, m)
		}
		if strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "&lt;nil&gt;") || strings.Contains(text, "%!") {
			t.Errorf("%s: a value of the template went wrong", path)
		}
		if sent := newAsset("", []byte(text)); len(sent.packed) >= 50<<10 {
			t.Errorf("%s: %d bytes are sent", path, len(sent.packed))
		}
	}
	if resp := get(t, a, "GET", "/api/v4/docs/nothing"); resp.StatusCode != 404 {
		t.Errorf("no page answers %d", resp.StatusCode)
	}
}

// TestPageEscapes renders the pages with a service name that contains HTML.
func TestPageEscapes(t *testing.T) {
	t.Parallel()
	site := testSite()
	site.Name, site.URL = `"><script>alert(1)</script>`, `https://x"><script>alert(2)</script>`
	a := New(Deps{Site: site})
	for _, path := range []string{"/api/v4/docs", "/api/v4/docs/users"} {
		if text := body(t, get(t, a, "GET", path)); strings.Contains(text, "<script>alert") {
			t.Errorf("%s: a name became HTML", path)
		}
	}
}

// TestExamples checks the sample responses against the document.
func TestExamples(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	d := a.document()
	o, err := apitest.NewOracle(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	curl := map[string]string{}
	for _, g := range openapi.NewPages(d).Groups {
		for _, e := range g.Endpoints {
			path := prefix
			for _, part := range e.Path {
				path += pathParam.ReplaceAllString(part.Text, "1")
			}
			for _, r := range e.Results {
				if err := o.Check(e.Method, path, r.Status, header, []byte(r.JSON)); err != nil {
					t.Error(err)
				}
			}
			if curl[e.ID] = e.Curl; strings.Contains(e.Curl, "{id}") || !strings.Contains(e.Curl, a.Site.URL+prefix) {
				t.Errorf("%s: %s", e.ID, e.Curl)
			}
		}
	}
	const want = `curl --request POST --header "PRIVATE-TOKEN: $TOKEN" \
  --header "Content-Type: application/json" \
  --data '{
  "email": "ada@example.com",
  "name": "Ada Lovelace",
  "username": "ada",
  "password": "correct horse battery staple"
}' \
  "https://forge.example.com/api/v4/users"`
	if got := curl["postUsers"]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDocumentIsBuiltOnce(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	first := body(t, get(t, a, "GET", "/api/v4/openapi.json"))
	a.endpoints = nil // later changes have no effect
	if second := body(t, get(t, a, "GET", "/api/v4/openapi.json")); second != first {
		t.Error("it was built again")
	}
	if !bytes.Equal([]byte(first), New(Deps{Site: testSite()}).document().JSON()) {
		t.Error("what is served is not the document")
	}
}
