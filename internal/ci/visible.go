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

// VisiblePipelines returns those of the pipelines of projects that an actor can
// see, by ID. The projects are read for the actor.
func (s *Service) VisiblePipelines(ctx context.Context, by actor.Actor, projects []*project.Project, ids []int64) (map[int64]*Pipeline, error) {
	open := make(map[int64]*project.Project, len(projects))
	for _, p := range projects {
		if p.MayRead(by, project.BuildsPart) {
			open[p.ID] = p
		}
	}
	found := make(map[int64]*Pipeline, len(ids))
	if len(open) == 0 {
		return found, nil
	}
	list, err := findPipelines(ctx, s.DB, ids)
	for _, l := range list {
		if p := open[l.ProjectID]; p != nil && repo.RefVisible(by, p, l.Ref) {
			found[l.ID] = l
		}
	}
	return found, err
}
