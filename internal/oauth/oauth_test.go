package oauth_test

import (
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
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

// refusal gives the code of a refusal and the answer that the client gets, nil
// when it gets none.
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
			code   string // empty: good
			page   bool   // told to the user alone
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

		// Only a person in his browser can allow something.
		for name, by := range map[string]actor.Actor{
			"nobody": {}, "a token": {ID: id, Scopes: []string{"api"}, TokenID: 1}, "an application": {ID: id, Scopes: []string{"api"}, LentID: 1},
			"a job": {ID: id, Job: &actor.Job{}}, "sudo": {ID: id, Behind: &actor.Actor{ID: 1}},
		} {
			if _, err := s.OAuth.Ask(t.Context(), by, now, begin(trusted)); errs.KindOf(err) == 0 {
				t.Errorf("%s is asked: %v", name, err)
			}
			if _, err := s.OAuth.Approve(t.Context(), by, now, begin(trusted)); errs.KindOf(err) == 0 {
				t.Errorf("%s approves: %v", name, err)
			}
		}

		// It may have changed while the user was thinking.
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

// exchange lets the application in and gives its tokens.
func exchange(t *testing.T, s *apptest.Server, app *oauth.Application, by actor.Actor, scope string) *oauth.Tokens {
	t.Helper()
	r, err := s.OAuth.Begin(t.Context(), request(app, "scope", scope))
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.OAuth.Approve(t.Context(), by, s.Clock.Now(), r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{
		GrantType: "authorization_code", ClientID: app.UID, ClientSecret: app.Secret, Code: back.Query().Get("code"), RedirectURI: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestAuthorizations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		other, _ := s.User(t, "bob")
		alice, bob := actor.Actor{ID: id, Username: "alice"}, actor.Actor{ID: other, Username: "bob"}
		one, two := newApplication(t, s, oauth.NewApplication{Confidential: true}), newApplication(t, s, oauth.NewApplication{Confidential: true})
		first := exchange(t, s, one, alice, "api")
		exchange(t, s, one, alice, "openid")
		second := exchange(t, s, two, alice, "read_user")
		ofBob := exchange(t, s, one, bob, "api")
		password, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "password", Username: "alice", Password: "a good password"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.OAuth.Authorizations(t.Context(), alice)
		if err != nil || len(list) != 3 || list[0].Application != nil || list[1].Application.ID != two.ID || list[2].Application.ID != one.ID ||
			!slices.Equal(list[2].Scopes, []string{"openid", "api"}) {
			t.Fatalf("authorizations: %+v, %v", list, err)
		}
		works := func(token string, want bool) {
			t.Helper()
			if _, err := s.Users.Authenticate(t.Context(), token, ""); (err == nil) != want {
				t.Errorf("authenticate: %v", err)
			}
		}
		works(first.AccessToken, true) // and is remembered
		if err := s.OAuth.RevokeAuthorization(t.Context(), alice, one.ID); err != nil {
			t.Fatal(err)
		}
		works(first.AccessToken, false)
		works(second.AccessToken, true)
		works(ofBob.AccessToken, true)
		works(password.AccessToken, true)
		if err := s.OAuth.RevokeAuthorization(t.Context(), alice, 0); err != nil {
			t.Fatal(err)
		}
		works(password.AccessToken, false)
		if list, err = s.OAuth.Authorizations(t.Context(), alice); err != nil || len(list) != 1 {
			t.Errorf("authorizations: %+v, %v", list, err)
		}
		for _, id := range []int64{0, one.ID, 99999} {
			if err := s.OAuth.RevokeAuthorization(t.Context(), alice, id); !errs.Is(err, errs.KindNotFound) {
				t.Errorf("revoke %d again: %v", id, err)
			}
		}
		if _, err := s.OAuth.Authorizations(t.Context(), actor.Actor{}); !errs.Is(err, errs.KindUnauthorized) {
			t.Errorf("nobody: %v", err)
		}
	})
}

// TestOwnApplications has users change and lose what is theirs.
func TestOwnApplications(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		other, _ := s.User(t, "bob")
		alice, bob := actor.Actor{ID: id, Username: "alice"}, actor.Actor{ID: other, Username: "bob"}
		root := actor.Actor{ID: 1, Username: "root", Admin: true}
		app, err := s.OAuth.CreateOwn(t.Context(), alice, oauth.NewApplication{
			Name: "Own", RedirectURIs: callback, Scopes: []string{"api", "read_user"}, Confidential: true, Trusted: true,
		})
		if err != nil || app.Trusted {
			t.Fatalf("%+v, %v", app, err)
		}
		name, yes := "New", true
		for who, by := range map[string]actor.Actor{"another": bob, "an administrator": root} {
			for what, err := range map[string]error{
				"update": second(s.OAuth.Update(t.Context(), by, app.ID, oauth.Change{Name: &name})),
				"renew":  second(s.OAuth.RenewSecret(t.Context(), by, app.ID)),
				"get":    second(s.OAuth.Application(t.Context(), by, app.ID)),
				"delete": s.OAuth.Delete(t.Context(), by, app.ID),
			} {
				if !errs.Is(err, errs.KindNotFound) {
					t.Errorf("%s by %s: %v", what, who, err)
				}
			}
		}
		if err := second(s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Trusted: &yes})); !errs.Is(err, errs.KindForbidden) {
			t.Errorf("he trusts himself: %v", err)
		}
		if err := s.OAuth.Delete(t.Context(), actor.Actor{}, app.ID); !errs.Is(err, errs.KindUnauthorized) {
			t.Errorf("nobody deletes: %v", err)
		}
		tokens := exchange(t, s, app, bob, "read_user")
		works := func(want bool) {
			t.Helper()
			if _, err := s.Users.Authenticate(t.Context(), tokens.AccessToken, ""); (err == nil) != want {
				t.Errorf("authenticate: %v", err)
			}
		}
		works(true)
		if _, err := s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Name: &name}); err != nil {
			t.Fatal(err)
		}
		works(true)
		if got, err := s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Scopes: []string{"api"}}); err != nil || got.Name != "New" {
			t.Fatalf("%+v, %v", got, err)
		}
		works(false) // it has lost a scope

		app, err = s.OAuth.CreateOwn(t.Context(), alice, oauth.NewApplication{Name: "Next", RedirectURIs: callback, Scopes: []string{"api"}, Confidential: true})
		if err != nil {
			t.Fatal(err)
		}
		tokens = exchange(t, s, app, bob, "api")
		works(true)
		if err := s.Users.Delete(t.Context(), root, id, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		works(false) // it went with its owner
	})
}

func second[T any](_ T, err error) error { return err }

// TestOtherNode revokes on one node what another knows.
func TestOtherNode(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is one node
	}
	src := dbtest.Postgres(t)
	here := apptest.Start(t, src)
	there := apptest.Start(t, src, apptest.Beside(t, here))
	id, _ := here.User(t, "alice")
	app := newApplication(t, here, oauth.NewApplication{Confidential: true})
	tokens := exchange(t, here, app, actor.Actor{ID: id, Username: "alice"}, "api openid")
	there.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + tokens.AccessToken}, Status: 200})
	if err := here.OAuth.Revoke(t.Context(), app.UID, app.Secret, tokens.AccessToken); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := there.Send(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + tokens.AccessToken}})
		if a.Status == 401 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the other node still takes the token")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPurge lets time pass and looks at what is left.
func TestPurge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		alice := actor.Actor{ID: id, Username: "alice"}
		app := newApplication(t, s, oauth.NewApplication{Confidential: true})
		live := exchange(t, s, app, alice, "api")
		gone := exchange(t, s, app, alice, "api")
		if err := s.OAuth.Revoke(t.Context(), app.UID, app.Secret, gone.AccessToken); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "password", Username: "alice", Password: "a good password"}); err != nil {
			t.Fatal(err)
		}
		refresh := func() {
			t.Helper()
			next, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "refresh_token", ClientID: app.UID, ClientSecret: app.Secret, RefreshToken: live.RefreshToken})
			if err != nil {
				t.Fatal(err)
			}
			live = next
		}
		refresh()
		left := func(codes, tokens, grants int) {
			t.Helper()
			if err := s.OAuth.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			for table, want := range map[string]int{"oauth_codes": codes, "oauth_tokens": tokens, "oauth_grants": grants} {
				var n int
				if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != want {
					t.Errorf("%s: %d rows, want %d, %v", table, n, want, err)
				}
			}
		}
		left(2, 4, 3)
		s.Clock.Move(25 * time.Hour)
		left(0, 3, 2) // the codes, and the password
		s.Clock.Move(29 * 24 * time.Hour)
		refresh()
		left(0, 2, 1) // what was revoked or replaced a month ago
		s.Clock.Move(179 * 24 * time.Hour)
		left(0, 1, 1)
		refresh()
		s.Clock.Move(181 * 24 * time.Hour)
		left(0, 0, 0)
	})
}
