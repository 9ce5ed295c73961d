package web_test

import (
	"bytes"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

func TestGPGKeyPages(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	e, err := openpgp.NewEntity("Ada", "", "ada@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	var key bytes.Buffer
	w, err := armor.Encode(&key, openpgp.PublicKeyType, nil)
	if err == nil {
		err = e.Serialize(w)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	const at = "/-/user_settings/gpg_keys"
	b := newBrowser(t, s).signIn("ada", password)
	b.get(at).want(200, "No GPG keys yet")
	b.submit(at, at, "key", "x").want(422, "must be an armored public key")
	b.submit(at, at, "key", key.String()).leads(at)
	b.get(at).want(200, "ada@example.org", "subkeys", at+"/1/delete")
	newBrowser(t, s).signIn("eve", password).submit(at, at+"/1/delete").want(404)
	b.submit(at, at+"/1/delete").leads(at)
	b.get(at).want(200, "No GPG keys yet")
}
