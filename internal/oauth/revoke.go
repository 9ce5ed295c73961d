package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Revoke revokes an access or refresh token and all tokens of the same grant, on
// behalf of its application: RFC 7009. An unknown token is not an error. Errors
// are *Error. A token without an application can be revoked by anyone who has it.
func (s *Service) Revoke(ctx context.Context, clientID, clientSecret, token string) error {
	var app *Application
	if clientID != "" || clientSecret != "" {
		var proven bool
		var err error
		if app, proven, err = s.client(ctx, clientID, clientSecret); err != nil {
			return err
		}
		if app.Confidential && !proven {
			return refuse(InvalidClient, textInvalidClient)
		}
	}
	if token == "" {
		return missing("token")
	}
	t, err := findEither(ctx, s.DB, secret.Digest(token))
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find token: %w", err)
	}
	if of := t.grant.applicationID; of != nil && (app == nil || app.ID != *of) {
		return refuse(UnauthorizedClient, "The token was not given to this client.")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := revokeGrant(ctx, tx, t.grant.id, s.Now()); errors.Is(err, db.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		return s.Users.Forget(ctx, tx, t.grant.userID)
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// Authorization is an application that a user has authorized.
type Authorization struct {
	Application  *Application // nil for tokens of the password grant
	Scopes       []string
	AuthorizedAt time.Time // time of the latest authorization
}

// Authorizations lists the authorizations of the actor, newest first.
func (s *Service) Authorizations(ctx context.Context, by actor.Actor) ([]Authorization, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	grants, err := grantsOf(ctx, s.DB, by.ID, s.Now())
	if err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	var list []Authorization
	for _, g := range grants {
		at := slices.IndexFunc(list, func(a Authorization) bool { return sameApplication(a.Application, g.app) })
		if at < 0 {
			list = append(list, Authorization{Application: g.app, AuthorizedAt: g.createdAt})
			at = len(list) - 1
		}
		list[at].Scopes = scopeList(strings.Join(append(list[at].Scopes, g.scopes...), " "))
	}
	return list, nil
}

func sameApplication(a, b *Application) bool {
	return a == nil && b == nil || a != nil && b != nil && a.ID == b.ID
}

// RevokeAuthorization revokes the authorization of an application by the actor; 0
// means tokens of the password grant. NotFound.
func (s *Service) RevokeAuthorization(ctx context.Context, by actor.Actor, applicationID int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		target := audit.Target{Type: "OauthApplication", Details: "password"}
		if applicationID != 0 {
			app, err := findApplication(ctx, tx, applicationID)
			if err != nil {
				return err
			}
			target.ID, target.Details = app.ID, app.Name
		}
		n, err := revokeBetween(ctx, tx, by.ID, applicationID, s.Now())
		if err != nil {
			return err
		}
		if n == 0 {
			return errs.NotFound("Application")
		}
		err = audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "user_revoked_oauth_application", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username}, Target: target,
			Details: audit.Details{Message: "User revoked the authorization of an OAuth application"},
		})
		if err != nil {
			return err
		}
		return s.Users.Forget(ctx, tx, by.ID)
	})
	if err != nil {
		return fmt.Errorf("revoke authorization: %w", err)
	}
	return nil
}
