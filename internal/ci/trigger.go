package ci

import (
	"context"

	"svc/internal/ci/trigger"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/project"
)

// TriggerPipeline creates a pipeline for a caller with a trigger token of the
// project, as its owner, or with a job token that the project accepts. NotFound
// for other tokens; Invalid.
func (s *Service) TriggerPipeline(ctx context.Context, in project.Ref, token, ip string, n NewPipeline) (*project.Project, *Pipeline, error) {
	if s.IsJobToken(token) {
		return s.triggerByJob(ctx, in, token, ip, n)
	}
	t, err := s.Triggers.ByToken(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	by, err := s.Users.As(ctx, t.OwnerID)
	if err != nil {
		return nil, nil, err
	}
	limit.Identify(ctx, by.Account())
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.NoAccess)
	if err != nil {
		return nil, nil, err
	}
	if proj.ID != t.ProjectID {
		return nil, nil, errs.NotFound("")
	}
	m, err := s.propose(ctx, by, proj, n, FromTrigger)
	if err != nil {
		return nil, nil, err
	}
	m.pipeline.facts.TriggerToken = trigger.ShortToken(token)
	p, err := s.create(ctx, m, false)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Triggers.Used(ctx, t.ID); err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// triggerByJob is TriggerPipeline with the token of a running job, as the user
// of the job.
func (s *Service) triggerByJob(ctx context.Context, in project.Ref, token, ip string, n NewPipeline) (*project.Project, *Pipeline, error) {
	by, err := s.JobActor(ctx, token, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		return nil, nil, errs.NotFound("").Because(err)
	}
	if err != nil {
		return nil, nil, err
	}
	limit.Identify(ctx, by.Account())
	as, proj, err := s.JobOpens(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	if as.Anonymous() { // a public project that does not accept the token
		return nil, nil, errs.NotFound("Project")
	}
	if err := proj.Change(as, project.BuildsPart, project.Developer); err != nil {
		return nil, nil, err
	}
	j, err := findAnyJob(ctx, s.DB, by.Job.ID)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.propose(ctx, as, proj, n, FromPipeline)
	if err != nil {
		return nil, nil, err
	}
	m.pipeline.facts.Upstream = &upstream{ProjectID: j.ProjectID, PipelineID: j.PipelineID, JobID: j.ID}
	p, err := s.create(ctx, m, false)
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}
