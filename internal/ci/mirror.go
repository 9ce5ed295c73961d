package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// mirrorWork is the background job that copies the state of a downstream pipeline
// to its trigger job, or fails the job if the pipeline was deleted.
type mirrorWork struct {
	JobID int64 `json:"job_id"`
	Gone  bool  `json:"gone,omitempty"`
	// Resume means that jobs of the downstream pipeline were retried: a job that
	// ended with the pipeline runs again.
	Resume bool `json:"resume,omitempty"`
}

// Kind implements queue.Work.
func (mirrorWork) Kind() string { return "ci_mirror" }

func (s *Service) mirror(ctx context.Context, w mirrorWork) error {
	if w.Gone {
		return errs.IgnoreNotFound(s.endBridge(ctx, w.JobID, End{Status: flow.Failed, Reason: UnknownFailure}))
	}
	if w.Resume {
		if err := s.resumeBridge(ctx, w.JobID); err != nil {
			return errs.IgnoreNotFound(err)
		}
	}
	return errs.IgnoreNotFound(s.followBridge(ctx, w.JobID))
}

// followBridge updates a trigger job from the status of its downstream
// pipeline. Without a strategy the job succeeds when the pipeline is created.
func (s *Service) followBridge(ctx context.Context, id int64) error {
	j, err := findAnyJob(ctx, s.DB, id)
	if err != nil {
		return err
	}
	down, err := s.watchedBy(ctx, j)
	if err != nil {
		return err
	}
	switch {
	case j.Status != flow.Pending && j.Status != flow.Running:
		return nil
	case down == nil && j.Options.MirrorPipeline != "":
		return s.endBridge(ctx, id, End{Status: flow.Failed, Reason: UnmetPrerequisites})
	case down == nil:
		return nil // not created yet
	case down.YAMLErrors != "":
		return s.endBridge(ctx, id, End{Status: flow.Failed, Reason: UnknownFailure})
	case !j.depends(), down.Status == flow.Success:
		return s.endBridge(ctx, id, End{Status: flow.Success})
	case down.Status == flow.Canceled:
		return s.endBridge(ctx, id, End{Status: flow.Canceled})
	case down.Status == flow.Failed, down.Status == flow.Skipped:
		return s.endBridge(ctx, id, End{Status: flow.Failed, Reason: UnknownFailure})
	case j.Status == flow.Pending:
		return s.inBridge(ctx, id, func(tx *db.Tx, j *Job) error {
			if j.Status != flow.Pending { // changed concurrently
				return nil
			}
			if j.Options.MirrorPipeline != "" {
				if err := insertMirror(ctx, tx, j.ID, down.ID); err != nil {
					return err
				}
			}
			return s.beginJob(ctx, tx, j, nil)
		})
	}
	return nil
}

// depends reports whether a bridge gets the status of its downstream pipeline.
func (j *Job) depends() bool {
	return j.Options.MirrorPipeline != "" || j.Options.Trigger != nil && j.Options.Trigger.Strategy != ""
}

// resumeUpstream resumes the trigger job of a pipeline after jobs of the pipeline
// were retried.
func (s *Service) resumeUpstream(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	if p.ParentJobID == nil {
		return nil
	}
	return s.Queue.Add(ctx, tx, mirrorWork{JobID: *p.ParentJobID, Resume: true}, queue.Unique())
}

// resumeBridge sets a trigger job that failed or was canceled back to running,
// because jobs of its pipeline were retried. Jobs that were skipped because of it
// wait again. Other changes of the pipeline do not resume it: a user may have
// canceled only the trigger job.
func (s *Service) resumeBridge(ctx context.Context, id int64) error {
	made, err := findDownstream(ctx, s.DB, []int64{id})
	if err != nil || made[id] == nil || made[id].Status.Done() {
		return err
	}
	return s.sweepJob(ctx, id, func(ctx context.Context, tx *db.Tx, j *Job) error {
		if j.Retried || !j.depends() || j.Status != flow.Failed && j.Status != flow.Canceled {
			return nil
		}
		if err := setResumed(ctx, tx, j, s.Now()); err != nil {
			return err
		}
		if err := s.reopen(ctx, tx, j); err != nil {
			return err
		}
		p, err := s.advance(ctx, tx, j.PipelineID)
		if err != nil {
			return err
		}
		return s.resumeUpstream(ctx, tx, p)
	})
}

// sweepMirrors updates the jobs that mirror a pipeline of another project after
// the pipeline has ended.
func (s *Service) sweepMirrors(ctx context.Context) error {
	ids, err := findEndedMirrors(ctx, s.DB, sweepSize)
	if err != nil {
		return fmt.Errorf("sweep mirrors: %w", err)
	}
	var faults []error
	for _, id := range ids { // an error of one job does not stop the others
		if err := errs.IgnoreNotFound(s.followBridge(ctx, id)); err != nil {
			faults = append(faults, err)
			continue
		}
		if err := deleteMirror(ctx, s.DB, id); err != nil {
			faults = append(faults, fmt.Errorf("forget mirror %d: %w", id, err))
		}
	}
	return errors.Join(faults...)
}

// watchedBy returns the pipeline that a trigger job mirrors; nil if there is
// none.
func (s *Service) watchedBy(ctx context.Context, j *Job) (*Pipeline, error) {
	if name := j.Options.MirrorPipeline; name != "" {
		if j.Status != flow.Pending {
			return mirrored(ctx, s.DB, j.ID)
		}
		by := actor.System()
		if j.UserID != nil {
			var err error
			if by, err = s.Users.As(ctx, *j.UserID); err != nil {
				return nil, errs.IgnoreRefusal(err)
			}
		}
		own, err := project.In(ctx, s.DB, j.ProjectID)
		if err != nil {
			return nil, errs.IgnoreRefusal(err)
		}
		src, err := s.Repos.Source(ctx, by, own.Near(name))
		if err != nil {
			return nil, errs.IgnoreRefusal(err)
		}
		return latestOf(ctx, s.DB, src.Project)
	}
	made, err := findDownstream(ctx, s.DB, []int64{j.ID})
	return made[j.ID], err
}
