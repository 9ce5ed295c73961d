package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// PipelineFilter selects pipelines; zero values choose all but children of
// others.
type PipelineFilter struct {
	Scope         string // running, pending, finished, branches or tags
	Status        flow.Status
	Source        Source
	Ref           string
	SHA           string
	Name          string
	Username      string
	YAMLErrors    *bool
	CreatedAfter  *time.Time
	CreatedBefore *time.Time
	UpdatedAfter  *time.Time
	UpdatedBefore *time.Time
	OrderBy       string // id, status, ref, updated_at or user_id
	Asc           bool
}

// Pipelines lists the pipelines of a project, for those who see them.
func (s *Service) Pipelines(ctx context.Context, by actor.Actor, in project.Ref, f PipelineFilter, p db.Paging) (*project.Project, db.Page[*Pipeline], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, db.Page[*Pipeline]{}, err
	}
	var author *user.User
	if f.Username != "" {
		author, err = s.Users.Find(ctx, actor.System(), user.Ref(f.Username))
		if errs.Is(err, errs.KindNotFound) {
			return proj, db.Page[*Pipeline]{Items: []*Pipeline{}}, nil
		}
		if err != nil {
			return nil, db.Page[*Pipeline]{}, err
		}
	}
	page, err := listPipelines(ctx, s.DB, by, proj, f, author, p)
	if err != nil {
		return nil, page, fmt.Errorf("list pipelines: %w", err)
	}
	return proj, page, nil
}

// Pipeline returns one pipeline to those who see it; NotFound.
func (s *Service) Pipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*project.Project, *Pipeline, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.visiblePipeline(ctx, by, proj, id)
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// LatestPipeline returns the newest pipeline of the head of a ref, the default
// branch when it is empty, to those who see it; NotFound.
func (s *Service) LatestPipeline(ctx context.Context, by actor.Actor, in project.Ref, ref string) (*project.Project, *Pipeline, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	if ref == "" {
		ref = proj.DefaultBranch
	}
	src, err := s.Repos.SourceOf(actor.System(), proj)
	if err != nil {
		return nil, nil, err
	}
	head, err := src.Find(ctx, ref)
	if errs.Is(err, errs.KindNotFound) || err == nil && !sees(by, proj, head.Name) {
		return nil, nil, errs.NotFound("Pipeline")
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := scanPipeline(s.DB.QueryRowContext(ctx, `
		SELECT `+pipelineColumns+` FROM pipelines p WHERE p.project_id = ? AND p.ref = ? AND p.tag = ? AND p.sha = ? AND NOT p.child ORDER BY p.id DESC LIMIT 1`,
		proj.ID, head.Name, head.Tag, string(head.Commit)))
	if err != nil {
		return nil, nil, db.NotFound(err, "Pipeline")
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// PipelineVariables returns the variables that a pipeline was made with, to the
// one who made it and to Maintainers. NotFound; Forbidden.
func (s *Service) PipelineVariables(ctx context.Context, by actor.Actor, in project.Ref, id int64) ([]variable.Given, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Developer)
	if err != nil {
		return nil, err
	}
	p, err := findPipeline(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	if err := ownOrMaintain(by, proj, p.UserID); err != nil {
		return nil, err
	}
	return s.pipelineVariables(p)
}

// RenamePipeline gives a pipeline another name, for Developers and above.
// NotFound; Invalid.
func (s *Service) RenamePipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64, name string) (*project.Project, *Pipeline, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	if len([]rune(name)) > 255 {
		return nil, nil, errs.InvalidField("name", "is too long (maximum is 255 characters)")
	}
	err = db.ExecOne(ctx, s.DB, `UPDATE pipelines SET name = ?, updated_at = ? WHERE id = ? AND project_id = ?`, name, s.Now(), id, proj.ID)
	if err != nil {
		return nil, nil, db.NotFound(err, "Pipeline")
	}
	p, err := findPipeline(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// DeletePipeline removes a pipeline with its jobs, their logs and artifacts,
// and its children; for Owners. NotFound; Precondition when it changed since
// the given time.
func (s *Service) DeletePipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64, unmodifiedSince *time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Owner)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		p, err := findPipeline(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(p.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := s.removePipeline(ctx, tx, p); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "destroy_pipeline", Entity: proj.Entity(), Target: audit.Target{Type: "Ci::Pipeline", ID: id, Details: fmt.Sprint(id)},
			Details: audit.Details{Remove: "pipeline"},
		})
	})
	if err != nil {
		return fmt.Errorf("delete pipeline %d: %w", id, err)
	}
	return nil
}

// removePipeline removes a pipeline, and its children before it.
func (s *Service) removePipeline(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	children, err := db.All(ctx, tx, scanPipeline, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.parent_id = ? AND p.child`, p.ID)
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := s.removePipeline(ctx, tx, c); err != nil {
			return err
		}
	}
	jobs, err := db.All(ctx, tx, db.Value[int64], `SELECT id FROM jobs WHERE pipeline_id = ?`, p.ID)
	if err != nil {
		return err
	}
	if len(jobs) > 0 {
		if err := s.Artifacts.Erase(ctx, tx, jobs); err != nil {
			return err
		}
	}
	groups, err := db.All(ctx, tx, db.Value[int64], `
		SELECT DISTINCT resource_group_id FROM jobs WHERE pipeline_id = ? AND resource_group_id IS NOT NULL AND status IN ('pending', 'running')`, p.ID)
	if err != nil {
		return err
	}
	for _, id := range groups {
		if err := s.release(ctx, tx, &Job{ResourceGroupID: &id}); err != nil {
			return err
		}
	}
	if p.ParentJobID != nil && !p.Status.Done() { // a trigger job may wait for its end
		if err := s.Queue.Add(ctx, tx, mirrorWork{JobID: *p.ParentJobID, Gone: true}); err != nil {
			return err
		}
	}
	if err := s.changed(ctx, tx, p); err != nil {
		return err
	}
	return db.ExecOne(ctx, tx, `DELETE FROM pipelines WHERE id = ?`, p.ID)
}

// fillPipelines reads what pipelines show of others.
func (s *Service) fillPipelines(ctx context.Context, list []*Pipeline) error {
	var userIDs []int64
	for _, p := range list {
		if p.UserID != nil {
			userIDs = append(userIDs, *p.UserID)
		}
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return fmt.Errorf("users of pipelines: %w", err)
	}
	for _, p := range list {
		if p.UserID != nil {
			p.User = users[*p.UserID]
		}
	}
	return nil
}

func listPipelines(ctx context.Context, d *db.DB, by actor.Actor, in *project.Project, f PipelineFilter, author *user.User, pg db.Paging) (db.Page[*Pipeline], error) {
	var where db.Where
	where.And("p.project_id = ?", in.ID)
	leaveOut(&where, by, in, "p")
	if f.Source == FromParent {
		where.And("p.child")
	} else {
		where.And("NOT p.child")
	}
	switch f.Scope {
	case "running":
		where.And("p.status = 'running'")
	case "pending":
		where.And("p.status = 'pending'")
	case "finished":
		where.And("p.status IN ('success', 'failed', 'canceled')")
	case "branches":
		where.And("p.id IN (SELECT max(b.id) FROM pipelines b WHERE b.project_id = ? AND NOT b.tag AND NOT b.child GROUP BY b.ref)", in.ID)
	case "tags":
		where.And("p.id IN (SELECT max(b.id) FROM pipelines b WHERE b.project_id = ? AND b.tag AND NOT b.child GROUP BY b.ref)", in.ID)
	}
	for _, c := range []struct{ column, value string }{
		{"p.status", string(f.Status)}, {"p.source", string(f.Source)}, {"p.ref", f.Ref}, {"p.sha", f.SHA}, {"p.name", f.Name},
	} {
		if c.value != "" {
			where.And(c.column+" = ?", c.value)
		}
	}
	if author != nil {
		where.And("p.user_id = ?", author.ID)
	}
	if f.YAMLErrors != nil {
		where.And(map[bool]string{true: "p.yaml_errors <> ''", false: "p.yaml_errors = ''"}[*f.YAMLErrors])
	}
	where.Time("p.created_at > ?", f.CreatedAfter)
	where.Time("p.created_at < ?", f.CreatedBefore)
	where.Time("p.updated_at > ?", f.UpdatedAfter)
	where.Time("p.updated_at < ?", f.UpdatedBefore)
	order := []db.Order{{Name: "p.id"}}
	switch f.OrderBy {
	case "status", "ref":
		order = []db.Order{{Name: "p." + f.OrderBy, Text: true}, {Name: "p.id"}}
	case "updated_at", "user_id":
		order = []db.Order{{Name: "p." + f.OrderBy}, {Name: "p.id"}}
	}
	return db.List(ctx, d, db.Query[*Pipeline]{
		Columns: pipelineColumns, From: "pipelines p", Where: where, Order: order, Desc: !f.Asc, Scan: scanPipeline,
		Keys: func(p *Pipeline) []any { return []any{p.ID} },
	}, pg)
}
