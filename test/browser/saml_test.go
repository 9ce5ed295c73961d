package browser

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"html/template"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/crewjam/saml/samlidp"
	dsig "github.com/russellhaering/goxmldsig"
)

// loginForm returns to the service after the login, like identity providers.
var loginForm = template.Must(template.New("login").Parse(`<!DOCTYPE html><html><main><form method="post" action="/sso"><input name="user"><input name="password" type="password">` +
	`<input type="hidden" name="SAMLRequest" value="{{.SAMLRequest}}"><button>Log in</button></form></main>`))

// startSAML starts an identity provider with a host name that is another site for
// the browser than the address of the server.
func startSAML(t *testing.T) (at string, idp *samlidp.Server) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { idp.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	at = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	idp, err = samlidp.New(samlidp.Options{URL: *u, Key: key, Certificate: cert, Store: &samlidp.MemoryStore{}, Logger: log.New(io.Discard, "", 0), LoginFormTemplate: loginForm})
	if err != nil {
		t.Fatal(err)
	}
	idp.IDP.SignatureMethod = dsig.RSASHA256SignatureMethod
	return at, idp
}

// TestSAML signs in with an identity provider on another site, which sends its
// response with a form: the browser does not send SameSite cookies with it, and the
// server must not overwrite them.
func TestSAML(t *testing.T) {
	at, _ := startSAML(t)
	providers, _ := json.Marshal([]map[string]any{{
		"name": "corp", "label": "Corp", "kind": "saml", "metadata_url": at + "/metadata", "id_attribute": "uid", "username_attribute": "uid",
		"name_attribute": "cn", "email_attribute": "mail", "require_approval": false, "trust_email": true,
	}})
	s, c := start(t, "SVC_PROVIDERS="+string(providers)), launch(t)
	res, err := http.Get(s.url + "/users/auth/corp/metadata")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	put(t, at+"/services/svc", res.Body)
	for _, name := range []string{"grace", "bob"} {
		put(t, at+"/users/"+name, strings.NewReader(`{"name":"`+name+`","email":"`+name+`@corp.example","common_name":"`+name+`","password":"`+password+`"}`))
	}
	logIn := func(b *tab, name string) {
		t.Helper()
		b.do(chromedp.WaitReady("[name=user]", chromedp.ByQuery), chromedp.SendKeys("[name=user]", name, chromedp.ByQuery),
			chromedp.SendKeys("[name=password]", password, chromedp.ByQuery), chromedp.Click("button", chromedp.ByQuery))
		waitFor(t, "the provider sends the browser back", func() bool {
			var now string
			b.do(chromedp.Location(&now))
			return strings.HasPrefix(now, s.url)
		})
		b.do(chromedp.WaitReady("main", chromedp.ByQuery))
	}

	b := c.open(t, s)
	b.visit("/users/sign_in?return_to=/explore")
	b.do(chromedp.Click(`form[action="/users/auth/corp"] button`, chromedp.ByQuery))
	logIn(b, "grace")
	b.wantPath("/explore")
	b.visit("/-/user_settings/identities")
	b.wantText("grace")

	// Linking an account needs the session, too.
	s.user(t, "robert")
	r := c.open(t, s)
	r.signIn("robert", password)
	r.visit("/-/user_settings/identities")
	r.do(chromedp.Click(`form[action="/-/user_settings/identities/corp/link"] button`, chromedp.ByQuery))
	logIn(r, "bob")
	r.wantPath("/-/user_settings/identities")
	var page string
	r.do(chromedp.Text("body", &page, chromedp.ByQuery))
	if !strings.Contains(page, "Your account is linked to Corp.") {
		t.Errorf("the account is not linked: %s", page)
	}
}

func put(t *testing.T, address string, body io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", address, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Fatalf("%s: %s", address, res.Status)
	}
}
