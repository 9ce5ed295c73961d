// Package serviceaccount implements the service accounts of groups: users that
// programs act as, managed by the Owners of a top-level group.
package serviceaccount

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/setting"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Settings *setting.Service
}

// Service implements the operations on service accounts.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// accounts returns the service accounts of a group. Requires Owner.
// NotFound; Forbidden.
func (s *Service) accounts(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Namespace, user.ServiceAccountList, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, user.ServiceAccountList{}, err
	}
	return g, s.Users.ServiceAccountsIn(user.ServiceAccountOwner{GroupID: &g.ID, Entity: g.Entity()}), nil
}

// managedAccount returns a service account of a group that the actor may manage.
// Requires Owner. Bot users may not: a token created by a bot user would outlive
// the token of the bot user. Accounts that were promoted to administrator require
// an administrator, because their tokens would grant that role. NotFound;
// Forbidden.
func (s *Service) managedAccount(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*user.User, user.ServiceAccountList, error) {
	_, list, err := s.accounts(ctx, by, ref)
	if err != nil {
		return nil, list, err
	}
	if err := by.RequireHuman("manage service accounts"); err != nil {
		return nil, list, err
	}
	u, err := list.Get(ctx, id)
	if err != nil {
		return nil, list, err
	}
	if (u.Admin || u.Auditor) && !by.Admin {
		return nil, list, errs.Forbidden("")
	}
	return u, list, nil
}

// List lists the service accounts of a group. Requires Owner. NotFound;
// Forbidden.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, order user.Sort, p db.Paging) (db.Page[*user.User], error) {
	_, list, err := s.accounts(ctx, by, ref)
	if err != nil {
		return db.Page[*user.User]{}, err
	}
	return list.List(ctx, order, p)
}

// Get returns a service account of a group. Requires Owner. NotFound;
// Forbidden.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*user.User, error) {
	_, list, err := s.accounts(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return list.Get(ctx, id)
}

// MayCreate checks whether an Owner may add service accounts to a
// group: administrators may, and others if the settings allow it. Forbidden;
// Invalid for subgroups.
func (s *Service) MayCreate(ctx context.Context, by actor.Actor, g *project.Namespace) error {
	if err := by.RequireHuman("create service accounts"); err != nil {
		return err
	}
	settings, err := s.Settings.Current(ctx)
	switch {
	case err != nil:
		return err
	case !by.Admin && !settings.GroupServiceAccounts:
		return errs.Forbidden("Only administrators can create service accounts on this instance.")
	case g.ParentID != nil:
		return errs.Invalid("Service accounts can be created in top-level groups only")
	}
	return nil
}

// onlyAdminsChoose returns an error if a user other than an administrator sets an
// email address: it is not confirmed, and commits are attributed by it.
func onlyAdminsChoose(by actor.Actor, email string) error {
	if email != "" && !by.Admin {
		return errs.InvalidField("email", "can be set by administrators only")
	}
	return nil
}

// Create adds a service account to a top-level group. Requires
// Owner, if the settings allow it, or an administrator. NotFound; Forbidden;
// Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, n user.NewServiceAccount) (*user.User, error) {
	g, list, err := s.accounts(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := s.MayCreate(ctx, by, g); err != nil {
		return nil, err
	}
	if err := onlyAdminsChoose(by, n.Email); err != nil {
		return nil, err
	}
	return list.Create(ctx, by, n)
}

// Update changes a service account of a group. Requires Owner.
// NotFound; Forbidden; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, id int64, c user.ServiceAccountChange) (*user.User, error) {
	u, list, err := s.managedAccount(ctx, by, ref, id)
	if err != nil {
		return nil, err
	}
	if c.Email != nil && *c.Email != u.Email {
		if err := onlyAdminsChoose(by, *c.Email); err != nil {
			return nil, err
		}
	}
	return list.Update(ctx, by, u, c)
}

// Delete deletes a service account of a group. Its contributions are
// moved to the ghost user, or deleted if hard is set. Requires Owner. NotFound;
// Forbidden.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, id int64, hard bool) error {
	u, list, err := s.managedAccount(ctx, by, ref, id)
	if err != nil {
		return err
	}
	return list.Delete(ctx, by, u, hard)
}

// Tokens lists the personal access tokens of a service account of a
// group. Requires Owner. NotFound; Forbidden.
func (s *Service) Tokens(ctx context.Context, by actor.Actor, ref project.Ref, id int64, f user.TokenFilter, p db.Paging) (db.Page[user.Token], error) {
	_, list, err := s.accounts(ctx, by, ref)
	if err != nil {
		return db.Page[user.Token]{}, err
	}
	u, err := list.Get(ctx, id)
	if err != nil {
		return db.Page[user.Token]{}, err
	}
	return list.Tokens(ctx, u, f, p)
}

// CreateToken creates a personal access token for a service account
// of a group. Requires Owner. NotFound; Forbidden; Invalid.
func (s *Service) CreateToken(ctx context.Context, by actor.Actor, ref project.Ref, id int64, n user.NewToken) (*user.Token, error) {
	u, list, err := s.managedAccount(ctx, by, ref, id)
	if err != nil {
		return nil, err
	}
	return list.CreateToken(ctx, by, u, n)
}

// RevokeToken revokes a personal access token of a service account
// of a group. Requires Owner. NotFound; Forbidden.
func (s *Service) RevokeToken(ctx context.Context, by actor.Actor, ref project.Ref, id, tokenID int64, unmodifiedSince *time.Time) error {
	u, list, err := s.managedAccount(ctx, by, ref, id)
	if err != nil {
		return err
	}
	return list.RevokeToken(ctx, by, u, tokenID, unmodifiedSince)
}

// RotateToken rotates a personal access token of a service account
// of a group. Requires Owner. NotFound; Forbidden; Invalid.
func (s *Service) RotateToken(ctx context.Context, by actor.Actor, ref project.Ref, id, tokenID int64, expiresAt string) (*user.Token, error) {
	u, list, err := s.managedAccount(ctx, by, ref, id)
	if err != nil {
		return nil, err
	}
	return list.RotateToken(ctx, by, u, tokenID, expiresAt)
}
