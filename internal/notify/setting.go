package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// Setting is the notification setting of a user: global, or for one project or
// group.
type Setting struct {
	Level Level
	// Only in the global setting.
	Email       string // notification email; empty means the primary email
	OwnActivity bool   // notify users about what they do themselves

	chosen map[EventType]bool // for the level Custom
}

// Chosen reports whether the user is notified of an event type at the level
// Custom.
func (t Setting) Chosen(e EventType) bool {
	if said, ok := t.chosen[e]; ok {
		return said
	}
	return onByDefault(e)
}

// Change has the changes of a setting; nil keeps a value. Event types are stored at
// every level, but only apply at the level Custom.
type Change struct {
	Level  *Level
	Events map[EventType]bool
	// Only in the global setting. An empty Email selects the primary email.
	Email       *string
	OwnActivity *bool
}

func (t *Setting) apply(c Change) error {
	if c.Level != nil {
		if !slices.Contains(Levels(), *c.Level) {
			return errs.Refused("'%s' is not a valid level", *c.Level)
		}
		t.Level = *c.Level
	}
	for e, want := range c.Events {
		if !slices.Contains(EventTypes(), e) {
			return errs.Refused("'%s' is not a valid event", e)
		}
		if t.chosen == nil {
			t.chosen = map[EventType]bool{}
		}
		t.chosen[e] = want
	}
	if c.OwnActivity != nil {
		t.OwnActivity = *c.OwnActivity
	}
	return nil
}

// scope is the project or group that a setting is for. If both are nil, it is the
// global setting.
type scope struct{ project, group *int64 }

// Everywhere returns the actor's global setting.
func (s *Service) Everywhere(ctx context.Context, by actor.Actor) (Setting, error) {
	if err := by.RequireUser(); err != nil {
		return Setting{}, err
	}
	t, err := s.setting(ctx, s.DB, by.ID, scope{})
	if err != nil {
		return Setting{}, err
	}
	u, err := s.Users.Self(ctx, by)
	if err != nil {
		return Setting{}, err
	}
	t.Email, err = s.notificationEmail(ctx, u, t.Email)
	return t, err
}

// notificationEmail returns the address for emails to a user: the chosen email if it
// still belongs to the user and is confirmed, else the primary email.
func (s *Service) notificationEmail(ctx context.Context, u *user.User, chosen string) (string, error) {
	if chosen == "" {
		return u.Email, nil
	}
	ok, err := s.Users.HasConfirmed(ctx, u.ID, chosen)
	if err != nil {
		return "", fmt.Errorf("address of user %d: %w", u.ID, err)
	}
	if !ok {
		return u.Email, nil
	}
	return chosen, nil
}

func (s *Service) setting(ctx context.Context, q db.Q, userID int64, at scope) (Setting, error) {
	t, err := findSetting(ctx, q, userID, at)
	if err != nil {
		return Setting{}, fmt.Errorf("notification setting of user %d: %w", userID, err)
	}
	if t != nil {
		return *t, nil
	}
	if at == (scope{}) {
		return Setting{Level: Participating}, nil
	}
	return Setting{Level: Global}, nil
}

// SetEverywhere changes the actor's global setting. It returns Invalid for an
// unknown level, and for an address that is not one of the user's confirmed emails.
func (s *Service) SetEverywhere(ctx context.Context, by actor.Actor, c Change) (Setting, error) {
	if err := by.RequireUser(); err != nil {
		return Setting{}, err
	}
	if c.Email != nil && *c.Email != "" {
		ok, err := s.Users.HasConfirmed(ctx, by.ID, *c.Email)
		if err != nil {
			return Setting{}, fmt.Errorf("address of user %d: %w", by.ID, err)
		}
		if !ok {
			return Setting{}, errs.InvalidField("notification_email", "must be an email you have verified")
		}
	}
	if _, err := s.set(ctx, by, scope{}, c); err != nil {
		return Setting{}, err
	}
	return s.Everywhere(ctx, by)
}

// At returns the actor's setting for a project or group, or NotFound without access.
func (s *Service) At(ctx context.Context, by actor.Actor, at project.Place) (Setting, error) {
	in, err := s.scope(ctx, by, at)
	if err != nil {
		return Setting{}, err
	}
	return s.setting(ctx, s.DB, by.ID, in)
}

// LevelAt returns the level of the setting that At returns.
func (s *Service) LevelAt(ctx context.Context, by actor.Actor, at project.Place) (Level, error) {
	t, err := s.At(ctx, by, at)
	return t.Level, err
}

// SetAt changes the actor's setting for a project or group. It returns NotFound
// without access, and Invalid for an unknown level.
func (s *Service) SetAt(ctx context.Context, by actor.Actor, at project.Place, c Change) (Setting, error) {
	in, err := s.scope(ctx, by, at)
	if err != nil {
		return Setting{}, err
	}
	c.Email, c.OwnActivity = nil, nil
	return s.set(ctx, by, in, c)
}

func (s *Service) scope(ctx context.Context, by actor.Actor, at project.Place) (scope, error) {
	if err := by.RequireUser(); err != nil {
		return scope{}, err
	}
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.NoAccess)
		if err != nil {
			return scope{}, err
		}
		return scope{group: &g.ID}, nil
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.NoAccess)
	if err != nil {
		return scope{}, err
	}
	return scope{project: &p.ID}, nil
}

func (s *Service) set(ctx context.Context, by actor.Actor, at scope, c Change) (Setting, error) {
	var t Setting
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		// Without the lock, two concurrent changes could both insert a row.
		if err := tx.Lock(ctx, "users", by.ID); err != nil {
			return err
		}
		if t, err = s.setting(ctx, tx, by.ID, at); err != nil {
			return err
		}
		if err := t.apply(c); err != nil {
			return err
		}
		if c.Email != nil {
			t.Email = *c.Email
		}
		return saveSetting(ctx, tx, by.ID, at, t)
	})
	if err != nil {
		return Setting{}, fmt.Errorf("set notifications of user %d: %w", by.ID, err)
	}
	return t, nil
}

// PlaceSetting is a setting with the project or group that it is for.
type PlaceSetting struct {
	Setting
	Group *project.Namespace // one of these
	Place *project.Project
}

// Places returns the actor's settings for projects and groups that they can still
// see, ordered by path. The list is not paginated, because users create each entry
// themselves.
func (s *Service) Places(ctx context.Context, by actor.Actor) ([]PlaceSetting, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	rows, err := findSettings(ctx, s.DB, by.ID)
	if err != nil {
		return nil, fmt.Errorf("notification settings of user %d: %w", by.ID, err)
	}
	var list []PlaceSetting
	for _, r := range rows {
		one := PlaceSetting{Setting: r.setting}
		switch {
		case r.at.group != nil:
			one.Group, err = s.Projects.RequireGroup(ctx, by, project.RefTo(*r.at.group), project.NoAccess)
		default:
			one.Place, err = s.Projects.Require(ctx, by, project.RefTo(*r.at.project), project.NoAccess)
		}
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// LevelSet contains the levels of an actor in projects and groups.
type LevelSet struct{ projects, groups map[int64]Level }

// Project returns the level in a project.
func (l LevelSet) Project(id int64) Level { return cmp.Or(l.projects[id], Global) }

// Group returns the level in a group.
func (l LevelSet) Group(id int64) Level { return cmp.Or(l.groups[id], Global) }

// LevelsOf returns the levels of the actor in projects and in their groups. The
// caller must check that the actor can see the projects.
func (s *Service) LevelsOf(ctx context.Context, by actor.Actor, list ...*project.Project) (LevelSet, error) {
	if by.Anonymous() || len(list) == 0 {
		return LevelSet{}, nil
	}
	var projects, groups []int64
	for _, p := range list {
		projects, groups = append(projects, p.ID), append(groups, p.NamespaceID)
	}
	found, err := findLevels(ctx, s.DB, by.ID, projects, groups)
	if err != nil {
		return LevelSet{}, fmt.Errorf("notification levels of user %d: %w", by.ID, err)
	}
	return found, nil
}
