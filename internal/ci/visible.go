package ci

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

// visiblePipeline returns a pipeline if its ref is visible to an actor who can
// see the pipelines of the project. NotFound.
func (s *Service) visiblePipeline(ctx context.Context, by actor.Actor, p *project.Project, id int64) (*Pipeline, error) {
	l, err := findPipeline(ctx, s.DB, p.ID, id)
	if err == nil && !repo.RefVisible(by, p, l.Ref) {
		return nil, errs.NotFound("Pipeline")
	}
	return l, err
}

// visibleJob returns a job if its ref is visible to an actor who can see the
// pipelines of the project. NotFound.
func (s *Service) visibleJob(ctx context.Context, by actor.Actor, p *project.Project, id int64) (*Job, error) {
	j, err := findJob(ctx, s.DB, p.ID, id)
	if err == nil && !repo.RefVisible(by, p, j.Ref) {
		return nil, errs.NotFound("Job")
	}
	return j, err
}
