package signin

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
)

var update = flag.Bool("update", false, "write testdata/saml_response.xml and its certificate with a new key")

// fixedTime is when the response in testdata was sent.
var fixedTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const fixedResponse = `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_r" Version="2.0" ` +
	`IssueInstant="2026-03-04T05:06:07Z" Destination="https://forge.example/acs" InResponseTo="_q"><saml:Issuer>https://idp.example</saml:Issuer>` +
	`<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>{assertion}</samlp:Response>`

const fixedAssertion = `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_a" Version="2.0" IssueInstant="2026-03-04T05:06:07Z">` +
	`<saml:Issuer>https://idp.example</saml:Issuer><saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">ada</saml:NameID>` +
	`<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData Recipient="https://forge.example/acs" ` +
	`NotOnOrAfter="2026-03-04T05:11:07Z" InResponseTo="_q"/></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="2026-03-04T05:06:00Z" ` +
	`NotOnOrAfter="2026-03-04T05:11:07Z"><saml:AudienceRestriction><saml:Audience>https://forge.example</saml:Audience></saml:AudienceRestriction></saml:Conditions>` +
	`<saml:AuthnStatement AuthnInstant="2026-03-04T05:06:00Z"/><saml:AttributeStatement><saml:Attribute Name="urn:oid:2.5.4.3" FriendlyName="name">` +
	`<saml:AttributeValue>Ada</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion>`

// writeFixed signs the response with a key that is then forgotten.
func writeFixed(t testing.TB) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: fixedTime.AddDate(-1, 0, 0), NotAfter: fixedTime.AddDate(100, 0, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dsig.NewSigningContext(key, [][]byte{raw})
	if err != nil {
		t.Fatal(err)
	}
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	doc := etree.NewDocument()
	if err := doc.ReadFromString(fixedAssertion); err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignEnveloped(doc.Root())
	if err != nil {
		t.Fatal(err)
	}
	doc.SetRoot(signed)
	text, err := doc.WriteToString()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"saml_response.xml":    []byte(strings.Replace(fixedResponse, "{assertion}", text, 1)),
		"saml_certificate.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
	} {
		if err := os.WriteFile("testdata/"+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// fixed returns the response in testdata and the two sides that it is between.
func fixed(t testing.TB) ([]byte, *serviceProvider, *identityProvider) {
	t.Helper()
	if *update {
		writeFixed(t)
	}
	text, err := os.ReadFile("testdata/saml_response.xml")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := os.ReadFile("testdata/saml_certificate.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(encoded)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sp := &serviceProvider{SAML: SAML{EntityID: "https://forge.example"}, acs: "https://forge.example/acs", now: func() time.Time { return fixedTime.Add(time.Minute) }}
	return text, sp, &identityProvider{entityID: "https://idp.example", certificates: []*x509.Certificate{cert}}
}

func TestSAMLResponse(t *testing.T) {
	t.Parallel()
	text, sp, at := fixed(t)
	found, err := sp.verifyWith(at, text)
	if err != nil || found.nameID != "ada" || found.request != "_q" || found.id != "_a" || strings.Join(found.values("name"), ",") != "Ada" || !found.until.Equal(fixedTime.Add(7*time.Minute)) {
		t.Fatalf("%+v, %v", found, err)
	}
	// The clocks of both sides may differ by two minutes.
	for minutes, good := range map[int]bool{-3: false, -1: true, 6: true, 8: false} {
		sp.now = func() time.Time { return fixedTime.Add(time.Duration(minutes) * time.Minute) }
		if _, err := sp.verifyWith(at, text); (err == nil) != good {
			t.Errorf("after %d minutes: %v", minutes, err)
		}
	}
	// A certificate that has expired verifies nothing.
	sp.now = func() time.Time { return fixedTime.AddDate(101, 0, 0) }
	if _, err := sp.verifyWith(at, text); !errors.Is(err, errSignature) {
		t.Errorf("the certificate has expired: %v", err)
	}
}

// FuzzSAMLResponse checks that any response is refused or returns what was signed.
func FuzzSAMLResponse(f *testing.F) {
	text, sp, at := fixed(f)
	f.Add(text)
	for _, change := range [][2]string{
		{"<saml:Assertion", "<saml:Assertion ID=\"x\""}, {">ada<", ">eve<"}, {">ada<", "><!-- -->ada<"}, {"saml:", "s:"}, {"_a", "_b"}, {"#_a", ""}, {"xml-exc-c14n#", "xml-exc-c14n#WithComments"},
	} {
		f.Add(bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1])))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := sp.verifyWith(at, text)
		if err != nil {
			return
		}
		if found.nameID != "ada" || found.id != "_a" || found.request != "_q" || strings.Join(found.values("name"), ",") != "Ada" || len(found.attributes) != 1 {
			t.Errorf("%+v was not signed: %s", found, text)
		}
	})
}

// FuzzSAMLMetadata checks that any document is refused or has what a provider needs.
func FuzzSAMLMetadata(f *testing.F) {
	f.Add([]byte(`<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="x" validUntil="2026-01-01T00:00:00Z"><IDPSSODescriptor><KeyDescriptor/>` +
		`<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://x.example/"/></IDPSSODescriptor></EntityDescriptor>`))
	f.Add([]byte(`<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" cacheDuration="PT1H"/>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		at, err := new(serviceProvider).parseMetadata(text)
		if err == nil && at.check(true) == nil && (at.entityID == "" || !strings.HasPrefix(strings.ToLower(at.sso), "https:") || len(at.certificates) == 0) {
			t.Errorf("%+v", at)
		}
	})
}

// seal encrypts a text as a provider does.
func seal(t testing.TB, key *rsa.PublicKey, text, method, keyMethod string) string {
	t.Helper()
	content := make([]byte, keySizes[method])
	_, _ = rand.Read(content)
	block, err := aes.NewCipher(content)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	if strings.HasSuffix(method, "-gcm") {
		mode, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		nonce := make([]byte, mode.NonceSize())
		_, _ = rand.Read(nonce)
		data = mode.Seal(nonce, nonce, []byte(text), nil)
	} else {
		n := 16 - len(text)%16
		plain := append([]byte(text), bytes.Repeat([]byte{byte(n)}, n)...)
		data = make([]byte, 16+len(plain))
		_, _ = rand.Read(data[:16])
		cipher.NewCBCEncrypter(block, data[:16]).CryptBlocks(data[16:], plain)
	}
	hash, options := sha1.New(), ""
	if keyMethod == oaep11 {
		hash = sha256.New()
		options = `<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><e11:MGF Algorithm="http://www.w3.org/2009/xmlenc11#mgf1sha256"/>`
	}
	wrapped, err := rsa.EncryptOAEP(hash, rand.Reader, key, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(b []byte) string {
		return `<e:CipherData><e:CipherValue>` + base64.StdEncoding.EncodeToString(b) + "\n</e:CipherValue></e:CipherData>"
	}
	return `<saml:EncryptedAssertion xmlns:saml="` + nsAssertion + `" xmlns:e="` + nsEncryption + `" xmlns:e11="` + nsEncryption11 + `" xmlns:ds="` + dsig.Namespace + `">` +
		`<e:EncryptedData><e:EncryptionMethod Algorithm="` + method + `"/><ds:KeyInfo><e:EncryptedKey><e:EncryptionMethod Algorithm="` + keyMethod + `">` + options +
		`</e:EncryptionMethod>` + value(wrapped) + `</e:EncryptedKey></ds:KeyInfo>` + value(data) + `</e:EncryptedData></saml:EncryptedAssertion>`
}

func TestDecrypt(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	open := func(text string) (string, error) {
		el, err := parseXML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := decrypt(key, el)
		return string(plain), err
	}
	const text = "<a>a text of some length</a>"
	for method := range keySizes {
		for _, keyMethod := range []string{oaep, oaep11} {
			if got, err := open(seal(t, &key.PublicKey, text, method, keyMethod)); err != nil || got != text {
				t.Errorf("%s, %s: %q, %v", method, keyMethod, got, err)
			}
		}
	}
	good := seal(t, &key.PublicKey, text, cbc128, oaep)
	cut := strings.LastIndex(good, "\n</e:CipherValue>")
	for name, tt := range map[string]struct{ text, want string }{
		"Triple DES":      {strings.Replace(good, "aes128-cbc", "tripledes-cbc", 1), "which is not accepted"},
		"PKCS #1 v1.5":    {strings.Replace(good, "rsa-oaep-mgf1p", "rsa-1_5", 1), "which is not accepted"},
		"another size":    {strings.Replace(good, "aes128-cbc", "aes256-cbc", 1), "cannot be decrypted"},
		"not full blocks": {good[:cut-8] + good[cut:], "cannot be decrypted"},
		"no data":         {strings.ReplaceAll(good, "e:EncryptedData", "e:Other"), "cannot be decrypted"},
		"no key":          {strings.ReplaceAll(good, "e:EncryptedKey", "e:Other"), "cannot be decrypted"},
		"a label":         {strings.Replace(good, "</e:EncryptionMethod>", "<e:OAEPparams/></e:EncryptionMethod>", 1), "not known"},
		"no base64":       {strings.ReplaceAll(good, "<e:CipherValue>", "<e:CipherValue>%"), "cannot be decrypted"},
	} {
		if got, err := open(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
