package deployment

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

// ResourceGroup is a set of jobs of a project, across pipelines, of which only one runs
// at a time.
type ResourceGroup struct {
	ID        int64
	ProjectID int64
	Key       string
	Mode      ProcessMode
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ProcessMode decides which waiting job of a resource group is next.
type ProcessMode string

// The modes. OldestFirst and NewestFirst also wait for jobs that are not ready
// yet.
const (
	Unordered        ProcessMode = "unordered"
	OldestFirst      ProcessMode = "oldest_first"
	NewestFirst      ProcessMode = "newest_first"
	NewestReadyFirst ProcessMode = "newest_ready_first"
)

// Valid reports whether the mode exists.
func (m ProcessMode) Valid() bool {
	switch m {
	case Unordered, OldestFirst, NewestFirst, NewestReadyFirst:
		return true
	}
	return false
}

// ResourceGroups lists the resource groups of a project, for Reporters and
// above.
func (s *Service) ResourceGroups(ctx context.Context, by actor.Actor, in project.Ref, p db.Paging) (db.Page[*ResourceGroup], error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return db.Page[*ResourceGroup]{}, err
	}
	page, err := listResourceGroups(ctx, s.DB, proj.ID, p)
	if err != nil {
		return page, fmt.Errorf("list resource groups: %w", err)
	}
	return page, nil
}

// ResourceGroup returns a resource group by its key, for Reporters and above;
// NotFound.
func (s *Service) ResourceGroup(ctx context.Context, by actor.Actor, in project.Ref, key string) (*ResourceGroup, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return nil, err
	}
	return findResourceGroup(ctx, s.DB, proj.ID, key)
}

// SetProcessMode changes the process mode of a resource group, for Developers and
// above. NotFound; Invalid.
func (s *Service) SetProcessMode(ctx context.Context, by actor.Actor, in project.Ref, key string, mode ProcessMode) (*ResourceGroup, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	if !mode.Valid() {
		return nil, errs.InvalidField("process_mode", "is not included in the list")
	}
	var g *ResourceGroup
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if g, err = findResourceGroup(ctx, tx, proj.ID, key); err != nil {
			return err
		}
		was := g.Mode
		g.Mode, g.UpdatedAt = mode, s.Now()
		if err := saveProcessMode(ctx, tx, g); err != nil {
			return err
		}
		if err := s.Events.ModeChanged.Publish(ctx, tx, g.ID); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "resource_group_updated", Entity: proj.Entity(), Target: audit.Target{Type: "Ci::ResourceGroup", ID: g.ID, Details: key},
			Details: audit.Details{Change: "process_mode", From: string(was), To: string(mode)},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("change resource group: %w", err)
	}
	return g, nil
}
