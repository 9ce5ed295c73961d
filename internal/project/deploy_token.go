package project

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Scopes of deploy tokens: ReadRepository is for repositories, the others are for
// the package registry.
const (
	ReadRepository       = "read_repository"
	ReadPackageRegistry  = "read_package_registry"
	WritePackageRegistry = "write_package_registry"
)

// DeployScopes returns all scopes of deploy tokens.
func DeployScopes() []string {
	return []string{
		ReadRepository, "read_registry", "write_registry", ReadPackageRegistry, WritePackageRegistry,
		"read_virtual_registry", "write_virtual_registry",
	}
}

// DeployToken is a password for Git over HTTP. It belongs to a project, or to a
// group and all projects in it. A revoked token is deleted.
type DeployToken struct {
	ID        int64
	Name      string
	Username  string
	Scopes    []string
	CreatedBy *int64
	CreatedAt time.Time
	ExpiresAt *time.Time // nil means never

	Secret string // set by CreateDeployToken only
}

// Expired reports whether the token has expired.
func (t *DeployToken) Expired(now time.Time) bool {
	return t.ExpiresAt != nil && !now.Before(*t.ExpiresAt)
}

// NewDeployToken has the fields of a new deploy token.
type NewDeployToken struct {
	Name      string
	Username  string // default: derived from the ID
	Scopes    []string
	ExpiresAt *time.Time
}

// AllDeployTokens lists the deploy tokens of the instance, optionally only active
// or inactive ones. Requires an administrator.
func (s *Service) AllDeployTokens(ctx context.Context, by actor.Actor, active *bool, p db.Paging) (db.Page[DeployToken], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[DeployToken]{}, err
	}
	return s.listDeployTokens(ctx, nil, active, p)
}

// DeployTokens lists the deploy tokens of a project or group, optionally only
// active or inactive ones. Requires Maintainer.
func (s *Service) DeployTokens(ctx context.Context, by actor.Actor, place Place, active *bool, p db.Paging) (db.Page[DeployToken], error) {
	in, err := s.source(ctx, s.DB, by, place, Maintainer)
	if err != nil {
		return db.Page[DeployToken]{}, err
	}
	return s.listDeployTokens(ctx, &in, active, p)
}

// DeployToken returns a deploy token of a project or group. Requires Maintainer.
// NotFound.
func (s *Service) DeployToken(ctx context.Context, by actor.Actor, place Place, id int64) (*DeployToken, error) {
	in, err := s.source(ctx, s.DB, by, place, Maintainer)
	if err != nil {
		return nil, err
	}
	return findDeployToken(ctx, s.DB, in, id)
}

// CreateDeployToken creates a deploy token. Requires Maintainer of a project or
// Owner of a group.
func (s *Service) CreateDeployToken(ctx context.Context, by actor.Actor, place Place, n NewDeployToken) (*DeployToken, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	t := &DeployToken{
		Name: n.Name, Scopes: n.scopes(), CreatedAt: s.Now(), ExpiresAt: n.ExpiresAt,
		Secret: secret.Token(s.Users.TokenStart() + "dt-"),
	}
	if by.ID > 0 {
		t.CreatedBy = &by.ID
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		t.Username = n.Username
		if err := insertDeployToken(ctx, tx, in, t, s.Users.ServiceName+"+deploy-token-"); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in.kind("deploy_token_created"), in.entity(), t.target(), audit.Details{Add: "deploy_token", To: strings.Join(t.Scopes, " ")})
	})
	if err != nil {
		return nil, fmt.Errorf("create deploy token: %w", err)
	}
	return t, nil
}

// deployNamePattern matches a username. In HTTP basic authentication it cannot
// contain a colon.
var deployNamePattern = regexp.MustCompile(`^[A-Za-z0-9._+-]+$`)

func (n *NewDeployToken) check() error {
	wrong := errs.Fields{}
	checkText(wrong, "name", n.Name)
	switch {
	case n.Username == "":
	case len(n.Username) > 255:
		wrong.Set("username", "is too long (maximum is 255 characters)")
	case !deployNamePattern.MatchString(n.Username):
		wrong.Set("username", "can contain only letters, digits, '_', '-', '+', and '.'")
	}
	if len(n.Scopes) == 0 {
		wrong.Set("scopes", "can't be blank")
	}
	for _, scope := range n.Scopes {
		if !slices.Contains(DeployScopes(), scope) {
			wrong.Set("scopes", "can only contain available scopes")
		}
	}
	return wrong.Err()
}

// scopes returns the requested scopes in a fixed order without duplicates.
func (n *NewDeployToken) scopes() []string {
	return slices.DeleteFunc(DeployScopes(), func(scope string) bool { return !slices.Contains(n.Scopes, scope) })
}

// DeleteDeployToken deletes a deploy token. Requires Maintainer of a project or
// Owner of a group. NotFound.
func (s *Service) DeleteDeployToken(ctx context.Context, by actor.Actor, place Place, id int64) error {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		t, err := findDeployToken(ctx, tx, in, id)
		if err != nil {
			return err
		}
		if err := deleteDeployToken(ctx, tx, id); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in.kind("deploy_token_destroyed"), in.entity(), t.target(), audit.Details{Remove: "deploy_token"})
	})
	if err != nil {
		return fmt.Errorf("delete deploy token %d: %w", id, err)
	}
	return nil
}

// AuthenticateDeployToken returns the actor for a deploy token, for Git over HTTP.
// Unauthorized if there is no such token, it has expired, or the username is
// wrong. What it grants is checked later: see ReadCode.
func (s *Service) AuthenticateDeployToken(ctx context.Context, username, token string) (actor.Actor, error) {
	return s.authenticateDeployToken(ctx, &username, token)
}

// AuthenticateDeployTokenAlone is AuthenticateDeployToken for a token without a
// username, in a header.
func (s *Service) AuthenticateDeployTokenAlone(ctx context.Context, token string) (actor.Actor, error) {
	return s.authenticateDeployToken(ctx, nil, token)
}

func (s *Service) authenticateDeployToken(ctx context.Context, username *string, token string) (actor.Actor, error) {
	t, err := findTokenByDigest(ctx, s.DB, secret.Digest(token))
	if errors.Is(err, db.ErrNoRows) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("authenticate deploy token: %w", err)
	}
	if username != nil && t.Username != *username || t.Expired(s.Now()) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	return actor.Actor{Deploy: &actor.Deploy{Kind: actor.DeployToken, ID: t.ID, Name: t.Name, UserID: orZero(t.CreatedBy)}}, nil
}

func (t *DeployToken) target() audit.Target {
	return audit.Target{Type: "DeployToken", ID: t.ID, Details: t.Name}
}

const noDeployToken = "Deploy Token"
