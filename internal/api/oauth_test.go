package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/oauth"
)

const (
	callback     = "https://app.example.com/auth/cb"
	codeVerifier = "a-verifier-of-the-right-length-0123456789~._"
)

func challenge() string {
	sum := sha256.Sum256([]byte(codeVerifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// client is an application and the user who authorizes it.
type client struct {
	*oauth.Application
	s  *apptest.Server
	by actor.Actor
}

func newClient(t *testing.T, s *apptest.Server, userID int64, n oauth.NewApplication) *client {
	t.Helper()
	if n.Name == "" {
		n.Name = "App"
	}
	if n.RedirectURIs == "" {
		n.RedirectURIs = callback + "\nhttps://app.example.com/other"
	}
	if n.Scopes == nil {
		n.Scopes = []string{"api", "read_user", "openid", "email"}
	}
	app, err := s.OAuth.Create(t.Context(), actor.System(), n)
	if err != nil {
		t.Fatal(err)
	}
	return &client{app, s, actor.Actor{ID: userID, Username: "alice", Name: "alice"}}
}

// code authorizes the application and returns the code. With pkce, the request has a
// challenge.
func (c *client) code(t *testing.T, pkce bool, scope string) string {
	t.Helper()
	values := url.Values{"client_id": {c.UID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {scope}, "state": {"s"}, "nonce": {"n-1"}}
	if pkce {
		values.Set("code_challenge", challenge())
		values.Set("code_challenge_method", "S256")
	}
	r, err := c.s.OAuth.Begin(t.Context(), values)
	if err != nil {
		t.Fatal(err)
	}
	to, err := c.s.OAuth.Approve(t.Context(), c.by, c.s.Clock.Now().Add(-time.Hour), r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil || back.Query().Get("state") != "s" {
		t.Fatalf("sent to %s, %v", to, err)
	}
	return back.Query().Get("code")
}

// exchange returns the form that exchanges a code, with changes as pairs of names
// and values; the value "-" removes a parameter.
func (c *client) exchange(code string, changes ...string) url.Values {
	return changed(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {c.UID}, "client_secret": {c.Secret}, "code": {code}, "redirect_uri": {callback},
	}, changes)
}

func (c *client) refresh(token string, changes ...string) url.Values {
	return changed(url.Values{"grant_type": {"refresh_token"}, "client_id": {c.UID}, "client_secret": {c.Secret}, "refresh_token": {token}}, changes)
}

func changed(values url.Values, changes []string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "-" {
			values.Del(changes[i])
			continue
		}
		values.Set(changes[i], changes[i+1])
	}
	return values
}

type tokensAnswer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
}

// tokens authorizes the application and returns its tokens.
func (c *client) tokens(t *testing.T, scope string) tokensAnswer {
	t.Helper()
	return c.ask(t, c.exchange(c.code(t, false, scope)))
}

func (c *client) ask(t *testing.T, form url.Values) (made tokensAnswer) {
	t.Helper()
	c.s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: form, Status: 200}).JSON(t, &made)
	return made
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func basic(id, secret string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))}
}

const refusedGrant = `{"error":"invalid_grant","error_description":"<any>"}`

func TestOAuthCode(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		other := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		s.Table(t, []apptest.Call{
			{Name: "without PKCE", Do: "POST //oauth/token", Form: c.exchange(c.code(t, false, "api read_user")), Status: 200,
				Want:       `{"access_token":"<any>","token_type":"bearer","expires_in":7200,"refresh_token":"<any>","scope":"api read_user","created_at":"<any>"}`,
				Not:        []string{"id_token"},
				WantHeader: map[string]string{"Cache-Control": "no-store", "Pragma": "no-cache", "Content-Type": "application/json", "Access-Control-Allow-Origin": "-"}},
			{Name: "as JSON", Do: "POST //oauth/token", JSON: fmt.Sprintf(`{"grant_type":"authorization_code","client_id":%q,"client_secret":%q,"code":%q,"redirect_uri":%q}`,
				c.UID, c.Secret, c.code(t, false, "api"), callback), Status: 200},
			{Name: "by Basic", Do: "POST //oauth/token", Header: basic(c.UID, c.Secret), Form: c.exchange(c.code(t, false, "api"), "client_id", "-", "client_secret", "-"), Status: 200},
			{Name: "by both", Do: "POST //oauth/token", Header: basic(c.UID, c.Secret), Form: c.exchange(c.code(t, false, "api")), Status: 200},
			{Name: "PKCE without a secret", Do: "POST //oauth/token", Form: c.exchange(c.code(t, true, "api"), "client_secret", "-", "code_verifier", codeVerifier), Status: 200},
			{Name: "PKCE with the secret", Do: "POST //oauth/token", Form: c.exchange(c.code(t, true, "api"), "code_verifier", codeVerifier), Status: 200},
			{Name: "PKCE with a wrong secret", Do: "POST //oauth/token", Form: c.exchange(c.code(t, true, "api"), "code_verifier", codeVerifier, "client_secret", "x"), Status: 401,
				Want: `{"error":"invalid_client"}`},

			{Name: "no secret", Do: "POST //oauth/token", Form: c.exchange(c.code(t, false, "api"), "client_secret", "-"), Status: 401, Want: `{"error":"invalid_client","error_description":"<any>"}`,
				WantHeader: map[string]string{"Cache-Control": "no-store", "WWW-Authenticate": `Bearer realm="svc", error="invalid_client"`}},
			{Name: "wrong secret", Do: "POST //oauth/token", Form: c.exchange(c.code(t, false, "api"), "client_secret", other.Secret), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "wrong secret by Basic", Do: "POST //oauth/token", Header: basic(c.UID, "x"), Form: c.exchange(c.code(t, false, "api"), "client_id", "-", "client_secret", "-"), Status: 401,
				Want: `{"error":"invalid_client"}`, WantHeader: map[string]string{"WWW-Authenticate": `Basic realm="svc", error="invalid_client"`}},
			{Name: "two clients", Do: "POST //oauth/token", Header: basic(other.UID, other.Secret), Form: c.exchange(c.code(t, false, "api")), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "unknown client", Do: "POST //oauth/token", Form: c.exchange("x", "client_id", "x"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "a client that is no text", Do: "POST //oauth/token", Form: c.exchange("x", "client_id", "\xff\x00"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "no client", Do: "POST //oauth/token", Form: c.exchange("x", "client_id", "-"), Status: 401},
			{Name: "no grant type", Do: "POST //oauth/token", Form: c.exchange("x", "grant_type", "-"), Status: 400, Want: `{"error":"invalid_request","error_description":"The request lacks the parameter grant_type."}`},
			{Name: "unknown grant type", Do: "POST //oauth/token", Form: c.exchange("x", "grant_type", "client_credentials"), Status: 400, Want: `{"error":"unsupported_grant_type"}`},
			{Name: "devices", Do: "POST //oauth/token", Form: c.exchange("x", "grant_type", "urn:ietf:params:oauth:grant-type:device_code"), Status: 400,
				Want: `{"error":"unsupported_grant_type","error_description":"The device authorization grant is not supported."}`},
			{Name: "devices begin", Do: "POST //oauth/authorize_device", Form: url.Values{"client_id": {c.UID}}, Status: 404, Want: `{"error":"unsupported_grant_type"}`},
			{Name: "no code", Do: "POST //oauth/token", Form: c.exchange("", "code", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "no redirect URI", Do: "POST //oauth/token", Form: c.exchange(c.code(t, false, "api"), "redirect_uri", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "unknown code", Do: "POST //oauth/token", Form: c.exchange("x"), Status: 400, Want: refusedGrant},
			{Name: "parameters in the address", Do: "POST //oauth/token?" + c.exchange("x").Encode(), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "broken JSON", Do: "POST //oauth/token", JSON: `{"grant_type":`, Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "JSON of another shape", Do: "POST //oauth/token", JSON: `{"grant_type":["password"]}`, Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "a long body", Do: "POST //oauth/token", Form: c.exchange(strings.Repeat("x", 70_000)), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "by GET", Do: "GET //oauth/token", Status: 405, WantHeader: map[string]string{"Allow": "POST, OPTIONS"}},
		})
		twice := c.exchange(c.code(t, false, "api"))
		twice.Add("code", "x")
		s.Check(t, apptest.Call{Name: "a parameter twice", Do: "POST //oauth/token", Form: twice, Status: 400, Want: `{"error":"invalid_request"}`})
	})
}

// TestOAuthCodeAttacks tries to get tokens with the code of another client or with a
// wrong verifier.
func TestOAuthCodeAttacks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		other := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		public := newClient(t, s, id, oauth.NewApplication{})
		plain, pkce := c.code(t, false, "api"), c.code(t, true, "api")
		ofPublic := public.code(t, true, "api")
		s.Table(t, []apptest.Call{
			{Name: "another client", Do: "POST //oauth/token", Form: other.exchange(plain), Status: 400, Want: refusedGrant},
			{Name: "another client with PKCE", Do: "POST //oauth/token", Form: public.exchange(pkce, "client_secret", "-", "code_verifier", codeVerifier), Status: 400, Want: refusedGrant},
			{Name: "another redirect URI of the client", Do: "POST //oauth/token", Form: c.exchange(plain, "redirect_uri", "https://app.example.com/other"), Status: 400, Want: refusedGrant},
			{Name: "another redirect URI", Do: "POST //oauth/token", Form: c.exchange(plain, "redirect_uri", callback+"/"), Status: 400, Want: refusedGrant},
			{Name: "a verifier where there was no challenge", Do: "POST //oauth/token", Form: c.exchange(plain, "code_verifier", codeVerifier), Status: 400, Want: refusedGrant},
			{Name: "no verifier", Do: "POST //oauth/token", Form: c.exchange(pkce), Status: 400, Want: refusedGrant},
			{Name: "another verifier", Do: "POST //oauth/token", Form: c.exchange(pkce, "code_verifier", strings.Repeat("b", 43)), Status: 400, Want: refusedGrant},
			{Name: "the challenge as verifier", Do: "POST //oauth/token", Form: c.exchange(pkce, "code_verifier", challenge()), Status: 400, Want: refusedGrant},
			{Name: "a short verifier", Do: "POST //oauth/token", Form: c.exchange(pkce, "code_verifier", codeVerifier[:42]), Status: 400, Want: refusedGrant},
			{Name: "a verifier of other letters", Do: "POST //oauth/token", Form: c.exchange(pkce, "code_verifier", codeVerifier+"+"), Status: 400, Want: refusedGrant},
			{Name: "a public client without a verifier", Do: "POST //oauth/token", Form: public.exchange(ofPublic, "client_secret", "-"), Status: 400, Want: refusedGrant},
			// The refused requests have not used the codes up.
			{Name: "plain", Do: "POST //oauth/token", Form: c.exchange(plain), Status: 200},
			{Name: "pkce", Do: "POST //oauth/token", Form: c.exchange(pkce, "client_secret", "-", "code_verifier", codeVerifier), Status: 200},
			{Name: "public", Do: "POST //oauth/token", Form: public.exchange(ofPublic, "client_secret", "-", "code_verifier", codeVerifier), Status: 200},
		})

		code := c.code(t, false, "api")
		made := c.ask(t, c.exchange(code))
		next := c.ask(t, c.refresh(made.Refresh))
		s.Table(t, []apptest.Call{
			{Name: "it works", Do: "GET /user", Header: bearer(next.Access), Status: 200},
			{Name: "a second use by another client", Do: "POST //oauth/token", Form: other.exchange(code), Status: 400, Want: refusedGrant},
			{Name: "that changes nothing", Do: "GET /user", Header: bearer(next.Access), Status: 200},
			{Name: "a second use", Do: "POST //oauth/token", Form: c.exchange(code), Status: 400, Want: refusedGrant},
			{Name: "ends what came out of the first", Do: "GET /user", Header: bearer(next.Access), Status: 401},
			{Name: "and its refresh token", Do: "POST //oauth/token", Form: c.refresh(next.Refresh), Status: 400, Want: refusedGrant},
			{Name: "and is written down", Do: "GET /audit_events?per_page=1", As: root, Status: 200, Want: `[{"event_type":"oauth_grant_replayed","details":{"custom_message":"An authorization code was used twice"}}]`},
		})

		late := c.code(t, false, "api")
		s.Clock.Move(10*time.Minute + time.Second)
		s.Check(t, apptest.Call{Name: "a code of ten minutes ago", Do: "POST //oauth/token", Form: c.exchange(late), Status: 400, Want: refusedGrant})
		for _, text := range []string{code, made.Access, made.Refresh, next.Access, c.Secret} {
			if strings.Contains(s.Log(), text) {
				t.Errorf("%s is in the log", text)
			}
		}
	})
}

// TestOAuthCodeRace exchanges one code with many concurrent requests: at most one
// gets tokens, and these are revoked when the others are refused.
func TestOAuthCodeRace(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		// With openid, signing takes time, so that all requests read the code before
		// it is used.
		form := c.exchange(c.code(t, false, "openid read_user"))
		type result struct {
			status int
			access string
		}
		results := make(chan result, 8)
		for range cap(results) {
			go func() {
				a := s.Send(t, apptest.Call{Do: "POST //oauth/token", Form: form})
				var made tokensAnswer
				a.JSON(t, &made)
				results <- result{a.Status, made.Access}
			}()
		}
		won := ""
		for range cap(results) {
			switch r := <-results; r.status {
			case 200:
				if won != "" {
					t.Error("the code was exchanged twice")
				}
				won = r.access
			case 400:
			default:
				t.Errorf("status %d", r.status)
			}
		}
		if won == "" {
			t.Fatal("nobody got tokens")
		}
		s.Check(t, apptest.Call{Do: "GET /user", Header: bearer(won), Status: 401})
	})
}

func TestOAuthRefresh(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		other := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		first := c.tokens(t, "api read_user")
		second := c.ask(t, c.refresh(first.Refresh, "redirect_uri", callback))
		s.Table(t, []apptest.Call{
			{Name: "the old access token is void", Do: "GET /user", Header: bearer(first.Access), Status: 401},
			{Name: "the new one works", Do: "GET /user", Header: bearer(second.Access), Status: 200, Want: `{"username":"alice"}`},
			{Name: "another client", Do: "POST //oauth/token", Form: other.refresh(second.Refresh), Status: 400, Want: refusedGrant},
			{Name: "without a secret", Do: "POST //oauth/token", Form: c.refresh(second.Refresh, "client_secret", "-"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "another redirect URI", Do: "POST //oauth/token", Form: c.refresh(second.Refresh, "redirect_uri", "https://app.example.com/other"), Status: 400, Want: refusedGrant},
			{Name: "more scopes", Do: "POST //oauth/token", Form: c.refresh(second.Refresh, "scope", "api openid"), Status: 400, Want: `{"error":"invalid_scope"}`},
			{Name: "an access token", Do: "POST //oauth/token", Form: c.refresh(second.Access), Status: 400, Want: refusedGrant},
			{Name: "none", Do: "POST //oauth/token", Form: c.refresh("", "refresh_token", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "still works", Do: "GET /user", Header: bearer(second.Access), Status: 200},
		})
		s.Clock.Move(2*time.Hour + time.Second)
		s.Check(t, apptest.Call{Name: "after two hours", Do: "GET /user", Header: bearer(second.Access), Status: 401})
		third := c.ask(t, c.refresh(second.Refresh, "scope", "read_user"))
		s.Table(t, []apptest.Call{
			{Name: "fewer scopes", Do: "GET /projects", Header: bearer(third.Access), Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "the old refresh token again", Do: "POST //oauth/token", Form: c.refresh(first.Refresh), Status: 400, Want: refusedGrant},
			{Name: "ends the family", Do: "GET /user", Header: bearer(third.Access), Status: 401},
			{Name: "all of it", Do: "POST //oauth/token", Form: c.refresh(third.Refresh), Status: 400, Want: refusedGrant},
			{Name: "and is written down", Do: "GET /audit_events?per_page=1", As: root, Status: 200, Want: `[{"event_type":"oauth_grant_replayed","details":{"custom_message":"A refresh token was used twice"}}]`},
		})

		made := c.ask(t, c.exchange(c.code(t, true, "api"), "client_secret", "-", "code_verifier", codeVerifier))
		made = c.ask(t, c.refresh(made.Refresh, "client_secret", "-")) // a client with PKCE has no secret
		s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: c.refresh(made.Refresh, "client_secret", "wrong"), Status: 401})
		s.Clock.Move(181 * 24 * time.Hour)
		s.Check(t, apptest.Call{Name: "half a year later", Do: "POST //oauth/token", Form: c.refresh(made.Refresh, "client_secret", "-"), Status: 400, Want: refusedGrant})
	})
}

func TestOAuthPassword(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		blocked, _ := s.User(t, "blocked")
		careful, _ := s.User(t, "careful")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		small := newClient(t, s, id, oauth.NewApplication{Confidential: true, Scopes: []string{"read_user"}})
		public := newClient(t, s, id, oauth.NewApplication{})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", blocked), As: root, Status: 201})
		if _, err := s.Users.EnrollTwoFactor(t.Context(), actor.System(), careful, "svc"); err != nil {
			t.Fatal(err)
		}
		given, _ := s.User(t, "given")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", given), As: root, JSON: `{"password":"of somebody else"}`, Status: 200})
		login := func(name string, changes ...string) url.Values {
			return changed(url.Values{"grant_type": {"password"}, "username": {name}, "password": {"a good password"}}, changes)
		}
		s.Table(t, []apptest.Call{
			{Name: "without a client", Do: "POST //oauth/token", Form: login("alice"), Status: 200, Want: `{"access_token":"<any>","token_type":"bearer","expires_in":7200,"scope":"api","created_at":"<any>"}`, Not: []string{"refresh_token", "id_token"}},
			{Name: "with an empty client", Do: "POST //oauth/token", Header: basic("", ""), Form: login("alice"), Status: 200},
			{Name: "by address", Do: "POST //oauth/token", Form: login("alice@example.org"), Status: 200},
			{Name: "by JSON", Do: "POST //oauth/token", JSON: `{"grant_type":"password","username":"alice","password":"a good password"}`, Status: 200},
			{Name: "with a client", Do: "POST //oauth/token", Header: basic(c.UID, c.Secret), Form: login("alice"), Status: 200, Want: `{"scope":"api"}`, Not: []string{"refresh_token"}},
			{Name: "with a client, to sign in", Do: "POST //oauth/token", Header: basic(c.UID, c.Secret), Form: login("alice", "scope", "openid"), Status: 200, Want: `{"scope":"openid","id_token":"<any>"}`},
			{Name: "with a public client", Do: "POST //oauth/token", Form: login("alice", "client_id", public.UID), Status: 200},
			{Name: "with a client without its secret", Do: "POST //oauth/token", Form: login("alice", "client_id", c.UID), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "with a secret alone", Do: "POST //oauth/token", Header: basic("", c.Secret), Form: login("alice"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "with a wrong client", Do: "POST //oauth/token", Header: basic(c.UID, "x"), Form: login("alice"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "more than the client has", Do: "POST //oauth/token", Header: basic(small.UID, small.Secret), Form: login("alice"), Status: 400, Want: `{"error":"invalid_scope"}`},
		})
		s.Clock.Move(time.Minute)
		const told = "The login or password is wrong, or the account cannot be used for this grant."
		refused := `{"error":"invalid_grant","error_description":"` + told + `"}`
		s.Table(t, []apptest.Call{
			{Name: "what the client has", Do: "POST //oauth/token", Header: basic(small.UID, small.Secret), Form: login("alice", "scope", "read_user"), Status: 200},
			{Name: "unknown scope", Do: "POST //oauth/token", Form: login("alice", "scope", "all"), Status: 400, Want: `{"error":"invalid_scope"}`},
			{Name: "no username", Do: "POST //oauth/token", Form: login("", "username", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "no password", Do: "POST //oauth/token", Form: login("alice", "password", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "wrong password", Do: "POST //oauth/token", Form: login("alice", "password", "x"), Status: 400, Want: refused},
			{Name: "unknown user", Do: "POST //oauth/token", Form: login("nobody"), Status: 400, Want: refused},
			{Name: "blocked", Do: "POST //oauth/token", Form: login("blocked"), Status: 400, Want: refused},
			{Name: "a password that has to be changed", Do: "POST //oauth/token", Form: login("given", "password", "of somebody else"), Status: 400, Want: refused},
			{Name: "two-factor authentication", Do: "POST //oauth/token", Form: login("careful"), Status: 400, Want: refused},
			{Name: "two-factor authentication and a wrong password", Do: "POST //oauth/token", Form: login("careful", "password", "x"), Status: 400, Want: refused},
		})
		// The response time does not reveal whether a user exists: the work is
		// the same.
		for _, name := range []string{"alice", "nobody", "careful"} {
			before := s.Users.Hasher.Count()
			s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: login(name, "password", "wrong"), Status: 400})
			if n := s.Users.Hasher.Count() - before; n != 1 {
				t.Errorf("%s: %d passwords were computed", name, n)
			}
		}
		s.Check(t, apptest.Call{Name: "not forgiven by a wrong password", Do: "POST //oauth/token", Form: login("alice", "scope", "sudo read_user"), Status: 200, Want: `{"scope":"sudo read_user"}`})

		// The limit is ten attempts a minute for an address and a login, including
		// successful ones.
		s.User(t, "hasty")
		s.Clock.Stop()
		for i := range 10 {
			s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: login("hasty", "scope", "all"), Status: 400, WantHeader: map[string]string{"RateLimit-Remaining": strconv.Itoa(9 - i)}})
		}
		late := s.Check(t, apptest.Call{Name: "too often", Do: "POST //oauth/token", Form: login("HASTY"), Status: 429, Want: `{"error":"temporarily_unavailable"}`,
			WantHeader: map[string]string{"RateLimit-Limit": "10"}})
		if n, err := strconv.Atoi(late.Header.Get("Retry-After")); err != nil || n < 1 || n > 6 { // up to six seconds, some of which have passed
			t.Errorf("Retry-After is %q", late.Header.Get("Retry-After"))
		}
		s.Check(t, apptest.Call{Name: "another login", Do: "POST //oauth/token", Form: login("nobody"), Status: 400})
		s.Clock.Move(time.Minute)
		s.Check(t, apptest.Call{Name: "a minute later", Do: "POST //oauth/token", Form: login("hasty"), Status: 200})
	})
}
