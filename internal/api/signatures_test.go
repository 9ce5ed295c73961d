package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/git/gittest"
	"svc/internal/project"
	"svc/internal/repo"
)

// signer signs commits with an SSH key, as git does.
type signer struct{ ssh.Signer }

func newSigner(t *testing.T) signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer{s}
}

func (s signer) line() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

func (s signer) sign(t *testing.T, payload string) string {
	t.Helper()
	sum := sha512.Sum512([]byte(payload))
	made, err := s.Sign(rand.Reader, append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{"git", "", "sha512", string(sum[:])})...))
	if err != nil {
		t.Fatal(err)
	}
	blob := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Version                                 uint32
		Key, Namespace, Reserved, Hash, Encoded string
	}{1, string(s.PublicKey().Marshal()), "git", "", "sha512", string(ssh.Marshal(made))})...)
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob})))
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "1\n")})
		tree := r.Git("rev-parse", "main^{tree}")
		var me struct{ Email string }
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200}).JSON(t, &me)
		her, his, nobodys, other := newSigner(t), newSigner(t), newSigner(t), newSigner(t)
		for _, k := range []struct {
			as    string
			key   signer
			usage string
		}{{alice, her, "signing"}, {bob, his, "auth_and_signing"}, {alice, other, "auth"}} {
			s.Check(t, apptest.Call{Do: "POST /user/keys", As: k.as, JSON: fmt.Sprintf(`{"title":"laptop","key":%q,"usage_type":%q}`, k.key.line(), k.usage), Status: 201})
		}
		text := func(message string) string {
			return fmt.Sprintf("tree %s\nauthor A <%s> 1600000000 +0000\ncommitter A <%[2]s> 1600000000 +0000\n\n%s\n", tree, me.Email, message)
		}
		object := func(text string) string { // of a commit on a branch, because other commits are not shown
			sha := r.Object("commit", text)
			r.Git("update-ref", "refs/heads/"+sha[:8], sha)
			return sha
		}
		commit := func(signature, message string) string {
			return object(strings.Replace(text(message), "\n\n", "\ngpgsig "+strings.ReplaceAll(signature, "\n", "\n ")+"\n\n", 1))
		}
		at := func(sha string) string {
			return fmt.Sprintf("GET /projects/%d/repository/commits/%s/signature", id, sha)
		}
		state := func(word string) string {
			return fmt.Sprintf(`{"signature_type":"SSH","verification_status":%q,"key":null,"commit_source":"gitaly"}`, word)
		}
		tag := fmt.Sprintf("object %s\ntype commit\ntag v1\ntagger A <%s> 1600000000 +0000\n\nv1\n", r.Tip("refs/heads/main"), me.Email)
		r.Git("update-ref", "refs/tags/v1", r.Object("tag", tag+her.sign(t, tag)+"\n"))
		r.Git("tag", "light", "main")
		_, tags, err := s.Repos.Tags(t.Context(), actor.System(), project.RefTo(id), repo.RefFilter{}, db.Paging{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := s.Repos.TagSignatures(t.Context(), actor.System(), project.RefTo(id), tags.Items); err != nil || len(list) != 1 || list["v1"] == nil || list["v1"].Status != repo.Verified {
			t.Errorf("signatures of tags: %v, %v", list, err)
		}
		s.Table(t, []apptest.Call{
			{Name: "by herself", Do: at(commit(her.sign(t, text("m")), "m")), As: alice, Status: 200,
				Want: `{"signature_type":"SSH","verification_status":"verified","commit_source":"gitaly","key":{"id":"<any>","title":"laptop","usage_type":"signing"}}`},
			{Name: "by another user", Do: at(commit(his.sign(t, text("m")), "m")), As: alice, Status: 200, Want: `{"verification_status":"other_user","key":{"title":"laptop"}}`},
			{Name: "of another text", Do: at(commit(her.sign(t, text("m")), "n")), As: alice, Status: 200, Want: state("unverified")},
			{Name: "by an unknown key", Do: at(commit(nobodys.sign(t, text("m")), "m")), As: alice, Status: 200, Want: state("unknown_key")},
			{Name: "by a key that signs nothing", Do: at(commit(other.sign(t, text("m")), "m")), As: alice, Status: 200, Want: state("unknown_key")},
			{Name: "by PGP", Do: at(commit("-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----", "m")), As: alice, Status: 200,
				Want: `{"signature_type":"PGP","verification_status":"unverified","gpg_key_id":null,"gpg_key_primary_keyid":null}`},
			{Name: "by a certificate", Do: at(commit("-----BEGIN SIGNED MESSAGE-----\nx\n-----END SIGNED MESSAGE-----", "m")), As: alice, Status: 200,
				Want: `{"signature_type":"X509","verification_status":"unverified","x509_certificate":null}`},
			{Name: "none", Do: at(object(text("m"))), As: alice, Status: 404, Want: `{"message":"404 Signature Not Found"}`},
			{Name: "no commit", Do: at("nowhere"), As: alice, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Name: "a tag", Do: fmt.Sprintf("GET /projects/%d/repository/tags/v1/signature", id), As: alice, Status: 200, Want: `{"signature_type":"SSH","verification_status":"verified"}`},
			{Name: "a light tag", Do: fmt.Sprintf("GET /projects/%d/repository/tags/light/signature", id), As: alice, Status: 404, Want: `{"message":"404 Signature Not Found"}`},
			{Name: "no tag", Do: fmt.Sprintf("GET /projects/%d/repository/tags/v2/signature", id), As: alice, Status: 404, Want: `{"message":"404 Tag Not Found"}`},
		})
	})
}
