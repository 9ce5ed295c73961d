package user

import (
	"context"
	"fmt"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Attribute is a custom attribute that administrators set on a user, project or
// group.
type Attribute struct {
	Key   string
	Value string
}

// maxAttribute is the maximum length of a key and of a value in characters. Both
// are columns of one index, and PostgreSQL limits the size of index rows.
const maxAttribute = 255

// Attributes lists the custom attributes of a user by key. Requires an
// administrator. NotFound.
func (s *Service) Attributes(ctx context.Context, by actor.Actor, userID int64) ([]Attribute, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	if _, err := findUser(ctx, s.DB, userID); err != nil {
		return nil, err
	}
	return attributesOf(ctx, s.DB, userID)
}

// Attribute returns a custom attribute. Requires an administrator. NotFound.
func (s *Service) Attribute(ctx context.Context, by actor.Actor, userID int64, key string) (Attribute, error) {
	if err := by.RequireAdmin(); err != nil {
		return Attribute{}, err
	}
	if _, err := findUser(ctx, s.DB, userID); err != nil {
		return Attribute{}, err
	}
	return findAttribute(ctx, s.DB, userID, key)
}

// SetAttribute adds or changes a custom attribute. Requires an administrator.
// NotFound.
func (s *Service) SetAttribute(ctx context.Context, by actor.Actor, userID int64, a Attribute) (Attribute, error) {
	if err := by.RequireAdmin(); err != nil {
		return Attribute{}, err
	}
	if err := a.Check(); err != nil {
		return Attribute{}, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := saveAttribute(ctx, tx, userID, a); err != nil {
			return err
		}
		return s.record(ctx, tx, by, u, "user_custom_attribute_set", audit.Details{Change: "custom attribute " + a.Key, To: a.Value})
	})
	if err != nil {
		return Attribute{}, fmt.Errorf("set attribute of user %d: %w", userID, err)
	}
	return a, nil
}

// DeleteAttribute deletes a custom attribute. Requires an administrator. NotFound.
func (s *Service) DeleteAttribute(ctx context.Context, by actor.Actor, userID int64, key string) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := findUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		a, err := findAttribute(ctx, tx, userID, key)
		if err != nil {
			return err
		}
		if err := deleteAttribute(ctx, tx, userID, key); err != nil {
			return db.NotFound(err, "Custom Attribute")
		}
		return s.record(ctx, tx, by, u, "user_custom_attribute_removed", audit.Details{Remove: "custom attribute " + key, From: a.Value})
	})
	if err != nil {
		return fmt.Errorf("delete attribute of user %d: %w", userID, err)
	}
	return nil
}

// Check validates the key and the value. Invalid.
func (a Attribute) Check() error {
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

func attributesOf(ctx context.Context, q db.Q, userID int64) ([]Attribute, error) {
	of, err := attributesOfAll(ctx, q, []int64{userID})
	if err != nil {
		return nil, err
	}
	return of[userID], nil
}
