package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// DeployKeys lists the keys that are enabled in a project. Requires Maintainer.
func (s *Service) DeployKeys(ctx context.Context, by actor.Actor, ref Ref, p db.Paging) (db.Page[DeployKey], error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return db.Page[DeployKey]{}, err
	}
	page, err := listEnabledKeys(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list deploy keys: %w", err)
	}
	return page, nil
}

// offered is the maximum number of keys that a page offers.
const offered = 100

// OfferedDeployKeys lists the public keys that are not enabled in a project.
// Requires Maintainer.
func (s *Service) OfferedDeployKeys(ctx context.Context, by actor.Actor, ref Ref) ([]DeployKey, error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	page, err := s.listDeployKeys(ctx, publicKeysNotIn(in.ID), db.Paging{Limit: offered})
	return page.Items, err
}

// DeployKey returns a key that is enabled in a project. Requires Maintainer.
// NotFound.
func (s *Service) DeployKey(ctx context.Context, by actor.Actor, ref Ref, id int64) (*DeployKey, error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	return findEnabledKey(ctx, s.DB, in.ID, id)
}

// AddDeployKey enables a key in a project: a new one, or one that the actor may
// enable, see EnableDeployKey. A key that is enabled already is not changed.
// Requires Maintainer. Invalid, also if the key belongs to someone else.
func (s *Service) AddDeployKey(ctx context.Context, by actor.Actor, ref Ref, n NewDeployKey) (*DeployKey, error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	made, err := n.check(by, false, s.Now())
	if err != nil {
		return nil, err
	}
	var id int64
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		old, err := s.reachableKey(ctx, tx, by, keyByDigest, made.SHA256)
		switch {
		case errs.Is(err, errs.KindNotFound):
			if err := s.insertDeployKey(ctx, tx, made); err != nil {
				return err
			}
			id = made.ID
			return s.enable(ctx, tx, by, in, made, n.CanPush, "deploy_key_added")
		case err != nil:
			return err
		}
		id = old.ID
		return s.enable(ctx, tx, by, in, old, n.CanPush, "deploy_key_enabled")
	})
	if err != nil {
		return nil, fmt.Errorf("add deploy key: %w", err)
	}
	return findEnabledKey(ctx, s.DB, in.ID, id)
}

// EnableDeployKey enables an existing key in a project: a public one, or one of
// another project of which the actor is a Maintainer; administrators may enable any. A
// key that is enabled already is not changed. Requires Maintainer. NotFound.
func (s *Service) EnableDeployKey(ctx context.Context, by actor.Actor, ref Ref, id int64) (*DeployKey, error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		k, err := s.reachableKey(ctx, tx, by, keyByID, id)
		if err != nil {
			return err
		}
		return s.enable(ctx, tx, by, in, k, false, "deploy_key_enabled")
	})
	if err != nil {
		return nil, fmt.Errorf("enable deploy key %d: %w", id, err)
	}
	return findEnabledKey(ctx, s.DB, in.ID, id)
}

func (s *Service) enable(ctx context.Context, tx *db.Tx, by actor.Actor, in *Project, k *DeployKey, canPush bool, event string) error {
	added, err := enableKey(ctx, tx, in.ID, k.ID, canPush, s.Now())
	if err != nil || !added {
		return err
	}
	return s.record(ctx, tx, by, event, in.Entity(), k.target(), audit.Details{Add: "deploy_key", To: pushWord(canPush)})
}

func pushWord(canPush bool) string {
	if canPush {
		return "read and write"
	}
	return "read"
}

// DeployKeyChange are changes to a key. A nil field keeps the current value.
type DeployKeyChange struct {
	Title   *string // in all projects
	CanPush *bool   // in this project
}

// UpdateDeployKey changes a key that is enabled in a project. Requires Maintainer. The
// title can be changed by the user who created the key and by Maintainers of all
// projects in which it is enabled; that of a public key by administrators.
func (s *Service) UpdateDeployKey(ctx context.Context, by actor.Actor, ref Ref, id int64, c DeployKeyChange) (*DeployKey, error) {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	if c.Title != nil {
		wrong := errs.Fields{}
		checkText(wrong, "title", *c.Title)
		if err := wrong.Err(); err != nil {
			return nil, err
		}
	}
	var k *DeployKey
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "deploy_keys", id); err != nil {
			return db.NotFound(err, noDeployKey)
		}
		var err error
		if k, err = findEnabledKey(ctx, tx, in.ID, id); err != nil {
			return err
		}
		was := *k
		patch.Set(&k.Title, c.Title)
		patch.Set(&k.CanPush, c.CanPush)
		if k.Title != was.Title {
			if err := s.mayRenameKey(ctx, tx, by, k); err != nil {
				return err
			}
		}
		if err := saveEnabledKey(ctx, tx, in.ID, k); err != nil {
			return err
		}
		return s.recordKey(ctx, tx, by, in, &was, k)
	})
	if err != nil {
		return nil, fmt.Errorf("update deploy key %d: %w", id, err)
	}
	return k, nil
}

// mayRenameKey returns Forbidden if the actor may not change the title of a key.
func (s *Service) mayRenameKey(ctx context.Context, tx *db.Tx, by actor.Actor, k *DeployKey) error {
	switch {
	case by.Admin:
		return nil
	case k.Public:
		return errs.Forbidden("")
	case k.CreatedBy != nil && by.Is(*k.CreatedBy):
		return nil
	}
	all, err := s.maintainsKey(ctx, tx, by.ID, k.ID)
	if err == nil && !all {
		err = errs.Forbidden("")
	}
	return err
}

func (s *Service) recordKey(ctx context.Context, tx *db.Tx, by actor.Actor, in *Project, was, k *DeployKey) error {
	for _, c := range []struct{ what, from, to string }{
		{"title", was.Title, k.Title},
		{"can_push", pushWord(was.CanPush), pushWord(k.CanPush)},
	} {
		if c.from == c.to {
			continue
		}
		err := s.record(ctx, tx, by, "deploy_key_updated", in.Entity(), k.target(), audit.Details{Change: c.what, From: c.from, To: c.to})
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveDeployKey disables a key in a project. A private key that is enabled in no
// other project is deleted. Requires Maintainer. NotFound.
func (s *Service) RemoveDeployKey(ctx context.Context, by actor.Actor, ref Ref, id int64) error {
	in, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		k, err := findEnabledKey(ctx, tx, in.ID, id)
		if err != nil {
			return err
		}
		if err := disableKey(ctx, tx, in.ID, id); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "deploy_key_removed", in.Entity(), k.target(), audit.Details{Remove: "deploy_key"})
	})
	if err != nil {
		return fmt.Errorf("remove deploy key %d: %w", id, err)
	}
	return nil
}
