package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// cancelJob cancels a job that has not ended. Without force, a runner that
// supports it may still run the after_script.
func (s *Service) cancelJob(ctx context.Context, tx *db.Tx, j *Job, force bool) error {
	if j.Status == flow.Running && !j.Bridge && !force && j.ManagerID != nil {
		graceful, err := runners.CancelsGracefully(ctx, tx, *j.ManagerID)
		if err != nil {
			return err
		}
		j.Canceling = graceful
	}
	if err := s.endJob(ctx, tx, j, End{Status: flow.Canceled}); err != nil {
		return err
	}
	if !j.Bridge {
		return nil
	}
	child, err := findDownstream(ctx, tx, []int64{j.ID})
	if err != nil || child[j.ID] == nil || !child[j.ID].Child {
		return err
	}
	return s.Queue.Add(ctx, tx, cancelWork{PipelineID: child[j.ID].ID})
}

// cancelJobs cancels the unfinished jobs of a pipeline that which selects. The
// caller holds the lock of the pipeline and advances it afterwards.
func (s *Service) cancelJobs(ctx context.Context, tx *db.Tx, p *Pipeline, which func(*Job) bool) error {
	jobs, err := findPipelineJobs(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.Status.Done() || !which(j) {
			continue
		}
		if err := s.cancelJob(ctx, tx, j, false); err != nil {
			return err
		}
	}
	if p.outside && which(&Job{}) {
		if err := cancelOutside(ctx, tx, p.ID, s.Now()); err != nil {
			return err
		}
	}
	children, err := findActiveChildren(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	for _, id := range children {
		if err := s.Queue.Add(ctx, tx, cancelWork{PipelineID: id}); err != nil {
			return err
		}
	}
	return nil
}

// cancelWork is the background job that cancels a pipeline.
type cancelWork struct {
	PipelineID int64 `json:"pipeline_id"`
}

// Kind implements queue.Work.
func (cancelWork) Kind() string { return "ci_cancel" }

func (s *Service) workCancel(ctx context.Context, w cancelWork) error {
	return s.inPipeline(ctx, w.PipelineID, func(tx *db.Tx, p *Pipeline) error { return s.cancelJobs(ctx, tx, p, anyJob) })
}

// anyJob selects all jobs.
func anyJob(*Job) bool { return true }

// inPipeline runs do, which cancels jobs, under the lock of a pipeline and advances
// the pipeline.
func (s *Service) inPipeline(ctx context.Context, id int64, do func(*db.Tx, *Pipeline) error) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", id); err != nil {
			return err
		}
		p, err := findAnyPipeline(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := do(tx, p); err != nil {
			return err
		}
		_, err = s.advance(ctx, tx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("cancel pipeline %d: %w", id, err)
	}
	return nil
}

// redundantWork is the background job that cancels the older pipelines that a
// new pipeline makes redundant.
type redundantWork struct {
	PipelineID int64 `json:"pipeline_id"`
}

// Kind implements queue.Work.
func (redundantWork) Kind() string { return "ci_redundant" }

func (s *Service) cancelRedundant(ctx context.Context, w redundantWork) error {
	p, err := findAnyPipeline(ctx, s.DB, w.PipelineID)
	if err != nil {
		return err
	}
	head, err := s.headOf(ctx, p)
	if err != nil {
		return fmt.Errorf("head of pipeline %d: %w", p.ID, err)
	}
	older, err := findRedundant(ctx, s.DB, p, head)
	if err != nil {
		return fmt.Errorf("find pipelines before %d: %w", p.ID, err)
	}
	for _, o := range older {
		if err := s.cancelIfRedundant(ctx, o.ID); err != nil {
			return err
		}
	}
	return nil
}

// headOf returns the commit that the ref of a pipeline refers to now; empty if the
// ref was deleted.
func (s *Service) headOf(ctx context.Context, p *Pipeline) (string, error) {
	src, err := s.Repos.Source(ctx, actor.System(), project.RefTo(p.ProjectID))
	if err != nil {
		return "", errs.IgnoreRefusal(err)
	}
	name := git.Heads + p.branch()
	if p.Tag {
		name = git.Tags + p.Ref
	}
	ref, err := src.Find(ctx, name)
	if err != nil {
		return "", errs.IgnoreNotFound(err)
	}
	return string(ref.Commit), nil
}

// cancelIfRedundant cancels a pipeline that is replaced by a newer one, as far
// as its AutoCancel allows.
func (s *Service) cancelIfRedundant(ctx context.Context, id int64) error {
	return s.inPipeline(ctx, id, func(tx *db.Tx, p *Pipeline) error {
		if p.AutoCancel == Interruptible {
			return s.cancelJobs(ctx, tx, p, func(j *Job) bool { return j.Interruptible })
		}
		jobs, err := findPipelineJobs(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if j.StartedAt != nil && !j.Interruptible {
				return nil // a job that is not interruptible has started
			}
		}
		return s.cancelJobs(ctx, tx, p, anyJob)
	})
}
