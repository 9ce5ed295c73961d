package repo

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// GroupPushRule is the push rule of a group. New projects of the group and of
// those below start with a copy of it; projects that exist keep what they have.
type GroupPushRule struct {
	ID      int64
	GroupID int64
	PushRules
	CreatedAt time.Time
}

// GroupPushRule returns the push rule of a group, for Owners. NotFound.
func (s *Service) GroupPushRule(ctx context.Context, by actor.Actor, ref project.Ref) (*GroupPushRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	return s.groupPushRule(ctx, s.DB, g.ID)
}

func (s *Service) groupPushRule(ctx context.Context, q db.Q, groupID int64) (*GroupPushRule, error) {
	r, err := findGroupPushRule(ctx, q, groupID)
	if err != nil {
		return nil, fmt.Errorf("find push rule of group: %w", db.NotFound(err, "Push Rule"))
	}
	return r, nil
}

// CreateGroupPushRule creates the push rule of a group, for Owners. NotFound,
// Forbidden; Unprocessable if there is one; InvalidField.
func (s *Service) CreateGroupPushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) (*GroupPushRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	made := &GroupPushRule{GroupID: g.ID, CreatedAt: s.Now()}
	if err := c.apply(&made.PushRules); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertGroupPushRule(ctx, tx, made); err != nil {
			return err
		}
		return s.recordGroupPushRule(ctx, tx, by, g, made, "push_rule_created", audit.Details{Add: "push_rule"})
	})
	if db.IsUnique(err, "group_push_rules_namespace_id") {
		return nil, errs.Unprocessable("Group push rule exists, try updating")
	}
	if err != nil {
		return nil, fmt.Errorf("create push rule of group: %w", err)
	}
	return made, nil
}

// ChangeGroupPushRule changes the push rule of a group, for Owners. NotFound,
// Forbidden, InvalidField.
func (s *Service) ChangeGroupPushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) (*GroupPushRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	var r *GroupPushRule
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", g.ID); err != nil {
			return err
		}
		if r, err = s.groupPushRule(ctx, tx, g.ID); err != nil {
			return err
		}
		if err := c.apply(&r.PushRules); err != nil {
			return err
		}
		if err := saveGroupPushRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordGroupPushRule(ctx, tx, by, g, r, "push_rule_updated", audit.Details{Change: "push_rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("change push rule of group: %w", err)
	}
	return r, nil
}

// SaveGroupPushRule changes the push rule of a group, or creates it, for Owners.
// NotFound, Forbidden, InvalidField.
func (s *Service) SaveGroupPushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) error {
	_, err := s.ChangeGroupPushRule(ctx, by, ref, c)
	if errs.Is(err, errs.KindNotFound) { // the group, or its push rule
		_, err = s.CreateGroupPushRule(ctx, by, ref, c)
	}
	return err
}

// DeleteGroupPushRule deletes the push rule of a group, for Owners. Projects keep
// their copies. NotFound, Forbidden.
func (s *Service) DeleteGroupPushRule(ctx context.Context, by actor.Actor, ref project.Ref) error {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := s.groupPushRule(ctx, tx, g.ID)
		if err != nil {
			return err
		}
		if err := deleteGroupPushRule(ctx, tx, r.ID); err != nil {
			return db.NotFound(err, "Push Rule")
		}
		return s.recordGroupPushRule(ctx, tx, by, g, r, "push_rule_removed", audit.Details{Remove: "push_rule"})
	})
	if err != nil {
		return fmt.Errorf("delete push rule of group: %w", err)
	}
	return nil
}

func (s *Service) recordGroupPushRule(ctx context.Context, tx *db.Tx, by actor.Actor, g *project.Namespace, r *GroupPushRule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: g.Entity(), Target: audit.Target{Type: "GroupPushRule", ID: r.ID, Details: g.FullPath}, Details: d,
	})
}

// ProjectChanged gives a new project a copy of the push rule of the nearest group
// above it that has one.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectCreated {
		return nil
	}
	if err := inheritPushRule(ctx, tx, e.ProjectID, s.Now()); err != nil {
		return fmt.Errorf("push rule of new project: %w", err)
	}
	return nil
}
