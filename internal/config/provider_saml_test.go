package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSAMLProviders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func(name string, key any, public any) (certFile, keyFile string) {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		cert, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return file(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), file(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	}
	one, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := pair("rsa", one, &one.PublicKey)
	curveCert, curveKey := pair("ecdsa", curve, &curve.PublicKey)
	metadata := file("metadata.xml", []byte("<EntityDescriptor/>"))
	empty := file("empty", nil)

	c, err := load(t, `
providers:
  - name: url
    kind: saml
    metadata_url: https://id.example.com/realms/corp/protocol/saml/descriptor
    key_file: `+key+`
    certificate_file: `+cert+`
  - {name: file, kind: saml, metadata_file: `+metadata+`, id_attribute: uid, trust_email: true, link_by_email: true, email_attribute: "urn:oid:0.9.2342.19200300.100.1.3"}
  - {name: hand, kind: saml, idp_entity_id: "urn:corp", idp_sso_url: "https://id.example.com/sso?a=b", idp_certificate_file: `+cert+`, name_id_format: email}
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, h := c.Providers[0], c.Providers[1], c.Providers[2]
	if a.KeyPair == nil || a.NameIDFormat != nameIDFormats["persistent"] || a.UsernameAttribute != "username" || a.GroupsAttribute != "groups" || !a.AutoCreate || !a.RequireApproval || !a.TrustTwoFactor || a.TrustEmail {
		t.Errorf("%+v", a)
	}
	if string(b.Metadata) != "<EntityDescriptor/>" || b.NameIDFormat != "" || b.IDAttribute != "uid" {
		t.Errorf("%+v", b)
	}
	if len(h.IDPCertificates) != 1 || h.NameIDFormat != nameIDFormats["email"] {
		t.Errorf("%+v", h)
	}

	const start = `"name":"a","kind":"saml"`
	const good = start + `,"metadata_url":"https://a.example/metadata"`
	for text, want := range map[string]string{
		start:                                 "metadata_url or metadata_file is missing",
		start + `,"metadata_url":"a.example"`: "metadata_url is not a URL",
		start + `,"metadata_url":"https://u:hunter2@a.example"`:                                                          "metadata_url is not a URL",
		start + `,"metadata_file":"/none"`:                                                                               "metadata_file cannot be read",
		start + `,"metadata_file":"` + empty + `"`:                                                                       "metadata_file cannot be read or is empty",
		good + `,"metadata_file":"` + metadata + `"`:                                                                     "exclude each other",
		good + `,"idp_sso_url":"https://a.example"`:                                                                      "cannot be set beside",
		start + `,"idp_entity_id":"a"`:                                                                                   "idp_sso_url is missing",
		start + `,"idp_sso_url":"https://a.example"`:                                                                     "idp_entity_id is missing",
		start + `,"idp_entity_id":"a","idp_sso_url":"javascript:x"`:                                                      "idp_sso_url is not a URL",
		start + `,"idp_entity_id":"a","idp_sso_url":"https://a.example"`:                                                 "idp_certificate_file is missing",
		start + `,"idp_entity_id":"a","idp_sso_url":"https://a.example","idp_certificate_file":"/none"`:                  "idp_certificate_file cannot be read",
		start + `,"idp_entity_id":"a","idp_sso_url":"https://a.example","idp_certificate_file":"` + empty + `"`:          "has no certificate in PEM",
		start + `,"idp_entity_id":"a","idp_sso_url":"https://a.example","idp_certificate_file":"` + key + `"`:            "has something that is not a certificate",
		good + `,"key_file":"` + key + `"`:                                                                               "key_file needs certificate_file",
		good + `,"certificate_file":"` + cert + `"`:                                                                      "key_file needs certificate_file",
		good + `,"key_file":"` + key + `","certificate_file":"` + curveCert + `"`:                                        "do not belong together",
		good + `,"key_file":"` + curveKey + `","certificate_file":"` + curveCert + `"`:                                   "not an RSA key",
		good + `,"name_id_format":"transient"`:                                                                           "name_id_format is not one of",
		good + `,"groups_attribute":""`:                                                                                  "groups_attribute is not the name",
		good + `,"id_attribute":"` + strings.Repeat("a", 256) + `"`:                                                      "id_attribute is not the name",
		good + `,"entity_id":"a b"`:                                                                                      "entity_id",
		good + `,"link_by_email":true`:                                                                                   "link_by_email needs trust_email",
		good + `,"client_secret":"hunter2"`:                                                                              "client_secret is not an option of the kind saml",
		good + `,"url":"ldap://a.example"`:                                                                               "url is not an option of the kind saml",
		`"name":"a","kind":"oidc","issuer":"https://a.example","client_id":"c","client_secret":"hunter2","key_file":"x"`: "key_file is not an option of the kind oidc",
	} {
		_, err := load(t, "", []string{"SVC_PROVIDERS=[{" + text + "}]"}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
