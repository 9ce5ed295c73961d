package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// Attribute is a custom attribute of a project or group.
type Attribute = user.Attribute

const maxAttributes = 1000 // per project or group

// noted is a project or group with custom attributes.
type noted struct {
	attributeTable
	id     int64
	entity audit.Entity
}

// attributed returns a project or group. Requires an administrator. Forbidden;
// NotFound.
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

// Attributes lists the custom attributes of a project or group by key. Requires an
// administrator. Forbidden; NotFound.
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

// AttributesOf returns the custom attributes of projects or groups by ID. It
// returns none if the actor is not an administrator.
func (s *Service) AttributesOf(ctx context.Context, by actor.Actor, group bool, ids []int64) (map[int64][]Attribute, error) {
	if !by.Admin {
		return nil, nil
	}
	table := projectAttributes
	if group {
		table = groupAttributes
	}
	found := map[int64][]Attribute{}
	for part := range slices.Chunk(ids, 500) {
		if err := readAttributes(ctx, s.DB, table, part, found); err != nil {
			return nil, fmt.Errorf("read custom attributes: %w", err)
		}
	}
	return found, nil
}

// Attribute returns a custom attribute. Requires an administrator. Forbidden;
// NotFound.
func (s *Service) Attribute(ctx context.Context, by actor.Actor, at Place, key string) (Attribute, error) {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return Attribute{}, err
	}
	a, err := findAttribute(ctx, s.DB, in, key)
	return a, db.NotFound(err, "Custom Attribute")
}

// SetAttribute adds or changes a custom attribute. Requires an administrator.
// Forbidden; NotFound; Invalid.
func (s *Service) SetAttribute(ctx context.Context, by actor.Actor, at Place, a Attribute) (Attribute, error) {
	in, err := s.attributed(ctx, by, at)
	if err != nil {
		return Attribute{}, err
	}
	if err := a.Check(); err != nil {
		return Attribute{}, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := countOtherAttributes(ctx, tx, in, a.Key)
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

// DeleteAttribute deletes a custom attribute. Requires an administrator.
// Forbidden; NotFound.
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
