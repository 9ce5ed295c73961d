package repo

import (
	"context"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// Signature is what is known of the signature of a commit or tag.
type Signature struct {
	Kind   string // SSH, PGP or X509
	Status SignatureStatus
	Key    *user.Key // that made it; nil when nobody here has it
}

// SignatureStatus says how far a signature is to be trusted.
type SignatureStatus string

// The states of signatures. Only those by SSH keys are checked: others are
// unverified, since nobody can leave such keys here.
const (
	Verified   SignatureStatus = "verified"    // by a key of the one whose address it has
	Unverified SignatureStatus = "unverified"  // not checked, or not one of this text
	UnknownKey SignatureStatus = "unknown_key" // by a key that nobody here signs with
	OtherUser  SignatureStatus = "other_user"  // by a key of somebody else
)

// CommitSignature checks the signature of a commit, for those who read the
// project's code: NotFound of the commit, or of a signature.
func (s *Service) CommitSignature(ctx context.Context, by actor.Actor, ref project.Ref, rev string) (*Signature, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	c, err := r.Commit(ctx, rev)
	if err != nil {
		return nil, missing(err, "Commit")
	}
	return s.checkSignature(ctx, r, c.ID, c.Committer.Email)
}

// TagSignature checks the signature of a tag, as CommitSignature does it.
func (s *Service) TagSignature(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Signature, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	found, err := r.Ref(ctx, git.Tags+name)
	if err != nil {
		return nil, missing(err, "Tag")
	}
	if found.Tag == "" {
		return nil, errs.NotFound("Signature")
	}
	t, err := r.Tag(ctx, found.Tag)
	if err != nil {
		return nil, missing(err, "Tag")
	}
	return s.checkSignature(ctx, r, found.Tag, t.Tagger.Email)
}

func (s *Service) checkSignature(ctx context.Context, r git.Repo, id git.OID, address string) (*Signature, error) {
	signed, err := r.SignedObject(ctx, id)
	if err != nil {
		return nil, missing(err, "Signature")
	}
	found := &Signature{Kind: signed.Kind(), Status: Unverified}
	if found.Kind != "SSH" {
		return found, nil
	}
	fingerprint, err := signed.VerifySSH()
	if err != nil {
		return found, nil // it is none of this text
	}
	key, _, err := s.Users.KeyByFingerprint(ctx, actor.System(), fingerprint)
	if errs.Is(err, errs.KindNotFound) || err == nil && key.Usage == user.AuthKey {
		found.Status = UnknownKey
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	found.Key, found.Status = key, OtherUser
	owners, err := s.Users.FindByEmails(ctx, []string{address})
	if err != nil {
		return nil, err
	}
	if owner := owners[strings.ToLower(address)]; owner != nil && owner.ID == key.UserID {
		found.Status = Verified
	}
	return found, nil
}
