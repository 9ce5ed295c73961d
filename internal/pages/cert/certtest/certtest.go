// Package certtest creates certificates for tests.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	up   string // PEM of the intermediates above it, without the root
	own  string
}

// Start returns the time from which the certificates of tests are valid.
func Start() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// New returns a new root authority.
func New(t testing.TB) *Authority { return issue(t, nil, "Test Root") }

// Below returns a new intermediate authority, signed by a.
func (a *Authority) Below(name string) *Authority { return issue(a.t, a, name) }

func issue(t testing.TB, by *Authority, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"Example, Inc."}, CommonName: name},
		NotBefore: Start(), NotAfter: Start().AddDate(80, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	parent, key := template, a.key
	if by != nil {
		parent, key = by.cert, by.key
	}
	a.cert, a.own = sign(t, template, parent, a.key.Public(), key)
	if by != nil {
		a.up = a.own + by.up
	}
	return a
}

// Pool returns a certificate pool with the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() string { return a.own }

// Issue returns a certificate for names that expires at a time, with its
// intermediates, and its key.
func (a *Authority) Issue(until time.Time, names ...string) (certificate, key string) {
	a.t.Helper()
	private := newKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.IssueFor(private.Public(), Start(), until, names...), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// IssueFor is like Issue, for an existing public key.
func (a *Authority) IssueFor(public crypto.PublicKey, from, until time.Time, names ...string) (certificate string) {
	a.t.Helper()
	_, own := sign(a.t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"Example, Inc."}, CommonName: names[0]},
		NotBefore: from, NotAfter: until, DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}, a.cert, public, a.key)
	return own + a.up
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, of crypto.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, string) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
