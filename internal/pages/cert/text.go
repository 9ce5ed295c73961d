package cert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Text returns a certificate in the format of "openssl x509 -text".
func Text(c *x509.Certificate) string {
	t := &text{}
	t.line(0, "Certificate:")
	t.line(4, "Data:")
	t.line(8, "Version: %d (0x%x)", c.Version, c.Version-1)
	if c.SerialNumber.IsInt64() && c.SerialNumber.Sign() >= 0 {
		t.line(8, "Serial Number: %d (0x%x)", c.SerialNumber, c.SerialNumber)
	} else {
		t.line(8, "Serial Number:")
		t.line(12, "%s", signedHex(c.SerialNumber))
	}
	t.line(8, "Signature Algorithm: %s", algorithm(c.SignatureAlgorithm))
	t.line(8, "Issuer: %s", spaced(c.RawIssuer))
	t.line(8, "Validity")
	t.line(12, "Not Before: %s", when(c.NotBefore))
	t.line(12, "Not After : %s", when(c.NotAfter))
	t.line(8, "Subject: %s", spaced(c.RawSubject))
	t.line(8, "Subject Public Key Info:")
	t.key(c)
	if len(c.Extensions) > 0 {
		t.line(8, "X509v3 extensions:")
		for _, e := range c.Extensions {
			t.extension(c, e)
		}
	}
	t.line(4, "Signature Algorithm: %s", algorithm(c.SignatureAlgorithm))
	t.line(4, "Signature Value:")
	t.bytes(8, c.Signature, 18)
	return t.String()
}

type text struct{ strings.Builder }

func (t *text) line(indent int, format string, args ...any) {
	t.WriteString(strings.Repeat(" ", indent))
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

// bytes writes data in hexadecimal, width bytes per line.
func (t *text) bytes(indent int, data []byte, width int) {
	for len(data) > 0 {
		n := min(width, len(data))
		end := ":"
		if n == len(data) {
			end = ""
		}
		t.line(indent, "%s%s", colons(data[:n]), end)
		data = data[n:]
	}
}

func colons(data []byte) string {
	parts := make([]string, len(data))
	for i, b := range data {
		parts[i] = fmt.Sprintf("%02x", b)
	}
	return strings.Join(parts, ":")
}

func signedHex(n *big.Int) string {
	if n.Sign() < 0 {
		return "(Negative)" + colons(new(big.Int).Abs(n).Bytes())
	}
	return colons(n.Bytes())
}

func when(at time.Time) string { return at.UTC().Format("Jan _2 15:04:05 2006 GMT") }

func spaced(raw []byte) string {
	var list []string
	for _, p := range parts(raw) {
		value := p.value
		if strings.ContainsAny(value, `,+"\<>;`) {
			value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		}
		list = append(list, p.name+"="+value)
	}
	return strings.Join(list, ", ")
}

func algorithm(a x509.SignatureAlgorithm) string {
	names := map[x509.SignatureAlgorithm]string{
		x509.SHA1WithRSA: "sha1WithRSAEncryption", x509.SHA256WithRSA: "sha256WithRSAEncryption", x509.SHA384WithRSA: "sha384WithRSAEncryption",
		x509.SHA512WithRSA: "sha512WithRSAEncryption", x509.ECDSAWithSHA1: "ecdsa-with-SHA1", x509.ECDSAWithSHA256: "ecdsa-with-SHA256",
		x509.ECDSAWithSHA384: "ecdsa-with-SHA384", x509.ECDSAWithSHA512: "ecdsa-with-SHA512", x509.PureEd25519: "ED25519",
		x509.SHA256WithRSAPSS: "rsassaPss", x509.SHA384WithRSAPSS: "rsassaPss", x509.SHA512WithRSAPSS: "rsassaPss",
		x509.MD5WithRSA: "md5WithRSAEncryption",
	}
	if name, known := names[a]; known {
		return name
	}
	return a.String()
}

func (t *text) key(c *x509.Certificate) {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		t.line(12, "Public Key Algorithm: rsaEncryption")
		t.line(16, "Public-Key: (%d bit)", key.N.BitLen())
		t.line(16, "Modulus:")
		t.bytes(20, append([]byte{0}, key.N.Bytes()...), 15)
		t.line(16, "Exponent: %d (0x%x)", key.E, key.E)
	case *ecdsa.PublicKey:
		t.line(12, "Public Key Algorithm: id-ecPublicKey")
		t.line(16, "Public-Key: (%d bit)", key.Curve.Params().BitSize)
		if point, err := key.Bytes(); err == nil {
			t.line(16, "pub:")
			t.bytes(20, point, 15)
		}
		oids := map[string]string{"P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1", "P-224": "secp224r1"}
		t.line(16, "ASN1 OID: %s", oids[key.Curve.Params().Name])
		t.line(16, "NIST CURVE: %s", key.Curve.Params().Name)
	case ed25519.PublicKey:
		t.line(12, "Public Key Algorithm: ED25519")
		t.line(16, "ED25519 Public-Key:")
		t.line(16, "pub:")
		t.bytes(20, key, 15)
	default:
		t.line(12, "Public Key Algorithm: %s", c.PublicKeyAlgorithm)
	}
}

// extension writes an extension: known ones as text, others as bytes.
func (t *text) extension(c *x509.Certificate, e pkix.Extension) {
	known := map[string]struct {
		name  string
		value func() string
	}{
		"2.5.29.14":         {"X509v3 Subject Key Identifier", func() string { return upper(c.SubjectKeyId) }},
		"2.5.29.35":         {"X509v3 Authority Key Identifier", func() string { return upper(c.AuthorityKeyId) }},
		"2.5.29.19":         {"X509v3 Basic Constraints", func() string { return constraints(c) }},
		"2.5.29.15":         {"X509v3 Key Usage", func() string { return usage(c.KeyUsage) }},
		"2.5.29.37":         {"X509v3 Extended Key Usage", func() string { return purposes(c) }},
		"2.5.29.17":         {"X509v3 Subject Alternative Name", func() string { return alternatives(c) }},
		"2.5.29.31":         {"X509v3 CRL Distribution Points", func() string { return uris("Full Name:", c.CRLDistributionPoints) }},
		"2.5.29.32":         {"X509v3 Certificate Policies", func() string { return policies(c) }},
		"1.3.6.1.5.5.7.1.1": {"Authority Information Access", func() string { return access(c) }},
	}
	critical := " " // openssl writes a trailing space
	if e.Critical {
		critical = " critical"
	}
	k, ok := known[e.Id.String()]
	if !ok {
		t.line(12, "%s:%s", e.Id, critical)
		t.bytes(16, e.Value, 18)
		return
	}
	t.line(12, "%s:%s", k.name, critical)
	for line := range strings.SplitSeq(k.value(), "\n") {
		t.line(16, "%s", line)
	}
}

func upper(data []byte) string { return strings.ToUpper(colons(data)) }

func constraints(c *x509.Certificate) string {
	if !c.IsCA {
		return "CA:FALSE"
	}
	if c.MaxPathLen > 0 || c.MaxPathLenZero {
		return fmt.Sprintf("CA:TRUE, pathlen:%d", c.MaxPathLen)
	}
	return "CA:TRUE"
}

func usage(u x509.KeyUsage) string {
	var list []string
	for i, name := range []string{"Digital Signature", "Non Repudiation", "Key Encipherment", "Data Encipherment", "Key Agreement",
		"Certificate Sign", "CRL Sign", "Encipher Only", "Decipher Only"} {
		if u&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

func purposes(c *x509.Certificate) string {
	names := map[x509.ExtKeyUsage]string{
		x509.ExtKeyUsageAny: "Any Extended Key Usage", x509.ExtKeyUsageServerAuth: "TLS Web Server Authentication",
		x509.ExtKeyUsageClientAuth: "TLS Web Client Authentication", x509.ExtKeyUsageCodeSigning: "Code Signing",
		x509.ExtKeyUsageEmailProtection: "E-mail Protection", x509.ExtKeyUsageTimeStamping: "Time Stamping", x509.ExtKeyUsageOCSPSigning: "OCSP Signing",
	}
	var list []string
	for _, u := range c.ExtKeyUsage {
		if name, ok := names[u]; ok {
			list = append(list, name)
		}
	}
	for _, id := range c.UnknownExtKeyUsage {
		list = append(list, id.String())
	}
	return strings.Join(list, ", ")
}

func alternatives(c *x509.Certificate) string {
	var list []string
	for _, name := range c.DNSNames {
		list = append(list, "DNS:"+printable(name))
	}
	for _, name := range c.EmailAddresses {
		list = append(list, "email:"+printable(name))
	}
	for _, ip := range c.IPAddresses {
		list = append(list, "IP Address:"+ip.String())
	}
	for _, u := range c.URIs {
		list = append(list, "URI:"+printable(u.String()))
	}
	return strings.Join(list, ", ")
}

func uris(head string, list []string) string {
	lines := []string{head}
	for _, u := range list {
		lines = append(lines, "  URI:"+printable(u))
	}
	return strings.Join(lines, "\n")
}

func policies(c *x509.Certificate) string {
	var lines []string
	for _, id := range c.PolicyIdentifiers {
		lines = append(lines, "Policy: "+id.String())
	}
	return strings.Join(lines, "\n")
}

func access(c *x509.Certificate) string {
	var lines []string
	for _, u := range c.OCSPServer {
		lines = append(lines, "OCSP - URI:"+printable(u))
	}
	for _, u := range c.IssuingCertificateURL {
		lines = append(lines, "CA Issuers - URI:"+printable(u))
	}
	return strings.Join(lines, "\n")
}
