package web_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/limit"
	"svc/internal/user"
	"svc/internal/web"
)

func cookies(name, value string) []*http.Cookie { return []*http.Cookie{{Name: name, Value: value}} }

// routes returns the pages in the route tables, and whether they require a session.
func routes(s *apptest.Server) map[string]bool { return pages(s).Routes() }

// access returns the pages in the route tables, and who may open them.
func access(s *apptest.Server) map[string]string { return pages(s).Access() }

func pages(s *apptest.Server) *web.Web {
	return web.New(web.Deps{
		Users: s.Users, Projects: s.Projects, Repos: s.Repos, Settings: s.Settings, Keys: s.Keys, Limits: limit.New(limit.Deps{Now: s.Clock.Now}), Now: s.Clock.Now,
	})
}

// TestForgery submits every form without a CSRF token, with a wrong one, and with
// that of another session.
func TestForgery(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	guest, ada, eve := newBrowser(t, s), newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
	guest.get("/users/sign_in") // has a cookie
	foreign := eve.get("/").token()
	n := 0
	for route := range routes(s) {
		method, path, _ := strings.Cut(route, " ")
		// The form of a SAML provider has a signature instead: see TestHostileSAML.
		if method != "POST" || path == "/users/auth/{provider}/callback" {
			continue
		}
		n++
		path = strings.NewReplacer("{id}", "1", "{project}", "ada/p", "{group}", "g", "*", "x").Replace(path)
		for _, token := range []string{"", "x", foreign} {
			for _, b := range []*browser{guest, ada, newBrowser(t, s)} {
				form := url.Values{"login": {"ada"}, "password": {password}}
				if token != "" {
					form.Set("authenticity_token", token)
				}
				if got := b.post(path, form); got.status != 422 || !strings.Contains(got.body, "The form has expired") {
					t.Errorf("POST %s with the token %q: status %d, want 422", path, token, got.status)
				}
			}
		}
	}
	for _, path := range []string{"/ada/p/-/star", "/ada/p/-/unstar"} {
		ada.post(path, nil).want(422)
	}
	if n < 20 {
		t.Errorf("only %d forms were tried", n)
	}
	if got := len(sessions(t, s, "ada")); got != 1 {
		t.Errorf("%d sessions, want one", got)
	}
}

func sessions(t *testing.T, s *apptest.Server, username string) []user.Session {
	t.Helper()
	u, err := s.Users.Find(t.Context(), actor.System(), user.Ref(username))
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Users.Sessions(t.Context(), actor.Actor{ID: u.ID})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestGuests visits every page without a session: pages that need one redirect to
// the sign-in page, and all have the security headers.
func TestGuests(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	for route, needs := range routes(s) {
		method, path, _ := strings.Cut(route, " ")
		if method != "GET" {
			continue
		}
		p := newBrowser(t, s).get(strings.ReplaceAll(path, "{id}", "1"))
		if needs && !strings.HasPrefix(p.header.Get("Location"), "/users/sign_in") {
			t.Errorf("%s: status %d", route, p.status)
		}
		if p.status >= 500 {
			t.Errorf("%s: status %d", route, p.status)
		}
		policy := p.header.Get("Content-Security-Policy")
		if path == "/-/sandbox/mermaid" { // a frame in pages, with its own origin
			if !strings.HasPrefix(policy, "default-src 'none'; script-src 'nonce-") || !strings.HasSuffix(policy, "frame-ancestors 'self'; sandbox allow-scripts") || p.header.Get("X-Frame-Options") != "SAMEORIGIN" {
				t.Errorf("%s: headers %v", route, p.header)
			}
			continue
		}
		if !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") ||
			p.header.Get("X-Frame-Options") != "DENY" || p.header.Get("Referrer-Policy") == "" || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", route, p.header)
		}
	}
}

// bad is a name that runs a script on a page that does not escape it.
const bad = `<script>alert(1)</script><img src=x onerror=alert(2)>"'`

// TestMarkup uses markup as the name of every kind of object.
func TestMarkup(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	id, token := s.User(t, "ada")
	name := bad
	if _, err := s.Users.Update(t.Context(), actor.System(), id, user.Change{Name: &name, Fields: user.Fields{Bio: &name, Location: &name, Organization: &name}}); err != nil {
		t.Fatal(err)
	}
	call := func(do string, form url.Values) {
		t.Helper()
		s.Check(t, apptest.Call{Do: do, As: token, Form: form, Status: 201})
	}
	call("POST /groups", url.Values{"name": {"G"}, "path": {"g"}, "description": {bad}, "visibility": {"public"}})
	call("POST /projects", url.Values{"name": {"P"}, "path": {"p"}, "description": {bad}, "visibility": {"public"}, "topics": {`<script>alert(3)</script>`}})
	file := `<img src=x onerror=alert(4)>.md`
	for _, path := range []string{"README.md", file, "<u>/x.go"} {
		call("POST /projects/ada%2Fp/repository/files/"+url.PathEscape(path), url.Values{"branch": {"main"}, "commit_message": {bad}, "encoding": {"base64"},
			"content": {base64.StdEncoding.EncodeToString([]byte(bad + "\n\n[x](javascript:alert(5))\n"))}})
	}
	call("POST /projects/ada%2Fp/repository/branches", url.Values{"branch": {"<u>onerror=1"}, "ref": {"main"}})
	call("POST /user/keys", url.Values{"title": {bad}, "key": {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0TEbHAhLAlxmO0mO0mO0mO0mO0mO0mO0mO0mO0mO0m"}})
	b := newBrowser(t, s).signIn("ada", password)
	tag := regexp.MustCompile(`<(script>|img src="?x|u>)|="javascript:|<[a-z][^>]*\sonerror=`)
	quoted := regexp.MustCompile(`"[^"<>]*"`)
	for _, path := range []string{
		"/", "/explore", "/ada", "/g", "/g?tab=members", "/ada/p", "/ada/p/-/tree/main", "/ada/p/-/tree/main/" + url.PathEscape("<u>"),
		"/ada/p/-/blob/main/" + url.PathEscape(file), "/ada/p/-/blob/main/" + url.PathEscape("<u>") + "/x.go",
		"/ada/p/-/tree/" + url.PathEscape("<u>onerror=1"),
		"/ada/p/-/blame/main/" + url.PathEscape(file), "/ada/p/-/edit/main/" + url.PathEscape(file), "/ada/p/-/delete/main/" + url.PathEscape(file), "/ada/p/-/new/main/" + url.PathEscape("<u>"),
		"/ada/p/-/commits/main", "/ada/p/-/commits/" + url.PathEscape("<u>onerror=1"), "/ada/p/-/commits/main/" + url.PathEscape(file), "/ada/p/-/commit/main", "/ada/p/-/commit/main?view=parallel",
		"/ada/p/-/commits/main?search=" + url.QueryEscape(bad) + "&author=" + url.QueryEscape(bad), "/ada/p/-/commit/main?file=" + url.QueryEscape(bad), "/ada/p/-/graphs", "/ada/p/-/branches",
		"/ada/p/-/branches?search=" + url.QueryEscape(bad), "/ada/p/-/tags?search=" + url.QueryEscape(bad), "/ada/p/-/compare/main~1..." + url.PathEscape("<u>onerror=1"),
		"/-/user_settings/profile", "/-/user_settings/ssh_keys", "/explore?search=" + url.QueryEscape(bad), "/g?search=" + url.QueryEscape(bad), "/" + url.PathEscape(bad),
	} {
		p := b.get(path)
		if p.status != 200 && p.status != 404 || p.status == 404 && !strings.Contains(path, "script") {
			t.Errorf("%s: status %d", path, p.status)
		}
		if found := tag.FindString(quoted.ReplaceAllString(p.body, `""`)); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
	raw := b.get("/ada/p/-/raw/main/README.md").want(200)
	if kind := raw.header.Get("Content-Type"); kind != "text/plain; charset=utf-8" || !strings.Contains(raw.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a raw file comes as %s under %s", kind, raw.header.Get("Content-Security-Policy"))
	}
}

// TestHidden checks that the response for an object that a user may not see is the
// same as for one that does not exist.
func TestHidden(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, ada := s.User(t, "ada")
	s.User(t, "eve")
	s.Check(t, apptest.Call{Do: "POST /groups", As: ada, Status: 201, Form: url.Values{"name": {"Hidden"}, "path": {"hidden"}}})
	s.Check(t, apptest.Call{Do: "POST /projects", As: ada, Status: 201, Form: url.Values{"name": {"Secret"}, "path": {"secret"}, "initialize_with_readme": {"true"}}})
	guest, eve, owner := newBrowser(t, s), newBrowser(t, s).signIn("eve", password), newBrowser(t, s).signIn("ada", password)
	for _, path := range []string{"/hidden", "/ada/secret", "/ada/secret/-/tree/main", "/ada/secret/-/blob/main/README.md", "/ada/secret/-/raw/main/README.md"} {
		owner.get(path).want(200)
		for _, b := range []*browser{guest, eve} {
			b.get(path).want(404, "Page not found").not("Secret", "Hidden")
		}
	}
	for _, b := range []*browser{guest, eve} {
		b.get("/explore").want(200).not("Secret")
		b.get("/explore/groups").want(200).not("Hidden")
		b.get("/ada").want(200).not("Secret")
	}
	guest.get("/nothing/here/-/tree/main").want(404)
	guest.get("/1").want(404) // an ID is not a path
	guest.get("/ghost").want(200, "Ghost User", "whose accounts were deleted").not("Member since", "Personal projects")
}
