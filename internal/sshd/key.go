package sshd

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/errs"
)

// fingerprintKey is the extension of the permissions of a connection that stores the
// fingerprint of its key.
const fingerprintKey = "svc-fingerprint"

// accountKey is the extension of the permissions of a connection that names its account,
// for the limit of connections.
const accountKey = "svc-account"

// uncheckedKey is the extension of the permissions of a connection that is set if
// its key could not be checked.
const uncheckedKey = "svc-unchecked"

// errUnknownKey is returned to the ssh package; clients do not see it.
var errUnknownKey = errors.New("no account has this key")

// acceptKey reports whether a key may sign in. The client has not proven yet that it
// has the private key, so each command authenticates the key again. The key of an
// account that may not be used is accepted, so that only its owner sees the reason.
// While the database is unavailable every key is accepted, because clients take a
// refusal for a wrong key; the commands of the connection then fail.
func (s *Server) acceptKey(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	fingerprint := ssh.FingerprintSHA256(key)
	ctx, cancel := context.WithTimeout(context.Background(), s.Limits.SignIn)
	defer cancel()
	by, err := s.who(ctx, fingerprint, addrOf(c.RemoteAddr()).String())
	account := "key " + fingerprint
	if err == nil && by.Deploy == nil {
		account = fmt.Sprintf("user %d", by.ID)
	}
	switch {
	case errs.Is(err, errs.KindUnavailable):
		s.Log.Warn("SSH authentication failed", "fingerprint", fingerprint, "error", err)
		return &ssh.Permissions{Extensions: map[string]string{fingerprintKey: fingerprint, accountKey: account, uncheckedKey: "yes"}}, nil
	case err == nil, errs.Is(err, errs.KindForbidden):
		return &ssh.Permissions{Extensions: map[string]string{fingerprintKey: fingerprint, accountKey: account}}, nil
	case !errs.Is(err, errs.KindUnauthorized):
		s.Log.Error("SSH authentication failed", "fingerprint", fingerprint, "error", err)
	}
	return nil, errUnknownKey
}

// who returns the user or the deploy key with a fingerprint. Unauthorized if the key
// is unknown, Forbidden if the account may not be used.
func (s *Server) who(ctx context.Context, fingerprint, ip string) (actor.Actor, error) {
	by, err := s.Users.AuthenticateKey(ctx, fingerprint, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		by, err = s.Projects.AuthenticateDeployKey(ctx, fingerprint)
		by.IP = ip
	}
	return by, err
}
