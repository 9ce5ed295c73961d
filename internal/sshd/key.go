package sshd

import (
	"context"
	"errors"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/errs"
)

// fingerprintKey is where a connection remembers the key that it was opened
// with.
const fingerprintKey = "svc-fingerprint"

// uncheckedKey is where a connection remembers that no one could be asked about
// its key.
const uncheckedKey = "svc-unchecked"

// errUnknownKey is for the client library; the client learns nothing of it.
var errUnknownKey = errors.New("no account has this key")

// acceptKey says whether a key opens anything. The client has not proven yet
// that it has the key, so nothing is decided by it: each command asks again.
// The key of an account that may not be used is accepted for now, so that its
// owner, and no one else, sees the reason. So is any key while the database is
// away, because a client takes a refusal for a wrong key: its commands are
// answered with that, and nothing is opened.
func (s *Server) acceptKey(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	fingerprint := ssh.FingerprintSHA256(key)
	ctx, cancel := context.WithTimeout(context.Background(), s.Limits.SignIn)
	defer cancel()
	_, err := s.who(ctx, fingerprint, addrOf(c.RemoteAddr()).String())
	switch {
	case errs.Is(err, errs.KindUnavailable):
		s.Log.Warn("ssh sign-in", "fingerprint", fingerprint, "error", err)
		return &ssh.Permissions{Extensions: map[string]string{fingerprintKey: fingerprint, uncheckedKey: "yes"}}, nil
	case err == nil, errs.Is(err, errs.KindForbidden):
		return &ssh.Permissions{Extensions: map[string]string{fingerprintKey: fingerprint}}, nil
	case !errs.Is(err, errs.KindUnauthorized):
		s.Log.Error("ssh sign-in", "fingerprint", fingerprint, "error", err)
	}
	return nil, errUnknownKey
}

// who returns the user or the deploy key with a fingerprint. Unauthorized when
// no one has it, Forbidden when the account may not be used.
func (s *Server) who(ctx context.Context, fingerprint, ip string) (actor.Actor, error) {
	by, err := s.Users.AuthenticateKey(ctx, fingerprint, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		by, err = s.Projects.AuthenticateDeployKey(ctx, fingerprint)
		by.IP = ip
	}
	return by, err
}
