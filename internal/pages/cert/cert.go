// Package cert parses PEM certificates and keys of users, and prints certificates
// as text.
package cert

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// MaxSize is how many bytes a certificate with its intermediates, or a key,
	// may have.
	MaxSize  = 256 << 10
	maxChain = 20
	maxBits  = 8192 // of an RSA key: larger ones make each visit slow
	minBits  = 1024 // smaller ones no browser takes
)

// Chain is a certificate with the intermediates behind it, from the most to the
// least specific.
type Chain []*x509.Certificate

// Leaf is the certificate itself.
func (c Chain) Leaf() *x509.Certificate { return c[0] }

// Fault is what is wrong with a certificate or a key, as a sentence that
// follows its name: "must be a valid PEM certificate".
type Fault string

func (f Fault) Error() string { return string(f) }

// Parse reads a chain: only certificates, each issued by the next.
func Parse(text string) (Chain, error) {
	if len(text) > MaxSize {
		return nil, Fault("is too long")
	}
	var chain Chain
	rest := []byte(text)
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, Fault("must be a valid PEM certificate")
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, Fault("must be a valid PEM certificate")
		}
		if chain = append(chain, one); len(chain) > maxChain {
			return nil, Fault("has too many intermediates")
		}
	}
	if len(chain) == 0 {
		return nil, Fault("must be a valid PEM certificate")
	}
	for i, one := range chain[1:] {
		if !bytes.Equal(chain[i].RawIssuer, one.RawSubject) {
			return nil, Fault("has intermediates in the wrong order, or of another issuer")
		}
		if err := chain[i].CheckSignatureFrom(one); err != nil {
			return nil, Fault("has an intermediate that did not sign the certificate before it")
		}
	}
	if key, ok := chain.Leaf().PublicKey.(*rsa.PublicKey); ok && (key.N.BitLen() > maxBits || key.N.BitLen() < minBits) {
		return nil, Fault(fmt.Sprintf("has an RSA key outside of %d to %d bits", minBits, maxBits))
	}
	return chain, nil
}

// CheckTime refuses a chain of which a part has expired.
func (c Chain) CheckTime(now time.Time) error {
	for _, one := range c {
		if now.After(one.NotAfter) {
			return Fault("has expired")
		}
	}
	return nil
}

// ExpiresAt is when the first of the chain expires.
func (c Chain) ExpiresAt() time.Time {
	at := c.Leaf().NotAfter
	for _, one := range c {
		if one.NotAfter.Before(at) {
			at = one.NotAfter
		}
	}
	return at
}

// ParseKey reads a private key.
func ParseKey(text string) (crypto.Signer, error) {
	if len(text) > MaxSize {
		return nil, Fault("is too long")
	}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, Fault("must be a valid PEM private key")
		}
		if block.Type == "EC PARAMETERS" { // stands before keys that openssl writes
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, Fault("must not be encrypted")
		}
		if block.Type != "PRIVATE KEY" && !strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return nil, Fault("must be a valid PEM private key")
		}
		return parseKey(block.Bytes)
	}
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, Fault("must be a valid PEM private key")
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, Fault("is of a kind that is not supported")
}

// Matches refuses a key that is not the one of the certificate.
func (c Chain) Matches(key crypto.Signer) error {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(c.Leaf().PublicKey) {
		return Fault("doesn't match the certificate")
	}
	return nil
}

// Pair joins a chain and its key for a TLS server.
func Pair(certificate, key string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, errors.New("the certificate and its key do not fit") // the error may show what is in them
	}
	return &pair, nil
}

// Subject is a name as one line: /C=DE/O=Example/CN=www.example.org.
func Subject(raw []byte) string {
	var out strings.Builder
	for _, part := range parts(raw) {
		out.WriteString("/" + part.name + "=" + part.value)
	}
	return out.String()
}

type part struct{ name, value string }

// parts reads a name in the order in which it is written.
func parts(raw []byte) []part {
	var sequence pkix.RDNSequence
	if _, err := asn1.Unmarshal(raw, &sequence); err != nil {
		return nil
	}
	var list []part
	for _, set := range sequence {
		for _, attribute := range set {
			list = append(list, part{attributeName(attribute.Type), printable(fmt.Sprint(attribute.Value))})
		}
	}
	return list
}

func printable(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' {
			out.WriteString(`\x` + strings.ToUpper(hex.EncodeToString([]byte{b})))
			continue
		}
		out.WriteByte(b)
	}
	return out.String()
}

func attributeName(id asn1.ObjectIdentifier) string {
	names := map[string]string{
		"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
		"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.17": "postalCode", "2.5.4.42": "GN",
		"1.2.840.113549.1.9.1": "emailAddress", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
	}
	if name, known := names[id.String()]; known {
		return name
	}
	return id.String()
}
