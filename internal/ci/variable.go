package ci

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/config"
	"svc/internal/db"
	"svc/internal/errs"
)

// VariableType says how a job sees a variable.
type VariableType string

// The types: the value itself, or the name of a file that holds it.
const (
	EnvVar VariableType = "env_var"
	File   VariableType = "file"
)

// Variable is a variable of the instance, seen by every job, or of a group or
// project, seen by the jobs there.
type Variable struct {
	ID          int64
	Key         string
	Description *string
	Type        VariableType
	Value       string
	Protected   bool
	Masked      bool
	Raw         bool

	// Of groups and projects only.
	Scope  string // the environments for whose jobs it is; * stands for any text
	Hidden bool   // masked, and never shown again
}

// VariableChange is what is set in a variable; nil leaves the default or the
// present value.
type VariableChange struct {
	Value       *string
	Description *string
	Type        *VariableType
	Protected   *bool
	Masked      *bool
	Raw         *bool

	// Of groups and projects only; Hidden counts when it is made.
	Scope  *string
	Hidden *bool
}

const maxValue = 10_000

// maskable matches values that can be masked: one word that is too long to be found
// in a log by chance.
var maskable = regexp.MustCompile(`^[^\s]{8,}$`)

// InstanceVariables lists the instance variables. Administrators only.
func (s *Service) InstanceVariables(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[Variable], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Variable]{}, err
	}
	page, err := listVariables(ctx, s.DB, p)
	if err != nil {
		return page, fmt.Errorf("list instance variables: %w", err)
	}
	for i := range page.Items {
		if err := s.open(&page.Items[i]); err != nil {
			return db.Page[Variable]{}, err
		}
	}
	return page, nil
}

// InstanceVariable returns one variable. Administrators only; NotFound.
func (s *Service) InstanceVariable(ctx context.Context, by actor.Actor, key string) (*Variable, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	v, err := findVariable(ctx, s.DB, key)
	if err != nil {
		return nil, err
	}
	return &v, s.open(&v)
}

// CreateInstanceVariable adds a variable. Administrators only; Invalid when
// the key is taken or there are as many as the settings allow.
func (s *Service) CreateInstanceVariable(ctx context.Context, by actor.Actor, key string, c VariableChange) (*Variable, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	v := Variable{Key: key, Type: EnvVar}
	c.apply(&v)
	if err := v.check(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := countVariables(ctx, tx)
		if err != nil {
			return err
		}
		if n >= settings.MaxInstanceVariables {
			return errs.InvalidField("base", "Maximum number of instance-level variables (%d) exceeded", settings.MaxInstanceVariables)
		}
		// The sealed value is bound to its row, so the row comes first.
		if err := insertVariable(ctx, tx, &v, s.Now()); err != nil {
			return err
		}
		if err := s.save(ctx, tx, &v); err != nil {
			return err
		}
		return s.record(ctx, tx, by, &v, "ci_instance_variable_created", audit.Details{Add: "ci_instance_variable"})
	})
	if err != nil {
		return nil, fmt.Errorf("create instance variable: %w", err)
	}
	return &v, nil
}

// UpdateInstanceVariable changes a variable. Administrators only; NotFound.
func (s *Service) UpdateInstanceVariable(ctx context.Context, by actor.Actor, key string, c VariableChange) (*Variable, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	var v Variable
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if v, err = findVariable(ctx, tx, key); err != nil {
			return err
		}
		if err := tx.Lock(ctx, "instance_variables", v.ID); err != nil {
			return err
		}
		if v, err = findVariable(ctx, tx, key); err != nil {
			return err
		}
		if err := s.open(&v); err != nil {
			return err
		}
		was := v
		c.apply(&v)
		if err := v.check(); err != nil {
			return err
		}
		if err := s.save(ctx, tx, &v); err != nil {
			return err
		}
		return s.record(ctx, tx, by, &v, "ci_instance_variable_updated", audit.Details{Change: changed(&was, &v)})
	})
	if err != nil {
		return nil, fmt.Errorf("update instance variable: %w", err)
	}
	return &v, nil
}

// DeleteInstanceVariable removes a variable. Administrators only; NotFound;
// Precondition when it changed since the given time.
func (s *Service) DeleteInstanceVariable(ctx context.Context, by actor.Actor, key string, unmodifiedSince *time.Time) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		v, err := findVariable(ctx, tx, key)
		if err != nil {
			return err
		}
		if unmodifiedSince != nil {
			at, err := variableUpdatedAt(ctx, tx, v.ID)
			if err != nil {
				return err
			}
			if err := errs.ChangedSince(at, unmodifiedSince); err != nil {
				return err
			}
		}
		if err := deleteVariable(ctx, tx, v.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, &v, "ci_instance_variable_deleted", audit.Details{Remove: "ci_instance_variable"})
	})
	if err != nil {
		return fmt.Errorf("delete instance variable: %w", err)
	}
	return nil
}

func (c VariableChange) apply(v *Variable) {
	set(&v.Value, c.Value)
	set(&v.Type, c.Type)
	set(&v.Protected, c.Protected)
	set(&v.Masked, c.Masked)
	set(&v.Raw, c.Raw)
	set(&v.Scope, c.Scope)
	if c.Description != nil {
		v.Description = c.Description
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (v *Variable) check() error {
	wrong := map[string][]string{}
	switch {
	case v.Key == "":
		wrong["key"] = []string{"can't be blank"}
	case len(v.Key) > 255:
		wrong["key"] = []string{"is too long (maximum is 255 characters)"}
	case !config.ValidKey(v.Key):
		wrong["key"] = []string{"can contain only letters, digits and '_'."}
	}
	switch {
	case utf8.RuneCountInString(v.Value) > maxValue:
		wrong["value"] = []string{fmt.Sprintf("is too long (maximum is %d characters)", maxValue)}
	case v.Masked && !maskable.MatchString(v.Value):
		wrong["value"] = []string{"is invalid: a masked value is one line of at least 8 characters without spaces"}
	}
	if v.Type != EnvVar && v.Type != File {
		wrong["variable_type"] = []string{"is not included in the list"}
	}
	if v.Description != nil && utf8.RuneCountInString(*v.Description) > 255 {
		wrong["description"] = []string{"is too long (maximum is 255 characters)"}
	}
	if len(wrong) > 0 {
		return &errs.Error{Kind: errs.KindInvalid, Fields: wrong}
	}
	return nil
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

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, v *Variable, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Instance(), Target: audit.Target{Type: "Ci::InstanceVariable", ID: v.ID, Details: v.Key}, Details: d,
	})
}

// place binds a sealed value to its row.
func place(id int64) string { return fmt.Sprintf("instance_variables/value/%d", id) }

func (s *Service) open(v *Variable) error {
	plain, err := s.Keys.Open(v.Value, place(v.ID))
	if err != nil {
		return fmt.Errorf("instance variable %s: %w", v.Key, err)
	}
	v.Value = string(plain)
	return nil
}

func (s *Service) save(ctx context.Context, tx *db.Tx, v *Variable) error {
	return saveVariable(ctx, tx, v, s.Keys.Seal([]byte(v.Value), place(v.ID)), s.Now())
}

func notFound(err error, thing string) error {
	if errors.Is(err, db.ErrNoRows) {
		return errs.NotFound(thing)
	}
	return err
}
