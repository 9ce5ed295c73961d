package ci

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// control returns a project to actors who may act on its jobs: Developers and
// above. requireRun checks the ref.
func (s *Service) control(ctx context.Context, by actor.Actor, in project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
}

// requireRun returns Forbidden unless an actor who controls a project may run
// jobs on one of its refs. A protected ref requires permission to push to it or
// merge into it.
func (s *Service) requireRun(ctx context.Context, by actor.Actor, p *project.Project, ref string, tag bool) error {
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return err
	}
	may, err := src.MayRun(ctx, ref, tag)
	if err != nil {
		return err
	}
	if !may {
		return errs.Forbidden("")
	}
	return nil
}

// controlledJob returns a job of a project that the actor controls, if they may
// run jobs on its ref. NotFound; Forbidden.
func (s *Service) controlledJob(ctx context.Context, by actor.Actor, p *project.Project, id int64) (*Job, error) {
	j, err := findJob(ctx, s.DB, p.ID, id)
	if err != nil {
		return nil, err
	}
	return j, s.requireRun(ctx, by, p, j.Ref, j.Tag)
}

// actOnJob runs do on a job of a project that the actor controls, under the lock
// of its pipeline, and advances the pipeline.
func (s *Service) actOnJob(ctx context.Context, by actor.Actor, proj *project.Project, id int64, do func(*db.Tx, *Job) (*Job, error)) (*Job, error) {
	seen, err := s.controlledJob(ctx, by, proj, id)
	if err != nil {
		return nil, err
	}
	var j *Job
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", seen.PipelineID); err != nil {
			return err
		}
		if j, err = findJob(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if j, err = do(tx, j); err != nil {
			return err
		}
		if _, err := s.advance(ctx, tx, j.PipelineID); err != nil {
			return err
		}
		j, err = findJob(ctx, tx, proj.ID, j.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return j, s.fillJobs(ctx, by, []*Job{j}, proj)
}

// Cancel cancels a job, for Developers and above who may run pipelines on its
// ref. A finished job is not changed. With force it does not wait for the
// runner to run the after_script, also if the job was canceled before. NotFound.
func (s *Service) Cancel(ctx context.Context, by actor.Actor, in project.Ref, id int64, force bool) (*Job, error) {
	proj, err := s.control(ctx, by, in)
	if err != nil {
		return nil, err
	}
	j, err := s.actOnJob(ctx, by, proj, id, func(tx *db.Tx, j *Job) (*Job, error) {
		switch {
		case j.Canceling && force:
			return j, s.settleCanceled(ctx, tx, j, End{})
		case j.Status.Done():
			return j, nil
		}
		return j, s.cancelJob(ctx, tx, j, force)
	})
	if err != nil {
		return nil, fmt.Errorf("cancel job %d: %w", id, err)
	}
	return j, nil
}

// Retry creates a new job that repeats a finished one, for users who may cancel
// it. Forbidden if the job has not ended, was skipped or was already retried;
// NotFound.
func (s *Service) Retry(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Job, error) {
	proj, err := s.control(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if err := s.requireDeploy(ctx, by, proj, id, true); err != nil {
		return nil, fmt.Errorf("retry job %d: %w", id, err)
	}
	j, err := s.actOnJob(ctx, by, proj, id, func(tx *db.Tx, j *Job) (*Job, error) {
		if !j.Retryable() {
			return nil, errs.Forbidden("Job is not retryable")
		}
		back, err := s.rollsBack(ctx, tx, proj, j)
		if err != nil {
			return nil, err
		}
		if back {
			return nil, errs.Forbidden("Job is not retryable")
		}
		again, err := s.tryAgain(ctx, tx, j, &by.ID, 0)
		if err != nil {
			return nil, err
		}
		if err := s.reopen(ctx, tx, again); err != nil {
			return nil, err
		}
		p, err := findAnyPipeline(ctx, tx, j.PipelineID)
		if err != nil {
			return nil, err
		}
		return again, s.resumeUpstream(ctx, tx, p)
	})
	if err != nil {
		return nil, fmt.Errorf("retry job %d: %w", id, err)
	}
	return j, nil
}

// Retryable reports whether a job can be retried.
func (j *Job) Retryable() bool {
	return !j.Retried && j.Status.Done() && j.Status != flow.Skipped
}

// Play starts a manual or delayed job, for users who may cancel it. Variables
// for this job require the permission to set them. Invalid for any other job;
// NotFound; Forbidden.
func (s *Service) Play(ctx context.Context, by actor.Actor, in project.Ref, id int64, given []variable.Given) (*Job, error) {
	if err := variable.Check(given); err != nil {
		return nil, err
	}
	proj, err := s.Projects.Require(ctx, by, in, project.Developer)
	if err != nil {
		return nil, err
	}
	if len(given) > 0 && !variable.MayGive(by, proj) {
		return nil, errs.Forbidden(variable.NotAllowed)
	}
	if err := proj.Change(by, project.BuildsPart, project.Developer); err != nil {
		return nil, err
	}
	if err := s.requireDeploy(ctx, by, proj, id, false); err != nil {
		return nil, fmt.Errorf("play job %d: %w", id, err)
	}
	j, err := s.actOnJob(ctx, by, proj, id, func(tx *db.Tx, j *Job) (*Job, error) {
		if j.Status != flow.Manual && j.Status != flow.Scheduled {
			return nil, errs.Invalid("Unplayable Job")
		}
		return j, s.playJob(ctx, tx, j, &by.ID, given)
	})
	if err != nil {
		return nil, fmt.Errorf("play job %d: %w", id, err)
	}
	return j, nil
}

// playJob starts a manual or delayed job. Jobs that were skipped because it did not
// run wait for it.
func (s *Service) playJob(ctx context.Context, tx *db.Tx, j *Job, userID *int64, given []variable.Given) error {
	if err := setPlayed(ctx, tx, j.ID, userID); err != nil {
		return err
	}
	if len(given) > 0 {
		if err := s.saveJobVariables(ctx, tx, j.ID, given); err != nil {
			return err
		}
	}
	if err := s.start(ctx, tx, j); err != nil {
		return err
	}
	return s.reopen(ctx, tx, j)
}

// Unschedule turns a delayed job into a manual one, for users who may cancel
// it. Invalid for any other job; NotFound.
func (s *Service) Unschedule(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Job, error) {
	proj, err := s.control(ctx, by, in)
	if err != nil {
		return nil, err
	}
	j, err := s.actOnJob(ctx, by, proj, id, func(tx *db.Tx, j *Job) (*Job, error) {
		moved := false
		if j.Status == flow.Scheduled {
			var err error
			if moved, err = moveJob(ctx, tx, j.ID, flow.Scheduled, flow.Manual, s.Now()); err != nil {
				return nil, err
			}
		}
		if !moved {
			return nil, errs.Invalid("Job is not scheduled")
		}
		return j, setScheduled(ctx, tx, j.ID, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("unschedule job %d: %w", id, err)
	}
	return j, nil
}

// Erase removes the log and the artifacts of a finished job, for Maintainers
// and the user who started it. Forbidden while it runs; NotFound.
func (s *Service) Erase(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Job, error) {
	proj, err := s.control(ctx, by, in)
	if err != nil {
		return nil, err
	}
	j, err := s.controlledJob(ctx, by, proj, id)
	if err != nil {
		return nil, err
	}
	if err := ownOrMaintain(by, proj, j.UserID); err != nil {
		return nil, err
	}
	at := s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if j, err = findJob(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if !j.erasable() {
			return errs.Forbidden("Job is not erasable!")
		}
		if err := s.Artifacts.Erase(ctx, tx, []int64{id}); err != nil {
			return err
		}
		j.ErasedAt, j.ArtifactsExpireAt = &at, nil
		if err := setErased(ctx, tx, id, at); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, at, audit.Event{
			Type: "job_erased", Entity: proj.Entity(), Target: audit.Target{Type: "Ci::Build", ID: id, Details: j.Name},
			Details: audit.Details{Remove: "log and artifacts"},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("erase job %d: %w", id, err)
	}
	return j, s.fillJobs(ctx, by, []*Job{j}, proj)
}

// RetryPipeline retries all failed and canceled jobs of a pipeline, for users
// who may cancel them, except for those whose retry would be a rollback that the
// project does not allow. Forbidden if its configuration is invalid; NotFound.
func (s *Service) RetryPipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*project.Project, *Pipeline, error) {
	proj, p, err := s.actOnPipeline(ctx, by, in, id, func(tx *db.Tx, proj *project.Project, p *Pipeline) error {
		if !p.Retryable() {
			return errs.Forbidden("Pipeline is not retryable: its CI/CD configuration is invalid")
		}
		jobs, err := findPipelineJobs(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			switch {
			case j.Retried:
			case j.Status == flow.Skipped:
				if err := s.reset(ctx, tx, j.ID); err != nil {
					return err
				}
			case j.Status == flow.Failed, j.Status == flow.Canceled:
				back, err := s.rollsBack(ctx, tx, proj, j)
				if err != nil {
					return err
				}
				if back {
					continue
				}
				if _, err := s.another(ctx, tx, j, &by.ID, 0); err != nil {
					return err
				}
			}
		}
		return s.resumeUpstream(ctx, tx, p)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("retry pipeline %d: %w", id, err)
	}
	return proj, p, nil
}

// Retryable reports whether the failed jobs of a pipeline can be retried. A
// pipeline whose configuration is invalid has no jobs: only another pipeline reads
// the configuration again.
func (p *Pipeline) Retryable() bool { return p.YAMLErrors == "" }

// CancelPipeline cancels all jobs of a pipeline and of its child pipelines, for
// users who may cancel them. NotFound.
func (s *Service) CancelPipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*project.Project, *Pipeline, error) {
	proj, p, err := s.actOnPipeline(ctx, by, in, id, func(tx *db.Tx, _ *project.Project, p *Pipeline) error {
		return s.cancelJobs(ctx, tx, p, anyJob)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cancel pipeline %d: %w", id, err)
	}
	return proj, p, nil
}

// actOnPipeline runs do on a pipeline under its lock and advances the pipeline.
func (s *Service) actOnPipeline(ctx context.Context, by actor.Actor, in project.Ref, id int64,
	do func(*db.Tx, *project.Project, *Pipeline) error) (*project.Project, *Pipeline, error) {
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
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", id); err != nil {
			return err
		}
		if err := do(tx, proj, p); err != nil {
			return err
		}
		p, err = s.advance(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// reopen resets the skipped jobs that depend, directly or not, on a job that is
// retried or started by hand.
func (s *Service) reopen(ctx context.Context, tx *db.Tx, again *Job) error {
	jobs, err := findFlow(ctx, tx, again.PipelineID)
	if err != nil {
		return err
	}
	behind := map[string]bool{again.Name: true}
	for more := true; more; {
		more = false
		for _, j := range jobs {
			if behind[j.Name] || j.Status != flow.Skipped {
				continue
			}
			follows := j.Needs == nil && j.Stage > again.StageIndex ||
				slices.ContainsFunc(j.Needs, func(n flow.Need) bool { return behind[n.Name] })
			if follows {
				behind[j.Name], more = true, true
				if err := s.reset(ctx, tx, j.ID); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reset moves a job from skipped back to created.
func (s *Service) reset(ctx context.Context, tx *db.Tx, id int64) error {
	moved, err := moveJob(ctx, tx, id, flow.Skipped, flow.Created, s.Now())
	if err != nil {
		return err
	}
	if !moved {
		return errs.Conflict("Job is not skipped any more")
	}
	return deployment.SetStatusOfJob(ctx, tx, id, deployment.Created, s.Now())
}
