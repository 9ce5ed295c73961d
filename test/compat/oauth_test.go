package compat

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/go-cmp/cmp"
	gitlab "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/oauth2"
)

// callback is the redirect URI of a native application. The port that is used may
// differ from the registered one.
const callback = "http://127.0.0.1:7171/auth/redirect"

// TestOAuth authorizes applications that use public libraries.
func TestOAuth(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
			Email: new("flora@example.org"), Name: new("Flora"), Username: new("flora"), Password: new(password), SkipConfirmation: new(true),
		})).ok(t)
		g := ask(root.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Garden"), Path: new("garden")})).ok(t)
		ask(root.GroupMembers.AddGroupMember(g.ID, &gitlab.AddGroupMemberOptions{UserID: new(u.ID), AccessLevel: new(gitlab.MaintainerPermissions)})).ok(t)
		b := newBrowser(t, s)
		b.signIn(t, "flora")
		t.Run("applications", func(t *testing.T) { goApplications(t, root) })
		t.Run("x/oauth2", func(t *testing.T) { xOAuth2(t, s, root, b) })
		t.Run("go-oidc", func(t *testing.T) { goOIDC(t, s, root, b, u) })
		t.Run("password", func(t *testing.T) { goPassword(t, s) })
	})
}

func newApplication(t *testing.T, root *gitlab.Client, scopes string, confidential bool) *gitlab.Application {
	t.Helper()
	return ask(root.Applications.CreateApplication(&gitlab.CreateApplicationOptions{
		Name: new("Desk " + scopes), RedirectURI: new(callback), Scopes: new(scopes), Confidential: new(confidential),
	})).done(t, http.StatusCreated)
}

func goApplications(t *testing.T, root *gitlab.Client) {
	a := newApplication(t, root, "read_user", true)
	if a.ApplicationID == "" || a.Secret == "" || a.ApplicationName != "Desk read_user" || a.CallbackURL != callback || !a.Confidential {
		t.Errorf("created %+v", a)
	}
	list := ask(root.Applications.ListApplications(&gitlab.ListApplicationsOptions{})).ok(t)
	if len(list) != 1 || list[0].ApplicationID != a.ApplicationID || list[0].Secret != "" {
		t.Errorf("list %+v", list)
	}
	send(root.Applications.DeleteApplication(a.ID)).done(t, http.StatusNoContent)
	if list = ask(root.Applications.ListApplications(&gitlab.ListApplicationsOptions{})).ok(t); len(list) != 0 {
		t.Errorf("after the deletion %+v", list)
	}
}

// xOAuth2 is a native application, like the command-line client: a public client
// with PKCE, on any port.
func xOAuth2(t *testing.T, s *server, root *gitlab.Client, b *browser) {
	a := newApplication(t, root, "api openid", false)
	config := oauth2.Config{
		ClientID: a.ApplicationID, RedirectURL: strings.Replace(callback, "7171", "49152", 1), Scopes: []string{"api"},
		Endpoint: oauth2.Endpoint{AuthURL: s.url + "/oauth/authorize", TokenURL: s.url + "/oauth/token"},
	}
	verifier := oauth2.GenerateVerifier()
	back := b.allow(t, config.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)))
	if back.Get("state") != "the state" {
		t.Errorf("came back with %v", back)
	}
	if _, err := config.Exchange(t.Context(), back.Get("code"), oauth2.VerifierOption(oauth2.GenerateVerifier())); errorCode(err) != "invalid_grant" {
		t.Errorf("another verifier: %v", err)
	}
	token, err := config.Exchange(t.Context(), back.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(token.Expiry); token.Type() != "Bearer" || left < 7100*time.Second || left > 7200*time.Second || token.RefreshToken == "" {
		t.Errorf("token of type %s for %s", token.Type(), left)
	}
	c, err := gitlab.NewAuthSourceClient(gitlab.OAuthTokenSource{TokenSource: config.TokenSource(t.Context(), token)}, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	if self := ask(c.Users.CurrentUser()).ok(t); self.Username != "flora" {
		t.Errorf("signed in as %s", self.Username)
	}

	// The library refreshes an expired token itself.
	old := *token
	old.Expiry = time.Now().Add(-time.Minute)
	next, err := config.TokenSource(t.Context(), &old).Token()
	if err != nil {
		t.Fatal(err)
	}
	if next.AccessToken == token.AccessToken || next.RefreshToken == token.RefreshToken || next.RefreshToken == "" {
		t.Error("the refresh gave the same tokens")
	}
	if _, err := config.TokenSource(t.Context(), &old).Token(); errorCode(err) != "invalid_grant" {
		t.Errorf("the old refresh token again: %v", err)
	}
	c, err = gitlab.NewAuthSourceClient(gitlab.OAuthTokenSource{TokenSource: oauth2.StaticTokenSource(next)}, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	ask(c.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
}

func errorCode(err error) string {
	refused, ok := err.(*oauth2.RetrieveError)
	if !ok {
		if inner, ok := err.(interface{ Unwrap() error }); ok {
			return errorCode(inner.Unwrap())
		}
		return ""
	}
	return refused.ErrorCode
}

// goOIDC is a server that lets users sign in with their account.
func goOIDC(t *testing.T, s *server, root *gitlab.Client, b *browser, u *gitlab.User) {
	a := newApplication(t, root, "openid profile email", true)
	provider, err := oidc.NewProvider(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	config := oauth2.Config{
		ClientID: a.ApplicationID, ClientSecret: a.Secret, RedirectURL: callback, Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
	back := b.allow(t, config.AuthCodeURL("x", oidc.Nonce("once")))
	token, err := config.Exchange(t.Context(), back.Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: a.ApplicationID}).Verify(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.VerifyAccessToken(token.AccessToken); err != nil {
		t.Errorf("at_hash: %v", err)
	}
	if id.Nonce != "once" || id.Issuer != s.url {
		t.Errorf("nonce %q, issuer %q", id.Nonce, id.Issuer)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: "another"}).Verify(t.Context(), raw); err == nil {
		t.Error("the token is good for another application")
	}
	var claims struct {
		Name, Nickname, Email string
		Verified              bool     `json:"email_verified"`
		Direct                []string `json:"groups_direct"`
		AuthTime              int64    `json:"auth_time"`
	}
	if err := id.Claims(&claims); err != nil {
		t.Fatal(err)
	}
	if claims.Name != "Flora" || claims.Nickname != "flora" || claims.Email != "flora@example.org" || !claims.Verified || !cmp.Equal(claims.Direct, []string{"garden"}) ||
		time.Since(time.Unix(claims.AuthTime, 0)) > time.Hour {
		t.Errorf("claims %+v", claims)
	}
	info, err := provider.UserInfo(t.Context(), config.TokenSource(t.Context(), token))
	if err != nil {
		t.Fatal(err)
	}
	var more struct{ Groups []string }
	if err := info.Claims(&more); err != nil {
		t.Fatal(err)
	}
	if info.Subject != id.Subject || info.Email != u.Email || !info.EmailVerified || !cmp.Equal(more.Groups, []string{"garden"}) {
		t.Errorf("userinfo %+v %+v", info, more)
	}
	// The user has authorized the application: the second time no confirmation is
	// needed.
	if back := b.pass(t, config.AuthCodeURL("y")); back.Get("code") == "" || back.Get("state") != "y" {
		t.Errorf("the second time: %v", back)
	}
}

func goPassword(t *testing.T, s *server) {
	c, err := gitlab.NewAuthSourceClient(&gitlab.PasswordCredentialsAuthSource{Username: "flora", Password: password}, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	if self := ask(c.Users.CurrentUser()).ok(t); self.Username != "flora" {
		t.Errorf("signed in as %s", self.Username)
	}
	c, err = gitlab.NewAuthSourceClient(&gitlab.PasswordCredentialsAuthSource{Username: "flora", Password: "wrong"}, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Users.CurrentUser(); errorCode(err) != "invalid_grant" {
		t.Errorf("a wrong password: %v", err)
	}
}

// browser submits forms like a user.
type browser struct {
	s      *server
	client *http.Client
}

func newBrowser(t *testing.T, s *server) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// open gets a page, or posts a form to it; to is the target of its redirect.
func (b *browser) open(t *testing.T, address string, form url.Values) (text, to string) {
	t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(context.Background(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s", method, address, res.Status)
	}
	return string(page), res.Header.Get("Location")
}

var hiddenFields = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// fields returns the hidden fields of the form that posts to a path.
func fields(t *testing.T, page, action string) url.Values {
	t.Helper()
	_, after, ok := strings.Cut(page, `action="`+action+`"`)
	if !ok {
		t.Fatalf("the page has no form for %s", action)
	}
	inner, _, _ := strings.Cut(after, "</form>")
	values := url.Values{}
	for _, m := range hiddenFields.FindAllStringSubmatch(inner, -1) {
		values.Set(m[1], html.UnescapeString(m[2]))
	}
	return values
}

func (b *browser) signIn(t *testing.T, login string) {
	t.Helper()
	page, _ := b.open(t, b.s.url+"/users/sign_in", nil)
	form := fields(t, page, "/users/sign_in")
	form.Set("login", login)
	form.Set("password", password)
	if _, to := b.open(t, b.s.url+"/users/sign_in", form); to != "/" {
		t.Fatalf("signed in to %q", to)
	}
}

// allow opens the authorization URL of an application, authorizes it, and returns
// the parameters of the redirect.
func (b *browser) allow(t *testing.T, address string) url.Values {
	t.Helper()
	page, _ := b.open(t, address, nil)
	form := fields(t, page, "/oauth/authorize")
	form.Set("decision", "allow")
	_, to := b.open(t, b.s.url+"/oauth/authorize", form)
	return carried(t, to)
}

// pass is allow if no confirmation is needed.
func (b *browser) pass(t *testing.T, address string) url.Values {
	t.Helper()
	_, to := b.open(t, address, nil)
	return carried(t, to)
}

func carried(t *testing.T, to string) url.Values {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil || u.Hostname() != "127.0.0.1" || u.Path != "/auth/redirect" {
		t.Fatalf("sent to %q, %v", to, err)
	}
	return u.Query()
}
