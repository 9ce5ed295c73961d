package web_test

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	"github.com/crewjam/saml/samlidp"
	dsig "github.com/russellhaering/goxmldsig"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/setting"
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

// samlForger is an identity provider whose responses the test determines.
type samlForger struct {
	*httptest.Server
	mu       sync.Mutex
	pairs    []*tls.Certificate // in the metadata
	down     bool
	document string // instead of the metadata
	asked    int
}

func startForger(t *testing.T) *samlForger {
	t.Helper()
	f := &samlForger{pairs: []*tls.Certificate{keyPair(t)}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *samlForger) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *samlForger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	switch {
	case f.down:
		http.Error(w, "down", http.StatusBadGateway)
	case f.document != "":
		_, _ = io.WriteString(w, f.document)
	default:
		_, _ = io.WriteString(w, f.metadata(""))
	}
}

// metadata returns the metadata of the provider with replacements: pairs of old and
// new text.
func (f *samlForger) metadata(root string, changes ...string) string {
	keys := ""
	for _, p := range f.pairs {
		keys += `<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>` +
			base64.StdEncoding.EncodeToString(p.Certificate[0]) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
	}
	text := `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + f.URL + `/idp"` + root + `>` +
		`<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + keys +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="` + f.URL + `/post"/>` +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="` + f.URL + `/sso?realm=a"/>` +
		`</md:IDPSSODescriptor></md:EntityDescriptor>`
	return strings.NewReplacer(changes...).Replace(text)
}

// forged is a response before it is signed.
type forged struct {
	key           *tls.Certificate
	method        string // of the signature
	signResponse  bool
	signAssertion bool
	response      string                        // XML, in which {…} and {assertion} are replaced
	assertion     string                        // XML
	replace       map[string]string             // values of {…}
	after         func(response string) string  // changes the signed response
	tree          func(response *etree.Element) // changes the signed response as a tree
}

// answerTo returns a valid response of the provider to a request.
func (f *samlForger) answerTo(name, request string) *forged {
	now := time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	return &forged{
		key: f.pairs[0], method: dsig.RSASHA256SignatureMethod, signAssertion: true,
		response: `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_r{id}" Version="2.0" ` +
			`IssueInstant="{now}" Destination="{destination}" InResponseTo="{request}"><saml:Issuer>{issuer}</saml:Issuer>` +
			`<samlp:Status><samlp:StatusCode Value="{status}"/></samlp:Status>{assertion}</samlp:Response>`,
		assertion: `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_a{id}" Version="2.0" IssueInstant="{now}"><saml:Issuer>{issuer}</saml:Issuer>` +
			`<saml:Subject><saml:NameID Format="{format}">{name}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">` +
			`<saml:SubjectConfirmationData Recipient="{recipient}" NotOnOrAfter="{until}" InResponseTo="{request}"/></saml:SubjectConfirmation></saml:Subject>` +
			`<saml:Conditions NotBefore="{from}" NotOnOrAfter="{until}"><saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>` +
			`<saml:AuthnStatement AuthnInstant="{now}"/>` +
			`<saml:AttributeStatement><saml:Attribute Name="username"><saml:AttributeValue>bob</saml:AttributeValue></saml:Attribute>` +
			`<saml:Attribute Name="name"><saml:AttributeValue>Bob</saml:AttributeValue></saml:Attribute>` +
			`<saml:Attribute Name="email"><saml:AttributeValue>{email}</saml:AttributeValue></saml:Attribute>` +
			`<saml:Attribute Name="groups">{groups}</saml:Attribute></saml:AttributeStatement></saml:Assertion>`,
		replace: map[string]string{
			"id": strings.ToLower(rand.Text()), "now": at(0), "from": at(-time.Minute), "until": at(5 * time.Minute), "request": request, "issuer": f.URL + "/idp",
			"destination": forge + "/users/auth/" + name + "/callback", "recipient": forge + "/users/auth/" + name + "/callback",
			"audience": forge + "/users/auth/" + name + "/metadata", "status": "urn:oasis:names:tc:SAML:2.0:status:Success",
			"format": persistentID, "name": "u1", "email": "bob@corp.example", "groups": "<saml:AttributeValue>staff</saml:AttributeValue>",
		},
	}
}

func element(t *testing.T, text string) *etree.Element {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(text); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return doc.Root()
}

func source(t *testing.T, el *etree.Element) string {
	t.Helper()
	doc := etree.NewDocument()
	doc.SetRoot(el.Copy())
	text, err := doc.WriteToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (a *forged) sign(t *testing.T, text string) string {
	t.Helper()
	c, err := dsig.NewSigningContext(a.key.PrivateKey.(crypto.Signer), a.key.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	if err := c.SetSignatureMethod(a.method); err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignEnveloped(element(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return source(t, signed)
}

// text returns the response as it is sent.
func (a *forged) text(t *testing.T) string {
	t.Helper()
	var pairs []string
	for key, value := range a.replace {
		pairs = append(pairs, "{"+key+"}", value)
	}
	fill := strings.NewReplacer(pairs...)
	inner := fill.Replace(a.assertion)
	if a.signAssertion {
		inner = a.sign(t, inner)
	}
	text := strings.Replace(fill.Replace(a.response), "{assertion}", inner, 1)
	if a.signResponse {
		text = a.sign(t, text)
	}
	if a.tree != nil {
		root := element(t, text)
		a.tree(root)
		text = source(t, root)
	}
	if a.after != nil {
		text = a.after(text)
	}
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// samlRequest starts a sign-in and returns the request that the provider gets.
func (b *browser) samlRequest(name string) (*saml.AuthnRequest, url.Values) {
	b.t.Helper()
	query := b.submit("/users/sign_in", "/users/auth/"+name, "return_to", "/explore").leaves().Query()
	packed, err := base64.StdEncoding.DecodeString(query.Get("SAMLRequest"))
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		b.t.Fatal(err)
	}
	var request saml.AuthnRequest
	if err := xml.Unmarshal(text, &request); err != nil {
		b.t.Fatalf("%v: %s", err, text)
	}
	return &request, query
}

// enter signs in with a response that the test may change.
func (f *samlForger) enter(b *browser, name string, change func(*forged)) answer {
	b.t.Helper()
	request, _ := b.samlRequest(name)
	a := f.answerTo(name, request.ID)
	if change != nil {
		change(a)
	}
	return b.acs(name, a.text(b.t))
}

func set(key, value string) func(*forged) {
	return func(a *forged) { a.replace[key] = value }
}

func sent(old, new string) func(*forged) {
	return func(a *forged) { a.after = func(text string) string { return strings.Replace(text, old, new, 1) } }
}

func unsigned(old, new string) func(*forged) {
	return func(a *forged) { a.assertion = strings.Replace(a.assertion, old, new, 1) }
}

// hostileAnswers must not create a session. Each has the reason that is logged.
func hostileAnswers(t *testing.T, f *samlForger) map[string]func(*forged) {
	other := keyPair(t)
	later := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	// evil is an unsigned assertion about another user.
	evil := func(root *etree.Element) *etree.Element {
		e := root.FindElement("./Assertion").Copy()
		if s := e.FindElement("./Signature"); s != nil {
			e.RemoveChild(s)
		}
		e.FindElement(".//NameID").SetText("root")
		return e
	}
	return map[string]func(*forged){
		"neither the response nor the assertion is signed": func(a *forged) { a.signAssertion = false },
		"signature is not of a key of the provider":        func(a *forged) { a.key = other },
		"response: the signature is not of a key":          func(a *forged) { a.key, a.signAssertion, a.signResponse = other, false, true },
		"assertion: the signature is not of a key":         sent(">u1<", ">root<"),
		"xmldsig#rsa-sha1":                                 func(a *forged) { a.method = dsig.RSASHA1SignatureMethod },
		"is not accepted":                                  sent("http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2000/09/xmldsig#sha1"),
		"transform":                                        sent(string(dsig.EnvelopedSignatureAltorithmId), "http://www.w3.org/TR/1999/REC-xslt-19991116"),
		"canonicalization":                                 sent(`CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"`, `CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#WithComments"`),
		"the audience is not":                              set("audience", "https://other.example"),
		"it names no audience":                             unsigned("<saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction>", ""),
		"it has no conditions": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:Conditions.*</saml:Conditions>`).ReplaceAllString(a.assertion, "")
		},
		"which is not known": unsigned("<saml:AudienceRestriction>", "<saml:Condition/><saml:AudienceRestriction>"),
		"the recipient is":   set("recipient", "https://other.example/acs"),
		"the destination is": set("destination", "https://other.example/acs"),
		"the destination is \\\"\\\"": func(a *forged) {
			a.signResponse = true
			a.response = strings.Replace(a.response, `Destination="{destination}" `, "", 1)
		},
		"another issuer": set("issuer", "https://other.example"),
		"assertion: it comes from another issuer": unsigned("<saml:Issuer>{issuer}", "<saml:Issuer>https://other.example"),
		"assertion: it has expired":               set("until", later(-3*time.Minute)),
		"assertion: it is not valid before":       set("from", later(3*time.Minute)),
		"in the future":                           set("now", later(time.Hour)),
		"is not a time":                           set("until", "soon"),
		"the subject confirmation has no end":     unsigned(` NotOnOrAfter="{until}" InResponseTo`, " InResponseTo"),
		"no subject confirmation for a browser":   unsigned("cm:bearer", "cm:holder-of-key"),
		"the subject confirmation has no data": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:SubjectConfirmationData[^>]*/>`).ReplaceAllString(a.assertion, "")
		},
		"it has no subject": func(a *forged) {
			a.assertion = regexp.MustCompile(`<saml:Subject>.*</saml:Subject>`).ReplaceAllString(a.assertion, "")
		},
		"does not say that the user was authenticated": unsigned(`<saml:AuthnStatement AuthnInstant="{now}"/>`, ""),
		"the session at the provider has ended":        unsigned(`AuthnInstant="{now}"`, `AuthnInstant="{now}" SessionNotOnOrAfter="`+later(-time.Hour)+`"`),
		"the state does not match":                     set("request", "_other"),
		"sign-in has to start here":                    set("request", ""),
		"answer different requests":                    func(a *forged) { a.response = strings.Replace(a.response, "{request}", "_other", 1) },
		"status:Responder":                             set("status", "urn:oasis:names:tc:SAML:2.0:status:Responder"),
		"is transient":                                 set("format", transientID),
		"the identity is empty":                        set("name", ""),
		"is empty or too long":                         set("name", strings.Repeat("n", 256)),
		"a comment or a CDATA section":                 sent(">u1<", ">u1<!-- x --><"),
		"has a document type":                          func(a *forged) { a.after = func(text string) string { return `<!DOCTYPE r [<!ENTITY a "b">]>` + text } },
		"has a processing instruction":                 sent(">u1<", "><?x y?>u1<"),
		"the XML has a document type, a comment": func(a *forged) { // the signature is valid
			a.replace["name"] = "root.evil"
			a.after = func(text string) string { return strings.Replace(text, ">root.evil<", ">root<!-- -->.evil<", 1) }
		},
		"the XML cannot be read": sent("<saml:Subject>", "<saml:Subject>&bomb;"),
		"too large or too deep":  sent("<samlp:Status>", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)+"<samlp:Status>"),
		"the XML is too large":   sent("<samlp:Status>", strings.Repeat("<a/>", 30000)+"<samlp:Status>"),
		"too many namespaces": func(a *forged) {
			a.after = func(text string) string {
				return strings.Replace(text, "<samlp:Status>", manyPrefixes()+"<samlp:Status>", 1)
			}
		},
		"an attribute twice":            sent(`Version="2.0"`, `Version="2.0" Version="2.0"`),
		"the answer is too large":       sent("<samlp:Status>", strings.Repeat(" ", 600<<10)+"<samlp:Status>"),
		"not a SAML response":           func(a *forged) { a.response = strings.ReplaceAll(a.response, "samlp:Response", "samlp:LogoutResponse") },
		"the response has no assertion": func(a *forged) { a.response, a.signResponse = strings.Replace(a.response, "{assertion}", "", 1), true },
		"no key_file is configured": func(a *forged) {
			a.response, a.signResponse = strings.Replace(a.response, "{assertion}", "<saml:EncryptedAssertion/>", 1), true
		},
		"does not give an email":      set("email", ""),
		"none of the required groups": set("groups", "<saml:AttributeValue>guests</saml:AttributeValue>"),

		// Signature wrapping: the signed assertion is moved, and another one is
		// read.
		"there are several assertions": func(a *forged) {
			a.tree = func(root *etree.Element) {
				e := evil(root)
				e.CreateAttr("ID", "_evil")
				root.InsertChildAt(0, e)
			}
		},
		"an ID is there twice": func(a *forged) {
			a.tree = func(root *etree.Element) { root.InsertChildAt(0, evil(root)) }
		},
		"an assertion is not where it belongs": func(a *forged) {
			a.tree = func(root *etree.Element) {
				good, e := root.FindElement("./Assertion"), evil(root)
				e.CreateAttr("ID", "_evil")
				root.RemoveChild(good)
				e.CreateElement("saml:Advice").AddChild(good)
				root.AddChild(e)
			}
		},
		"a signature is not where it belongs": func(a *forged) {
			a.tree = func(root *etree.Element) {
				good := root.FindElement("./Assertion")
				s := good.FindElement("./Signature")
				good.RemoveChild(s)
				good.FindElement("./Subject").AddChild(s)
			}
		},
		"the signature is about another element": func(a *forged) {
			// The signature of the assertion that is hidden in it is in another one.
			a.tree = func(root *etree.Element) {
				good := root.FindElement("./Assertion")
				e, s := evil(root), good.FindElement("./Signature")
				e.CreateAttr("ID", "_evil")
				root.RemoveChild(good)
				good.RemoveChild(s)
				good.Tag = "Hidden"
				s.CreateElement("ds:Hidden").AddChild(good)
				e.AddChild(s)
				root.AddChild(e)
			}
		},
		"the signature has not one reference": func(a *forged) {
			a.tree = func(root *etree.Element) {
				info := root.FindElement("./Assertion/Signature/SignedInfo")
				info.AddChild(info.FindElement("./Reference").Copy())
			}
		},
		"a response is in another element": func(a *forged) {
			a.signResponse = true
			a.tree = func(root *etree.Element) {
				inner := root.Copy()
				root.CreateAttr("ID", "_evil")
				root.FindElement("./Assertion/Subject/NameID").SetText("root")
				root.CreateElement("samlp:Extensions").AddChild(inner)
			}
		},
	}
}

func manyPrefixes() string {
	var text strings.Builder
	for i := range 120 {
		fmt.Fprintf(&text, `<a xmlns:p%d="u"/>`, i)
	}
	return text.String()
}

// TestHostileSAML checks responses that must not create a session.
func TestHostileSAML(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		one, two := startForger(t), startForger(t)
		first, second := samlProvider("one", one.URL), samlProvider("two", two.URL)
		first.RequiredGroups = []string{"staff"}
		s := apptest.Start(t, src, withProviders(first, second)...)
		if _, err := s.Settings.Update(t.Context(), actor.System(), func(s *setting.Settings) { s.FailedPasswordsPerMinute = 0 }); err != nil {
			t.Fatal(err)
		}
		for reason, change := range hostileAnswers(t, one) {
			was := strings.Count(s.Log(), reason)
			b := forgeBrowser(t, s)
			b.refused(one.enter(b, "one", change), s, reason)
			if strings.Count(s.Log(), reason) == was {
				t.Errorf("%s: the log has no new reason: %s", reason, lastLine(s.Log()))
			}
		}
		for _, uid := range []string{"u1", "root"} {
			if _, err := s.Users.FindIdentity(t.Context(), "one", uid); err == nil {
				t.Fatalf("an account was created for %s", uid)
			}
		}
		b := forgeBrowser(t, s)
		for _, text := range []string{"", "%%%", base64.StdEncoding.EncodeToString([]byte("<")), base64.StdEncoding.EncodeToString([]byte{0xff, 0xfe, '<'})} {
			b.samlRequest("one")
			b.refused(b.acs("one", text), s, "sign-in refused")
		}
		b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {strings.Repeat("A", 2<<20)}}).want(413)
		b.fromElsewhere("/users/auth/none/callback", url.Values{}).want(404)
		b.get("/users/auth/none/metadata").want(404)
		testSAMLAttempts(t, s, one, two)
	})
}

func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "WARN") })
	return strings.Join(lines[max(len(lines)-2, 0):], "\n")
}

// testSAMLAttempts checks that a response is bound to a browser, a provider and a
// request, and works once.
func testSAMLAttempts(t *testing.T, s *apptest.Server, one, two *samlForger) {
	b, eve := forgeBrowser(t, s), forgeBrowser(t, s)
	request, query := b.samlRequest("one")
	if request.Issuer.Value != forge+"/users/auth/one/metadata" || request.Destination != one.URL+"/sso?realm=a" || query.Get("realm") != "a" ||
		request.AssertionConsumerServiceURL != forge+"/users/auth/one/callback" || *request.NameIDPolicy.Format != persistentID || query.Has("Signature") || query.Has("RelayState") {
		t.Errorf("the request is %+v, %v", request, query)
	}
	good := one.answerTo("one", request.ID)
	text := good.text(t)
	form := url.Values{"SAMLResponse": {text}}
	to := eve.fromElsewhere("/users/auth/one/callback", form).header.Get("Location")
	eve.refused(eve.get(to), s, "the browser has no attempt to sign in") // sign-in CSRF
	b.refused(b.acs("one", text), s, "the assertion was used before")

	// An attempt in the browser of the victim does not change that.
	request, _ = eve.samlRequest("one")
	stolen := one.answerTo("one", request.ID).text(t)
	b.samlRequest("one")
	b.refused(b.acs("one", stolen), s, "the state does not match")

	// A reference works once, for its provider, and for a short time.
	request, _ = b.samlRequest("one")
	to = b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	b.get(to).leads("/explore")
	b.submit("/", "/users/sign_out").leads("/users/sign_in")
	b.refused(b.get(to), s, "the browser has no attempt to sign in")
	again, _ := b.samlRequest("one")
	state := strings.TrimPrefix(again.ID, "_")
	b.refused(b.get("/users/auth/one/callback?state="+state+"&answer=none"), s, "there is no such answer, or it has expired")
	request, _ = b.samlRequest("one")
	to = b.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	s.Clock.Move(3 * time.Minute)
	b.refused(b.get(to), s, "there is no such answer, or it has expired")
	s.Clock.Move(-3 * time.Minute)

	// The reference of another response with the state of this attempt.
	request, _ = eve.samlRequest("one")
	to = eve.fromElsewhere("/users/auth/one/callback", url.Values{"SAMLResponse": {one.answerTo("one", request.ID).text(t)}}).header.Get("Location")
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	mine, _ := b.samlRequest("one")
	b.refused(b.get("/users/auth/one/callback?state="+strings.TrimPrefix(mine.ID, "_")+"&answer="+at.Query().Get("answer")), s, "the answer is to another request")

	// A provider cannot answer for another one.
	request, _ = b.samlRequest("two")
	b.refused(b.acs("two", one.answerTo("two", request.ID).text(t)), s, "another issuer")
	b.samlRequest("two")
	posing := one.answerTo("two", request.ID)
	posing.replace["issuer"] = two.URL + "/idp"
	b.refused(b.acs("two", posing.text(t)), s, "the signature is not of a key of the provider")
	late, _ := b.samlRequest("one")
	s.Clock.Move(16 * time.Minute)
	after := one.answerTo("one", late.ID)
	for key, d := range map[string]time.Duration{"now": 0, "until": 5 * time.Minute} {
		after.replace[key] = s.Clock.Now().Add(d).UTC().Format(time.RFC3339)
	}
	b.refused(b.acs("one", after.text(t)), s, "the attempt has expired")
	s.Clock.Move(-16 * time.Minute)

	// Every valid form of a response redirects to the page of the attempt.
	for _, change := range []func(*forged){
		nil,
		func(a *forged) { a.signResponse = true },
		func(a *forged) { a.signResponse, a.signAssertion = true, false },
		func(a *forged) { a.method = dsig.RSASHA512SignatureMethod },
		func(a *forged) {
			a.after = func(text string) string { return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + text }
		},
		set("groups", strings.Repeat("<saml:AttributeValue>other</saml:AttributeValue>", 3000)+"<saml:AttributeValue>staff</saml:AttributeValue>"),
		func(a *forged) { // only the response declares the namespace
			a.signAssertion, a.signResponse = false, true
			a.assertion = strings.Replace(a.assertion, ` xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"`, "", 1)
			a.response = strings.Replace(a.response, "<samlp:Status>", "\n  <samlp:Status>", 1)
		},
	} {
		c := forgeBrowser(t, s)
		c.samlEnters(one.enter(c, "one", change), s)
	}
	if strings.Contains(s.Log(), state) || strings.Contains(s.Log(), stolen) {
		t.Error("the log has secrets")
	}
}

func (b *browser) samlEnters(p answer, s *apptest.Server) {
	b.t.Helper()
	if p.header.Get("Location") != "/explore" {
		b.t.Errorf("the answer leads to %s: %s", p.header.Get("Location"), lastLine(s.Log()))
	}
	b.get("/api/v4/user").want(200, `"username":"bob"`)
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
