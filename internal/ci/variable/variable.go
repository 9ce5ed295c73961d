// Package variable manages CI/CD variables: those of the instance, of groups and of
// projects, and those that are given to pipelines, schedules and jobs when they are
// started. Values are stored encrypted.
package variable

import (
	"context"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Keys     *secret.Keyring
	Settings *setting.Service
	Projects *project.Service
	Now      func() time.Time
}

// Service manages variables.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Type is the form in which a job gets a variable.
type Type string

// The types: the value, or the path of a file with the value.
const (
	EnvVar Type = "env_var"
	File   Type = "file"
)

// Variable is a variable of the instance, for every job, or of a group or project, for
// the jobs in it.
type Variable struct {
	ID          int64
	Key         string
	Description *string
	Type        Type
	Value       string
	Protected   bool
	Masked      bool
	Raw         bool

	// Of groups and projects only.
	Scope  string // the environments whose jobs get it; * matches any text
	Hidden bool   // masked, and never shown again
}

// Change has the new values of a variable. Nil leaves the default or the current value.
type Change struct {
	Value       *string
	Description *string
	Type        *Type
	Protected   *bool
	Masked      *bool
	Raw         *bool

	// Of groups and projects only. Hidden is used on creation only.
	Scope  *string
	Hidden *bool
}

const maxValue = 10_000

// maskable matches values that can be masked: one word that is long enough not to occur
// in a log by chance.
var maskable = regexp.MustCompile(`^[^\s]{8,}$`)

// owner is the group or project that variables belong to.
type owner struct {
	projectID   *int64
	namespaceID *int64
	entity      audit.Entity
}

// column returns the column with the ID of the owner, and the ID.
func (o owner) column() (string, int64) {
	if o.projectID != nil {
		return "project_id", *o.projectID
	}
	return "namespace_id", *o.namespaceID
}

// owner returns the project or group at a place, for Maintainers of the project or
// Owners of the group. change is set by operations that change variables.
func (s *Service) owner(ctx context.Context, by actor.Actor, place project.Place, change bool) (owner, error) {
	if place.Group {
		g, err := s.Projects.RequireGroup(ctx, by, place.Ref, project.Owner)
		if err != nil {
			return owner{}, err
		}
		return owner{namespaceID: &g.ID, entity: audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}}, nil
	}
	p, err := s.Projects.RequireView(ctx, by, place.Ref, project.SettingsPart)
	if err == nil && change {
		err = p.Change(by, project.SettingsPart, project.Maintainer)
	}
	if err != nil {
		return owner{}, err
	}
	return owner{projectID: &p.ID, entity: p.Entity()}, nil
}

// List lists the variables of a project, for its Maintainers, or of a group, for its
// Owners.
func (s *Service) List(ctx context.Context, by actor.Actor, place project.Place, p db.Paging) (db.Page[Variable], error) {
	o, err := s.owner(ctx, by, place, false)
	if err != nil {
		return db.Page[Variable]{}, err
	}
	page, err := list(ctx, s.DB, o, p)
	if err != nil {
		return page, fmt.Errorf("list variables: %w", err)
	}
	for i := range page.Items {
		if err := s.open(&page.Items[i]); err != nil {
			return db.Page[Variable]{}, err
		}
	}
	return page, nil
}

// Get returns a variable, for users who may list them. scope distinguishes variables
// with the same key; nil stands for any. NotFound; Conflict if there are several.
func (s *Service) Get(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string) (*Variable, error) {
	o, err := s.owner(ctx, by, place, false)
	if err != nil {
		return nil, err
	}
	v, err := find(ctx, s.DB, o, key, scope)
	if err != nil {
		return nil, err
	}
	return v, s.open(v)
}

// Create adds a variable to a project or group, for users who may list them. Invalid if
// the key is taken in its scope.
func (s *Service) Create(ctx context.Context, by actor.Actor, place project.Place, key string, c Change) (*Variable, error) {
	o, err := s.owner(ctx, by, place, true)
	if err != nil {
		return nil, err
	}
	v := Variable{Key: key, Type: EnvVar, Scope: "*"}
	c.apply(&v)
	if c.Hidden != nil && *c.Hidden {
		v.Hidden, v.Masked = true, true
	}
	if err := v.checkScoped(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insert(ctx, tx, o, &v, s.Now()); err != nil {
			return err
		}
		if err := s.save(ctx, tx, &v); err != nil {
			return err
		}
		return s.record(ctx, tx, by, o, &v, "created", audit.Details{Add: o.thing()})
	})
	if err != nil {
		return nil, fmt.Errorf("create variable: %w", err)
	}
	return &v, nil
}

// Update changes a variable, for users who may list them. NotFound;
// Conflict if the scope is ambiguous; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string, c Change) (*Variable, error) {
	o, err := s.owner(ctx, by, place, true)
	if err != nil {
		return nil, err
	}
	var v *Variable
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if v, err = find(ctx, tx, o, key, scope); err != nil {
			return err
		}
		if err := tx.Lock(ctx, "ci_variables", v.ID); err != nil {
			return err
		}
		if v, err = find(ctx, tx, o, key, scope); err != nil {
			return err
		}
		if err := s.open(v); err != nil {
			return err
		}
		was := *v
		c.apply(v)
		if v.Hidden && !v.Masked {
			return errs.InvalidField("base", "The visibility setting cannot be changed for masked and hidden variables.")
		}
		if err := v.checkScoped(); err != nil {
			return err
		}
		if err := s.save(ctx, tx, v); err != nil {
			return err
		}
		return s.record(ctx, tx, by, o, v, "updated", audit.Details{Change: changed(&was, v)})
	})
	if err != nil {
		return nil, fmt.Errorf("update variable: %w", err)
	}
	return v, nil
}

// Delete deletes a variable, for users who may list them. NotFound;
// Conflict if the scope is ambiguous; Precondition if it changed since the given
// time.
func (s *Service) Delete(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string, unmodifiedSince *time.Time) error {
	o, err := s.owner(ctx, by, place, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		v, err := find(ctx, tx, o, key, scope)
		if err != nil {
			return err
		}
		if unmodifiedSince != nil {
			at, err := updatedAt(ctx, tx, v.ID)
			if err != nil {
				return err
			}
			if err := errs.ChangedSince(at, unmodifiedSince); err != nil {
				return err
			}
		}
		if err := remove(ctx, tx, v.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, o, v, "deleted", audit.Details{Remove: o.thing()})
	})
	if err != nil {
		return fmt.Errorf("delete variable: %w", err)
	}
	return nil
}

var scopePattern = regexp.MustCompile(`^[a-zA-Z0-9_/${}. *-]{1,255}$`)

func (v *Variable) checkScoped() error {
	if !scopePattern.MatchString(v.Scope) {
		return errs.InvalidField("environment_scope", "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces")
	}
	return v.check()
}

// thing returns the type of a variable of the owner in audit events.
func (o owner) thing() string {
	if o.projectID != nil {
		return "ci_variable"
	}
	return "ci_group_variable"
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, o owner, v *Variable, did string, d audit.Details) error {
	class := "Ci::Variable"
	if o.projectID == nil {
		class = "Ci::GroupVariable"
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: o.thing() + "_" + did, Entity: o.entity, Target: audit.Target{Type: class, ID: v.ID, Details: v.Key}, Details: d,
	})
}

func sealPlace(id int64) string { return fmt.Sprintf("ci_variables/value/%d", id) }

func (s *Service) open(v *Variable) error {
	plain, err := s.Keys.Open(v.Value, sealPlace(v.ID))
	if err != nil {
		return fmt.Errorf("variable %s: %w", v.Key, err)
	}
	v.Value = string(plain)
	return nil
}

func (s *Service) save(ctx context.Context, tx *db.Tx, v *Variable) error {
	return update(ctx, tx, v, s.Keys.Seal([]byte(v.Value), sealPlace(v.ID)), s.Now())
}

// inScope reports whether a variable is for the jobs of an environment, whose name is
// empty for jobs without one.
func (v *Variable) inScope(environment string) bool {
	if v.Scope == "" || v.Scope == "*" {
		return true
	}
	return environment != "" && config.ScopeCovers(v.Scope, environment)
}

func (c Change) apply(v *Variable) {
	patch.Set(&v.Value, c.Value)
	patch.Set(&v.Type, c.Type)
	patch.Set(&v.Protected, c.Protected)
	patch.Set(&v.Masked, c.Masked)
	patch.Set(&v.Raw, c.Raw)
	patch.Set(&v.Scope, c.Scope)
	if c.Description != nil {
		v.Description = c.Description
	}
}

func (v *Variable) check() error {
	wrong := errs.Fields{}
	switch {
	case v.Key == "":
		wrong.Set("key", "can't be blank")
	case len(v.Key) > 255:
		wrong.Set("key", "is too long (maximum is 255 characters)")
	case !config.ValidKey(v.Key):
		wrong.Set("key", "can contain only letters, digits and '_'.")
	}
	switch {
	case utf8.RuneCountInString(v.Value) > maxValue:
		wrong.Set("value", "is too long (maximum is %d characters)", maxValue)
	case v.Masked && !maskable.MatchString(v.Value):
		wrong.Set("value", "is invalid: a masked value is one line of at least 8 characters without spaces")
	}
	if v.Type != EnvVar && v.Type != File {
		wrong.Set("variable_type", "is not included in the list")
	}
	if v.Description != nil && utf8.RuneCountInString(*v.Description) > 255 {
		wrong.Set("description", "is too long (maximum is 255 characters)")
	}
	return wrong.Err()
}

// changed names an attribute that differs, for the audit event. The value itself
// is never recorded.
func changed(was, now *Variable) string {
	switch {
	case was.Value != now.Value:
		return "value"
	case was.Protected != now.Protected:
		return "protected"
	case was.Masked != now.Masked:
		return "masked"
	case was.Type != now.Type:
		return "variable_type"
	case was.Raw != now.Raw:
		return "raw"
	}
	return "description"
}
