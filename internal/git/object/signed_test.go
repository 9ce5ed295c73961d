package object

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshSign signs as ssh-keygen -Y sign does.
func sshSign(t testing.TB, signer ssh.Signer, namespace string, payload []byte) string {
	t.Helper()
	sum := sha512.Sum512(payload)
	data := append([]byte(sshMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{namespace, "", "sha512", string(sum[:])})...)
	made, err := signer.Sign(rand.Reader, data)
	if err != nil {
		t.Fatal(err)
	}
	blob := append([]byte(sshMagic), ssh.Marshal(struct {
		Version                            uint32
		Key                                []byte
		Namespace, Reserved, Hash, Encoded string
	}{1, signer.PublicKey().Marshal(), namespace, "", "sha512", string(ssh.Marshal(made))})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}))
}

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestSignedCommit(t *testing.T) {
	t.Parallel()
	signer := newSigner(t)
	plain := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\ntext\n gpgsig of the text\n"
	sign := func(namespace string) string {
		armored := strings.TrimRight(sshSign(t, signer, namespace, []byte(plain)), "\n")
		return strings.Replace(plain, "\n\n", "\ngpgsig "+strings.ReplaceAll(armored, "\n", "\n ")+"\n\n", 1)
	}
	good := sign("git")
	s := SignedCommit([]byte(good))
	if s == nil || string(s.Payload) != plain || s.Kind() != "SSH" {
		t.Fatalf("read %+v", s)
	}
	if got, err := s.VerifySSH(); err != nil || got != ssh.FingerprintSHA256(signer.PublicKey()) {
		t.Errorf("a good one: %s, %v", got, err)
	}
	for name, commit := range map[string]string{
		"of another text":    strings.Replace(good, "text\n", "test\n", 1),
		"of another author":  strings.Replace(good, "author A", "author B", 1),
		"for another use":    sign("file"),
		"that is cut off":    strings.Replace(good, "-----END", "-----AND", 1),
		"that is no armor":   "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END SSH SIGNATURE-----\n\ntext\n",
		"of another program": "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\ntext\n",
	} {
		s := SignedCommit([]byte(commit))
		if s == nil {
			t.Errorf("%s: no signature", name)
			continue
		}
		if got, err := s.VerifySSH(); err == nil {
			t.Errorf("%s is taken for one of %s", name, got)
		}
	}
	if s := SignedCommit([]byte(plain)); s != nil {
		t.Errorf("a commit without: %+v", s)
	}
	tag := "object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntype commit\ntag v1\n\ntext\n"
	s = SignedTag([]byte(tag + sshSign(t, signer, "git", []byte(tag))))
	if s == nil || string(s.Payload) != tag {
		t.Fatalf("read %+v", s)
	}
	if _, err := s.VerifySSH(); err != nil {
		t.Errorf("a tag: %v", err)
	}
}

// TestSignatureOfTag finds the start of the signature of a tag, as in git at the last
// armor line.
func TestSignatureOfTag(t *testing.T) {
	t.Parallel()
	signer := newSigner(t)
	head := "object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntype commit\ntag v1\n\n"
	for name, text := range map[string]string{
		"plain":              "text\n",
		"nothing else":       "",
		"that quotes PGP":    "see\n-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\nend\n",
		"that quotes SSH":    sshSign(t, signer, "git", []byte("another text")) + "end\n",
		"with an armor late": "see -----BEGIN SSH SIGNATURE-----\n",
	} {
		content := head + text
		signature := sshSign(t, signer, "git", []byte(content))
		s := SignedTag([]byte(content + signature))
		if s == nil || string(s.Payload) != content || s.Signature != signature {
			t.Errorf("%s: read %+v", name, s)
			continue
		}
		if _, err := s.VerifySSH(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tag, err := ParseTag("x", []byte(content+signature))
		if err != nil || tag.Message != text || tag.Signature != signature {
			t.Errorf("%s: %+v, %v", name, tag, err)
		}
	}
	if s := SignedTag([]byte(head + "a -----BEGIN SSH SIGNATURE-----\n")); s != nil {
		t.Errorf("a tag without: %+v", s)
	}
	good := sshSign(t, signer, "git", []byte(head))
	for name, signature := range map[string]string{
		"followed by text": good + "more\n",
		"with headers":     strings.Replace(good, "-----\n", "-----\nComment: x\n\n", 1),
		"behind text":      "more\n" + good,
		"twice":            good + good,
	} {
		if got, err := (&Signed{Payload: []byte(head), Signature: signature}).VerifySSH(); err == nil {
			t.Errorf("a signature %s is taken for one of %s", name, got)
		}
	}
}

func FuzzSigned(f *testing.F) {
	signer := newSigner(f)
	f.Add([]byte("tree x\ngpgsig " + strings.ReplaceAll(sshSign(f, signer, "git", []byte("tree x\n\nm")), "\n", "\n ") + "\n\nm"))
	f.Add([]byte("gpgsig"))
	f.Add([]byte(" \n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, s := range []*Signed{SignedCommit(content), SignedTag(content)} {
			if s == nil {
				continue
			}
			if len(s.Payload)+len(s.Signature) > len(content) || len(s.Signature) == 0 {
				t.Errorf("more came out than went in: %q", content)
			}
			_, _ = s.VerifySSH()
		}
	})
}
