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
	Key    *user.Key // that made it; nil when no one here has it
}

// SignatureStatus is the verification status of a signature.
type SignatureStatus string

// The states of signatures. Only those by SSH keys are checked: others are
// unverified, since no one can leave such keys here.
const (
	Verified   SignatureStatus = "verified"    // by a key of the one whose address it has
	Unverified SignatureStatus = "unverified"  // not checked, or not one of this text
	UnknownKey SignatureStatus = "unknown_key" // by a key that no one here signs with
	OtherUser  SignatureStatus = "other_user"  // by a key of someone else
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

// TagSignatures checks the signatures of tags that Tags gave to the same actor,
// and gives them by the names of the tags; those without one are left out.
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
		if errs.Is(err, errs.KindNotFound) { // the tag went meanwhile
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

// checker checks signatures of one repository. It asks once for each key and
// each address: those who sign are few.
type checker struct {
	users  *user.Service
	repo   git.Repo
	keys   map[string]*user.Key
	owners map[string]*user.User
}

func (s *Service) checker(r git.Repo) *checker {
	return &checker{users: s.Users, repo: r, keys: map[string]*user.Key{}, owners: map[string]*user.User{}}
}

func (c *checker) check(ctx context.Context, id git.OID, address string) (*Signature, error) {
	signed, err := c.repo.SignedObject(ctx, id)
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

// key returns the key that a user here signs with; nil without one.
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

// owner returns the user whose address it is; nil without one.
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
