package project

import (
	"context"
	"fmt"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Attribute is something that administrators note about a project or group under
// a key of their choice.
type Attribute struct {
	Key   string
	Value string
}

const (
	// maxAttribute is the length of a key and of a value in characters: both are
	// columns of one index, and PostgreSQL bounds the size of its rows.
	maxAttribute  = 255
	maxAttributes = 1000 // of a place
)

func (a Attribute) check() error {
	wrong := errs.Fields{}
	for name, text := range map[string]string{"key": a.Key, "value": a.Value} {
		switch {
		case text == "":
			wrong.Set(name, "can't be blank")
		case utf8.RuneCountInString(text) > maxAttribute:
			wrong.Set(name, "is too long (maximum is %d characters)", maxAttribute)
		}
	}
	return wrong.Err()
}

// noted is the place of custom attributes.
type noted struct {
	attributeTable
	id     int64
	entity audit.Entity
}

// attributed returns a place to administrators. Forbidden, NotFound.
func (s *Service) attributed(ctx context.Context, by actor.Actor, at Place) (noted, error) {
	if at.Group {
		g, err := s.RequireGroup(ctx, by, at.Ref, NoAccess)
		if err == nil {
			err = by.RequireAdmin()
		}
		if err != nil {
			return noted{}, err
		}
		return noted{groupAttributes, g.ID, audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}}, nil
	}
	p, err := s.Require(ctx, by, at.Ref, NoAccess)
	if err == nil {
		err = by.RequireAdmin()
	}
	if err != nil {
		return noted{}, err
	}
	return noted{projectAttributes, p.ID, audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}}, nil
}

// Attributes lists the custom attributes of a project or group by key.
// Administrators only. Forbidden, NotFound.
func (s *Service) Attributes(ctx context.Context, by actor.Actor, at Place) ([]Attribute, error) {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return nil, err
	}
	list, err := listAttributes(ctx, s.DB, in)
	if err != nil {
		return nil, fmt.Errorf("list custom attributes: %w", err)
	}
	return list, nil
}

// Attribute returns one custom attribute. Administrators only. Forbidden,
// NotFound.
func (s *Service) Attribute(ctx context.Context, by actor.Actor, at Place, key string) (Attribute, error) {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return Attribute{}, err
	}
	a, err := findAttribute(ctx, s.DB, in, key)
	return a, db.NotFound(err, "Custom Attribute")
}

// SetAttribute adds a custom attribute or changes its value. Administrators only.
// Forbidden, NotFound, Invalid.
func (s *Service) SetAttribute(ctx context.Context, by actor.Actor, at Place, a Attribute) (Attribute, error) {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return Attribute{}, err
	}
	if err := a.check(); err != nil {
		return Attribute{}, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := countAttributes(ctx, tx, in)
		if err != nil {
			return err
		}
		if n >= maxAttributes {
			return errs.Invalid("There are at most %d custom attributes: delete one first", maxAttributes)
		}
		if err := saveAttribute(ctx, tx, in, a); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: in.event + "_set", Entity: in.entity, Details: audit.Details{Change: "custom attribute " + a.Key, To: a.Value},
		})
	})
	if err != nil {
		return Attribute{}, fmt.Errorf("set custom attribute: %w", err)
	}
	return a, nil
}

// DeleteAttribute removes a custom attribute. Administrators only. Forbidden,
// NotFound.
func (s *Service) DeleteAttribute(ctx context.Context, by actor.Actor, at Place, key string) error {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		a, err := findAttribute(ctx, tx, in, key)
		if err != nil {
			return db.NotFound(err, "Custom Attribute")
		}
		if err := deleteAttribute(ctx, tx, in, key); err != nil {
			return db.NotFound(err, "Custom Attribute")
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: in.event + "_removed", Entity: in.entity, Details: audit.Details{Remove: "custom attribute " + key, From: a.Value},
		})
	})
	if err != nil {
		return fmt.Errorf("delete custom attribute: %w", err)
	}
	return nil
}
