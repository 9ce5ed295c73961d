package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// awaitTurn queues a job that has entered its resource group if it is next. It
// returns the status of the job.
func (s *Service) awaitTurn(ctx context.Context, tx *db.Tx, jobID int64) (flow.Status, error) {
	j, err := findAnyJob(ctx, tx, jobID)
	if err != nil {
		return flow.Waiting, err
	}
	turn, err := s.hasTurn(ctx, tx, *j.ResourceGroupID, jobID)
	if err != nil || !turn {
		return flow.Waiting, err
	}
	return flow.Pending, s.letGo(ctx, tx, jobID)
}

// hasTurn reports whether the resource group has no running job and a job is its
// next. It locks the group until the transaction ends.
func (s *Service) hasTurn(ctx context.Context, tx *db.Tx, groupID, jobID int64) (bool, error) {
	if err := tx.Lock(ctx, "resource_groups", groupID); err != nil {
		return false, err
	}
	busy, err := groupBusy(ctx, tx, groupID)
	if err != nil || busy {
		return false, err
	}
	next, _, err := nextInGroup(ctx, tx, groupID)
	return next == jobID, err
}

func (s *Service) letGo(ctx context.Context, tx *db.Tx, jobID int64) error {
	moved, err := moveJob(ctx, tx, jobID, flow.Waiting, flow.Pending, s.Now())
	if err != nil {
		return err
	}
	if !moved {
		return errs.Conflict("Job is no longer waiting")
	}
	return s.queueJob(ctx, tx, jobID)
}

// passTurn starts the next job of a resource group after a job was skipped: others of
// its group may wait for it.
func (s *Service) passTurn(ctx context.Context, tx *db.Tx, jobID int64) error {
	group, err := groupOf(ctx, tx, jobID)
	if err != nil || group == nil {
		return err
	}
	return s.ResourceGroupChanged(ctx, tx, *group)
}

// release starts the next job of a resource group after a job has ended. The next
// job may be in another pipeline, so a background job does it.
func (s *Service) release(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.ResourceGroupID == nil {
		return nil
	}
	return s.ResourceGroupChanged(ctx, tx, *j.ResourceGroupID)
}

// ResourceGroupChanged adds a background job that starts the next job of a
// resource group.
func (s *Service) ResourceGroupChanged(ctx context.Context, tx *db.Tx, groupID int64) error {
	return s.Queue.Add(ctx, tx, turnWork{GroupID: groupID}, queue.Unique())
}

// turnWork starts the next job of a resource group.
type turnWork struct {
	GroupID int64 `json:"group_id"`
}

// Kind implements queue.Work.
func (turnWork) Kind() string { return "ci_turn" }

func (s *Service) giveTurn(ctx context.Context, w turnWork) error {
	jobID, pipelineID, err := nextInGroup(ctx, s.DB, w.GroupID)
	if err != nil || jobID == 0 {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", pipelineID); err != nil {
			return err
		}
		turn, err := s.hasTurn(ctx, tx, w.GroupID, jobID)
		if err != nil || !turn {
			return err
		}
		if err := s.letGo(ctx, tx, jobID); err != nil {
			return err
		}
		_, err = s.advance(ctx, tx, pipelineID)
		return err
	})
	if err != nil {
		return fmt.Errorf("turn in resource group %d: %w", w.GroupID, err)
	}
	return nil
}

// UpcomingJobs lists the waiting jobs of a resource group, for Reporters and
// above; NotFound.
func (s *Service) UpcomingJobs(ctx context.Context, by actor.Actor, in project.Ref, key string, p db.Paging) (db.Page[*Job], error) {
	g, err := s.Deployments.ResourceGroup(ctx, by, in, key)
	if err != nil {
		return db.Page[*Job]{}, err
	}
	page, err := listUpcoming(ctx, s.DB, g, p)
	if err != nil {
		return page, fmt.Errorf("upcoming jobs: %w", err)
	}
	return page, s.fillJobs(ctx, by, page.Items)
}

// GroupJob returns the current job of a resource group, for Reporters and above;
// NotFound if there is none.
func (s *Service) GroupJob(ctx context.Context, by actor.Actor, in project.Ref, key string) (*Job, error) {
	g, err := s.Deployments.ResourceGroup(ctx, by, in, key)
	if err != nil {
		return nil, err
	}
	j, err := findGroupJob(ctx, s.DB, g.ID)
	if err != nil {
		return nil, err
	}
	return j, s.fillJobs(ctx, by, []*Job{j})
}
