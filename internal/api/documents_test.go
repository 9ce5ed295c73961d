package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"svc/internal/api/apitest"
)

// get asks an API that has no services at all: the documentation needs none.
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

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "br": false, "gzip": true, "br, gzip": true, "gzip; q=0.5": true, "gzip;q=0": false, "gzip;q=0.0": false, "xgzip": false, "gzip;q=1.0": true,
	} {
		if got := takesGzip(header); got != want {
			t.Errorf("%q: got %v", header, got)
		}
	}
}

var (
	pageID     = regexp.MustCompile(` id="([^"]+)"`)
	pageLink   = regexp.MustCompile(` (?:href|src)="([^"]+)"`)
	pageLabel  = regexp.MustCompile(` (?:for|aria-labelledby|aria-controls|aria-describedby)="([^"]+)"`)
	pageInline = regexp.MustCompile(`(?i)<style|<script(?: [^>]*)?>[^<]| style=| on[a-z]+="`)
)

// TestPage reads the page as a browser with its policy would.
func TestPage(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	text := body(t, get(t, a, "GET", "/api/v4/docs"))
	ids := map[string]bool{}
	for _, m := range pageID.FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, op := range a.document().operations {
		if !ids[op.ID] {
			t.Errorf("%s is not on the page", op.ID)
		}
	}
	for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
		if name, ok := strings.CutPrefix(m[1], "#"); ok {
			if !ids[name] {
				t.Errorf("a link to %s leads nowhere", m[1])
			}
			continue
		}
		if strings.HasPrefix(m[1], "../../") {
			continue // to the pages, which are another door
		}
		// Relative to the page, so that it works below any path of a proxy.
		if resp := get(t, a, "GET", "/api/v4/"+m[1]); resp.StatusCode != 200 {
			t.Errorf("%s answers %d", m[1], resp.StatusCode)
		}
	}
	for _, m := range pageLabel.FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("%s: there is no such element", m[0])
		}
	}
	if m := pageInline.FindString(text); m != "" {
		t.Errorf("the policy forbids %q", m)
	}
	if strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "&lt;nil&gt;") || strings.Contains(text, "%!") {
		t.Error("a value of the template went wrong")
	}
}

// TestPageEscapes names a service so that it would break out of the page.
func TestPageEscapes(t *testing.T) {
	t.Parallel()
	site := testSite()
	site.Name, site.URL = `"><script>alert(1)</script>`, `https://x"><script>alert(2)</script>`
	text := body(t, get(t, New(Deps{Site: site}), "GET", "/api/v4/docs"))
	if strings.Contains(text, "<script>alert") {
		t.Error("a name became HTML")
	}
}

// TestExamples holds the sample answers to the document.
func TestExamples(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	d := a.document()
	o, err := apitest.NewOracle(d.bytes())
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	x := &examples{schemas: d.schemas, site: &a.Site}
	for _, op := range d.operations {
		path := prefix + pathParam.ReplaceAllString(op.endpoint.path, "1")
		for _, r := range x.results(op.endpoint) {
			if err := o.Check(op.endpoint.method, path, r.Status, header, []byte(r.JSON)); err != nil {
				t.Error(err)
			}
		}
		if curl := x.curl(op); strings.Contains(curl, "{id}") || !strings.Contains(curl, a.Site.URL+prefix) {
			t.Errorf("%s: %s", op.ID, curl)
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
	for _, op := range d.operations {
		if got := x.curl(op); op.ID == "postUsers" && got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestExampleValues(t *testing.T) {
	t.Parallel()
	site := testSite()
	x := &examples{schemas: newSchemas(&site), site: &site}
	tree := x.schemas.of(reflect.TypeFor[treeJSON]())
	tests := []struct {
		name   string // of the field
		schema *schema
		want   string
	}{
		{"order", &schema{Type: typeNames{"string"}, Enum: []any{"id", "name"}}, `"id"`},
		{"order", &schema{Type: typeNames{"string"}, Enum: []any{"id", "name"}, Default: "name"}, `"name"`},
		{"web_url", scalar(reflect.TypeFor[string]()), `"https://forge.example.com/ada"`},
		{"other_url", scalar(reflect.TypeFor[string]()), `"https://forge.example.com"`},
		{"scopes", arrayOf(scalar(reflect.TypeFor[string]())), `["read_api"]`},
		{"x", &schema{Type: typeNames{"object"}, AdditionalProperties: &schema{Type: typeNames{"number"}}}, `{"key":12.5}`},
		{"tree", tree, `{"name":"Ada Lovelace","below":[{}]}`},
	}
	for _, tt := range tests {
		got, err := encode(x.value(tt.name, tt.schema, nil))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDocumentIsBuiltOnce(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	first := body(t, get(t, a, "GET", "/api/v4/openapi.json"))
	a.endpoints = nil // what comes later is not seen
	if second := body(t, get(t, a, "GET", "/api/v4/openapi.json")); second != first {
		t.Error("it was built anew")
	}
	if !bytes.Equal([]byte(first), New(Deps{Site: testSite()}).document().bytes()) {
		t.Error("what is served is not the document")
	}
}
