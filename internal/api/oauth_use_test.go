package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/oauth"
)

func TestOAuthTokenUse(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true, Scopes: []string{"api", "read_user", "sudo", "read_repository", "openid"}})
		made, small, git := c.tokens(t, "api"), c.tokens(t, "read_user openid"), c.tokens(t, "read_repository")
		rootClient := *c
		rootClient.by = actor.Actor{ID: 1, Username: "root", Admin: true}
		sudo, plain := rootClient.tokens(t, "sudo api"), rootClient.tokens(t, "api")
		who := `{"username":"alice"}`
		asAlice := func(token string) map[string]string { h := bearer(token); h["Sudo"] = "alice"; return h }
		s.Table(t, []apptest.Call{
			{Name: "Bearer", Do: "GET /user", Header: bearer(made.Access), Status: 200, Want: who},
			{Name: "query", Do: "GET /user?access_token=" + made.Access, Status: 200, Want: who},
			{Name: "a write", Do: "PUT /user/status", Header: bearer(made.Access), JSON: `{"message":"x"}`, Status: 200},
			{Name: "scope", Do: "GET /projects", Header: bearer(small.Access), Status: 403, Want: `{"error":"insufficient_scope","scope":"api read_api"}`},
			{Name: "its scope", Do: "GET /user", Header: bearer(small.Access), Status: 200, Want: who},
			{Name: "no scope of the API", Do: "GET /user", Header: bearer(git.Access), Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "a refresh token opens nothing", Do: "GET /user", Header: bearer(made.Refresh), Status: 401},
			{Name: "invalid on a public endpoint", Do: "GET /projects", Header: bearer("svcoat-x"), Status: 401},
			{Name: "sudo", Do: "GET /user", Header: asAlice(sudo.Access), Status: 200, Want: who},
			{Name: "sudo without the scope", Do: "GET /user", Header: asAlice(plain.Access), Status: 403, Want: `{"error":"insufficient_scope","scope":"sudo"}`},
			{Name: "sudo of a user", Do: "GET /user", Header: asAlice(made.Access), Status: 403, Want: `{"message":"403 Forbidden - Must be admin to use sudo"}`},
			{Name: "it is no personal token", Do: "GET /personal_access_tokens/self", Header: bearer(made.Access), Status: 401},

			{Name: "info", Do: "GET //oauth/token/info", Header: bearer(small.Access), Status: 200,
				Want: fmt.Sprintf(`{"resource_owner_id":%d,"scope":["read_user","openid"],"scopes":["read_user","openid"],"expires_in":"<any>","expires_in_seconds":"<any>","application":{"uid":%q},"created_at":"<any>"}`, id, c.UID)},
			{Name: "info by query", Do: "GET //oauth/token/info?access_token=" + small.Access, Status: 200},
			{Name: "info without a token", Do: "GET //oauth/token/info", Status: 401, Want: `{"error":"invalid_token","error_description":"The access token is invalid","state":"unauthorized"}`,
				WantHeader: map[string]string{"WWW-Authenticate": `Bearer realm="svc", error="invalid_token", error_description="The access token is invalid"`}},
			{Name: "info of a personal token", Do: "GET //oauth/token/info?access_token=" + root, Status: 401},
			{Name: "userinfo without openid", Do: "GET //oauth/userinfo", Header: bearer(made.Access), Status: 403, Want: `{"error":"insufficient_scope","scope":"openid"}`},
		})
		var info struct {
			ExpiresIn int64 `json:"expires_in"`
		}
		s.Check(t, apptest.Call{Do: "GET //oauth/token/info", Header: bearer(made.Access), Status: 200}).JSON(t, &info)
		if info.ExpiresIn < 7100 || info.ExpiresIn > 7200 {
			t.Errorf("expires in %d", info.ExpiresIn)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", id), As: root, Status: 201})
		s.Table(t, []apptest.Call{
			{Name: "blocked", Do: "GET /user", Header: bearer(made.Access), Status: 403, Want: `{"message":"403 Forbidden - Your account has been blocked."}`},
			{Name: "blocked, info", Do: "GET //oauth/token/info", Header: bearer(made.Access), Status: 401},
			{Name: "blocked, userinfo", Do: "GET //oauth/userinfo", Header: bearer(small.Access), Status: 401},
			{Name: "blocked, refresh", Do: "POST //oauth/token", Form: c.refresh(made.Refresh), Status: 400, Want: refusedGrant},
		})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/unblock", id), As: root, Status: 201})
		s.Clock.Move(2 * time.Hour)
		s.Table(t, []apptest.Call{
			{Name: "expired", Do: "GET /user", Header: bearer(made.Access), Status: 401, Want: `{"message":"401 Unauthorized"}`},
			{Name: "expired, info", Do: "GET //oauth/token/info", Header: bearer(made.Access), Status: 401, Want: `{"error_description":"The access token expired"}`},
			{Name: "expired, refresh", Do: "POST //oauth/token", Form: c.refresh(made.Refresh), Status: 200},
		})
	})
}

func TestOAuthRevoke(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		other := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		public := newClient(t, s, id, oauth.NewApplication{})
		first, second := c.tokens(t, "api"), c.tokens(t, "api")
		ofPublic := public.ask(t, public.exchange(public.code(t, true, "api"), "client_secret", "-", "code_verifier", codeVerifier))
		form := func(c *client, token string, changes ...string) url.Values {
			return changed(url.Values{"client_id": {c.UID}, "client_secret": {c.Secret}, "token": {token}}, changes)
		}
		s.Table(t, []apptest.Call{
			{Name: "another application", Do: "POST //oauth/revoke", Form: form(other, first.Access), Status: 403, Want: `{"error":"unauthorized_client"}`},
			{Name: "wrong secret", Do: "POST //oauth/revoke", Form: form(c, first.Access, "client_secret", "x"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "no secret", Do: "POST //oauth/revoke", Form: form(c, first.Access, "client_secret", "-"), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "no client", Do: "POST //oauth/revoke", Form: url.Values{"token": {first.Access}}, Status: 403, Want: `{"error":"unauthorized_client"}`},
			{Name: "no token", Do: "POST //oauth/revoke", Form: form(c, "", "token", "-"), Status: 400, Want: `{"error":"invalid_request"}`},
			{Name: "still works", Do: "GET /user", Header: bearer(first.Access), Status: 200},
			{Name: "revoke", Do: "POST //oauth/revoke", Form: form(c, first.Access), Status: 200, Want: `{}`},
			{Name: "it has ended", Do: "GET /user", Header: bearer(first.Access), Status: 401},
			{Name: "its info says so", Do: "GET //oauth/token/info", Header: bearer(first.Access), Status: 401, Want: `{"error_description":"The access token was revoked"}`},
			{Name: "its refresh token too", Do: "POST //oauth/token", Form: c.refresh(first.Refresh), Status: 400, Want: refusedGrant},
			{Name: "again", Do: "POST //oauth/revoke", Form: form(c, first.Access), Status: 200, Want: `{}`},
			{Name: "an unknown token", Do: "POST //oauth/revoke", Form: form(c, "x"), Status: 200, Want: `{}`},
			{Name: "another grant still works", Do: "GET /user", Header: bearer(second.Access), Status: 200},
			{Name: "a refresh token by Basic", Do: "POST //oauth/revoke", Header: basic(c.UID, c.Secret), Form: url.Values{"token": {second.Refresh}, "token_type_hint": {"refresh_token"}}, Status: 200, Want: `{}`},
			{Name: "ends the access token", Do: "GET /user", Header: bearer(second.Access), Status: 401},
			{Name: "a public client", Do: "POST //oauth/revoke", JSON: fmt.Sprintf(`{"client_id":%q,"token":%q}`, public.UID, ofPublic.Access), Status: 200, Want: `{}`},
			{Name: "it has ended too", Do: "GET /user", Header: bearer(ofPublic.Access), Status: 401},
		})
		var password tokensAnswer
		s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: url.Values{"grant_type": {"password"}, "username": {"alice"}, "password": {"a good password"}}, Status: 200}).JSON(t, &password)
		s.Table(t, []apptest.Call{
			{Name: "info without an application", Do: "GET //oauth/token/info", Header: bearer(password.Access), Status: 200, Want: `{"application":null,"scope":["api"]}`},
			{Name: "one of no application", Do: "POST //oauth/revoke", Form: url.Values{"token": {password.Access}}, Status: 200, Want: `{}`},
			{Name: "has ended", Do: "GET /user", Header: bearer(password.Access), Status: 401},
		})

		// Tokens of a disabled or deleted application become invalid.
		third := c.tokens(t, "api")
		ofOther := other.tokens(t, "api")
		late := other.code(t, false, "api")
		yes := true
		if _, err := s.OAuth.Update(t.Context(), actor.System(), other.ID, oauth.Change{Disabled: &yes}); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "disabled, token", Do: "GET /user", Header: bearer(ofOther.Access), Status: 401},
			{Name: "disabled, code", Do: "POST //oauth/token", Form: other.exchange(late), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "disabled, refresh", Do: "POST //oauth/token", Form: other.refresh(ofOther.Refresh), Status: 401, Want: `{"error":"invalid_client"}`},
			{Name: "another", Do: "GET /user", Header: bearer(third.Access), Status: 200},
			{Name: "delete", Do: fmt.Sprintf("DELETE /applications/%d", c.ID), As: root, Status: 204},
			{Name: "deleted, token", Do: "GET /user", Header: bearer(third.Access), Status: 401},
			{Name: "deleted, refresh", Do: "POST //oauth/token", Form: c.refresh(third.Refresh), Status: 401, Want: `{"error":"invalid_client"}`},
		})
	})
}

func TestOAuthCORS(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		origin := map[string]string{"Origin": "https://page.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Authorization, X-Requested-With"}
		allowed := func(methods string) map[string]string {
			return map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": methods, "Access-Control-Allow-Headers": "Authorization, Content-Type",
				"Access-Control-Allow-Credentials": "-", "Vary": "Origin"}
		}
		none := map[string]string{"Access-Control-Allow-Methods": "-", "Access-Control-Allow-Headers": "-"}
		s.Table(t, []apptest.Call{
			{Do: "OPTIONS //oauth/token", Header: origin, Status: 204, WantHeader: allowed("POST")},
			{Do: "OPTIONS //oauth/revoke", Header: origin, Status: 204, WantHeader: allowed("POST")},
			{Do: "OPTIONS //oauth/userinfo", Header: origin, Status: 204, WantHeader: allowed("GET, POST")},
			{Do: "OPTIONS //oauth/token/info", Header: origin, Status: 405, WantHeader: none},
			{Do: "OPTIONS //oauth/discovery/keys", Header: origin, Status: 405, WantHeader: none},
			{Name: "an answer", Do: "POST //oauth/token", Header: origin, Form: url.Values{}, Status: 400, WantHeader: map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "-"}},
			{Name: "info", Do: "GET //oauth/token/info", Header: origin, Status: 401, WantHeader: map[string]string{"Access-Control-Allow-Origin": "*"}},
			{Name: "keys", Do: "GET //oauth/discovery/keys", Header: origin, Status: 200, WantHeader: map[string]string{"Access-Control-Allow-Origin": "*"}},
			{Name: "not asked for", Do: "POST //oauth/token", Form: url.Values{}, Status: 400, WantHeader: map[string]string{"Access-Control-Allow-Origin": "-"}},
			{Name: "devices", Do: "POST //oauth/authorize_device", Header: origin, Status: http.StatusNotFound, WantHeader: map[string]string{"Access-Control-Allow-Origin": "-"}},
		})
	})
}
