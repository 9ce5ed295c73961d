package web_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/oauth"
)

const appCallback = "https://app.example.com/auth/cb"

// surfer is somebody with a browser that follows nothing by itself.
type surfer struct {
	s      *apptest.Server
	client *http.Client
}

// page is what the browser shows.
type page struct {
	status int
	header http.Header
	text   string
}

func newSurfer(t *testing.T, s *apptest.Server) *surfer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &surfer{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *surfer) send(t *testing.T, method, path string, form url.Values, header ...string) page {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{res.StatusCode, res.Header, string(text)}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// form gives the hidden fields of a page's form that posts to an address,
// changed by pairs.
func (p page) form(t *testing.T, action string, changes ...string) url.Values {
	t.Helper()
	_, after, ok := strings.Cut(p.text, `action="`+action+`"`)
	if !ok {
		t.Fatalf("the page has no form for %s: %s", action, p.text)
	}
	inner, _, _ := strings.Cut(after, "</form>")
	values := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(inner, -1) {
		values.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(changes); i += 2 {
		values.Set(changes[i], changes[i+1])
	}
	return values
}

func (b *surfer) signIn(t *testing.T, login, returnTo string) page {
	t.Helper()
	at := "/users/sign_in?return_to=" + url.QueryEscape(returnTo)
	form := b.send(t, "GET", at, nil).form(t, "/users/sign_in", "login", login, "password", "a good password")
	p := b.send(t, "POST", "/users/sign_in", form)
	if p.status != 303 || p.header.Get("Location") != returnTo {
		t.Fatalf("sign in: %d to %s", p.status, p.header.Get("Location"))
	}
	return p
}

func authorizePath(app *oauth.Application, changes ...string) string {
	v := url.Values{"client_id": {app.UID}, "redirect_uri": {appCallback}, "response_type": {"code"}, "scope": {"api"}, "state": {`"><s>&`}}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
	}
	return "/oauth/authorize?" + v.Encode()
}

func newApp(t *testing.T, s *apptest.Server, n oauth.NewApplication) *oauth.Application {
	t.Helper()
	n.RedirectURIs, n.Scopes, n.Confidential = appCallback, []string{"api", "read_user"}, true
	app, err := s.OAuth.Create(t.Context(), actor.System(), n)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// arrived checks that a page sends the browser to the application, and gives
// what is carried there.
func (p page) arrived(t *testing.T) url.Values {
	t.Helper()
	to := p.header.Get("Location")
	if p.status != 303 || !strings.HasPrefix(to, appCallback+"?") {
		t.Fatalf("status %d, sent to %q: %s", p.status, to, p.text)
	}
	if p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", p.header)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func TestConsent(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "alice")
		app := newApp(t, s, oauth.NewApplication{Name: "Build <b>monitor</b>"})
		b := newSurfer(t, s)
		path := authorizePath(app)

		// Nobody has signed in: he does that first, and comes back.
		p := b.send(t, "GET", path, nil)
		if want := "/users/sign_in?return_to=" + url.QueryEscape(path); p.status != 303 || p.header.Get("Location") != want {
			t.Fatalf("%d to %s", p.status, p.header.Get("Location"))
		}
		b.signIn(t, "alice", path)
		p = b.send(t, "GET", path, nil)
		for _, text := range []string{"Authorize Build &lt;b&gt;monitor&lt;/b&gt;?", "Access the API on your behalf", "@alice", "app.example.com", `name="decision" value="deny"`} {
			if !strings.Contains(p.text, text) {
				t.Errorf("the page lacks %q", text)
			}
		}
		if strings.Contains(p.text, "Read your personal information") {
			t.Error("the page tells of a scope that was not asked for")
		}
		csp := p.header.Get("Content-Security-Policy")
		if p.status != 200 || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self' https://app.example.com;") || p.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("status %d, headers %v", p.status, p.header)
		}

		form := p.form(t, "/oauth/authorize")
		if form.Get("state") != `"><s>&` {
			t.Errorf("state %q", form.Get("state"))
		}
		// Without the token of the page it came from somebody else.
		forged := p.form(t, "/oauth/authorize", "decision", "allow", "authenticity_token", "x")
		if p := b.send(t, "POST", "/oauth/authorize", forged); p.status != 422 || p.header.Get("Location") != "" {
			t.Errorf("forged: %d to %s", p.status, p.header.Get("Location"))
		}
		form.Set("decision", "deny")
		if got := b.send(t, "POST", "/oauth/authorize", form).arrived(t); got.Get("error") != "access_denied" || got.Get("state") != `"><s>&` || got.Has("code") {
			t.Errorf("denied: %v", got)
		}
		form.Set("decision", "allow")
		got := b.send(t, "POST", "/oauth/authorize", form).arrived(t)
		if got.Get("state") != `"><s>&` || len(got.Get("code")) < 20 {
			t.Fatalf("allowed: %v", got)
		}
		s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: url.Values{
			"grant_type": {"authorization_code"}, "client_id": {app.UID}, "client_secret": {app.Secret}, "code": {got.Get("code")}, "redirect_uri": {appCallback},
		}, Status: 200, Want: `{"scope":"api"}`})

		// He has allowed it before, and is not asked again; more he is.
		if got := b.send(t, "GET", path, nil).arrived(t); got.Get("code") == "" {
			t.Errorf("again: %v", got)
		}
		if p := b.send(t, "GET", authorizePath(app, "scope", "api read_user"), nil); p.status != 200 {
			t.Errorf("more: %d", p.status)
		}
		// The form is changed on the way: what was not registered is no redirect.
		for name, value := range map[string]string{"redirect_uri": "https://evil.example/", "client_id": "x"} {
			changed := p.form(t, "/oauth/authorize", "decision", "allow", name, value)
			if p := b.send(t, "POST", "/oauth/authorize", changed); p.status != 400 || p.header.Get("Location") != "" {
				t.Errorf("%s: %d to %s", name, p.status, p.header.Get("Location"))
			}
		}
	})
}

// TestSilentOpenRedirect is a link to the instance that leads visitors who have
// not signed in to the application of anybody.
func TestSilentOpenRedirect(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "mallory")
		own, err := s.OAuth.CreateOwn(t.Context(), actor.Actor{ID: id, Username: "mallory"},
			oauth.NewApplication{Name: "Own", RedirectURIs: appCallback, Scopes: []string{"openid", "api"}, Confidential: true})
		if err != nil {
			t.Fatal(err)
		}
		nobody := newSurfer(t, s)
		for name, path := range map[string]string{
			"silent": authorizePath(own, "prompt", "none"), "silent and broken": authorizePath(own, "prompt", "none", "response_type", "x"),
			"silent twice": authorizePath(own, "prompt", "none login"),
		} {
			if p := nobody.send(t, "GET", path, nil); !strings.HasPrefix(p.header.Get("Location"), "/users/sign_in?") {
				t.Errorf("%s: a visitor is sent to %s", name, p.header.Get("Location"))
			}
		}
		// Applications of the instance get their answer.
		app := newApp(t, s, oauth.NewApplication{Name: "App"})
		if got := nobody.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "login_required" {
			t.Errorf("an application of the instance: %v", got)
		}
		mallory := newSurfer(t, s)
		mallory.signIn(t, "mallory", "/")
		if got := mallory.send(t, "GET", authorizePath(own, "prompt", "none"), nil).arrived(t); got.Get("error") != "consent_required" {
			t.Errorf("a user: %v", got)
		}
	})
}

func TestConsentRefusals(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "alice")
		app := newApp(t, s, oauth.NewApplication{Name: "App"})
		trusted := newApp(t, s, oauth.NewApplication{Name: "Trusted", Trusted: true})
		alice, nobody := newSurfer(t, s), newSurfer(t, s)
		alice.signIn(t, "alice", "/")
		for name, path := range map[string]string{
			"unknown client": authorizePath(app, "client_id", "x"), "another address": authorizePath(app, "redirect_uri", "https://evil.example/"),
			"an address with a user": authorizePath(app, "redirect_uri", "https://app.example.com@evil.example/auth/cb"), "nothing": "/oauth/authorize",
			"a script": authorizePath(app, "redirect_uri", "javascript:alert(1)"), "broken": "/oauth/authorize?client_id=%zz",
		} {
			for who, b := range map[string]*surfer{"alice": alice, "nobody": nobody} {
				if p := b.send(t, "GET", path, nil); p.status != 400 || p.header.Get("Location") != "" || !strings.Contains(p.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
					t.Errorf("%s, %s: %d to %s", name, who, p.status, p.header.Get("Location"))
				}
			}
		}
		bad := authorizePath(app, "scope", "sudo")
		if got := alice.send(t, "GET", bad, nil).arrived(t); got.Get("error") != "invalid_scope" || got.Get("state") == "" {
			t.Errorf("invalid scope: %v", got)
		}
		// A link to us leads no stranger somewhere else.
		if p := nobody.send(t, "GET", bad, nil); !strings.HasPrefix(p.header.Get("Location"), "/users/sign_in?") {
			t.Errorf("a stranger is sent to %s", p.header.Get("Location"))
		}
		if got := nobody.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "login_required" {
			t.Errorf("silent: %v", got)
		}
		if got := alice.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "consent_required" {
			t.Errorf("silent: %v", got)
		}
		if p := nobody.send(t, "POST", "/oauth/authorize", url.Values{"decision": {"allow"}}); p.status != 422 {
			t.Errorf("a stranger allows: %d", p.status)
		}

		// A trusted one is let in at once. After the form of the sign-in page a
		// page leads there, because browsers hold the form's answer to its
		// policy.
		if got := alice.send(t, "GET", authorizePath(trusted), nil).arrived(t); got.Get("code") == "" {
			t.Errorf("trusted: %v", got)
		}
		p := alice.send(t, "GET", authorizePath(trusted), nil, "Referer", s.URL+"/users/sign_in?return_to=x")
		if p.status != 200 || !strings.Contains(p.text, `<meta http-equiv="refresh" content="0; url=`+appCallback+`?code=`) || !strings.Contains(p.text, `href="`+appCallback+`?code=`) {
			t.Errorf("after signing in: %d %s", p.status, p.text)
		}
	})
}

// TestApplicationPages registers, changes and removes applications.
func TestApplicationPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "alice")
		s.User(t, "bob")
		alice, bob := newSurfer(t, s), newSurfer(t, s)
		alice.signIn(t, "alice", "/")
		bob.signIn(t, "bob", "/")
		const base = "/-/user_settings/applications"
		p := alice.send(t, "GET", base, nil)
		if p.status != 200 || !strings.Contains(p.text, "No applications") {
			t.Fatalf("%d: %s", p.status, p.text)
		}
		form := p.form(t, base, "name", "My <i>app</i>", "redirect_uri", "javascript:x", "confidential", "1", "trusted", "1")
		form["scopes"] = []string{"api", "openid"}
		if p := alice.send(t, "POST", base, form); p.status != 422 || !strings.Contains(p.text, "Redirect URIs must be an absolute URI") {
			t.Errorf("bad address: %d", p.status)
		}
		form.Set("redirect_uri", appCallback)
		p = alice.send(t, "POST", base, form)
		secret := regexp.MustCompile(`svcoas-[A-Z0-9]+`).FindString(p.text)
		if p.status != 200 || secret == "" || p.header.Get("Cache-Control") != "no-store" || strings.Contains(p.text, "<i>app</i>") {
			t.Fatalf("made: %d %s", p.status, p.text)
		}
		m := regexp.MustCompile(`action="(` + base + `/\d+)"`).FindStringSubmatch(p.text)
		if m == nil {
			t.Fatal(p.text)
		}
		one := m[1]
		p = alice.send(t, "GET", one, nil)
		if p.status != 200 || strings.Contains(p.text, "svcoas-") || strings.Contains(p.text, "Trusted") {
			t.Errorf("shown: %d %s", p.status, p.text)
		}
		for _, path := range []string{one, "/admin/applications"} {
			if p := bob.send(t, "GET", path, nil); p.status != 404 {
				t.Errorf("%s for another: %d", path, p.status)
			}
		}
		stranger := bob.send(t, "GET", base, nil).form(t, base)
		for _, path := range []string{one, one + "/renew", one + "/delete", "/admin/applications"} {
			if p := bob.send(t, "POST", path, stranger); p.status != 404 {
				t.Errorf("POST %s by another: %d", path, p.status)
			}
		}
		if p := alice.send(t, "POST", one+"/renew", p.form(t, one+"/renew")); p.status != 200 || !strings.Contains(p.text, "svcoas-") || strings.Contains(p.text, secret) {
			t.Errorf("renewed: %d", p.status)
		}
		form = p.form(t, one, "name", "Other", "redirect_uri", appCallback)
		form["scopes"] = []string{"openid"}
		if p := alice.send(t, "POST", one, form); p.status != 303 {
			t.Errorf("saved: %d %s", p.status, p.text)
		}
		if p := alice.send(t, "GET", base, nil); !strings.Contains(p.text, "Other") || !strings.Contains(p.text, "Public") {
			t.Errorf("list: %s", p.text)
		}

		// Bob lets an application in, sees that, and takes it back.
		app := newApp(t, s, oauth.NewApplication{Name: "Build monitor"})
		consent := bob.send(t, "GET", authorizePath(app), nil).form(t, "/oauth/authorize", "decision", "allow")
		bob.send(t, "POST", "/oauth/authorize", consent).arrived(t)
		p = bob.send(t, "GET", base, nil)
		m = regexp.MustCompile(`action="(` + base + `/authorized/\d+/revoke)"`).FindStringSubmatch(p.text)
		if m == nil || !strings.Contains(p.text, "Build monitor") {
			t.Fatal(p.text)
		}
		if p := bob.send(t, "POST", m[1], p.form(t, m[1])); p.status != 303 {
			t.Errorf("revoked: %d", p.status)
		}
		if p := bob.send(t, "GET", base, nil); strings.Contains(p.text, "Build monitor") {
			t.Error("still authorized")
		}
		if p := bob.send(t, "GET", authorizePath(app), nil); p.status != 200 {
			t.Errorf("not asked again: %d", p.status)
		}
		if p := alice.send(t, "POST", one+"/delete", alice.send(t, "GET", one, nil).form(t, one+"/delete")); p.status != 303 {
			t.Errorf("removed: %d", p.status)
		}
		if p := alice.send(t, "GET", one, nil); p.status != 404 {
			t.Errorf("after that: %d", p.status)
		}
	})
}
