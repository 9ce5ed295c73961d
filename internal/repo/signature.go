package repo

import (
	"context"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// Signature is the signature of a commit or tag.
type Signature struct {
	Kind   string // SSH, PGP or X509
	Status SignatureStatus
	Key    *user.Key // the signing SSH key; nil if it belongs to no user
	GPG    *GPGSignature
}

// GPGSignature is the key of a PGP signature.
type GPGSignature struct {
	KeyID   string       // ID of the key that signed: 16 hex digits; empty if it is not known
	Primary string       // ID of its primary key
	Key     *user.GPGKey // nil if it belongs to no user
	User    *user.User   // the owner of the key
	Name    string       // user ID of the key, by preference that of the committer
	Email   string
}

// SignatureStatus is the verification status of a signature.
type SignatureStatus string

// The states of signatures. X.509 signatures are not checked: they are
// unverified.
const (
	Verified   SignatureStatus = "verified"    // by a key of the user with the email address
	Unverified SignatureStatus = "unverified"  // not checked, or not valid for this text
	UnknownKey SignatureStatus = "unknown_key" // by a key that is not a signing key of any user
	OtherUser  SignatureStatus = "other_user"  // by a key of another user

	// For GPG keys: by a key of the user that does not include the email address of the
	// commit, that has no confirmed address of its owner, or that its owner revoked.
	SameUserOtherEmail SignatureStatus = "same_user_different_email"
	UnverifiedKey      SignatureStatus = "unverified_key"
	RevokedKey         SignatureStatus = "revoked_key"
)

// CommitSignature checks the signature of a commit, for users who can read the
// code of the project. NotFound if there is no such commit or no signature.
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

// CommitSignatures checks the signatures of commits that a list returned to the
// same actor, by commit ID. Commits without a signature are left out.
func (s *Service) CommitSignatures(ctx context.Context, by actor.Actor, ref project.Ref, commits []*git.Commit) (map[git.OID]*Signature, error) {
	found := map[git.OID]*Signature{}
	if !slices.ContainsFunc(commits, func(c *git.Commit) bool { return c.Signed }) {
		return found, nil
	}
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	k := s.checker(r)
	for _, c := range commits {
		if !c.Signed {
			continue
		}
		signed, err := k.check(ctx, c.ID, c.Committer.Email)
		if errs.Is(err, errs.KindNotFound) { // of another repository of the fork network
			continue
		}
		if err != nil {
			return nil, err
		}
		found[c.ID] = signed
	}
	return found, nil
}

// TagSignature checks the signature of a tag, like CommitSignature.
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

// TagSignatures checks the signatures of tags that Tags returned to the same
// actor, by tag name. Tags without a signature are left out.
func (s *Service) TagSignatures(ctx context.Context, by actor.Actor, ref project.Ref, tags []Tag) (map[string]*Signature, error) {
	found := map[string]*Signature{}
	if !slices.ContainsFunc(tags, func(t Tag) bool { return t.Signature != "" }) {
		return found, nil
	}
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	c := s.checker(r)
	for _, t := range tags {
		if t.Signature == "" {
			continue
		}
		signed, err := c.check(ctx, t.Target, t.tagger)
		if errs.Is(err, errs.KindNotFound) { // the tag was deleted concurrently
			continue
		}
		if err != nil {
			return nil, err
		}
		found[t.Name] = signed
	}
	return found, nil
}

func (s *Service) checkSignature(ctx context.Context, r git.Repo, id git.OID, address string) (*Signature, error) {
	return s.checker(r).check(ctx, id, address)
}

// checker checks signatures of a repository. It caches keys and users, because
// a repository has few signers.
type checker struct {
	users  *user.Service
	repo   git.Repo
	keys   map[string]*user.Key
	owners map[string]*user.User
	gpg    map[int64][]user.GPGEmail
}

func (s *Service) checker(r git.Repo) *checker {
	return &checker{users: s.Users, repo: r, keys: map[string]*user.Key{}, owners: map[string]*user.User{}, gpg: map[int64][]user.GPGEmail{}}
}

func (c *checker) check(ctx context.Context, id git.OID, address string) (*Signature, error) {
	signed, err := c.repo.SignedObject(ctx, id)
	if err != nil {
		return nil, missing(err, "Signature")
	}
	found := &Signature{Kind: signed.Kind(), Status: Unverified}
	switch found.Kind {
	case "SSH":
	case "PGP":
		return found, c.checkGPG(ctx, found, signed, address)
	default:
		return found, nil
	}
	fingerprint, err := signed.VerifySSH()
	if err != nil {
		return found, nil // not valid for this text
	}
	key, err := c.key(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	if key == nil {
		found.Status = UnknownKey
		return found, nil
	}
	found.Key, found.Status = key, OtherUser
	owner, err := c.owner(ctx, address)
	if err != nil {
		return nil, err
	}
	if owner != nil && owner.ID == key.UserID {
		found.Status = Verified
	}
	return found, nil
}

// key returns the signing key of a user; nil if there is none.
func (c *checker) key(ctx context.Context, fingerprint string) (*user.Key, error) {
	if key, asked := c.keys[fingerprint]; asked {
		return key, nil
	}
	key, _, err := c.users.KeyByFingerprint(ctx, actor.System(), fingerprint)
	if errs.Is(err, errs.KindNotFound) || err == nil && key.Usage == user.AuthKey {
		key, err = nil, nil
	}
	if err == nil {
		c.keys[fingerprint] = key
	}
	return key, err
}

// owner returns the user with an email address; nil if there is none.
func (c *checker) owner(ctx context.Context, address string) (*user.User, error) {
	address = strings.ToLower(address)
	if owner, asked := c.owners[address]; asked {
		return owner, nil
	}
	found, err := c.users.FindByEmails(ctx, []string{address})
	if err == nil {
		c.owners[address] = found[address]
	}
	return found[address], err
}
