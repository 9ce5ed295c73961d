package web_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestReleasePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		id := newProject(t, s, token, "p", "public")
		s.Repository(t, id, gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}}})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/milestones", As: token, JSON: `{"title":"m1"}`, Status: 201})
		ada, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		const at = "/ada/p/-/releases"
		found := func(path, to string) {
			t.Helper()
			if got := guest.get(at + path).want(302).header.Get("Location"); got != to {
				t.Errorf("%s leads to %q, want %q", path, got, to)
			}
		}
		guest.get(at).want(200, "No releases")
		guest.get("/ada/p/-/badges/release.svg").want(200, "none")
		guest.get(at + "/permalink/latest").want(404)
		guest.get(at + "/new").want(303)
		ada.get(at+"/new").want(200, "Release notes", "m1", "Create from")
		ada.submit(at+"/new", at, "tag_name", "v1", "ref", "").want(422, "Ref is not specified")
		ada.submit(at+"/new", at, "tag_name", "v1", "ref", "main", "link_name", "x", "link_url", "javascript:alert(1)", "link_type", "other").want(422, "is blocked", `value="javascript:alert(1)"`)
		ada.submit(at+"/new", at, "tag_name", "v1", "more", "1", "link_name", "x", "link_url", "https://example.org/x", "link_type", "image").want(200, `value="https://example.org/x"`, "URL of link 4")
		ada.submit(at+"/new", at, "tag_name", "rel/1", "ref", "main", "name", "One "+evil, "description", "**bold** "+evil, "milestone_ids", "1",
			"link_id", "", "link_name", "bin "+evil, "link_url", "https://example.org/bin", "link_path", "/bin/x", "link_type", "package").leads(at + "/rel%2F1")
		guest.get(at+"/rel%2F1").want(200, "One &lt;script&gt;", "<strong>bold</strong>", "bin &lt;script&gt;", "Packages", "Source code (zip)", "/ada/p/-/releases/rel%2F1/downloads/bin/x", "m1").harmless()
		found("/rel/1/downloads/bin/x", "https://example.org/bin")
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/issues", As: token, JSON: `{"title":"planned","milestone_id":1}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/issues", As: token, JSON: `{"title":"elsewhere"}`, Status: 201})
		guest.get("/ada/p/-/issues?release_tag=rel%2F1&scope=all&state=opened").want(200, "planned").not("elsewhere")
		guest.get("/ada/p/-/issues?release_tag=none").want(200).not("planned")
		guest.get("/ada/p/-/merge_requests?release_tag=rel%2F1&scope=all&state=merged").want(200)
		found("/permalink/latest", at+"/rel%2F1")
		found("/permalink/latest/downloads/bin/x", at+"/rel%2F1/downloads/bin/x")
		guest.get(at+"").want(200, "One &lt;script&gt;", "1 release").harmless()
		guest.get("/ada/p/-/archive/rel/1/p-rel-1.zip").want(200)
		guest.get("/ada/p").want(200, "One &lt;script&gt;").harmless()
		guest.get("/ada/p/-/tags").want(200, `href="/ada/p/-/releases/rel/1"`)
		guest.get("/ada/p/-/tags/rel/1").want(200, "All tags")
		guest.get("/ada/p/-/tags/none").want(404)
		guest.get("/ada/p/-/badges/release.svg").want(200, "rel/1")
		if svg := guest.get("/ada/p/-/badges/release.svg?value=name&key_text=%3Ci%3E%26%01").want(200, "One &lt;script&gt;", "&lt;i&gt;&amp;").harmless(); xml.Unmarshal([]byte(svg.body), new(struct{})) != nil {
			t.Errorf("the badge is not valid XML: %s", svg.body)
		}
		feed := guest.get(at+".atom").want(200, "<feed", "/ada/p/-/releases/rel%2F1", "&lt;strong&gt;bold").harmless()
		if kind := feed.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/atom+xml") {
			t.Errorf("the feed is %q", kind)
		}
		ada.get(at+"/rel/1/edit").want(200, `value="https://example.org/bin"`, "Save changes", "checked").harmless()
		ada.submit(at+"/rel/1/edit", at+"/update", "tag", "rel/1", "name", "Two", "description", "text", "released_at", "2999-01-01", "link_id", "1", "link_name", "", "link_url", "", "link_type", "package",
			"link_id", "", "link_name", "new", "link_url", "https://example.org/new", "link_type", "other").leads(at + "/rel%2F1")
		guest.get(at+"/rel/1").want(200, "Two", "Upcoming release", "https://example.org/new").not("https://example.org/bin")
		guest.get(at + "/permalink/latest").want(404)
		s.User(t, "eve")
		newBrowser(t, s).signIn("eve", password).get(at + "/rel/1/edit").want(403)
		ada.submit(at+"/rel/1", at+"/delete", "tag", "rel/1").leads(at)
		guest.get(at + "/rel/1").want(404)
		guest.get("/ada/p/-/tags/rel/1").want(200)
	})
}

func TestCatalogPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		id := newProject(t, s, token, "p", "public")
		s.Repository(t, id, gittest.Commit{Changes: []gittest.Change{{Path: "templates/c.yml", Content: "spec:\n  inputs:\n    name: {description: '" + evil + "'}\n---\n$[[ inputs.name ]]: {script: [x]}\n"}}})
		ada, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		guest.get("/explore/catalog").want(200, "The CI/CD Catalog is empty")
		guest.get("/explore/catalog/ada/p").want(404)
		const settings = "/ada/p/-/settings/ci_cd"
		ada.submit(settings, settings+"/catalog", "on", "1").leads(settings)
		ada.get(settings).want(200, "needs a description", "Set project as a CI/CD Catalog project")
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp", As: token, JSON: `{"description":"Tools"}`, Status: 200})
		ada.submit(settings, settings+"/catalog", "on", "1").leads(settings)
		ada.get(settings).want(200, "Remove from the catalog")
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/releases", As: token, JSON: `{"tag_name":"1.0.0","ref":"main"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/catalog/publish", As: token, JSON: `{"version":"1.0.0"}`, Status: 200})
		guest.get("/explore/catalog").want(200, "/explore/catalog/ada/p", "1.0.0", "Tools")
		guest.get("/explore/catalog?search=nothing").want(200, "No results found")
		guest.get("/explore/catalog/ada/p").want(200, "/ada/p/c@1.0.0", "required", "&lt;script&gt;").harmless()
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp", As: token, JSON: `{"visibility":"private"}`, Status: 200})
		guest.get("/explore/catalog").want(200).not("/explore/catalog/ada/p")
		guest.get("/explore/catalog/ada/p").want(404)
		ada.submit(settings, settings+"/catalog").leads(settings)
		ada.get("/explore/catalog/ada/p").want(404)
	})
}
