package ci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/queue"
)

// ResourceGroup lets one of its jobs run at a time, across the pipelines of a
// project.
type ResourceGroup struct {
	ID        int64
	ProjectID int64
	Key       string
	Mode      ProcessMode
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ProcessMode says which of the jobs that wait comes next.
type ProcessMode string

// The modes. Those by age wait for jobs that are not ready yet, all but the
// last.
const (
	Unordered        ProcessMode = "unordered"
	OldestFirst      ProcessMode = "oldest_first"
	NewestFirst      ProcessMode = "newest_first"
	NewestReadyFirst ProcessMode = "newest_ready_first"
)

// Valid reports whether there is such a mode.
func (m ProcessMode) Valid() bool {
	switch m {
	case Unordered, OldestFirst, NewestFirst, NewestReadyFirst:
		return true
	}
	return false
}

// awaitTurn lets a job that has come to its resource group go on at once when
// no one is before it, and gives the state that it is in then.
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

// hasTurn reports whether a job is the next of its group, and the group is
// free. Others that ask wait until the transaction has ended.
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

// release lets the next one of a resource group go on when a job has ended.
// That one may be of another pipeline, so it goes by the queue.
func (s *Service) release(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.ResourceGroupID == nil {
		return nil
	}
	return s.Queue.Add(ctx, tx, turnWork{GroupID: *j.ResourceGroupID}, queue.Unique())
}

// turnWork gives the turn in a resource group to the next job.
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

// groupBusy reports whether a job of the group has its turn.
func groupBusy(ctx context.Context, q db.Q, groupID int64) (bool, error) {
	var one int
	err := q.QueryRowContext(ctx, `SELECT 1 FROM jobs WHERE resource_group_id = ? AND (status IN ('pending', 'running') OR status = 'canceled' AND canceling) LIMIT 1`, groupID).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// nextInGroup returns the job whose turn is next, and its pipeline; 0 when no
// one waits, or the next one is not ready.
func nextInGroup(ctx context.Context, q db.Q, groupID int64) (jobID, pipelineID int64, err error) {
	var mode ProcessMode
	if err := q.QueryRowContext(ctx, `SELECT process_mode FROM resource_groups WHERE id = ?`, groupID).Scan(&mode); err != nil {
		return 0, 0, err
	}
	states, order := `('waiting_for_resource')`, `pipeline_id, id`
	switch mode {
	case OldestFirst:
		states = `('created', 'scheduled', 'waiting_for_resource')`
	case NewestFirst:
		states, order = `('created', 'scheduled', 'waiting_for_resource')`, `pipeline_id DESC, id`
	case NewestReadyFirst:
		order = `pipeline_id DESC, id`
	}
	var status flow.Status
	err = q.QueryRowContext(ctx, `
		SELECT id, pipeline_id, status FROM jobs WHERE resource_group_id = ? AND status IN `+states+` ORDER BY `+order+` LIMIT 1`,
		groupID).Scan(&jobID, &pipelineID, &status)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case status != flow.Waiting:
		return 0, 0, nil
	}
	return jobID, pipelineID, nil
}

// resourceGroup returns the id of a group by its key, which is made when it is
// new.
func resourceGroup(ctx context.Context, tx *db.Tx, projectID int64, key string, at time.Time) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO resource_groups (project_id, key, created_at, updated_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id, key) DO UPDATE SET key = excluded.key RETURNING id`, projectID, key, at, at).Scan(&id)
	return id, err
}
