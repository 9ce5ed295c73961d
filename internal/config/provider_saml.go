package config

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// nameIDFormats maps the short names of name ID formats to their URNs.
var nameIDFormats = map[string]string{
	"persistent":  "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
	"email":       "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
	"unspecified": "",
}

// checkSAML validates a SAML identity provider and reads its files.
func (p *Provider) checkSAML() error {
	if err := p.checkIDP(); err != nil {
		return err
	}
	if err := p.readKeyPair(); err != nil {
		return err
	}
	if p.NameIDFormat == "" {
		p.NameIDFormat = "persistent"
		if p.IDAttribute != "" {
			p.NameIDFormat = "unspecified"
		}
	}
	format, ok := nameIDFormats[p.NameIDFormat]
	if !ok {
		return errors.New("name_id_format is not one of persistent, email, unspecified")
	}
	p.NameIDFormat = format
	if len(p.EntityID) > 1024 || strings.ContainsFunc(p.EntityID, unicode.IsSpace) {
		return errors.New("entity_id is longer than 1024 characters or has spaces")
	}
	for _, a := range []struct{ key, value string }{
		{"id_attribute", p.IDAttribute}, {"username_attribute", p.UsernameAttribute}, {"name_attribute", p.NameAttribute},
		{"email_attribute", p.EmailAttribute}, {"groups_attribute", p.GroupsAttribute},
	} {
		if a.value == "" && a.key == "id_attribute" {
			continue
		}
		if a.value == "" || len(a.value) > 255 || strings.ContainsFunc(a.value, unicode.IsControl) {
			return fmt.Errorf("%s is not the name of an attribute", a.key)
		}
	}
	if p.LinkByEmail && !p.TrustEmail {
		return errors.New("link_by_email needs trust_email: SAML does not say whether an address is verified")
	}
	return nil
}

// checkIDP checks that the identity provider is configured in exactly one way:
// metadata URL, metadata file, or single options.
func (p *Provider) checkIDP() error {
	byHand := p.IDPSSOURL != "" || p.IDPCertificateFile != ""
	switch {
	case p.MetadataURL != "" && p.MetadataFile != "":
		return errors.New("metadata_url and metadata_file exclude each other")
	case byHand && (p.MetadataURL != "" || p.MetadataFile != ""):
		return errors.New("idp_sso_url and idp_certificate_file cannot be set beside metadata_url or metadata_file")
	case p.MetadataURL != "":
		if !webAddress(p.MetadataURL) {
			return errors.New("metadata_url is not a URL of the form https://host/path")
		}
		return nil
	case p.MetadataFile != "":
		text, err := os.ReadFile(p.MetadataFile)
		if err != nil || len(text) == 0 {
			return errors.New("metadata_file cannot be read or is empty")
		}
		p.Metadata = text
		return nil
	case !byHand && p.IDPEntityID == "":
		return errors.New("metadata_url or metadata_file is missing; or idp_entity_id, idp_sso_url and idp_certificate_file")
	case p.IDPEntityID == "":
		return errors.New("idp_entity_id is missing")
	case p.IDPSSOURL == "":
		return errors.New("idp_sso_url is missing")
	case !webAddress(p.IDPSSOURL):
		return errors.New("idp_sso_url is not a URL of the form https://host/path")
	case p.IDPCertificateFile == "":
		return errors.New("idp_certificate_file is missing")
	}
	text, err := os.ReadFile(p.IDPCertificateFile)
	if err != nil {
		return errors.New("idp_certificate_file cannot be read")
	}
	p.IDPCertificates = nil
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != "CERTIFICATE" {
			return errors.New("idp_certificate_file has something that is not a certificate")
		}
		p.IDPCertificates = append(p.IDPCertificates, cert)
	}
	if len(p.IDPCertificates) == 0 {
		return errors.New("idp_certificate_file has no certificate in PEM format")
	}
	return nil
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// readKeyPair reads the private key and the certificate of this instance.
func (p *Provider) readKeyPair() error {
	if p.KeyFile == "" && p.CertificateFile == "" {
		return nil
	}
	if p.KeyFile == "" || p.CertificateFile == "" {
		return errors.New("key_file needs certificate_file, and the other way around")
	}
	pair, err := tls.LoadX509KeyPair(p.CertificateFile, p.KeyFile)
	if err != nil {
		return errors.New("key_file and certificate_file cannot be read, or do not belong together")
	}
	if key, ok := pair.PrivateKey.(*rsa.PrivateKey); !ok || key.N.BitLen() < 2048 {
		return errors.New("key_file is not an RSA key of at least 2048 bits")
	}
	p.KeyPair = &pair
	return nil
}
