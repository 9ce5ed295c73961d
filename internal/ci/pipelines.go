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
	"svc/internal/repo"
	"svc/internal/user"
)

// PipelineFilter selects pipelines. The zero value selects all except child
// pipelines.
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

// Pipelines lists the pipelines of a project, for users who can see them.
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

// Pipeline returns a pipeline to users who can see it. NotFound.
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

// LatestPipeline returns the newest pipeline of the head of a ref to users who
// can see it. An empty ref is the default branch. NotFound.
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
	if errs.Is(err, errs.KindNotFound) || err == nil && !repo.RefVisible(by, proj, head.Name) {
		return nil, nil, errs.NotFound("Pipeline")
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := findLatestPipeline(ctx, s.DB, proj.ID, head.Name, head.Tag, string(head.Commit))
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// PipelineVariables returns the variables that were given to a pipeline, for
// the user who started it and for Maintainers. NotFound; Forbidden.
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

// RenamePipeline changes the name of a pipeline, for Developers and above who may
// run pipelines on its ref. NotFound; Forbidden; Invalid.
func (s *Service) RenamePipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64, name string) (*project.Project, *Pipeline, error) {
	proj, err := s.control(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	p, err := findPipeline(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, nil, err
	}
	if err := s.requireRun(ctx, by, proj, p.Ref, p.Tag); err != nil {
		return nil, nil, err
	}
	if len([]rune(name)) > 255 {
		return nil, nil, errs.InvalidField("name", "is too long (maximum is 255 characters)")
	}
	if err := renamePipeline(ctx, s.DB, proj.ID, id, name, s.Now()); err != nil {
		return nil, nil, err
	}
	if p, err = findPipeline(ctx, s.DB, proj.ID, id); err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// DeletePipeline deletes a pipeline with its jobs, their logs and artifacts,
// and its child pipelines, for Owners. NotFound; Precondition if it was changed
// after unmodifiedSince.
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

// removePipeline deletes a pipeline, after its child pipelines.
func (s *Service) removePipeline(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	children, err := findChildren(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := s.removePipeline(ctx, tx, c); err != nil {
			return err
		}
	}
	jobs, err := findJobIDs(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	if len(jobs) > 0 {
		if err := s.Artifacts.Erase(ctx, tx, jobs); err != nil {
			return err
		}
	}
	groups, err := findHeldGroups(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	for _, id := range groups {
		if err := s.ResourceGroupChanged(ctx, tx, id); err != nil {
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
	return deletePipeline(ctx, tx, p.ID)
}

// fillPipelines reads the users of pipelines, and which passed with warnings.
func (s *Service) fillPipelines(ctx context.Context, list []*Pipeline) error {
	if err := s.fillUsers(ctx, list); err != nil {
		return err
	}
	return s.fillWarnings(ctx, list)
}

// fillUsers reads the users of pipelines.
func (s *Service) fillUsers(ctx context.Context, list []*Pipeline) error {
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

// fillWarnings reads which pipelines passed with warnings.
func (s *Service) fillWarnings(ctx context.Context, list []*Pipeline) error {
	passed := map[int64]*Pipeline{}
	var ids []int64
	for _, p := range list {
		if p.Status == flow.Success && passed[p.ID] == nil {
			passed[p.ID], ids = p, append(ids, p.ID)
		}
	}
	warned, err := findWarned(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("warnings of pipelines: %w", err)
	}
	for _, id := range warned {
		passed[id].Warnings = true
	}
	return nil
}
