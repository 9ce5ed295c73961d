package ci

import (
	"context"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
)

// CanRun reports whether an actor may run pipelines on some ref of a project
// that was given to them; MayRun says on which. The answers of this file are for
// interfaces that offer what an actor may do. Each comes from the rule that the
// operation asks.
func CanRun(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.BuildsPart, project.Developer)
}

// JobCan is what an actor may do with a job.
type JobCan struct {
	Run             bool // retry, cancel and play it, as its state allows
	SetVariables    bool // play it with variables
	Keep            bool // its artifacts
	DeleteArtifacts bool
	Erase           bool
}

// JobCan says what an actor may do with a job of a project that was given to
// them.
func (s *Service) JobCan(ctx context.Context, by actor.Actor, p *project.Project, j *Job) (JobCan, error) {
	run, err := s.mayRunOn(ctx, by, p, j.Ref, j.Tag)
	return JobCan{
		Run: run, SetVariables: run && variable.MayGive(by, p), Keep: CanRun(by, p), DeleteArtifacts: p.MayChange(by, project.BuildsPart, project.Maintainer),
		Erase: run && j.erasable() && ownOrMaintain(by, p, j.UserID) == nil,
	}, err
}

// mayRunOn reports whether an actor may act on the jobs of a ref: see requireRun.
func (s *Service) mayRunOn(ctx context.Context, by actor.Actor, p *project.Project, name string, tag bool) (bool, error) {
	ref := RunRef{Name: name, Tag: tag}
	may, err := s.MayRun(ctx, by, p, ref)
	return may[ref], err
}

// erasable reports whether a job has ended and has something to erase.
func (j *Job) erasable() bool {
	return j.Status.Done() && j.Status != flow.Skipped && j.ErasedAt == nil
}

// ownOrMaintain refuses an actor who neither started a job or pipeline nor is a
// Maintainer.
func ownOrMaintain(by actor.Actor, p *project.Project, startedBy *int64) error {
	if startedBy != nil && by.Is(*startedBy) || p.Enough(by, project.Maintainer) == nil {
		return nil
	}
	return errs.Forbidden("")
}

// PipelineCan is what an actor may do with a pipeline.
type PipelineCan struct {
	Run          bool // retry and cancel it
	Delete       bool
	SeeVariables bool
}

// PipelineCan says what an actor may do with a pipeline of a project that was
// given to them.
func (s *Service) PipelineCan(ctx context.Context, by actor.Actor, p *project.Project, l *Pipeline) (PipelineCan, error) {
	run, err := s.mayRunOn(ctx, by, p, l.Ref, l.Tag)
	return PipelineCan{
		Run: run, Delete: p.MayChange(by, project.BuildsPart, project.Owner),
		SeeVariables: p.Enough(by, project.Developer) == nil && ownOrMaintain(by, p, l.UserID) == nil,
	}, err
}
