package pushrule

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

// GroupRule is the push rule of a group. New projects of the group and its subgroups get a
// copy of it; existing projects are not affected.
type GroupRule struct {
	ID      int64
	GroupID int64
	Rules
	CreatedAt time.Time
}

// GroupRule returns the push rule of a group, for Owners. NotFound.
func (s *Service) GroupRule(ctx context.Context, by actor.Actor, ref project.Ref) (*GroupRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	return s.findOfGroup(ctx, s.DB, g.ID)
}

func (s *Service) findOfGroup(ctx context.Context, q db.Q, groupID int64) (*GroupRule, error) {
	r, err := findGroupRule(ctx, q, groupID)
	if err != nil {
		return nil, fmt.Errorf("find push rule of group: %w", db.NotFound(err, "Push Rule"))
	}
	return r, nil
}

// CreateGroupRule creates the push rule of a group, for Owners. NotFound,
// Forbidden; Unprocessable if there is one; InvalidField.
func (s *Service) CreateGroupRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*GroupRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	made := &GroupRule{GroupID: g.ID, CreatedAt: s.Now()}
	if err := c.apply(&made.Rules); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertGroupRule(ctx, tx, made); err != nil {
			return err
		}
		return s.recordGroupRule(ctx, tx, by, g, made, "push_rule_created", audit.Details{Add: "push_rule"})
	})
	if db.IsUnique(err, "group_push_rules_namespace_id") {
		return nil, errs.Unprocessable("Group push rule exists, try updating")
	}
	if err != nil {
		return nil, fmt.Errorf("create push rule of group: %w", err)
	}
	return made, nil
}

// ChangeGroupRule changes the push rule of a group, for Owners. NotFound,
// Forbidden, InvalidField.
func (s *Service) ChangeGroupRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*GroupRule, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	var r *GroupRule
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", g.ID); err != nil {
			return err
		}
		if r, err = s.findOfGroup(ctx, tx, g.ID); err != nil {
			return err
		}
		if err := c.apply(&r.Rules); err != nil {
			return err
		}
		if err := saveGroupRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordGroupRule(ctx, tx, by, g, r, "push_rule_updated", audit.Details{Change: "push_rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("change push rule of group: %w", err)
	}
	return r, nil
}

// SaveGroupRule changes the push rule of a group, or creates it, for Owners.
// NotFound, Forbidden, InvalidField.
func (s *Service) SaveGroupRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) error {
	_, err := s.ChangeGroupRule(ctx, by, ref, c)
	if errs.Is(err, errs.KindNotFound) { // the group, or its push rule
		_, err = s.CreateGroupRule(ctx, by, ref, c)
	}
	return err
}

// DeleteGroupRule deletes the push rule of a group, for Owners. Projects keep
// their copies. NotFound, Forbidden.
func (s *Service) DeleteGroupRule(ctx context.Context, by actor.Actor, ref project.Ref) error {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := s.findOfGroup(ctx, tx, g.ID)
		if err != nil {
			return err
		}
		if err := deleteGroupRule(ctx, tx, r.ID); err != nil {
			return db.NotFound(err, "Push Rule")
		}
		return s.recordGroupRule(ctx, tx, by, g, r, "push_rule_removed", audit.Details{Remove: "push_rule"})
	})
	if err != nil {
		return fmt.Errorf("delete push rule of group: %w", err)
	}
	return nil
}

func (s *Service) recordGroupRule(ctx context.Context, tx *db.Tx, by actor.Actor, g *project.Namespace, r *GroupRule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: g.Entity(), Target: audit.Target{Type: "GroupPushRule", ID: r.ID, Details: g.FullPath}, Details: d,
	})
}

// ProjectChanged copies the push rule of the nearest group that has one to a new
// project.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectCreated {
		return nil
	}
	if err := inheritRule(ctx, tx, e.ProjectID, s.Now()); err != nil {
		return fmt.Errorf("push rule of new project: %w", err)
	}
	return nil
}
