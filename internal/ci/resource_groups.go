package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// ResourceGroups lists the resource groups of a project, for Reporters and
// above.
func (s *Service) ResourceGroups(ctx context.Context, by actor.Actor, in project.Ref, p db.Paging) (db.Page[*ResourceGroup], error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return db.Page[*ResourceGroup]{}, err
	}
	var where db.Where
	where.And("g.project_id = ?", proj.ID)
	page, err := db.List(ctx, s.DB, db.Query[*ResourceGroup]{
		Columns: resourceGroupColumns, From: "resource_groups g", Where: where, Order: []db.Order{{Name: "g.id"}}, Scan: scanResourceGroup,
		Keys: func(g *ResourceGroup) []any { return []any{g.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list resource groups: %w", err)
	}
	return page, nil
}

// ResourceGroup returns one by its key to Reporters and above; NotFound.
func (s *Service) ResourceGroup(ctx context.Context, by actor.Actor, in project.Ref, key string) (*ResourceGroup, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return nil, err
	}
	return findResourceGroup(ctx, s.DB, proj.ID, key)
}

// SetProcessMode says which job of a resource group comes next, for Developers
// and above. NotFound; Invalid.
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
		if err := db.ExecOne(ctx, tx, `UPDATE resource_groups SET process_mode = ?, updated_at = ? WHERE id = ?`, string(mode), g.UpdatedAt, g.ID); err != nil {
			return err
		}
		if err := s.release(ctx, tx, &Job{ResourceGroupID: &g.ID}); err != nil { // another one may be the next now
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

// UpcomingJobs lists the jobs that wait for their turn in a resource group, for
// Reporters and above; NotFound.
func (s *Service) UpcomingJobs(ctx context.Context, by actor.Actor, in project.Ref, key string, p db.Paging) (db.Page[*Job], error) {
	g, err := s.ResourceGroup(ctx, by, in, key)
	if err != nil {
		return db.Page[*Job]{}, err
	}
	var where db.Where
	where.And("j.resource_group_id = ?", g.ID)
	where.And("j.status IN ('created', 'scheduled', 'waiting_for_resource')")
	page, err := db.List(ctx, s.DB, db.Query[*Job]{
		Columns: jobColumns, From: "jobs j", Where: where, Order: []db.Order{{Name: "j.pipeline_id"}, {Name: "j.id"}},
		Desc: g.Mode == NewestFirst || g.Mode == NewestReadyFirst, Scan: scanJob, Keys: func(j *Job) []any { return []any{j.PipelineID, j.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("upcoming jobs: %w", err)
	}
	return page, s.fillJobs(ctx, by, page.Items)
}

// GroupJob returns the job that has its turn in a resource group, to Reporters
// and above; NotFound when there is none.
func (s *Service) GroupJob(ctx context.Context, by actor.Actor, in project.Ref, key string) (*Job, error) {
	g, err := s.ResourceGroup(ctx, by, in, key)
	if err != nil {
		return nil, err
	}
	j, err := scanJob(s.DB.QueryRowContext(ctx, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.resource_group_id = ? AND (j.status IN ('pending', 'running') OR j.status = 'canceled' AND j.canceling) LIMIT 1`, g.ID))
	if err != nil {
		return nil, notFound(err, "Job")
	}
	return j, s.fillJobs(ctx, by, []*Job{j})
}

const resourceGroupColumns = `g.id, g.project_id, g.key, g.process_mode, g.created_at, g.updated_at`

func scanResourceGroup(s db.Scanner) (*ResourceGroup, error) {
	g := &ResourceGroup{}
	if err := s.Scan(&g.ID, &g.ProjectID, &g.Key, &g.Mode, db.Time(&g.CreatedAt), db.Time(&g.UpdatedAt)); err != nil {
		return nil, err
	}
	return g, nil
}

func findResourceGroup(ctx context.Context, q db.Q, projectID int64, key string) (*ResourceGroup, error) {
	g, err := scanResourceGroup(q.QueryRowContext(ctx, `
		SELECT `+resourceGroupColumns+` FROM resource_groups g WHERE g.project_id = ? AND g.key = ?`, projectID, key))
	return g, notFound(err, "Resource Group")
}
