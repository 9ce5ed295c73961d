package web_test

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
)

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
