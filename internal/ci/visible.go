package ci

import (
	"context"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

// Pipelines of merge requests have the refs of these, refs/merge-requests/…, and
// their jobs, children and deployments too. Those who see the pipelines of a
// project but not its merge requests do not see them: they would show commits
// that are hidden in the repository.

// sees reports whether an actor, who sees pipelines of the project, sees those of
// a ref.
func sees(by actor.Actor, p *project.Project, ref string) bool {
	return !strings.HasPrefix(ref, repo.MergeRefs) || p.MayReadMergeRefs(by)
}

// visiblePipeline returns a pipeline to an actor who sees pipelines of the
// project; NotFound.
func (s *Service) visiblePipeline(ctx context.Context, by actor.Actor, p *project.Project, id int64) (*Pipeline, error) {
	l, err := findPipeline(ctx, s.DB, p.ID, id)
	if err == nil && !sees(by, p, l.Ref) {
		return nil, errs.NotFound("Pipeline")
	}
	return l, err
}

// visibleJob returns a job to an actor who sees pipelines of the project; NotFound.
func (s *Service) visibleJob(ctx context.Context, by actor.Actor, p *project.Project, id int64) (*Job, error) {
	j, err := findJob(ctx, s.DB, p.ID, id)
	if err == nil && !sees(by, p, j.Ref) {
		return nil, errs.NotFound("Job")
	}
	return j, err
}
