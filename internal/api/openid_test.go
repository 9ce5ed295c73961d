package api_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/app/apptest"
	"svc/internal/oauth"
)

func TestOAuthDiscovery(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		want := fmt.Sprintf(`{"issuer":%[1]q,"authorization_endpoint":"%[1]s/oauth/authorize","token_endpoint":"%[1]s/oauth/token","revocation_endpoint":"%[1]s/oauth/revoke",
			"userinfo_endpoint":"%[1]s/oauth/userinfo","jwks_uri":"%[1]s/oauth/discovery/keys","response_types_supported":["code"],"response_modes_supported":["query"],
			"grant_types_supported":["authorization_code","password","refresh_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"],
			"code_challenge_methods_supported":["S256"]}`, s.Config.ExternalURL)
		s.Table(t, []apptest.Call{
			{Do: "GET //.well-known/openid-configuration", Status: 200, Want: want, WantHeader: map[string]string{"Content-Type": "application/json"}},
			{Do: "GET //.well-known/oauth-authorization-server", Status: 200, Want: want},
			{Do: "GET //oauth/discovery/keys", Status: 200, Want: `{"keys":[{"kty":"RSA","kid":"<any>","use":"sig","alg":"RS256","n":"<any>","e":"AQAB"}]}`, Not: []string{`"d"`, `"p"`}},
			{Do: "POST //.well-known/openid-configuration", Status: 405},
		})
	})
}

// TestOAuthOpenID signs in by OpenID Connect and checks the claims about the user.
func TestOAuthOpenID(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		group := func(path string, parent int64) int64 {
			t.Helper()
			var made struct{ ID int64 }
			body := fmt.Sprintf(`{"name":%q,"path":%q}`, path, path)
			if parent != 0 {
				body = fmt.Sprintf(`{"name":%q,"path":%q,"parent_id":%d}`, path, path, parent)
			}
			s.Check(t, apptest.Call{Do: "POST /groups", As: root, JSON: body, Status: 201}).JSON(t, &made)
			return made.ID
		}
		join := func(group int64, level int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", group), As: root, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level), Status: 201})
		}
		top := group("top", 0)
		group("sub", top)
		shop := group("shop", 0)
		group("hidden", 0)
		join(top, 30)
		join(shop, 50)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"website_url":"https://alice.example"}`, Status: 200})

		c := newClient(t, s, id, oauth.NewApplication{Confidential: true})
		began := s.Clock.Now().Add(-time.Hour).Unix()
		made := c.tokens(t, "openid email")
		var keys struct {
			Keys []struct{ Kid, N, E string }
		}
		s.Check(t, apptest.Call{Do: "GET //oauth/discovery/keys", Status: 200}).JSON(t, &keys)
		head, claims := openJWT(t, made.ID, keys.Keys[0].N, keys.Keys[0].E)
		if head["alg"] != "RS256" || head["kid"] != keys.Keys[0].Kid {
			t.Errorf("head: %v", head)
		}
		issued := claims["iat"].(float64)
		if now := float64(s.Clock.Now().Unix()); issued > now || issued < now-60 || claims["exp"] != issued+120 {
			t.Errorf("issued at %v until %v, now %v", issued, claims["exp"], now)
		}
		if at := claims["auth_time"].(float64); at < float64(began) || at > float64(began)+60 {
			t.Errorf("auth_time %v, signed in at %v", at, began)
		}
		for _, name := range []string{"iat", "exp", "auth_time"} {
			delete(claims, name)
		}
		sum := sha256.Sum256([]byte(made.Access))
		person := map[string]any{
			"sub": fmt.Sprint(id), "name": "alice", "nickname": "alice", "preferred_username": "alice", "email": "alice@example.org", "email_verified": true,
			"profile": s.Config.ExternalURL + "/alice", "website": "https://alice.example",
		}
		want := map[string]any{"iss": s.Config.ExternalURL, "aud": c.UID, "nonce": "n-1", "at_hash": base64.RawURLEncoding.EncodeToString(sum[:16]), "groups_direct": []any{"shop", "top"}}
		for name, value := range person {
			want[name] = value
		}
		if diff := cmp.Diff(want, claims); diff != "" {
			t.Errorf("id_token (-want +got):\n%s", diff)
		}

		person["groups"] = []any{"shop", "top", "top/sub"}
		for _, service := range []string{"svc", "gitlab"} {
			person["https://"+service+".org/claims/groups/owner"] = []any{"shop"}
			person["https://"+service+".org/claims/groups/developer"] = []any{"top"}
		}
		for name, call := range map[string]apptest.Call{
			"GET":              {Do: "GET //oauth/userinfo", Header: bearer(made.Access), Status: 200},
			"POST":             {Do: "POST //oauth/userinfo", Header: bearer(made.Access), Form: url.Values{}, Status: 200},
			"token in a form":  {Do: "POST //oauth/userinfo", Form: url.Values{"access_token": {made.Access}}, Status: 200},
			"token in a query": {Do: "GET //oauth/userinfo?access_token=" + made.Access, Status: 200},
		} {
			var info map[string]any
			s.Check(t, call).JSON(t, &info)
			if diff := cmp.Diff(person, info); diff != "" {
				t.Errorf("%s userinfo (-want +got):\n%s", name, diff)
			}
		}

		// A refresh returns a new ID token, without the nonce.
		next := c.ask(t, c.refresh(made.Refresh))
		if _, claims = openJWT(t, next.ID, keys.Keys[0].N, keys.Keys[0].E); claims["nonce"] != nil || claims["sub"] != fmt.Sprint(id) {
			t.Errorf("claims after a refresh: %v", claims)
		}
		// Without the scope there is no email address.
		shy := c.tokens(t, "openid")
		s.Check(t, apptest.Call{Do: "GET //oauth/userinfo", Header: bearer(shy.Access), Status: 200, Want: `{"nickname":"alice"}`, Not: []string{"email"}})
		s.Table(t, []apptest.Call{
			{Name: "no token", Do: "GET //oauth/userinfo", Status: 401, Want: `{"error":"invalid_token"}`},
			{Name: "bad token", Do: "GET //oauth/userinfo", Header: bearer("x"), Status: 401, WantHeader: map[string]string{"WWW-Authenticate": `Bearer realm="svc", error="invalid_token", error_description="The access token is invalid"`}},
			{Name: "a token without the scope", Do: "GET //oauth/userinfo", Header: bearer(alice), Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "the old token", Do: "GET //oauth/userinfo", Header: bearer(made.Access), Status: 401},
		})
	})
}

// openJWT verifies a token with a public key and returns its header and claims.
func openJWT(t *testing.T, token, n, e string) (head, claims map[string]any) {
	t.Helper()
	raw := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token %q", token)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(raw(n)), E: int(new(big.Int).SetBytes(raw(e)).Int64())}
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], raw(parts[2])); err != nil {
		t.Fatal(err)
	}
	for i, into := range []*map[string]any{&head, &claims} {
		if err := json.Unmarshal(raw(parts[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	return head, claims
}
