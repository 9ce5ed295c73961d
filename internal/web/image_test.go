package web_test

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestImages checks that images of the repository and of other sites are shown, and
// that scripts in them do not run.
func TestImages(t *testing.T) {
	t.Parallel()
	var pixel bytes.Buffer
	if err := png.Encode(&pixel, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.png":
			_, _ = w.Write(pixel.Bytes())
		case "/a.svg":
			_, _ = w.Write([]byte(drawing))
		case "/page.png":
			_, _ = w.Write([]byte("<html><script>alert(1)</script>"))
		}
	}))
	t.Cleanup(site.Close)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := apptest.RootToken
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		readme := "# P\n\n![a](" + site.URL + "/a.png) ![b](" + site.URL + "/a.svg)\n![c](" + site.URL + "/page.png)\n\n" +
			"<p align=\"center\"><img src='docs/logo.svg' alt=\"logo\" width=\"20\" /></p>\n\n[![d](docs/x.png)](docs/x.md) <a href=\"other.md\">other</a>\n"
		s.Repository(t, id, gittest.Commit{Changes: change("README.md", readme, "docs/logo.svg", drawing, "docs/x.png", pixel.String())})
		b := newBrowser(t, s)
		set := func(values url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, Form: values, Status: 200})
		}
		set(url.Values{"allow_local_requests_from_web_hooks_and_services": {"true"}})
		page := b.get("/ada/p/-/blob/main/README.md").want(200, `src="/ada/p/-/raw/main/docs/logo.svg"`, `src="/ada/p/-/raw/main/docs/x.png"`,
			`data-canonical-src="`+site.URL+`/a.png"`, `href="/ada/p/-/blob/main/other.md"`, `loading="lazy"`)
		page.not(` src="` + site.URL)
		var proxied []string
		for _, m := range regexp.MustCompile(`src="(/-/image_proxy/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
			proxied = append(proxied, html.UnescapeString(m[1]))
		}
		if len(proxied) != 3 {
			t.Fatalf("%d images are proxied: %s", len(proxied), page.body)
		}
		for i, want := range []struct {
			status       int
			kind, policy string
		}{
			{200, "image/png", "default-src 'none'; sandbox"}, {200, "image/svg+xml", "default-src 'none'; style-src 'unsafe-inline'; sandbox"}, {404, "text/html; charset=utf-8", ""},
		} {
			got := b.get(proxied[i]).want(want.status)
			if got.header.Get("Content-Type") != want.kind || (want.policy != "" && got.header.Get("Content-Security-Policy") != want.policy) || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", proxied[i], got.header)
			}
		}
		b.get(strings.Replace(proxied[0], "/-/image_proxy/", "/-/image_proxy/0", 1)).want(404)
		// An SVG file of the repository is an image with a source.
		raw := b.get("/ada/p/-/raw/main/docs/logo.svg").want(200)
		if raw.header.Get("Content-Type") != "image/svg+xml" || !strings.HasSuffix(raw.header.Get("Content-Security-Policy"), "; sandbox") {
			t.Errorf("a drawing: %v", raw.header)
		}
		b.get("/ada/p/-/blob/main/docs/logo.svg").want(200, `<img src="/ada/p/-/raw/main/docs/logo.svg"`, `href="?plain=1"`).not("alert(1)")
		b.get("/ada/p/-/blob/main/docs/logo.svg?plain=1").want(200, "alert").not("<script>alert")
		b.get("/ada/p/-/blame/main/docs/logo.svg").want(200, "alert").not("<script>alert")
		// The HTML of the API and badges have the same URLs.
		s.Check(t, apptest.Call{Do: "POST /markdown", As: ada, JSON: `{"text":"![a](` + site.URL + `/a.png)"}`, Status: 201,
			Want: `{"html":"<p><img src=\"` + proxied[0] + `\" alt=\"a\" data-canonical-src=\"` + site.URL + `/a.png\" loading=\"lazy\"></p>\n"}`})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/issues", As: ada, JSON: `{"title":"x","description":"![l](docs/x.png) [r](./README.md#p) [h](#part) [n](#note_1) [a](/x)"}`, Status: 201})
		b.get("/ada/p/-/issues/1").want(200, `src="/ada/p/-/raw/main/docs/x.png"`, `href="/ada/p/-/blob/main/README.md#user-content-p"`, `href="#user-content-part"`, `href="#note_1"`, `href="/x"`)
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/badges", As: ada, Form: url.Values{"link_url": {"https://example.org"}, "image_url": {site.URL + "/a.png"}}, Status: 201})
		b.get("/ada/p").want(200, `<img src="`+proxied[0]+`"`)
		// The browser loads images of allowed hosts directly; then the proxy is
		// disabled.
		set(url.Values{"asset_proxy_allowlist[]": {"img.example.org", "*.example.net"}})
		policy := b.get("/ada/p").header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "; img-src 'self' https://img.example.org https://*.example.net") {
			t.Errorf("the policy is %s", policy)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, Form: url.Values{"asset_proxy_allowlist[]": {"example.org; script-src *"}}, Status: 400})
		b = newBrowser(t, s).signIn("root", apptest.RootPassword)
		b.get("/admin/application_settings").want(200, `value="img.example.org, *.example.net"`)
		set(url.Values{"asset_proxy_enabled": {"false"}})
		b.get(proxied[0]).want(404)
		b.get("/ada/p/-/blob/main/README.md").want(200, `<a href="`+site.URL+`/a.png"`).not("image_proxy")
	})
}
