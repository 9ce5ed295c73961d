package servertest

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/errs"
	"svc/internal/oauth"
)

const callback = "https://app.example.com/cb?x=1"

func newApplication(t *testing.T, s *apptest.Server, n oauth.NewApplication) *oauth.Application {
	t.Helper()
	n.Name, n.RedirectURIs = "App", callback
	if n.Scopes == nil {
		n.Scopes = []string{"api", "read_user", "openid"}
	}
	app, err := s.OAuth.Create(t.Context(), actor.System(), n)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func request(app *oauth.Application, changes ...string) url.Values {
	v := url.Values{"client_id": {app.UID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"api"}, "state": {"a b&c"}}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "-" {
			v.Del(changes[i])
			continue
		}
		v.Set(changes[i], changes[i+1])
	}
	return v
}

// refusal returns the code of an error and the parameters of its redirect to the
// client; nil without a redirect.
func refusal(t *testing.T, err error) (string, url.Values) {
	t.Helper()
	refused, ok := errors.AsType[*oauth.Error](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	if refused.Redirect == "" {
		return refused.Code, nil
	}
	if !strings.HasPrefix(refused.Redirect, callback+"&") {
		t.Errorf("sent to %s", refused.Redirect)
	}
	to, err := url.Parse(refused.Redirect)
	if err != nil {
		t.Fatal(err)
	}
	return refused.Code, to.Query()
}

func TestBegin(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		app := newApplication(t, s, oauth.NewApplication{Confidential: true})
		public := newApplication(t, s, oauth.NewApplication{})
		off := newApplication(t, s, oauth.NewApplication{Confidential: true})
		yes := true
		if _, err := s.OAuth.Update(t.Context(), actor.System(), off.ID, oauth.Change{Disabled: &yes}); err != nil {
			t.Fatal(err)
		}
		challenge := "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
		twice := request(app)
		twice.Add("scope", "openid")
		tests := []struct {
			name   string
			values url.Values
			code   string // empty if the request is valid
			page   bool   // the error is shown to the user only
		}{
			{name: "good", values: request(app)},
			{name: "PKCE", values: request(app, "code_challenge", challenge, "code_challenge_method", "S256")},
			{name: "public with PKCE", values: request(public, "code_challenge", challenge, "code_challenge_method", "S256")},
			{name: "several scopes", values: request(app, "scope", "api  openid api")},
			{name: "no state", values: request(app, "state", "-")},
			{name: "query mode", values: request(app, "response_mode", "query", "max_age", "0", "prompt", "consent")},

			{name: "no client", values: request(app, "client_id", "-"), code: "invalid_client", page: true},
			{name: "unknown client", values: request(app, "client_id", "x"), code: "invalid_client", page: true},
			{name: "a client that is no text", values: request(app, "client_id", "\x00\xff"), code: "invalid_client", page: true},
			{name: "disabled client", values: request(off), code: "invalid_client", page: true},
			{name: "no redirect URI", values: request(app, "redirect_uri", "-"), code: "invalid_request", page: true},
			{name: "another redirect URI", values: request(app, "redirect_uri", "https://evil.example/"), code: "invalid_request", page: true},
			{name: "more of a redirect URI", values: request(app, "redirect_uri", callback+"/../evil"), code: "invalid_request", page: true},
			{name: "less of a redirect URI", values: request(app, "redirect_uri", strings.TrimSuffix(callback, "?x=1")), code: "invalid_request", page: true},
			{name: "a user in it", values: request(app, "redirect_uri", strings.Replace(callback, "app.", "app.example.com@evil.", 1)), code: "invalid_request", page: true},
			{name: "a bad scope and a bad redirect URI", values: request(app, "redirect_uri", "https://evil.example/", "scope", "all"), code: "invalid_request", page: true},
			{name: "a parameter twice", values: twice, code: "invalid_request", page: true},

			{name: "no response type", values: request(app, "response_type", "-"), code: "invalid_request"},
			{name: "implicit", values: request(app, "response_type", "token"), code: "unsupported_response_type"},
			{name: "hybrid", values: request(app, "response_type", "code id_token"), code: "unsupported_response_type"},
			{name: "no scope", values: request(app, "scope", "-"), code: "invalid_request"},
			{name: "blank scope", values: request(app, "scope", "  "), code: "invalid_request"},
			{name: "unknown scope", values: request(app, "scope", "api all"), code: "invalid_scope"},
			{name: "a scope that it does not have", values: request(app, "scope", "api sudo"), code: "invalid_scope"},
			{name: "plain PKCE", values: request(app, "code_challenge", challenge, "code_challenge_method", "plain"), code: "invalid_request"},
			{name: "PKCE without a method", values: request(app, "code_challenge", challenge), code: "invalid_request"},
			{name: "a method without a challenge", values: request(app, "code_challenge_method", "S256"), code: "invalid_request"},
			{name: "a short challenge", values: request(app, "code_challenge", challenge[1:], "code_challenge_method", "S256"), code: "invalid_request"},
			{name: "public without PKCE", values: request(public), code: "invalid_request"},
			{name: "fragment mode", values: request(app, "response_mode", "fragment"), code: "invalid_request"},
			{name: "a request object", values: request(app, "request", "x"), code: "request_not_supported"},
			{name: "none and another prompt", values: request(app, "prompt", "none login"), code: "invalid_request"},
			{name: "max_age", values: request(app, "max_age", "-1"), code: "invalid_request"},
			{name: "a long nonce", values: request(app, "nonce", strings.Repeat("n", 600)), code: "invalid_request"},
		}
		for _, test := range tests {
			r, err := s.OAuth.Begin(t.Context(), test.values)
			if test.code == "" {
				if err != nil || r.Application.UID == "" {
					t.Errorf("%s: %v", test.name, err)
				}
				continue
			}
			code, answer := refusal(t, err)
			if code != test.code || test.page != (answer == nil) {
				t.Errorf("%s: %s, %v", test.name, code, answer)
			}
			if answer != nil && (answer.Get("error") != code || answer.Get("error_description") == "" || answer.Get("state") != test.values.Get("state") || answer.Get("x") != "1") {
				t.Errorf("%s: answer %v", test.name, answer)
			}
		}
	})
}

func TestConsent(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		alice := actor.Actor{ID: id, Username: "alice"}
		app := newApplication(t, s, oauth.NewApplication{Confidential: true})
		public := newApplication(t, s, oauth.NewApplication{})
		trusted := newApplication(t, s, oauth.NewApplication{Confidential: true, Trusted: true})
		now := s.Clock.Now()
		begin := func(app *oauth.Application, changes ...string) *oauth.Request {
			t.Helper()
			if !app.Confidential {
				changes = append(changes, "code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method", "S256")
			}
			r, err := s.OAuth.Begin(t.Context(), request(app, changes...))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		asked := func(r *oauth.Request, want bool) {
			t.Helper()
			ask, err := s.OAuth.Ask(t.Context(), alice, now, r)
			if err != nil || ask != want {
				t.Errorf("asked: %v, %v", ask, err)
			}
		}
		approve := func(r *oauth.Request) {
			t.Helper()
			to, err := s.OAuth.Approve(t.Context(), alice, now, r)
			if err != nil || !strings.HasPrefix(to, callback+"&code=") || !strings.HasSuffix(to, "&state=a+b%26c") {
				t.Errorf("sent to %s, %v", to, err)
			}
		}
		asked(begin(trusted), false)
		asked(begin(trusted, "prompt", "consent"), true)
		asked(begin(app), true)
		approve(begin(app, "scope", "api read_user"))
		asked(begin(app), false)
		asked(begin(app, "scope", "read_user api"), false)
		asked(begin(app, "scope", "api openid"), true)
		asked(begin(app, "prompt", "consent"), true)
		approve(begin(public))
		asked(begin(public), true)

		code, _ := refusal(t, askError(s, t, alice, now, begin(app, "scope", "openid", "prompt", "none")))
		if code != "consent_required" {
			t.Error(code)
		}
		if _, err := s.OAuth.Ask(t.Context(), alice, now, begin(app, "prompt", "none")); err != nil {
			t.Error(err)
		}
		for _, changes := range [][]string{{"max_age", "60"}, {"prompt", "login"}} {
			if code, _ := refusal(t, askError(s, t, alice, now.Add(-time.Hour), begin(app, changes...))); code != "login_required" {
				t.Errorf("%v: %s", changes, code)
			}
			if _, err := s.OAuth.Ask(t.Context(), alice, now, begin(app, changes...)); err != nil {
				t.Errorf("%v after a fresh sign-in: %v", changes, err)
			}
		}
		to, err := url.Parse(begin(app).Deny())
		if err != nil || to.Query().Get("error") != "access_denied" || to.Query().Get("state") != "a b&c" {
			t.Errorf("denied: %v, %v", to, err)
		}

		// Only a user with a browser session can authorize an application.
		for name, by := range map[string]actor.Actor{
			"nobody": {}, "a token": {ID: id, Scopes: []string{"api"}, TokenID: 1}, "an application": {ID: id, Scopes: []string{"api"}, OAuthTokenID: 1},
			"a job": {ID: id, Job: &actor.Job{}}, "sudo": {ID: id, Impersonator: &actor.Actor{ID: 1}},
		} {
			if _, err := s.OAuth.Ask(t.Context(), by, now, begin(trusted)); errs.KindOf(err) == 0 {
				t.Errorf("%s is asked: %v", name, err)
			}
			if _, err := s.OAuth.Approve(t.Context(), by, now, begin(trusted)); errs.KindOf(err) == 0 {
				t.Errorf("%s approves: %v", name, err)
			}
		}

		// The application may be changed while the consent page is shown.
		r := begin(app)
		other := "https://other.example/"
		if _, err := s.OAuth.Update(t.Context(), actor.System(), app.ID, oauth.Change{RedirectURIs: &other}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OAuth.Approve(t.Context(), alice, now, r); err == nil {
			t.Error("approved for an address that is gone")
		}
	})
}

func askError(s *apptest.Server, t *testing.T, by actor.Actor, signedIn time.Time, r *oauth.Request) error {
	t.Helper()
	_, err := s.OAuth.Ask(t.Context(), by, signedIn, r)
	return err
}
