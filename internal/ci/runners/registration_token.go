package runners

import (
	"context"
	"fmt"
	"strconv"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Owner is the owner of a registration token and of the runners registered by
// it: a group, a project or, if both are empty, the instance.
type Owner struct{ Group, Project project.Ref }

// RegistrationToken returns the registration token of an owner and creates the
// first one. It is empty if the settings do not allow registration tokens. For
// administrators, Owners of the group, Maintainers of the project; Forbidden for
// a credential that may not read secrets.
func (s *Service) RegistrationToken(ctx context.Context, by actor.Actor, in Owner) (string, error) {
	if !by.ReadsSecrets() {
		return "", errs.Forbidden("")
	}
	r, err := s.registrationAt(ctx, by, in)
	if err != nil {
		return "", err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil || !settings.AllowRegistrationTokens {
		return "", err
	}
	token, err := s.shownRegistration(ctx, s.DB, r)
	if token != "" || err != nil || r.frozen != nil {
		return token, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := r.lock(ctx, tx); err != nil {
			return err
		}
		if token, err = s.shownRegistration(ctx, tx, r); token != "" || err != nil {
			return err
		}
		token = secret.Token(registrationPrefix)
		return s.replaceRegistration(ctx, tx, r, token)
	})
	if err != nil {
		return "", fmt.Errorf("make registration token: %w", err)
	}
	return token, nil
}

// ResetRegistrationToken replaces the registration token of an owner. For
// administrators, Owners of the group, Maintainers of the project.
func (s *Service) ResetRegistrationToken(ctx context.Context, by actor.Actor, in Owner) (string, error) {
	r, err := s.registrationAt(ctx, by, in)
	if err != nil {
		return "", err
	}
	if r.frozen != nil {
		return "", r.frozen
	}
	token := secret.Token(registrationPrefix)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := r.lock(ctx, tx); err != nil {
			return err
		}
		if err := s.replaceRegistration(ctx, tx, r, token); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "ci_runners_registration_token_reset", Entity: r.entity, Details: audit.Details{Change: "runners_token"},
		})
	})
	if err != nil {
		return "", fmt.Errorf("reset registration token: %w", err)
	}
	return token, nil
}

// registrationPrefix is the prefix of registration tokens in the public API.
const registrationPrefix = "GR1348941"

// registration is the owner of a registration token; both IDs are nil for the
// instance.
type registration struct {
	projectID *int64
	groupID   *int64

	// Set only by registrationAt.
	entity audit.Entity
	frozen error // why no token can be created: the project is archived
}

// registrationAt returns an owner for actors who may register runners there.
func (s *Service) registrationAt(ctx context.Context, by actor.Actor, in Owner) (registration, error) {
	switch {
	case in.Project != "":
		p, err := s.Projects.RequireView(ctx, by, in.Project, project.SettingsPart)
		if err != nil {
			return registration{}, err
		}
		return registration{projectID: &p.ID, entity: p.Entity(), frozen: p.Change(by, project.SettingsPart, project.Maintainer)}, nil
	case in.Group != "":
		g, err := s.Projects.RequireGroup(ctx, by, in.Group, project.Owner)
		if err != nil {
			return registration{}, err
		}
		return registration{groupID: &g.ID, entity: g.Entity()}, nil
	}
	return registration{entity: audit.Instance()}, by.RequireAdmin()
}

// lock locks the row of the owner, so that it gets only one token.
func (r registration) lock(ctx context.Context, tx *db.Tx) error {
	switch {
	case r.projectID != nil:
		return tx.Lock(ctx, "projects", *r.projectID)
	case r.groupID != nil:
		return tx.Lock(ctx, "namespaces", *r.groupID)
	}
	return nil // the token of the instance is only replaced
}

// sealedAt is the context that the encrypted token is bound to.
func (r registration) sealedAt() string {
	at := "runner_registration_tokens/sealed/"
	switch {
	case r.projectID != nil:
		return at + "project/" + strconv.FormatInt(*r.projectID, 10)
	case r.groupID != nil:
		return at + "group/" + strconv.FormatInt(*r.groupID, 10)
	}
	return at + "instance"
}

// shownRegistration returns the token of an owner; empty if there is none that
// can be decrypted.
func (s *Service) shownRegistration(ctx context.Context, q db.Q, r registration) (string, error) {
	sealed, err := findSealedRegistration(ctx, q, r)
	if sealed == "" && err == nil {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("registration token: %w", err)
	}
	token, err := s.Keys.Open(sealed, r.sealedAt())
	if err != nil {
		return "", fmt.Errorf("registration token: %w", err)
	}
	return string(token), nil
}

// replaceRegistration makes a token the only one of its owner.
func (s *Service) replaceRegistration(ctx context.Context, tx *db.Tx, r registration, token string) error {
	return replaceRegistration(ctx, tx, r, token, s.Keys.Seal([]byte(token), r.sealedAt()), s.Now())
}
