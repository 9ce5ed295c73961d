package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// gpgSigner signs commits with a GPG key, as git does.
type gpgSigner struct {
	*openpgp.Entity
	public string
}

func newGPGSigner(t *testing.T, email string) gpgSigner {
	t.Helper()
	e, err := openpgp.NewEntity("A", "", email, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err == nil {
		err = e.Serialize(w)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return gpgSigner{e, b.String()}
}

func (g gpgSigner) sign(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&b, g.Entity, strings.NewReader(text), nil); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func (g gpgSigner) json() string {
	text, _ := json.Marshal(map[string]string{"key": g.public})
	return string(text)
}

func TestGPGKeys(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		var me, him struct{ Email string }
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200}).JSON(t, &me)
		s.Check(t, apptest.Call{Do: "GET /user", As: bob, Status: 200}).JSON(t, &him)
		hers, second, bobs, strange := newGPGSigner(t, me.Email), newGPGSigner(t, "other@example.org"), newGPGSigner(t, him.Email), newGPGSigner(t, "x@example.org")
		s.Table(t, []apptest.Call{
			{Name: "none", Do: "GET /user/gpg_keys", As: alice, Status: 200, Want: `[]`},
			{Name: "no key", Do: "POST /user/gpg_keys", As: alice, JSON: `{"key":"ssh-ed25519 AAAA"}`, Status: 400},
			{Name: "missing", Do: "POST /user/gpg_keys", As: alice, JSON: `{}`, Status: 400},
			{Name: "add", Do: "POST /user/gpg_keys", As: alice, JSON: hers.json(), Status: 201, Want: `{"id":1,"key":"<any>","created_at":"<any>"}`},
			{Name: "add another", Do: "POST /user/gpg_keys", As: alice, JSON: second.json(), Status: 201},
			{Name: "taken", Do: "POST /user/gpg_keys", As: bob, JSON: hers.json(), Status: 400},
			{Name: "for no user", Do: "POST /users/99999/gpg_keys", As: root, JSON: bobs.json(), Status: 404},
			{Name: "own", Do: "GET /user/gpg_keys/1", As: alice, Status: 200, Want: `{"id":1}`},
			{Name: "of another user", Do: "GET /user/gpg_keys/1", As: bob, Status: 404, Want: `{"message":"404 GPG Key Not Found"}`},
			{Name: "public", Do: fmt.Sprintf("GET /users/%d/gpg_keys", id), Status: 200, Want: `[{"id":1},{}]`},
			{Name: "public by name", Do: "GET /users/alice/gpg_keys/1", Status: 200, Want: `{"id":1}`},
			{Name: "bob adds", Do: "POST /user/gpg_keys", As: bob, JSON: bobs.json(), Status: 201},
		})

		project, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n")})
		tree := r.Git("rev-parse", "main^{tree}")
		text := func(email, message string) string {
			return fmt.Sprintf("tree %s\nauthor A <%s> 1600000000 +0000\ncommitter A <%[2]s> 1600000000 +0000\n\n%s\n", tree, email, message)
		}
		at := func(email, signature, message string) string {
			sha := r.Object("commit", strings.Replace(text(email, message), "\n\n", "\ngpgsig "+strings.ReplaceAll(signature, "\n", "\n ")+"\n\n", 1))
			r.Git("update-ref", "refs/heads/"+sha[:8], sha)
			return fmt.Sprintf("GET /projects/%d/repository/commits/%s/signature", project, sha)
		}
		status := func(word string) string {
			return fmt.Sprintf(`{"signature_type":"PGP","verification_status":%q,"gpg_key_subkey_id":null,"commit_source":"gitaly"}`, word)
		}
		primary := strings.ToUpper(hers.PrimaryKey.KeyIdString())
		s.Table(t, []apptest.Call{
			{Name: "verified", Do: at(me.Email, hers.sign(t, text(me.Email, "m")), "m"), As: alice, Status: 200,
				Want: fmt.Sprintf(`{"verification_status":"verified","gpg_key_id":1,"gpg_key_primary_keyid":%q,"gpg_key_user_name":"A","gpg_key_user_email":%q}`, primary, me.Email)},
			{Name: "of another text", Do: at(me.Email, hers.sign(t, text(me.Email, "m")), "n"), As: alice, Status: 200, Want: status("unverified")},
			{Name: "by another user", Do: at(me.Email, bobs.sign(t, text(me.Email, "m")), "m"), As: alice, Status: 200, Want: status("other_user")},
			{Name: "by another address", Do: at(me.Email, second.sign(t, text(me.Email, "m")), "m"), As: alice, Status: 200, Want: status("same_user_different_email")},
			{Name: "by an unconfirmed address", Do: at("z@example.org", second.sign(t, text("z@example.org", "m")), "m"), As: alice, Status: 200, Want: status("unverified_key")},
			{Name: "by an unknown key", Do: at(me.Email, strange.sign(t, text(me.Email, "m")), "m"), As: alice, Status: 200, Want: `{"verification_status":"unknown_key","gpg_key_id":null}`},
			{Name: "delete", Do: "DELETE /user/gpg_keys/1", As: alice, Status: 204},
			{Name: "unknown then", Do: at(me.Email, hers.sign(t, text(me.Email, "o")), "o"), As: alice, Status: 200, Want: status("unknown_key")},
			{Name: "delete by a user", Do: fmt.Sprintf("DELETE /users/%d/gpg_keys/2", id), As: bob, Status: 403},
			{Name: "delete by an administrator", Do: fmt.Sprintf("DELETE /users/%d/gpg_keys/2", id), As: root, Status: 204},
			{Name: "add by an administrator", Do: fmt.Sprintf("POST /users/%d/gpg_keys", id), As: root, JSON: hers.json(), Status: 201},
		})
	})
}
