package web_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/setting"
)

// fakeProvider is an OpenID provider whose responses the test determines. It knows
// one sign-in attempt at a time, so servers that run in parallel need one each.
type fakeProvider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu        sync.Mutex
	discovery map[string]any // changes of the discovery document
	claims    map[string]any // of the ID token; nil removes one
	mangle    func(token string) string
	padding   int
	down      bool
	nonce     string
	challenge string
}

func startProvider(t *testing.T) *fakeProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeProvider{key: key}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// set changes the responses of the provider.
func (f *fakeProvider) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	answer := map[string]any{}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "padding": strings.Repeat("x", f.padding),
		}
		for name, value := range f.discovery {
			answer[name] = value
		}
	case "/keys":
		answer["keys"] = []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(f.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(f.key.E)).Bytes()),
		}}
	case "/token":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if base64.RawURLEncoding.EncodeToString(sum[:]) != f.challenge || id != "client" || secret != "hunter2" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		token := f.sign(f.key)
		if f.mangle != nil {
			token = f.mangle(token)
		}
		answer = map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fakeProvider) sign(key *rsa.PrivateKey) string {
	claims := map[string]any{
		"iss": f.URL, "aud": "client", "sub": "u1", "nonce": f.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
		"preferred_username": "bob", "name": "Bob", "email": "bob@corp.example", "email_verified": true,
	}
	for name, value := range f.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "kid": "1"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// enter signs in with the provider, whose next token has the claims.
func (f *fakeProvider) enter(b *browser, name string, claims map[string]any) answer {
	b.t.Helper()
	asked := b.startProvider(name)
	f.set(func() { f.nonce, f.challenge, f.claims = asked.Get("nonce"), asked.Get("code_challenge"), claims })
	return b.callback(name, asked)
}

// TestHostileProvider checks responses that must not create a session.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		one, two := startProvider(t), startProvider(t)
		second := oidcProvider("two", two.URL, "client", "hunter2")
		first := oidcProvider("one", one.URL, "client", "hunter2")
		first.RequiredGroups = []string{"staff"}
		s := apptest.Start(t, src, withProviders(first, second)...)
		if _, err := s.Settings.Update(t.Context(), actor.System(), func(s *setting.Settings) { s.FailedPasswordsPerMinute = 0 }); err != nil {
			t.Fatal(err)
		}
		staff := func(more map[string]any) map[string]any {
			all := map[string]any{"groups": []string{"staff"}}
			for k, v := range more {
				all[k] = v
			}
			return all
		}
		for reason, claims := range map[string]map[string]any{
			"token is expired":                    {"exp": time.Now().Add(-time.Minute).Unix()},
			"expected audience":                   {"aud": "other"},
			"issued to another party":             {"aud": []string{"client", "other"}, "azp": "other"},
			"id token issued by a different prov": {"iss": two.URL},
			"nonce does not match":                {"nonce": "other"},
			"ID token: the nonce does not match":  {"nonce": nil},
			"is in none of the required groups":   {"groups": []string{"guests"}},
			"not a list of texts":                 {"groups": map[string]any{"staff": true}},
			"claim groups: it is not a list":      {"groups": []any{1, "staff"}},
			"subject is empty":                    {"sub": ""},
			"too long":                            {"sub": strings.Repeat("s", 256)},
			"does not give an email":              {"email": nil},
			"email is invalid":                    {"email": "no address"},
		} {
			b := forgeBrowser(t, s)
			b.refused(one.enter(b, "one", staff(claims)), s, reason)
		}
		// A forged signature, no signature, and the client secret as a key.
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		for reason, mangle := range map[string]func(string) string{
			"failed to verify signature": func(string) string { return one.sign(other) },
			"signature algorithm":        func(token string) string { return noneToken(token) },
			"malformed jwt":              func(string) string { return "x" },
			"no ID token":                func(string) string { return "" },
		} {
			one.set(func() { one.mangle = mangle })
			b := forgeBrowser(t, s)
			b.refused(one.enter(b, "one", staff(nil)), s, reason)
		}
		one.set(func() { one.mangle = nil })
		if _, err := s.Users.FindIdentity(t.Context(), "one", "u1"); err == nil {
			t.Fatal("an account was created")
		}

		// The state is bound to the browser and the provider, and works once.
		b, eve := forgeBrowser(t, s), forgeBrowser(t, s)
		asked := b.startProvider("one")
		one.set(func() {
			one.nonce, one.challenge, one.claims = asked.Get("nonce"), asked.Get("code_challenge"), staff(nil)
		})
		eve.refused(eve.callback("one", asked), s, "the browser has no attempt to sign in")
		mine := eve.startProvider("one")
		eve.refused(eve.callback("one", asked), s, "the state does not match")
		_ = mine
		b.startProvider("two")
		b.refused(b.callback("two", asked), s, "the state does not match")
		kept := b.cookieAt("/users/auth/one/callback", "_svc_auth_one")
		b.callback("one", asked).leads("/explore")
		thief := forgeBrowser(t, s)
		at, _ := url.Parse(forge + "/users/auth/one/callback")
		thief.client.Jar.SetCookies(at, cookies("_svc_auth_one", kept))
		thief.refused(thief.callback("one", asked), s, "the state was used before")
		planted := forgeBrowser(t, s)
		at, _ = url.Parse(forge + "/users/auth/two/callback")
		planted.client.Jar.SetCookies(at, cookies("_svc_auth_two", kept))
		planted.refused(planted.callback("two", asked), s, "the browser has no attempt to sign in")

		// Errors of the provider, responses of another issuer, late responses.
		c := forgeBrowser(t, s)
		c.refused(c.callback("one", c.startProvider("one"), "error", "access_denied<script>"), s, "access_denied")
		c.refused(c.callback("one", c.startProvider("one"), "iss", two.URL), s, "another issuer")
		c.refused(c.callback("one", c.startProvider("one"), "code", ""), s, "no code")
		c.refused(c.callback("one", c.startProvider("one")), s, "invalid_grant") // another code challenge
		late := c.startProvider("one")
		s.Clock.Move(16 * time.Minute)
		c.refused(c.callback("one", late), s, "the attempt has expired")
		s.Clock.Move(-16 * time.Minute)
		c.get("/users/auth/none/callback?code=1&state=2").want(404)
		c.submit("/users/sign_in", "/users/auth/none").want(404)
		c.post("/users/auth/one", url.Values{}).want(422)          // no CSRF token
		c.post("/users/auth/one/callback", url.Values{}).want(404) // the callback does not accept forms
		p := c.submit("/users/sign_in", "/users/auth/one", "return_to", "//evil.example")
		asked = p.leaves().Query()
		one.set(func() { one.nonce, one.challenge = asked.Get("nonce"), asked.Get("code_challenge") })
		c.callback("one", asked).leads("/")
		if strings.Contains(s.Log(), "hunter2") || strings.Contains(s.Log(), asked.Get("state")) {
			t.Error("the log has secrets")
		}
	})
}

// noneToken returns a token without a signature.
func noneToken(token string) string {
	parts := strings.Split(token, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
}
