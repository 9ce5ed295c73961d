package ci

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// home is the group or project that variables belong to.
type home struct {
	projectID   *int64
	namespaceID *int64
	entity      audit.Entity
}

// column names the column that holds the id of the home, and gives that.
func (h home) column() (string, int64) {
	if h.projectID != nil {
		return "project_id", *h.projectID
	}
	return "namespace_id", *h.namespaceID
}

// home returns a place to those who keep its variables: Maintainers of a
// project, Owners of a group. change is for those who would change them.
func (s *Service) home(ctx context.Context, by actor.Actor, place project.Place, change bool) (home, error) {
	if place.Group {
		g, err := s.Projects.RequireGroup(ctx, by, place.Ref, project.Owner)
		if err != nil {
			return home{}, err
		}
		return home{namespaceID: &g.ID, entity: audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}}, nil
	}
	p, err := s.Projects.RequireView(ctx, by, place.Ref, project.SettingsPart)
	if err == nil && change {
		err = p.Change(by, project.SettingsPart, project.Maintainer)
	}
	if err != nil {
		return home{}, err
	}
	return home{projectID: &p.ID, entity: projectEntity(p)}, nil
}

// Variables lists the variables of a project, for its Maintainers, or of a
// group, for its Owners.
func (s *Service) Variables(ctx context.Context, by actor.Actor, place project.Place, p db.Paging) (db.Page[Variable], error) {
	h, err := s.home(ctx, by, place, false)
	if err != nil {
		return db.Page[Variable]{}, err
	}
	page, err := listPlaceVariables(ctx, s.DB, h, p)
	if err != nil {
		return page, fmt.Errorf("list variables: %w", err)
	}
	for i := range page.Items {
		if err := s.openPlace(&page.Items[i]); err != nil {
			return db.Page[Variable]{}, err
		}
	}
	return page, nil
}

// Variable returns one variable, to those who list them. scope distinguishes
// those of one key; nil takes any. NotFound; Conflict when there are several.
func (s *Service) Variable(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string) (*Variable, error) {
	h, err := s.home(ctx, by, place, false)
	if err != nil {
		return nil, err
	}
	v, err := findPlaceVariable(ctx, s.DB, h, key, scope)
	if err != nil {
		return nil, err
	}
	return v, s.openPlace(v)
}

// CreateVariable adds a variable to a project or group. For those who list
// them; Invalid when the key is taken in its scope.
func (s *Service) CreateVariable(ctx context.Context, by actor.Actor, place project.Place, key string, c VariableChange) (*Variable, error) {
	h, err := s.home(ctx, by, place, true)
	if err != nil {
		return nil, err
	}
	v := Variable{Key: key, Type: EnvVar, Scope: "*"}
	c.apply(&v)
	if c.Hidden != nil && *c.Hidden {
		v.Hidden, v.Masked = true, true
	}
	if err := v.checkPlace(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertPlaceVariable(ctx, tx, h, &v, s.Now()); err != nil {
			return err
		}
		if err := s.savePlace(ctx, tx, &v); err != nil {
			return err
		}
		return s.recordPlace(ctx, tx, by, h, &v, "created", audit.Details{Add: h.thing()})
	})
	if err != nil {
		return nil, fmt.Errorf("create variable: %w", err)
	}
	return &v, nil
}

// UpdateVariable changes a variable, for those who list them. NotFound;
// Conflict if the scope is ambiguous; Invalid.
func (s *Service) UpdateVariable(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string, c VariableChange) (*Variable, error) {
	h, err := s.home(ctx, by, place, true)
	if err != nil {
		return nil, err
	}
	var v *Variable
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if v, err = findPlaceVariable(ctx, tx, h, key, scope); err != nil {
			return err
		}
		if err := tx.Lock(ctx, "ci_variables", v.ID); err != nil {
			return err
		}
		if v, err = findPlaceVariable(ctx, tx, h, key, scope); err != nil {
			return err
		}
		if err := s.openPlace(v); err != nil {
			return err
		}
		was := *v
		c.apply(v)
		if v.Hidden && !v.Masked {
			return errs.InvalidField("base", "The visibility setting cannot be changed for masked and hidden variables.")
		}
		if err := v.checkPlace(); err != nil {
			return err
		}
		if err := s.savePlace(ctx, tx, v); err != nil {
			return err
		}
		return s.recordPlace(ctx, tx, by, h, v, "updated", audit.Details{Change: changed(&was, v)})
	})
	if err != nil {
		return nil, fmt.Errorf("update variable: %w", err)
	}
	return v, nil
}

// DeleteVariable removes a variable, for those who list them. NotFound;
// Conflict if the scope is ambiguous; Precondition if it changed since the given
// time.
func (s *Service) DeleteVariable(ctx context.Context, by actor.Actor, place project.Place, key string, scope *string, unmodifiedSince *time.Time) error {
	h, err := s.home(ctx, by, place, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		v, err := findPlaceVariable(ctx, tx, h, key, scope)
		if err != nil {
			return err
		}
		if unmodifiedSince != nil {
			at, err := placeVariableUpdatedAt(ctx, tx, v.ID)
			if err != nil {
				return err
			}
			if err := errs.ChangedSince(at, unmodifiedSince); err != nil {
				return err
			}
		}
		if err := db.ExecOne(ctx, tx, `DELETE FROM ci_variables WHERE id = ?`, v.ID); err != nil {
			return err
		}
		return s.recordPlace(ctx, tx, by, h, v, "deleted", audit.Details{Remove: h.thing()})
	})
	if err != nil {
		return fmt.Errorf("delete variable: %w", err)
	}
	return nil
}

var scopePattern = regexp.MustCompile(`^[a-zA-Z0-9_/${}. *-]{1,255}$`)

func (v *Variable) checkPlace() error {
	if !scopePattern.MatchString(v.Scope) {
		return errs.InvalidField("environment_scope", "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces")
	}
	return v.check()
}

// thing names a variable of the home in audit events.
func (h home) thing() string {
	if h.projectID != nil {
		return "ci_variable"
	}
	return "ci_group_variable"
}

func (s *Service) recordPlace(ctx context.Context, tx *db.Tx, by actor.Actor, h home, v *Variable, did string, d audit.Details) error {
	class := "Ci::Variable"
	if h.projectID == nil {
		class = "Ci::GroupVariable"
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: h.thing() + "_" + did, Entity: h.entity, Target: audit.Target{Type: class, ID: v.ID, Details: v.Key}, Details: d,
	})
}

func placeOf(id int64) string { return fmt.Sprintf("ci_variables/value/%d", id) }

func (s *Service) openPlace(v *Variable) error {
	plain, err := s.Keys.Open(v.Value, placeOf(v.ID))
	if err != nil {
		return fmt.Errorf("variable %s: %w", v.Key, err)
	}
	v.Value = string(plain)
	return nil
}

func (s *Service) savePlace(ctx context.Context, tx *db.Tx, v *Variable) error {
	return savePlaceVariable(ctx, tx, v, s.Keys.Seal([]byte(v.Value), placeOf(v.ID)), s.Now())
}

// inScope reports whether a variable is for jobs of an environment; none is the
// empty name.
func (v *Variable) inScope(environment string) bool {
	if v.Scope == "" || v.Scope == "*" {
		return true
	}
	return environment != "" && config.ScopeCovers(v.Scope, environment)
}
