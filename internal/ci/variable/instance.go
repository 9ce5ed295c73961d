package variable

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// ListInstance lists the instance variables. Administrators only.
func (s *Service) ListInstance(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[Variable], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Variable]{}, err
	}
	page, err := listInstance(ctx, s.DB, p)
	if err != nil {
		return page, fmt.Errorf("list instance variables: %w", err)
	}
	for i := range page.Items {
		if err := s.openInstance(&page.Items[i]); err != nil {
			return db.Page[Variable]{}, err
		}
	}
	return page, nil
}

// GetInstance returns an instance variable. Administrators only; NotFound.
func (s *Service) GetInstance(ctx context.Context, by actor.Actor, key string) (*Variable, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	v, err := findInstance(ctx, s.DB, key)
	if err != nil {
		return nil, err
	}
	return &v, s.openInstance(&v)
}

// CreateInstance adds an instance variable. Administrators only; Invalid if the key is
// taken or the limit of the settings is reached.
func (s *Service) CreateInstance(ctx context.Context, by actor.Actor, key string, c Change) (*Variable, error) {
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
		n, err := countInstance(ctx, tx)
		if err != nil {
			return err
		}
		if n >= settings.MaxInstanceVariables {
			return errs.InvalidField("base", "Maximum number of instance-level variables (%d) exceeded", settings.MaxInstanceVariables)
		}
		// The sealed value is bound to its row, so the row comes first.
		if err := insertInstance(ctx, tx, &v, s.Now()); err != nil {
			return err
		}
		if err := s.saveInstance(ctx, tx, &v); err != nil {
			return err
		}
		return s.recordInstance(ctx, tx, by, &v, "ci_instance_variable_created", audit.Details{Add: "ci_instance_variable"})
	})
	if err != nil {
		return nil, fmt.Errorf("create instance variable: %w", err)
	}
	return &v, nil
}

// UpdateInstance changes an instance variable. Administrators only; NotFound.
func (s *Service) UpdateInstance(ctx context.Context, by actor.Actor, key string, c Change) (*Variable, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	var v Variable
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if v, err = findInstance(ctx, tx, key); err != nil {
			return err
		}
		if err := tx.Lock(ctx, "instance_variables", v.ID); err != nil {
			return err
		}
		if v, err = findInstance(ctx, tx, key); err != nil {
			return err
		}
		if err := s.openInstance(&v); err != nil {
			return err
		}
		was := v
		c.apply(&v)
		if err := v.check(); err != nil {
			return err
		}
		if err := s.saveInstance(ctx, tx, &v); err != nil {
			return err
		}
		return s.recordInstance(ctx, tx, by, &v, "ci_instance_variable_updated", audit.Details{Change: changed(&was, &v)})
	})
	if err != nil {
		return nil, fmt.Errorf("update instance variable: %w", err)
	}
	return &v, nil
}

// DeleteInstance deletes an instance variable. Administrators only; NotFound;
// Precondition if it changed since the given time.
func (s *Service) DeleteInstance(ctx context.Context, by actor.Actor, key string, unmodifiedSince *time.Time) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		v, err := findInstance(ctx, tx, key)
		if err != nil {
			return err
		}
		if unmodifiedSince != nil {
			at, err := instanceUpdatedAt(ctx, tx, v.ID)
			if err != nil {
				return err
			}
			if err := errs.ChangedSince(at, unmodifiedSince); err != nil {
				return err
			}
		}
		if err := deleteInstance(ctx, tx, v.ID); err != nil {
			return err
		}
		return s.recordInstance(ctx, tx, by, &v, "ci_instance_variable_deleted", audit.Details{Remove: "ci_instance_variable"})
	})
	if err != nil {
		return fmt.Errorf("delete instance variable: %w", err)
	}
	return nil
}

func (s *Service) recordInstance(ctx context.Context, tx *db.Tx, by actor.Actor, v *Variable, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Instance(), Target: audit.Target{Type: "Ci::InstanceVariable", ID: v.ID, Details: v.Key}, Details: d,
	})
}

// instancePlace binds a sealed value to its row.
func instancePlace(id int64) string { return fmt.Sprintf("instance_variables/value/%d", id) }

func (s *Service) openInstance(v *Variable) error {
	plain, err := s.Keys.Open(v.Value, instancePlace(v.ID))
	if err != nil {
		return fmt.Errorf("instance variable %s: %w", v.Key, err)
	}
	v.Value = string(plain)
	return nil
}

func (s *Service) saveInstance(ctx context.Context, tx *db.Tx, v *Variable) error {
	return updateInstance(ctx, tx, v, s.Keys.Seal([]byte(v.Value), instancePlace(v.ID)), s.Now())
}
