package pgp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"svc/internal/pgp"
)

func newKey(t *testing.T, name, email string) (*openpgp.Entity, string) {
	t.Helper()
	e, err := openpgp.NewEntity(name, "", email, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Serialize(w); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return e, b.String()
}

func sign(t *testing.T, e *openpgp.Entity, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&b, e, strings.NewReader(text), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVerify(t *testing.T) {
	t.Parallel()
	ada, adaText := newKey(t, "Ada", "ada@example.org")
	eve, _ := newKey(t, "Eve", "eve@example.org")
	k, err := pgp.ParseKey(adaText)
	if err != nil {
		t.Fatal(err)
	}
	if len(k.Users) != 1 || k.Users[0] != (pgp.UserID{Name: "Ada", Email: "ada@example.org"}) || len(k.ID) != 16 || !strings.HasSuffix(k.Fingerprint, k.ID) || len(k.Parts) < 2 {
		t.Errorf("the key has %+v", k)
	}
	s, err := pgp.ParseSignature(sign(t, ada, "text"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Fingerprint == "" && s.ID == "" {
		t.Error("the signature names no key")
	}
	if err := k.Verify(s, []byte("text")); err != nil {
		t.Errorf("a good signature: %v", err)
	}
	if k.Verify(s, []byte("other")) == nil {
		t.Error("a signature of another text is valid")
	}
	other, err := pgp.ParseSignature(sign(t, eve, "text"))
	if err != nil {
		t.Fatal(err)
	}
	if k.Verify(other, []byte("text")) == nil {
		t.Error("a signature by another key is valid")
	}
	var private bytes.Buffer
	w, _ := armor.Encode(&private, openpgp.PrivateKeyType, nil)
	_ = ada.SerializePrivate(w, nil)
	_ = w.Close()
	for name, text := range map[string]string{"private": private.String(), "empty": "", "signature": sign(t, ada, "x"), "long": adaText + strings.Repeat("x", pgp.MaxKey)} {
		if _, err := pgp.ParseKey(text); err == nil {
			t.Errorf("a %s key was accepted", name)
		}
	}
	for name, text := range map[string]string{"key": adaText, "empty": "", "long": strings.Repeat("x", 1<<20)} {
		if _, err := pgp.ParseSignature(text); err == nil {
			t.Errorf("a %s was taken for a signature", name)
		}
	}
}

// gnuKey and gnuSignature were created with GnuPG 2.4; gnuSignature signs gnuText.
const (
	gnuText = "tree 0\n\nA commit\n"
	gnuKey  = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEavr+MBYJKwYBBAHaRw8BAQdA/K8NxdLobvXaRXAmjEcyix+ykd/WrtMaCdVT
szwlF6m0FUFkYSA8YWRhQGV4YW1wbGUub3JnPoiQBBMWCAA4FiEEf6W5UGUhTjOl
lKEpRvstS8zIg18FAmr6/jACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
RvstS8zIg1/SwgEAzBJw8bJeUX7264iVYIFYe9tCqwUtF+1vkxKffxJcww8BAOTl
FKntIhWJLRpNMk8qAMj9Zk2jhEIckKaDEnInbhkH
=IVws
-----END PGP PUBLIC KEY BLOCK-----
`
	gnuSignature = `-----BEGIN PGP SIGNATURE-----

iHUEABYIAB0WIQR/pblQZSFOM6WUoSlG+y1LzMiDXwUCavr+TAAKCRBG+y1LzMiD
XwHNAQDEeooS4iespgEF/LvzGwf6y7GfvG5vgjFTCT0UDZrQxAD/dReuJRbSMR6s
ALUHCKz1jSbtdmv7w+fW+Z0AgKRrYgk=
=bMR0
-----END PGP SIGNATURE-----
`
)

func TestGnuPG(t *testing.T) {
	t.Parallel()
	k, err := pgp.ParseKey(gnuKey)
	if err != nil {
		t.Fatal(err)
	}
	s, err := pgp.ParseSignature(gnuSignature)
	if err != nil {
		t.Fatal(err)
	}
	if s.Fingerprint != k.Fingerprint || k.Users[0].Email != "ada@example.org" {
		t.Errorf("the signature is by %s, the key is %s of %v", s.Fingerprint, k.Fingerprint, k.Users)
	}
	if err := k.Verify(s, []byte(gnuText)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-----BEGIN PGP SIGNATURE-----\n\niHUEABYKAB0\n-----END PGP SIGNATURE-----\n")
	f.Add("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n-----END PGP PUBLIC KEY BLOCK-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = pgp.ParseKey(text)
		_, _ = pgp.ParseSignature(text)
	})
}
