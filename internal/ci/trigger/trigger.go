// Package trigger manages pipeline trigger tokens. Package ci creates the pipelines.
package trigger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Keys     *secret.Keyring
	Users    *user.Service
	Projects *project.Service
	Prefix   string // of tokens: the name of the service
	Now      func() time.Time
}

// Service manages trigger tokens.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Trigger is a token with which programs create pipelines as the user who created it.
type Trigger struct {
	ID          int64
	ProjectID   int64
	OwnerID     int64
	Description string
	Token       string // complete for its owner, its beginning for others
	LastUsed    *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Set by the operations of Service.
	Owner *user.User
}

// List lists the trigger tokens of a project, for its Maintainers.
func (s *Service) List(ctx context.Context, by actor.Actor, in project.Ref, p db.Paging) (db.Page[*Trigger], error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Maintainer)
	if err != nil {
		return db.Page[*Trigger]{}, err
	}
	page, err := list(ctx, s.DB, proj.ID, p)
	if err != nil {
		return page, fmt.Errorf("list triggers: %w", err)
	}
	return page, s.fill(ctx, by, page.Items)
}

// Get returns a trigger token, for Maintainers. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Trigger, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Maintainer)
	if err != nil {
		return nil, err
	}
	t, err := find(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	return t, s.fill(ctx, by, []*Trigger{t})
}

// Create creates a trigger token that is owned by the actor, for Maintainers.
func (s *Service) Create(ctx context.Context, by actor.Actor, in project.Ref, description string) (*Trigger, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if len([]rune(description)) > 255 {
		return nil, errs.InvalidField("description", "is too long (maximum is 255 characters)")
	}
	at := s.Now()
	token := secret.Token(s.Prefix + "ptt-")
	t := &Trigger{ProjectID: proj.ID, OwnerID: by.ID, Description: description, CreatedAt: at, UpdatedAt: at}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		// Encryption is bound to the ID.
		if err := insert(ctx, tx, t, token); err != nil {
			return err
		}
		t.Token = s.Keys.Seal([]byte(token), sealPlace(t.ID))
		if err := saveToken(ctx, tx, t); err != nil {
			return err
		}
		return s.record(ctx, tx, by, proj, t, "pipeline_trigger_created", audit.Details{Add: "pipeline trigger"})
	})
	if err != nil {
		return nil, fmt.Errorf("create trigger: %w", err)
	}
	return t, s.fill(ctx, by, []*Trigger{t})
}

// Update changes the description of a trigger token, for its owner if they are a
// Maintainer. NotFound; Forbidden.
func (s *Service) Update(ctx context.Context, by actor.Actor, in project.Ref, id int64, description *string) (*Trigger, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var t *Trigger
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if t, err = find(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if !by.Admin && !by.Is(t.OwnerID) {
			return errs.Forbidden("")
		}
		was := t.Description
		patch.Set(&t.Description, description)
		t.UpdatedAt = s.Now()
		if err := saveDescription(ctx, tx, t); err != nil {
			return err
		}
		return s.record(ctx, tx, by, proj, t, "pipeline_trigger_updated", audit.Details{Change: "description", From: was, To: t.Description})
	})
	if err != nil {
		return nil, fmt.Errorf("update trigger %d: %w", id, err)
	}
	return t, s.fill(ctx, by, []*Trigger{t})
}

// Delete deletes a trigger token, for Maintainers. NotFound; Precondition if it changed
// since the given time.
func (s *Service) Delete(ctx context.Context, by actor.Actor, in project.Ref, id int64, unmodifiedSince *time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		t, err := find(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(t.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := remove(ctx, tx, id); err != nil {
			return err
		}
		return s.record(ctx, tx, by, proj, t, "pipeline_trigger_deleted", audit.Details{Remove: "pipeline trigger"})
	})
	if err != nil {
		return fmt.Errorf("delete trigger %d: %w", id, err)
	}
	return nil
}

// ByToken returns the trigger of a token. NotFound.
func (s *Service) ByToken(ctx context.Context, token string) (*Trigger, error) {
	return findByToken(ctx, s.DB, token)
}

// Used records that a trigger was used now.
func (s *Service) Used(ctx context.Context, id int64) error {
	if err := setLastUsed(ctx, s.DB, id, s.Now()); err != nil {
		return fmt.Errorf("use of trigger %d: %w", id, err)
	}
	return nil
}

// ShortToken returns the prefix by which users recognize a token.
func ShortToken(token string) string {
	_, rest, ok := strings.Cut(token, "-")
	if !ok {
		rest = token
	}
	return rest[:min(4, len(rest))]
}

func sealPlace(id int64) string { return fmt.Sprintf("pipeline_triggers/token/%d", id) }

// fill sets the owners and the decrypted tokens of triggers.
func (s *Service) fill(ctx context.Context, by actor.Actor, list []*Trigger) error {
	var userIDs []int64
	for _, t := range list {
		userIDs = append(userIDs, t.OwnerID)
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.Owner = users[t.OwnerID]
		plain, err := s.Keys.Open(t.Token, sealPlace(t.ID))
		if err != nil {
			return fmt.Errorf("token of trigger %d: %w", t.ID, err)
		}
		if t.Token = string(plain); !by.Is(t.OwnerID) || !by.ReadsSecrets() {
			t.Token = ShortToken(t.Token)
		}
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, t *Trigger, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: p.Entity(), Target: audit.Target{Type: "Ci::Trigger", ID: t.ID, Details: t.Description}, Details: d,
	})
}
