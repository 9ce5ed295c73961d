package cert_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/pages/cert"
	"svc/internal/pages/cert/certtest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	root := certtest.New(t)
	middle := root.Below("Test Intermediate")
	chain, key := middle.Issue(certtest.Start().AddDate(50, 0, 0), "www.example.org")
	other, otherKey := root.Issue(certtest.Start().AddDate(50, 0, 0), "other.example.org")
	old, oldKey := root.Issue(certtest.Start().AddDate(1, 0, 0), "old.example.org")
	leaf := chain[:strings.Index(chain, "-----END CERTIFICATE-----")+26]
	for _, c := range []struct{ name, cert, key, want string }{
		{"chain", chain, key, ""},
		{"with the root", chain + root.PEM(), key, ""},
		{"leaf alone", leaf, key, ""},
		{"blank lines", "\n" + chain + "\n\n", "\n" + key, ""},
		{"text before", "Some text\n" + chain, key, ""},
		{"another order", middle.PEM() + leaf, key, "wrong order"},
		{"another issuer", leaf + root.PEM(), key, "wrong order"},
		{"another key", chain, otherKey, "doesn't match the certificate"},
		{"another leaf", other, key, "doesn't match the certificate"},
		{"expired", old, oldKey, "has expired"},
		{"no certificate", "", key, "valid PEM certificate"},
		{"no key", chain, "", "valid PEM private key"},
		{"swapped", key, chain, "valid PEM certificate"},
		{"rubbish after it", chain + "rubbish", key, "valid PEM certificate"},
		{"half", chain[:len(chain)-40], key, "valid PEM certificate"},
		{"a key among them", chain + key, key, "valid PEM certificate"},
		{"encrypted", chain, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", "must not be encrypted"},
		{"too long", strings.Repeat(chain, 400), key, "is too long"},
	} {
		got := ""
		if err := check(c.cert, c.key); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func check(certificate, key string) error {
	chain, err := cert.Parse(certificate)
	if err != nil {
		return err
	}
	signer, err := cert.ParseKey(key)
	if err != nil {
		return err
	}
	if err := chain.Matches(signer); err != nil {
		return err
	}
	if err := chain.CheckTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		return err
	}
	_, err = cert.Pair(certificate, key)
	return err
}

// TestText compares the text of certificates with the output of openssl word by
// word, except for differences between releases of openssl.
func TestText(t *testing.T) {
	t.Parallel()
	root := certtest.New(t)
	chain, _ := root.Below("Middle").Issue(certtest.Start().AddDate(10, 0, 0), "www.example.org", "example.org")
	for name, text := range map[string]string{"leaf": chain, "root": root.PEM(), "rsa": readFile(t, "testdata/rsa.pem")} {
		parsed, err := cert.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "openssl", "x509", "-noout", "-text")
		run.Stdin = strings.NewReader(text)
		want, err := run.Output()
		if err != nil {
			t.Fatal(err)
		}
		got := cert.Text(parsed.Leaf())
		if words(got) != words(string(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		run = exec.CommandContext(t.Context(), "openssl", "x509", "-noout", "-subject", "-nameopt", "compat")
		run.Stdin = strings.NewReader(text)
		if want, err = run.Output(); err != nil {
			t.Fatal(err)
		}
		if got := "subject=" + cert.Subject(parsed.Leaf().RawSubject); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// words removes line breaks and the spaces around "=".
func words(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), " = ", "=")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzPEM checks that each accepted certificate can be formatted and served.
func FuzzPEM(f *testing.F) {
	root := certtest.New(f)
	chain, key := root.Below("Middle").Issue(certtest.Start().AddDate(10, 0, 0), "www.example.org")
	rsa, err := os.ReadFile("testdata/rsa.pem")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{chain, root.PEM(), string(rsa)} {
		f.Add([]byte(text), []byte(key), true)
		if block, _ := pem.Decode([]byte(text)); block != nil {
			f.Add(block.Bytes, []byte(key), false)
		}
	}
	f.Fuzz(func(t *testing.T, certificate, key []byte, armored bool) {
		if !armored { // lets the fuzzer change the DER bytes
			certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
		}
		parsed, err := cert.Parse(string(certificate))
		if err != nil {
			return
		}
		text := cert.Text(parsed.Leaf())
		if !strings.HasPrefix(text, "Certificate:") || bytes.ContainsRune([]byte(text), 0) {
			t.Errorf("text is %q", text)
		}
		_ = cert.Subject(parsed.Leaf().RawSubject)
		signer, err := cert.ParseKey(string(key))
		if err != nil || parsed.Matches(signer) != nil {
			return
		}
		if _, err := cert.Pair(string(certificate), string(key)); err != nil {
			t.Errorf("a pair that fits is refused: %v", err)
		}
	})
}
