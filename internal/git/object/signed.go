package object

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Signed is the signature of an object, in its armor, and the signed content.
type Signed struct {
	Payload   []byte
	Signature string
}

// SignedCommit extracts the signature from the header of a commit; nil if there is
// none. The rest is the signed content.
func SignedCommit(content []byte) *Signed {
	s := &Signed{}
	var text strings.Builder
	head := len(content)
	if i := bytes.Index(content, []byte("\n\n")); i >= 0 {
		head = i + 1
	}
	header := ""
	for line := range bytes.Lines(content[:head]) {
		if line[0] == ' ' && header != "" {
			if header == "gpgsig" {
				text.Write(line[1:])
			}
			continue
		}
		key, value, _ := bytes.Cut(line, []byte(" "))
		if header = ""; string(key) == "gpgsig" || string(key) == "gpgsig-sha256" {
			header = string(key)
			if header == "gpgsig" {
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

// SignedTag extracts the signature at the end of a tag; nil if there is none.
func SignedTag(content []byte) *Signed {
	at := signatureAt(content)
	if at == len(content) {
		return nil
	}
	return &Signed{Payload: content[:at], Signature: string(content[at:])}
}

// signatureAt returns the start of the signature of a tag, or the length of the
// text if there is none. As in git the last armor line counts: everything before
// it is signed.
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

// armors are the first lines of signatures.
var armors = []string{"-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----", sshArmor, "-----BEGIN SIGNED MESSAGE-----"}

const (
	sshArmor = "-----BEGIN SSH SIGNATURE-----"
	sshMagic = "SSHSIG"
)

// Kind returns SSH, PGP or X509.
func (s *Signed) Kind() string {
	switch {
	case strings.HasPrefix(s.Signature, sshArmor):
		return "SSH"
	case strings.HasPrefix(s.Signature, "-----BEGIN SIGNED MESSAGE-----"):
		return "X509"
	}
	return "PGP"
}

// errBadSignature means that a signature is invalid.
var errBadSignature = errors.New("bad signature")

// VerifySSH verifies an SSH signature (PROTOCOL.sshsig) and returns the
// fingerprint of its key. The caller must check whose key it is.
func (s *Signed) VerifySSH() (fingerprint string, err error) {
	block, rest := pem.Decode([]byte(s.Signature))
	if !strings.HasPrefix(s.Signature, sshArmor) || block == nil || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return "", errBadSignature // nothing may precede or follow the signature
	}
	if block.Type != "SSH SIGNATURE" || !bytes.HasPrefix(block.Bytes, []byte(sshMagic)) {
		return "", errBadSignature
	}
	var sig struct {
		Version   uint32
		Key       []byte
		Namespace string
		Reserved  string
		Hash      string
		Signature []byte
	}
	if err := ssh.Unmarshal(block.Bytes[len(sshMagic):], &sig); err != nil || sig.Version != 1 || sig.Namespace != "git" {
		return "", errBadSignature
	}
	key, err := ssh.ParsePublicKey(sig.Key)
	if err != nil {
		return "", errBadSignature
	}
	var digest []byte
	switch sig.Hash {
	case "sha256":
		sum := sha256.Sum256(s.Payload)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(s.Payload)
		digest = sum[:]
	default:
		return "", errBadSignature
	}
	var inner ssh.Signature
	if err := ssh.Unmarshal(sig.Signature, &inner); err != nil || inner.Format == ssh.KeyAlgoRSA { // uses SHA-1
		return "", errBadSignature
	}
	data := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{sig.Namespace, sig.Reserved, sig.Hash, digest})...)
	if key.Verify(data, &inner) != nil {
		return "", errBadSignature
	}
	return ssh.FingerprintSHA256(key), nil
}
