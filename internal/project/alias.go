package project

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Alias is another name of a project for Git clients, without a namespace.
type Alias struct {
	ID        int64
	ProjectID int64
	Name      string
}

// Aliases lists the project aliases. Requires an administrator. Forbidden.
func (s *Service) Aliases(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Alias], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[*Alias]{}, err
	}
	return listAliases(ctx, s.DB, p)
}

// Alias returns a project alias by name. Requires an administrator. Forbidden;
// NotFound.
func (s *Service) Alias(ctx context.Context, by actor.Actor, name string) (*Alias, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	a, err := findAlias(ctx, s.DB, name)
	return a, db.NotFound(err, "Project Alias")
}

// CreateAlias adds an alias to a project. Requires an administrator. Forbidden;
// NotFound; Invalid, also if the name is taken.
func (s *Service) CreateAlias(ctx context.Context, by actor.Actor, ref Ref, name string) (*Alias, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	p, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	if checkPath(wrong, name, false); len(wrong) > 0 || strings.Trim(name, "0123456789") == "" {
		return nil, errs.InvalidField("name", "%s", pathRule)
	}
	a := &Alias{ProjectID: p.ID, Name: name}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertAlias(ctx, tx, a, s.Now()); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "project_alias_created", p.Entity(), a.target(), audit.Details{Add: "project_alias"})
	})
	if db.IsUnique(err, "project_aliases_name") {
		return nil, errs.InvalidField("name", "has already been taken")
	}
	if err != nil {
		return nil, fmt.Errorf("create project alias: %w", err)
	}
	return a, nil
}

// DeleteAlias deletes a project alias. Requires an administrator. Forbidden;
// NotFound.
func (s *Service) DeleteAlias(ctx context.Context, by actor.Actor, name string) error {
	a, err := s.Alias(ctx, by, name)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		p, err := findProject(ctx, tx, a.ProjectID)
		if err != nil {
			return err
		}
		if err := deleteAlias(ctx, tx, a.ID); err != nil {
			return db.NotFound(err, "Project Alias")
		}
		return s.record(ctx, tx, by, "project_alias_deleted", p.Entity(), a.target(), audit.Details{Remove: "project_alias"})
	})
	if err != nil {
		return fmt.Errorf("delete project alias: %w", err)
	}
	return nil
}

func (a *Alias) target() audit.Target {
	return audit.Target{Type: "ProjectAlias", ID: a.ID, Details: a.Name}
}

// Aliased returns the project of an alias, for Git clients, or an empty Ref. The
// caller must check access to the project.
func (s *Service) Aliased(ctx context.Context, name string) (Ref, error) {
	a, err := findAlias(ctx, s.DB, name)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find project alias: %w", err)
	}
	return RefTo(a.ProjectID), nil
}
