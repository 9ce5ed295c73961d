// Package cert parses PEM certificates and private keys, and formats certificates as
// text.
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
	// MaxSize is the maximum size in bytes of a certificate with its intermediates,
	// and of a key.
	MaxSize  = 256 << 10
	maxChain = 20
	maxBits  = 8192 // of an RSA key: larger keys make TLS handshakes slow
	minBits  = 1024 // browsers reject smaller keys
)

// Chain is a certificate followed by its intermediates. Each is issued by the next.
type Chain []*x509.Certificate

// Leaf returns the first certificate of the chain.
func (c Chain) Leaf() *x509.Certificate { return c[0] }

// Fault is the error of an invalid certificate or key, without its name as the
// subject: "must be a valid PEM certificate".
type Fault string

func (f Fault) Error() string { return string(f) }

// Parse parses a chain in PEM format. It returns a Fault if the text is not a list
// of certificates, or if one of them is not issued by the next.
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

// CheckTime returns a Fault if a certificate of the chain has expired.
func (c Chain) CheckTime(now time.Time) error {
	for _, one := range c {
		if now.After(one.NotAfter) {
			return Fault("has expired")
		}
	}
	return nil
}

// ExpiresAt returns the time at which the first certificate of the chain expires.
func (c Chain) ExpiresAt() time.Time {
	at := c.Leaf().NotAfter
	for _, one := range c {
		if one.NotAfter.Before(at) {
			at = one.NotAfter
		}
	}
	return at
}

// ParseKey parses a private key in PEM format. It returns a Fault if it is not
// valid.
func ParseKey(text string) (crypto.Signer, error) {
	if len(text) > MaxSize {
		return nil, Fault("is too long")
	}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, Fault("must be a valid PEM private key")
		}
		if block.Type == "EC PARAMETERS" { // openssl writes it before an EC key
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

// Matches returns a Fault if the key does not belong to the certificate.
func (c Chain) Matches(key crypto.Signer) error {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(c.Leaf().PublicKey) {
		return Fault("doesn't match the certificate")
	}
	return nil
}

// Pair returns a chain and its key as a certificate for a TLS server.
func Pair(certificate, key string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, errors.New("the certificate and its key do not fit") // err may contain parts of the key
	}
	return &pair, nil
}

// Subject returns a DER-encoded name as one line:
// /C=DE/O=Example/CN=www.example.org.
func Subject(raw []byte) string {
	var out strings.Builder
	for _, part := range parts(raw) {
		out.WriteString("/" + part.name + "=" + part.value)
	}
	return out.String()
}

type part struct{ name, value string }

// parts returns the attributes of a DER-encoded name in their order.
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
