package web_test

import (
	"bytes"
	"compress/gzip"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	b := newBrowser(t, s).signIn("ada", password)

	const profile = "/-/user_settings/profile"
	b.submit(profile, profile, "name", "").want(422, "can&#39;t be blank")
	b.submit(profile, profile, "name", "Ada L.", "website_url", "javascript:alert(1)").want(422, "is not a valid URL")
	b.submit(profile, profile, "name", "Ada L.", "bio", "Engines", "website_url", "https://example.org", "public_email", "ada@example.org").leads(profile)
	b.submit(profile, profile, "name", "Ada L.", "commit_email", "eve@example.org").want(422, "Commit email")
	b.submit(profile, profile, "name", "Ada L.", "bio", "Engines", "website_url", "https://example.org", "public_email", "ada@example.org", "commit_email", "_private", "twitter", "ada").leads(profile)
	b.get(profile).want(200, `value="_private" selected`, `name="twitter" type="text" value="ada"`)
	newBrowser(t, s).get("/ada").want(200, "Ada L.", "Engines", `href="https://example.org"`, "ada@example.org")
	b.submit(profile, profile, "name", "Ada L.", "bio", "Engines", "private_profile", "1").leads(profile)
	newBrowser(t, s).get("/ada").want(200, "This profile is private").not("Engines")
	b.get("/ada").want(200, "Engines")

	b.picture(t, "no picture").leads(profile)
	b.get(profile).want(200, "note bad")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	b.picture(t, picture.String()).leads(profile)
	shown := regexp.MustCompile(`/uploads/-/system/user/avatar/\d+/[^"]+`).FindString(b.get(profile).want(200).body)
	b.get(shown).want(200)
	b.submit(profile, "/-/user_settings/avatar/delete").leads(profile)
	b.get(shown).want(404)

	const keys = "/-/user_settings/ssh_keys"
	b.submit(keys, keys, "title", "x", "key", "not a key").want(422, "wrong")
	b.submit(keys, keys, "title", "Laptop", "key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0TEbHAhLAlxmO0mO0mO0mO0mO0mO0mO0mO0mO0mO0m", "expires_at", "2099-01-01").leads(keys)
	number := regexp.MustCompile(keys + `/(\d+)/delete`).FindStringSubmatch(b.get(keys).want(200, "Laptop").body)[1]
	eve := newBrowser(t, s).signIn("eve", password)
	eve.submit(keys, keys+"/"+number+"/delete").want(404)
	b.submit(keys, keys+"/"+number+"/delete").leads(keys)
	b.get(keys).want(200, "No keys yet")
}

// picture uploads an avatar of the user.
func (b *browser) picture(t *testing.T, content string) answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("authenticity_token", b.get("/-/user_settings/profile").token())
	w, err := form.CreateFormFile("avatar", "face.png")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, content)
	_ = form.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.s.URL+"/-/user_settings/avatar", &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.send(r)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	b := newBrowser(t, s).signIn("ada", password)
	const at = "/-/user_settings/personal_access_tokens"
	b.get(at).want(200, "read_api").not(`value="sudo"`)
	b.submit(at, at, "name", "", "scopes", "api").want(422, "can&#39;t be blank")
	b.submit(at, at, "name", "x").want(422, "Scopes can&#39;t be blank")
	b.submit(at, at, "name", "x", "scopes", "sudo").want(422, "can only contain available scopes")
	b.submit(at, at, "name", "x", "scopes", "api", "expires_at", "2000-01-01").want(422, "in the past")
	made := b.submit(at, at, "name", "Script", "scopes", "read_api", "scopes", "read_user").want(200, "is not shown again")
	token := regexp.MustCompile(`svcpat-\w+`).FindString(made.body)
	s.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 200, Want: `{"username":"ada"}`})
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, Form: url.Values{"name": {"x"}}, Status: 403})
	list := b.get(at).want(200, "Script").not(token)
	number := regexp.MustCompile(at+`/(\d+)/revoke`).FindAllStringSubmatch(list.body, -1)
	last := number[len(number)-1][1]
	newBrowser(t, s).signIn("eve", password).submit(at, at+"/"+last+"/revoke").want(404)
	// Administrators cannot do it in their own settings either.
	newBrowser(t, s).signIn("root", apptest.RootPassword).submit(at, at+"/"+last+"/revoke").want(404)
	s.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 200})
	b.submit(at, at+"/"+last+"/revoke").leads(at)
	s.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 401})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	b, other, third := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("ada", password)
	const at = "/-/user_settings/active_sessions"
	numbers := regexp.MustCompile(at+`/(\d+)/revoke`).FindAllStringSubmatch(b.get(at).want(200, "This session").body, -1)
	if len(numbers) != 2 {
		t.Fatalf("%d other sessions, want two", len(numbers))
	}
	newBrowser(t, s).signIn("eve", password).submit(at, at+"/"+numbers[0][1]+"/revoke").want(404)
	b.submit(at, at+"/"+numbers[0][1]+"/revoke").leads(at) // the newest session
	third.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
	other.get("/dashboard").want(200)
	b.submit(at, at+"/revoke").leads(at)
	other.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
	b.get("/dashboard").want(200)
}

func TestProjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "ada")
		s.User(t, "eve")
		b := newBrowser(t, s).signIn("ada", password)
		b.submit("/groups/new", "/groups", "name", "Analysis", "path", "analysis", "visibility", "public").leads("/analysis")
		group := regexp.MustCompile(`namespace_id=(\d+)`).FindStringSubmatch(b.get("/analysis").want(200, "No subgroups or projects yet").body)[1]
		b.submit("/groups/new", "/groups", "name", "Notes", "path", "notes", "visibility", "public", "parent_id", group).leads("/analysis/notes")
		b.submit("/groups/new", "/groups", "name", "Again", "path", "analysis", "visibility", "public").want(422, "already been taken")
		b.submit("/groups/new", "/groups", "name", "x", "path", "x", "visibility", "secret").want(422)
		b.submit("/projects/new", "/projects", "name", "Engine", "namespace_id", group, "visibility", "public", "readme", "1").leads("/analysis/engine")
		b.submit("/projects/new", "/projects", "name", "Engine", "namespace_id", group, "visibility", "public").want(422, "already been taken")
		b.submit("/projects/new", "/projects", "name", "", "namespace_id", group, "visibility", "public").want(422)
		b.submit("/projects/new", "/projects", "name", "x", "namespace_id", "nowhere", "visibility", "public").want(422)
		newBrowser(t, s).signIn("eve", password).submit("/projects/new", "/projects", "name", "x", "namespace_id", group, "visibility", "public").want(422, "not a namespace")

		guest := newBrowser(t, s)
		guest.get("/").leads("/explore")
		guest.get("/explore").want(200, "Analysis /", "Engine")
		guest.get("/explore?search=nothing").want(200, "No results found")
		guest.get("/explore/groups").want(200, "Notes")
		guest.get("/analysis?tab=subgroups").want(200, "Notes")
		b.get("/analysis?tab=members").want(200, "ada", "Owner")
		guest.get("/analysis/engine").want(200, "README.md", s.URL+"/analysis/engine.git").not("Unstar")
		guest.get("/analysis/engine/-/tree/main").want(200, "README.md")
		guest.get("/analysis/engine/-/blob/main/README.md").want(200, "Source")
		guest.get("/analysis/engine/-/blob/main/README.md?plain=1").want(200, `id="L1"`)
		guest.get("/analysis/engine/-/raw/main/README.md").want(200)
		guest.get("/analysis/engine/-/blob/main/none").want(404)
		guest.get("/analysis/engine/-/tree/none").want(404)
		guest.get("/analysis/engine/-/nothing").want(404)

		guest.get("/explore/").leads("/explore")
		guest.get("/analysis/engine/").leads("/analysis/engine")
		guest.get("//evil.example/").leads("/")
		r, err := http.NewRequestWithContext(t.Context(), "HEAD", s.URL+"/explore", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p := guest.send(r).want(200); p.body != "" || p.header.Get("Content-Length") == "" {
			t.Errorf("HEAD gives %q with %v", p.body, p.header)
		}

		b.submit("/analysis/engine", "/analysis/engine/-/star").leads("/analysis/engine")
		b.get("/analysis/engine").want(200, "Unstar")
		b.get("/dashboard/projects?starred=1").want(200, "Engine")
		b.submit("/analysis/engine", "/analysis/engine/-/unstar").leads("/analysis/engine")
		b.get("/dashboard/projects?starred=1").want(200, "No starred projects")

		for _, path := range []string{"/", "/analysis", "/analysis/engine", "/analysis/engine/-/tree/main", "/-/user_settings/personal_access_tokens", "/users/sign_in", "/none"} {
			if n := len(b.get(path).body); n > 50<<10 {
				t.Errorf("%s has %d bytes", path, n)
			}
		}
	})
}

func TestAssets(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	b := newBrowser(t, s)
	css := regexp.MustCompile(`/assets/app-[0-9a-f]{8}\.css`).FindString(b.get("/explore").want(200).body)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+css, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	p := b.send(r).want(200)
	if p.header.Get("Content-Encoding") != "gzip" || !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("headers %v", p.header)
	}
	z, err := gzip.NewReader(strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !bytes.Contains(text, []byte(":root")) {
		t.Errorf("not the stylesheet: %v", err)
	}
	// A long page is compressed for clients that accept it; its token differs each
	// time.
	for offer, want := range map[string]string{"": "", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "identity": ""} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/users/sign_in", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = "return_to=" + strings.Repeat("/x", 6000)
		r.Header.Set("Accept-Encoding", offer)
		p := b.send(r).want(200)
		if got := p.header.Get("Content-Encoding"); got != want || want == "gzip" != (len(p.body) < 5000) || !strings.Contains(p.header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("Accept-Encoding %q: %q, %d bytes, %v", offer, got, len(p.body), p.header)
		}
	}
	if one, two := b.get("/users/sign_in").token(), b.get("/users/sign_in").token(); one == two {
		t.Errorf("two pages have the token %s", one)
	}
	b.get("/assets/app-00000000.css").want(404)
	b.get("/assets/..%2f..%2fweb.go").want(404)
	b.get("/api/v4/docs").want(200)
}

// TestSignInAfterForm checks that a user whose session ended while they filled in a
// form comes back to the page of the form, and no other site can choose that page.
func TestSignInAfterForm(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		newProject(t, s, ada, "p", "public")
		b := newBrowser(t, s)
		token := b.get("/users/sign_in").token()
		for from, to := range map[string]string{
			s.URL + "/ada/p/-/issues/new?x=1": "/users/sign_in?return_to=%2Fada%2Fp%2F-%2Fissues%2Fnew%3Fx%3D1",
			"https://example.org/x":           "/users/sign_in",
			"":                                "/users/sign_in",
		} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/ada/p/-/issues", strings.NewReader(url.Values{"authenticity_token": {token}, "title": {"x"}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Referer", from)
			b.send(r).leads(to)
		}
	})
}
