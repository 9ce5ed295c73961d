package project

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// DeployKey is an SSH key with access to the projects in which it is enabled.
type DeployKey struct {
	ID          int64
	Title       string
	Key         string // line for authorized_keys, with its comment
	Fingerprint string // MD5 in hex with colons
	SHA256      string // "SHA256:" and base64
	Public      bool   // can be enabled in any project
	CreatedBy   *int64
	CreatedAt   time.Time
	ExpiresAt   *time.Time
	LastUsedAt  *time.Time

	CanPush  bool        // in the requested project
	Projects []KeyOpened // set by AllDeployKeys only
}

// KeyOpened is a project in which a key is enabled.
type KeyOpened struct {
	Project *Project
	CanPush bool
}

// NewDeployKey has the fields of a new deploy key.
type NewDeployKey struct {
	Title     string
	Key       string
	ExpiresAt *time.Time
	CanPush   bool // ignored without a project
}

func (n *NewDeployKey) check(by actor.Actor, public bool, now time.Time) (*DeployKey, error) {
	k, err := user.NewKey{Title: n.Title, Key: n.Key, Usage: user.AuthKey, ExpiresAt: n.ExpiresAt}.Check(now)
	if err != nil {
		return nil, err
	}
	made := &DeployKey{
		Title: k.Title, Key: k.Key, Fingerprint: k.Fingerprint, SHA256: k.SHA256, Public: public,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, CanPush: n.CanPush,
	}
	if by.ID > 0 {
		made.CreatedBy = &by.ID
	}
	return made, nil
}

// AllDeployKeys lists the deploy keys of the instance, or only public ones, with
// the projects in which they are enabled. Requires an administrator.
func (s *Service) AllDeployKeys(ctx context.Context, by actor.Actor, public bool, p db.Paging) (db.Page[DeployKey], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[DeployKey]{}, err
	}
	page, err := s.listDeployKeys(ctx, allKeys(public), p)
	if err != nil {
		return page, err
	}
	return page, s.addOpened(ctx, page.Items)
}

// addOpened reads the projects in which keys are enabled.
func (s *Service) addOpened(ctx context.Context, list []DeployKey) error {
	if len(list) == 0 {
		return nil
	}
	at := make(map[int64]int, len(list))
	var ids []int64
	for i, k := range list {
		at[k.ID] = i
		ids = append(ids, k.ID)
	}
	pairs, err := findOpened(ctx, s.DB, ids)
	if err != nil || len(pairs) == 0 {
		return err
	}
	var wanted []int64
	for _, p := range pairs {
		wanted = append(wanted, p.project)
	}
	projects, err := findProjects(ctx, s.DB, wanted)
	if err != nil {
		return fmt.Errorf("projects of deploy keys: %w", err)
	}
	byID := make(map[int64]*Project, len(projects))
	for _, p := range projects {
		byID[p.ID] = p
	}
	for _, p := range pairs {
		if found := byID[p.project]; found != nil {
			k := &list[at[p.key]]
			k.Projects = append(k.Projects, KeyOpened{Project: found, CanPush: p.canPush})
		}
	}
	return nil
}

// CreatePublicDeployKey creates a public deploy key. Requires an administrator.
// Invalid, also if the key exists.
func (s *Service) CreatePublicDeployKey(ctx context.Context, by actor.Actor, n NewDeployKey) (*DeployKey, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	k, err := n.check(by, true, s.Now())
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insertDeployKey(ctx, tx, k); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "deploy_key_added", audit.Instance(), k.target(), audit.Details{Add: "deploy_key", Message: "Added public deploy key"})
	})
	if err != nil {
		return nil, fmt.Errorf("create deploy key: %w", err)
	}
	return k, nil
}

// UserDeployKeys lists the deploy keys of the projects in which both the actor and
// the user are Maintainers. NotFound if they cannot see the user; Forbidden if
// there is no such project.
func (s *Service) UserDeployKeys(ctx context.Context, by actor.Actor, of user.Ref, p db.Paging) (db.Page[DeployKey], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[DeployKey]{}, err
	}
	u, err := s.Users.Find(ctx, by, of)
	if err != nil {
		return db.Page[DeployKey]{}, err
	}
	common, args := maintainedByBoth(by.ID, u.ID, s.today())
	some, err := hasAny(ctx, s.DB, common, args)
	if err != nil {
		return db.Page[DeployKey]{}, fmt.Errorf("deploy keys of user %d: %w", u.ID, err)
	}
	if !some {
		return db.Page[DeployKey]{}, errs.Forbidden("No common authorized project found")
	}
	return s.listDeployKeys(ctx, keysEnabledIn(common, args), p)
}

// AuthenticateDeployKey returns the actor for a deploy key with this SHA-256
// fingerprint, for Git over SSH. Unauthorized if there is none or it has expired.
// What it grants is checked later: see ReadCode.
func (s *Service) AuthenticateDeployKey(ctx context.Context, fingerprintSHA256 string) (actor.Actor, error) {
	k, err := findDeployKey(ctx, s.DB, fingerprintSHA256)
	if errors.Is(err, db.ErrNoRows) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate deploy key: %w", err)
	}
	now := s.Now()
	if k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	// Updated rarely, so that reads do not cause writes.
	if k.LastUsedAt == nil || now.Sub(*k.LastUsedAt) >= keyTouch {
		if err := touchDeployKey(ctx, s.DB, k.ID, now); err != nil {
			return actor.Actor{}, fmt.Errorf("authenticate deploy key: %w", err)
		}
	}
	return actor.Actor{Deploy: &actor.Deploy{Kind: actor.DeployKey, ID: k.ID, Name: k.Title, UserID: orZero(k.CreatedBy)}}, nil
}

// KeyCreatorReads reports whether the creator of a deploy key can see a project, which
// rules of protected branches and tags that name the key require. It is true for
// public keys, which belong to the instance.
func (s *Service) KeyCreatorReads(ctx context.Context, keyID int64, p *Project) (bool, error) {
	creator, err := findKeyCreator(ctx, s.DB, keyID)
	if err != nil || creator == 0 {
		return err == nil, err
	}
	by, err := s.Users.As(ctx, creator)
	if err == nil {
		_, err = s.Require(ctx, by, RefTo(p.ID), NoAccess)
	}
	if errs.IsRefusal(err) {
		return false, nil
	}
	return err == nil, err
}

// keyTouch is the precision of the last use of a key.
const keyTouch = 10 * time.Minute

func (k *DeployKey) target() audit.Target {
	return audit.Target{Type: "DeployKey", ID: k.ID, Details: k.Title}
}

const noDeployKey = "Deploy Key"

// DeployKeyProject is a project in which a deploy key is enabled.
type DeployKeyProject struct {
	ProjectID int64
	CanPush   bool
	CreatedAt time.Time
}

// DeployKeyByFingerprint returns the deploy key with an MD5 or SHA-256
// fingerprint, and the projects in which it is enabled. Requires an administrator.
// Invalid; NotFound.
func (s *Service) DeployKeyByFingerprint(ctx context.Context, by actor.Actor, fingerprint string) (*DeployKey, []DeployKeyProject, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, nil, err
	}
	md5, sha256, err := user.ParseFingerprint(fingerprint)
	if err != nil {
		return nil, nil, err
	}
	k, err := findDeployKeyByFingerprint(ctx, s.DB, md5, sha256)
	if err != nil {
		return nil, nil, db.NotFound(err, "Key")
	}
	list, err := findDeployKeyProjects(ctx, s.DB, k.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("projects of deploy key %d: %w", k.ID, err)
	}
	return &k, list, nil
}
