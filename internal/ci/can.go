package ci

import (
	"context"

	"svc/internal/actor"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
)

// CanRun reports whether an actor may run pipelines on some ref of a project
// that they can see; MayRun reports on which. Interfaces use the functions of
// this file to decide which actions to offer. Each applies the same rule as the
// operation itself.
func CanRun(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.BuildsPart, project.Developer)
}

// JobCan is what an actor may do with a job.
type JobCan struct {
	Run             bool // retry, cancel and play it, as its state allows
	SetVariables    bool // play it with variables
	Keep            bool // keep its artifacts
	DeleteArtifacts bool
	Erase           bool
	// Gate says whether a manual or delayed job may deploy now.
	Gate deployment.Gate
}

// JobCan returns what an actor may do with a job of a project that they can
// see.
func (s *Service) JobCan(ctx context.Context, by actor.Actor, p *project.Project, j *Job) (JobCan, error) {
	run, err := s.mayRunOn(ctx, by, p, j.Ref, j.Tag)
	gate := deployment.Gate{Allowed: true}
	if err == nil && run && j.EnvironmentID != nil && (j.Status == flow.Manual || j.Status == flow.Scheduled) {
		gate, err = s.Deployments.GateOf(ctx, p, j.ID, j.environmentName(), by)
		gate.Waiting = gate.Waiting && j.deploys()
	}
	return JobCan{
		Run: run, Gate: gate, SetVariables: run && variable.MayGive(by, p), Keep: run, DeleteArtifacts: p.MayChange(by, project.BuildsPart, project.Maintainer),
		Erase: run && j.erasable() && ownOrMaintain(by, p, j.UserID) == nil,
	}, err
}

// mayRunOn reports whether an actor may act on the jobs of a ref; see
// requireRun.
func (s *Service) mayRunOn(ctx context.Context, by actor.Actor, p *project.Project, name string, tag bool) (bool, error) {
	ref := RunRef{Name: name, Tag: tag}
	may, err := s.MayRun(ctx, by, p, ref)
	return may[ref], err
}

// erasable reports whether a job has ended and has something to erase.
func (j *Job) erasable() bool {
	return j.Status.Done() && j.Status != flow.Skipped && j.ErasedAt == nil
}

// ownOrMaintain returns an error unless the actor started the job or pipeline
// or is a Maintainer.
func ownOrMaintain(by actor.Actor, p *project.Project, startedBy *int64) error {
	if startedBy != nil && by.Is(*startedBy) || p.Enough(by, project.Maintainer) == nil {
		return nil
	}
	return errs.Forbidden("")
}

// PipelineCan is what an actor may do with a pipeline.
type PipelineCan struct {
	Run          bool // cancel it, and act on its jobs
	Retry        bool
	Delete       bool
	SeeVariables bool
}

// PipelineCan returns what an actor may do with a pipeline of a project that
// they can see.
func (s *Service) PipelineCan(ctx context.Context, by actor.Actor, p *project.Project, l *Pipeline) (PipelineCan, error) {
	run, err := s.mayRunOn(ctx, by, p, l.Ref, l.Tag)
	return PipelineCan{
		Run: run, Retry: run && l.Retryable(), Delete: p.MayChange(by, project.BuildsPart, project.Owner),
		SeeVariables: p.Enough(by, project.Developer) == nil && ownOrMaintain(by, p, l.UserID) == nil,
	}, err
}
