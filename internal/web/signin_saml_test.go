package web_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/crewjam/saml/samlidp"
	dsig "github.com/russellhaering/goxmldsig"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/user"
)

const (
	persistentID = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	transientID  = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
)

// keyPair is a new key with a certificate.
func keyPair(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "saml"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// samlProvider returns a provider as the configuration completes it.
func samlProvider(name, metadata string) apptest.Provider {
	return apptest.Provider{
		Name: name, Label: "Provider " + name, Kind: "saml", MetadataURL: metadata, NameIDFormat: persistentID,
		UsernameAttribute: "username", NameAttribute: "name", EmailAttribute: "email", GroupsAttribute: "groups",
		AutoCreate: true, TrustTwoFactor: true,
	}
}

// fromElsewhere submits a form from a page of another site: the browser sends no
// cookies of the server.
func (b *browser) fromElsewhere(path string, form url.Values) answer {
	b.t.Helper()
	bare := *b.client
	bare.Jar = nil
	other := *b
	other.client = &bare
	return other.post(path, form)
}

// acs sends a SAML response to the assertion consumer service, and follows the
// redirect.
func (b *browser) acs(name, response string) answer {
	b.t.Helper()
	p := b.fromElsewhere("/users/auth/"+name+"/callback", url.Values{"SAMLResponse": {response}, "RelayState": {"https://evil.example/"}})
	to := p.header.Get("Location")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(to, "/users/auth/"+name+"/callback?") {
		b.t.Fatalf("the assertion consumer service answers with %d, %s: %s", p.status, to, p.body)
	}
	if p.header.Get("Set-Cookie") != "" {
		b.t.Errorf("a form of another site sets a cookie: %s", p.header.Get("Set-Cookie"))
	}
	return b.get(to)
}

var formField = regexp.MustCompile(`name="(SAMLResponse|RelayState)" value="([^"]*)"`)

// samlServer is an identity provider from another project, with users who sign in by a
// form.
type samlServer struct {
	*httptest.Server
	idp *samlidp.Server
}

func startSAMLServer(t *testing.T) *samlServer {
	t.Helper()
	pair := keyPair(t)
	j := &samlServer{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { j.idp.ServeHTTP(w, r) }))
	t.Cleanup(j.Close)
	at, err := url.Parse(j.URL)
	if err != nil {
		t.Fatal(err)
	}
	j.idp, err = samlidp.New(samlidp.Options{
		URL: *at, Key: pair.PrivateKey, Certificate: pair.Leaf, Store: &samlidp.MemoryStore{}, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	j.idp.IDP.SignatureMethod = dsig.RSASHA256SignatureMethod
	return j
}

func (j *samlServer) put(b *browser, path, body string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "PUT", j.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if p := b.send(r); p.status != 204 {
		b.t.Fatalf("%s: %d %s", path, p.status, p.body)
	}
}

// user creates or changes a user.
func (j *samlServer) user(b *browser, name string, groups ...string) {
	b.t.Helper()
	secret := password
	text, _ := json.Marshal(samlidp.User{Name: name, PlaintextPassword: &secret, Email: name + "@corp.example", CommonName: "Person " + name, Groups: groups})
	j.put(b, "/users/"+name, string(text))
}

// enter signs a user in at the identity provider, starting from a page of the
// server.
func (j *samlServer) enter(b *browser, username, at, action string) answer {
	b.t.Helper()
	to := b.submit(at, action, "return_to", "/explore?x=1").leaves()
	if p := b.post(j.URL+"/login", url.Values{"user": {username}, "password": {password}}); p.status != 200 || !strings.Contains(p.body, "UserName") {
		b.t.Fatalf("login: %d %s", p.status, p.body)
	}
	form := url.Values{}
	for _, m := range formField.FindAllStringSubmatch(b.get(to.String()).want(200).body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	if form.Get("SAMLResponse") == "" {
		b.t.Fatal("the provider gives no response")
	}
	return b.acs("judge", form.Get("SAMLResponse"))
}

// TestSignInWithSAML signs in with an identity provider of another project.
func TestSignInWithSAML(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted=%v", encrypted), func(t *testing.T) {
			t.Parallel()
			dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) { testSignInWithSAML(t, src, encrypted) })
		})
	}
}

func testSignInWithSAML(t *testing.T, src dbtest.Source, encrypted bool) {
	j := startSAMLServer(t)
	p := samlProvider("judge", j.URL+"/metadata")
	// The identity provider has transient name IDs, and names attributes by OIDs.
	p.NameIDFormat, p.IDAttribute, p.UsernameAttribute, p.NameAttribute, p.EmailAttribute = "", "uid", "uid", "cn", "urn:oid:0.9.2342.19200300.100.1.3"
	p.GroupsAttribute = "eduPersonAffiliation"
	p.RequireApproval, p.TrustEmail = true, true
	p.AuditorGroups = []string{"devs"}
	p.GroupSync = []apptest.GroupSync{{Claim: "devs", Group: "platform", Role: "maintainer"}, {Claim: "chiefs", Group: "platform", Role: "owner"}}
	if encrypted {
		p.KeyPair = keyPair(t)
	}
	s := apptest.Start(t, src, withProviders(p)...)
	if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "platform", Path: "platform"}); err != nil {
		t.Fatal(err)
	}
	b := forgeBrowser(t, s)
	metadata := b.get("/users/auth/judge/metadata").want(200, `entityID="`+forge+`/users/auth/judge/metadata"`, `Location="`+forge+`/users/auth/judge/callback"`)
	if kind := metadata.header.Get("Content-Type"); kind != "application/samlmetadata+xml" {
		t.Errorf("metadata of the type %s", kind)
	}
	j.put(b, "/services/forge", metadata.body)
	j.user(b, "ada", "devs")
	b.get("/users/sign_in").want(200, "Sign in with Provider judge")
	enter := func() answer {
		t.Helper()
		return j.enter(b, "ada", "/users/sign_in", "/users/auth/judge")
	}

	// The first sign-in creates an account that waits for approval.
	enter().leads("/users/sign_in")
	b.get("/users/sign_in").want(200, "pending approval")
	u, err := s.Users.FindIdentity(t.Context(), "judge", "ada")
	if err != nil || u.Username != "ada" || u.Name != "Person ada" || u.Email != "ada@corp.example" || u.ConfirmedAt == nil || u.State != user.PendingApproval {
		t.Fatalf("%+v, %v: %s", u, err, s.Log())
	}
	if err := s.Users.Approve(t.Context(), actor.System(), u.ID); err != nil {
		t.Fatal(err)
	}
	enter().leads("/explore?x=1")
	first := b.cookie("_svc_session")
	b.get("/api/v4/user").want(200, `"username":"ada"`, `"provider":"judge"`)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"is_auditor":true,"identities":[{"provider":"judge","extern_uid":"ada"}]}`})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":40}`})
	events, err := s.Audit.List(t.Context(), actor.System(), audit.Filter{}, db.Paging{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events.Items {
		kinds = append(kinds, e.Type)
	}
	for _, want := range []string{"user_created", "user_identity_added", "user_signed_in_with_provider", "member_created"} {
		if !strings.Contains(strings.Join(kinds, " "), want) {
			t.Errorf("no audit event %s: %v", want, kinds)
		}
	}
	b.submit("/-/user_settings/identities", "/-/user_settings/identities/judge/unlink").leads("/-/user_settings/identities")
	b.get("/-/user_settings/identities").want(200, "only way to sign in")

	// A role that the provider revokes is revoked at the next sign-in.
	j.user(b, "ada")
	b.submit("/", "/users/sign_out").leads("/users/sign_in")
	enter().leads("/explore?x=1")
	if b.cookie("_svc_session") == first {
		t.Error("the session was not renewed")
	}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 404})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"is_auditor":false}`})

	// A user with a password links the provider, signs in with it, and unlinks it.
	robert, _ := s.User(t, "robert")
	j.user(b, "bob")
	r := forgeBrowser(t, s)
	r.signIn("robert", password)
	link := func(name string) answer {
		t.Helper()
		return j.enter(r, name, "/-/user_settings/identities", "/-/user_settings/identities/judge/link")
	}
	link("ada").leads("/-/user_settings/identities") // the identity of another user
	r.get("/-/user_settings/identities").want(200, "could not be linked")
	link("bob").leads("/-/user_settings/identities")
	r.get("/-/user_settings/identities").want(200, "Your account is linked to Provider judge.")
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", robert), As: apptest.RootToken, Status: 200, Want: `{"identities":[{"provider":"judge","extern_uid":"bob"}]}`})
	r.submit("/", "/users/sign_out").leads("/users/sign_in")
	j.enter(r, "bob", "/users/sign_in", "/users/auth/judge").leads("/explore?x=1")
	r.get("/api/v4/user").want(200, `"username":"robert"`)
	r.submit("/-/user_settings/identities", "/-/user_settings/identities/judge/unlink").leads("/-/user_settings/identities")
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", robert), As: apptest.RootToken, Status: 200, Want: `{"identities":[]}`})

	// A blocked user is refused.
	if _, err := s.Users.Block(t.Context(), actor.System(), u.ID); err != nil {
		t.Fatal(err)
	}
	b.refused(enter(), s, "user ada is blocked")
	if log := s.Log(); strings.Contains(log, "SAMLResponse") || strings.Contains(log, password) {
		t.Error("the log has secrets")
	}
}

// TestSAMLMetadata checks the keys of a provider: where they come from, and what
// happens when they change or the provider is down.
func TestSAMLMetadata(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	f.down = true
	file, byHand := samlProvider("file", ""), samlProvider("by_hand", "")
	file.Metadata = []byte(f.metadata(""))
	byHand.IDPEntityID, byHand.IDPSSOURL, byHand.IDPCertificates = f.URL+"/idp", f.URL+"/sso?realm=a", []*x509.Certificate{f.pairs[0].Leaf}
	byHand.KeyPair = keyPair(t)
	s := apptest.Start(t, dbtest.SQLite(t), withProviders(samlProvider("op", f.URL), file, byHand)...)
	b := forgeBrowser(t, s)
	away := func(reason string) {
		t.Helper()
		b.submit("/users/sign_in", "/users/auth/op").leads("/users/sign_in")
		b.get("/users/sign_in").want(200, "does not respond")
		if !strings.Contains(s.Log(), reason) {
			t.Errorf("the log has no reason %q: %s", reason, lastLine(s.Log()))
		}
		s.Clock.Move(10 * time.Second)
	}
	away("502")
	for reason, document := range map[string]string{
		"too large":                strings.Repeat(" ", 2<<20),
		"cannot be read":           "no XML",
		"has a document type":      "<!DOCTYPE x>" + f.metadata(""),
		"has no identity provider": `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="x"/>`,
		"several identity prov":    `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">` + f.metadata("") + f.metadata("") + `</md:EntitiesDescriptor>`,
		"no certificate for sign":  f.metadata("", "signing", "encryption"),
		"not in base64":            f.metadata("", "<ds:X509Certificate>", "<ds:X509Certificate>%"),
		"with the HTTP-Redirect":   f.metadata("", "HTTP-Redirect", "SOAP"),
		"they were valid until":    f.metadata(` validUntil="2020-01-01T00:00:00Z"`),
		"has no entity ID":         f.metadata("", ` entityID="`+f.URL+`/idp"`, ""),
		"binding that can be used": f.metadata("", f.URL+"/sso", "http://u:p@127.0.0.1/sso"),
	} {
		f.set(func() { f.down, f.document = false, document })
		away(reason)
	}
	f.set(func() { f.document = "" })
	testSAMLKeys(t, s, f)

	// Signed requests, without metadata.
	c := forgeBrowser(t, s)
	_, query := c.samlRequest("by_hand")
	signature, err := base64.StdEncoding.DecodeString(query.Get("Signature"))
	if err != nil {
		t.Fatal(err)
	}
	text := "SAMLRequest=" + url.QueryEscape(query.Get("SAMLRequest")) + "&SigAlg=" + url.QueryEscape(query.Get("SigAlg"))
	if err := byHand.KeyPair.Leaf.CheckSignature(x509.SHA256WithRSA, []byte(text), signature); err != nil || query.Get("SigAlg") != dsig.RSASHA256SignatureMethod {
		t.Errorf("the signature of the request: %v", err)
	}
	c.get("/users/auth/by_hand/metadata").want(200, `AuthnRequestsSigned="true"`, `use="encryption"`, base64.StdEncoding.EncodeToString(byHand.KeyPair.Certificate[0]))
}

func testSAMLKeys(t *testing.T, s *apptest.Server, f *samlForger) {
	moved := func(a *forged) {
		for key, d := range map[string]time.Duration{"now": 0, "from": -time.Minute, "until": 5 * time.Minute} {
			a.replace[key] = s.Clock.Now().Add(d).UTC().Format(time.RFC3339)
		}
	}
	enter := func(b *browser) answer { t.Helper(); return f.enter(b, "op", moved) }
	b := forgeBrowser(t, s)
	b.samlEnters(enter(b), s)

	// The provider changes its key. The metadata is read again, but not for every
	// invalid signature.
	old := f.pairs
	f.set(func() { f.pairs = []*tls.Certificate{keyPair(t)} })
	b = forgeBrowser(t, s)
	b.refused(enter(b), s, "the signature is not of a key of the provider")
	s.Clock.Move(2 * time.Minute)
	b.samlEnters(enter(b), s)
	b = forgeBrowser(t, s)
	b.refused(f.enter(b, "op", func(a *forged) { moved(a); a.key = old[0] }), s, "the signature is not of a key of the provider")
	asked := f.asked
	for range 3 {
		b.refused(f.enter(b, "op", func(a *forged) { moved(a); a.key = old[0] }), s, "the signature is not of a key of the provider")
	}
	if f.asked != asked {
		t.Errorf("%d requests for metadata", f.asked-asked)
	}
	// Two keys at once, as during a key rotation.
	f.set(func() { f.pairs = append(f.pairs, keyPair(t)) })
	s.Clock.Move(2 * time.Hour)
	b.samlEnters(f.enter(b, "op", func(a *forged) { moved(a); a.key = f.pairs[1] }), s)

	// While the metadata of the provider is unavailable, the cached one is used.
	f.set(func() { f.down = true })
	s.Clock.Move(2 * time.Hour)
	b = forgeBrowser(t, s)
	b.samlEnters(enter(b), s)
}
