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

// oauthBrowser is a browser that does not follow redirects.
type oauthBrowser struct {
	s      *apptest.Server
	client *http.Client
}

// page is a response.
type page struct {
	status int
	header http.Header
	text   string
}

func newOAuthBrowser(t *testing.T, s *apptest.Server) *oauthBrowser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &oauthBrowser{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *oauthBrowser) send(t *testing.T, method, path string, form url.Values, header ...string) page {
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

// form returns the hidden fields of the form that is sent to an action, changed by
// pairs.
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

func (b *oauthBrowser) signIn(t *testing.T, login, returnTo string) page {
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

// arrived checks that a response sends the browser to the application, and returns
// the parameters.
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
		b := newOAuthBrowser(t, s)
		path := authorizePath(app)

		// The visitor has not signed in: they sign in first and return.
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
		// Without the CSRF token of the page the form is refused.
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

		// An application that was authorized before is not confirmed again, unless
		// it requests more scopes.
		if got := b.send(t, "GET", path, nil).arrived(t); got.Get("code") == "" {
			t.Errorf("again: %v", got)
		}
		if p := b.send(t, "GET", authorizePath(app, "scope", "api read_user"), nil); p.status != 200 {
			t.Errorf("more: %d", p.status)
		}
		// A changed form: there is no redirect to a URI that is not registered.
		for name, value := range map[string]string{"redirect_uri": "https://evil.example/", "client_id": "x"} {
			changed := p.form(t, "/oauth/authorize", "decision", "allow", name, value)
			if p := b.send(t, "POST", "/oauth/authorize", changed); p.status != 400 || p.header.Get("Location") != "" {
				t.Errorf("%s: %d to %s", name, p.status, p.header.Get("Location"))
			}
		}
	})
}

// TestSilentOpenRedirect checks that the prompt "none" is no open redirect: a link
// to the instance does not lead visitors who have not signed in to an application of
// any user.
func TestSilentOpenRedirect(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "mallory")
		own, err := s.OAuth.CreateOwn(t.Context(), actor.Actor{ID: id, Username: "mallory"},
			oauth.NewApplication{Name: "Own", RedirectURIs: appCallback, Scopes: []string{"openid", "api"}, Confidential: true})
		if err != nil {
			t.Fatal(err)
		}
		guest := newOAuthBrowser(t, s)
		for name, path := range map[string]string{
			"silent": authorizePath(own, "prompt", "none"), "silent and broken": authorizePath(own, "prompt", "none", "response_type", "x"),
			"silent twice": authorizePath(own, "prompt", "none login"),
		} {
			if p := guest.send(t, "GET", path, nil); !strings.HasPrefix(p.header.Get("Location"), "/users/sign_in?") {
				t.Errorf("%s: a visitor is sent to %s", name, p.header.Get("Location"))
			}
		}
		// Applications of the instance get a response.
		app := newApp(t, s, oauth.NewApplication{Name: "App"})
		if got := guest.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "login_required" {
			t.Errorf("an application of the instance: %v", got)
		}
		mallory := newOAuthBrowser(t, s)
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
		alice, guest := newOAuthBrowser(t, s), newOAuthBrowser(t, s)
		alice.signIn(t, "alice", "/")
		for name, path := range map[string]string{
			"unknown client": authorizePath(app, "client_id", "x"), "another address": authorizePath(app, "redirect_uri", "https://evil.example/"),
			"an address with a user": authorizePath(app, "redirect_uri", "https://app.example.com@evil.example/auth/cb"), "nothing": "/oauth/authorize",
			"a script": authorizePath(app, "redirect_uri", "javascript:alert(1)"), "broken": "/oauth/authorize?client_id=%zz",
		} {
			for who, b := range map[string]*oauthBrowser{"alice": alice, "guest": guest} {
				if p := b.send(t, "GET", path, nil); p.status != 400 || p.header.Get("Location") != "" || !strings.Contains(p.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
					t.Errorf("%s, %s: %d to %s", name, who, p.status, p.header.Get("Location"))
				}
			}
		}
		bad := authorizePath(app, "scope", "sudo")
		if got := alice.send(t, "GET", bad, nil).arrived(t); got.Get("error") != "invalid_scope" || got.Get("state") == "" {
			t.Errorf("invalid scope: %v", got)
		}
		// A link to the instance does not lead anonymous visitors to another site.
		if p := guest.send(t, "GET", bad, nil); !strings.HasPrefix(p.header.Get("Location"), "/users/sign_in?") {
			t.Errorf("a stranger is sent to %s", p.header.Get("Location"))
		}
		if got := guest.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "login_required" {
			t.Errorf("silent: %v", got)
		}
		if got := alice.send(t, "GET", authorizePath(app, "prompt", "none"), nil).arrived(t); got.Get("error") != "consent_required" {
			t.Errorf("silent: %v", got)
		}
		if p := guest.send(t, "POST", "/oauth/authorize", url.Values{"decision": {"allow"}}); p.status != 422 {
			t.Errorf("a stranger allows: %d", p.status)
		}

		// A trusted application needs no confirmation. After the sign-in form a page
		// has a link to it, because browsers apply the policy of the form to the
		// redirect.
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
		alice, bob := newOAuthBrowser(t, s), newOAuthBrowser(t, s)
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

		// Bob authorizes an application, sees it in the list, and revokes the
		// authorization.
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
