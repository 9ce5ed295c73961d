package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Signed is an object with a signature: what was signed, and the signature as
// it stands there, in its armor.
type Signed struct {
	Payload   []byte
	Signature string
}

// SignedObject reads the signature of a commit or of an annotated tag. It
// returns ErrNotFound, also when there is none.
func (r Repo) SignedObject(ctx context.Context, id OID) (*Signed, error) {
	o, err := r.Object(ctx, id)
	if err != nil {
		return nil, err
	}
	var s *Signed
	switch o.Type {
	case TypeCommit:
		s = signedCommit(o.Content)
	case TypeTag:
		s = signedTag(o.Content)
	}
	if s == nil {
		return nil, fmt.Errorf("signature of %s: %w", id, ErrNotFound)
	}
	return s, nil
}

// signedCommit takes the signature out of the head of a commit: the rest is
// what was signed.
func signedCommit(content []byte) *Signed {
	s := &Signed{}
	var text strings.Builder
	head := len(content)
	if i := bytes.Index(content, []byte("\n\n")); i >= 0 {
		head = i + 1
	}
	within := ""
	for line := range bytes.Lines(content[:head]) {
		if line[0] == ' ' && within != "" {
			if within == "gpgsig" {
				text.Write(line[1:])
			}
			continue
		}
		key, value, _ := bytes.Cut(line, []byte(" "))
		if within = ""; string(key) == "gpgsig" || string(key) == "gpgsig-sha256" {
			within = string(key)
			if within == "gpgsig" {
				text.Write(value)
			}
			continue
		}
		s.Payload = append(s.Payload, line...)
	}
	if text.Len() == 0 {
		return nil
	}
	s.Payload = append(s.Payload, content[head:]...)
	s.Signature = text.String()
	return s
}

// signedTag takes the signature from the end of a tag.
func signedTag(content []byte) *Signed {
	at := signatureAt(content)
	if at == len(content) {
		return nil
	}
	return &Signed{Payload: content[:at], Signature: string(content[at:])}
}

// signatureAt is where the signature of a tag begins, the length of the text
// without one. As in git it is the last line that begins one: what stands
// before it was signed, whatever it looks like.
func signatureAt(text []byte) int {
	found, at := len(text), 0
	for line := range bytes.Lines(text) {
		if slices.ContainsFunc(armors, func(begin string) bool { return bytes.HasPrefix(line, []byte(begin)) }) {
			found = at
		}
		at += len(line)
	}
	return found
}

// armors begin signatures.
var armors = []string{"-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----", sshArmor, "-----BEGIN SIGNED MESSAGE-----"}

const (
	sshArmor = "-----BEGIN SSH SIGNATURE-----"
	sshMagic = "SSHSIG"
)

// Kind is SSH, PGP or X509.
func (s *Signed) Kind() string {
	switch {
	case strings.HasPrefix(s.Signature, sshArmor):
		return "SSH"
	case strings.HasPrefix(s.Signature, "-----BEGIN SIGNED MESSAGE-----"):
		return "X509"
	}
	return "PGP"
}

// errBadSignature says that a signature is not one of what was signed.
var errBadSignature = errors.New("bad signature")

// VerifySSH checks an SSH signature, in the form of PROTOCOL.sshsig, and gives
// the fingerprint of the key that made it. Whose key that is remains to be
// asked: anyone can sign with their own key.
func (s *Signed) VerifySSH() (fingerprint string, err error) {
	block, rest := pem.Decode([]byte(s.Signature))
	if !strings.HasPrefix(s.Signature, sshArmor) || block == nil || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return "", errBadSignature // nothing but the signature stands there
	}
	if block.Type != "SSH SIGNATURE" || !bytes.HasPrefix(block.Bytes, []byte(sshMagic)) {
		return "", errBadSignature
	}
	var form struct {
		Version   uint32
		Key       []byte
		Namespace string
		Reserved  string
		Hash      string
		Signature []byte
	}
	if err := ssh.Unmarshal(block.Bytes[len(sshMagic):], &form); err != nil || form.Version != 1 || form.Namespace != "git" {
		return "", errBadSignature
	}
	key, err := ssh.ParsePublicKey(form.Key)
	if err != nil {
		return "", errBadSignature
	}
	var digest []byte
	switch form.Hash {
	case "sha256":
		sum := sha256.Sum256(s.Payload)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(s.Payload)
		digest = sum[:]
	default:
		return "", errBadSignature
	}
	var made ssh.Signature
	if err := ssh.Unmarshal(form.Signature, &made); err != nil || made.Format == ssh.KeyAlgoRSA { // SHA-1
		return "", errBadSignature
	}
	data := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{form.Namespace, form.Reserved, form.Hash, digest})...)
	if key.Verify(data, &made) != nil {
		return "", errBadSignature
	}
	return ssh.FingerprintSHA256(key), nil
}
