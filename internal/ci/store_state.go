package ci

import (
	"context"
	"errors"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
)

// findAnyJob finds a job in any project.
func findAnyJob(ctx context.Context, q db.Q, id int64) (*Job, error) {
	j, err := scanJob(q.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.id = ?`, id))
	return j, db.NotFound(err, "Job")
}

// findAnyPipeline finds a pipeline in any project.
func findAnyPipeline(ctx context.Context, q db.Q, id int64) (*Pipeline, error) {
	p, err := scanPipeline(q.QueryRowContext(ctx, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.id = ?`, id))
	return p, db.NotFound(err, "Pipeline")
}

// startJob sets the status of a job from pending to running by compare-and-set.
// If a token is given, the job must have it.
func startJob(ctx context.Context, tx *db.Tx, id int64, token []byte, at time.Time) error {
	query, args := `
		UPDATE jobs SET status = 'running', started_at = ?, heard_at = ?, claimed_at = NULL, updated_at = ?
		WHERE id = ? AND status = 'pending'`, []any{at, at, at, id}
	if token != nil {
		query, args = query+` AND token_digest = ?`, append(args, token)
	}
	err := db.ExecOne(ctx, tx, query, args...)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("Job is not pending")
	}
	return err
}

// isRunning reports whether the status of a pipeline is running.
func isRunning(ctx context.Context, tx *db.Tx, pipelineID int64) (running bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT status = 'running' FROM pipelines WHERE id = ?`, pipelineID).Scan(&running)
	return running, err
}

// saveEnd saves the end of a job by compare-and-set. If a token is given, the
// job must have it.
func saveEnd(ctx context.Context, tx *db.Tx, j *Job, from flow.Status, token []byte) error {
	query, args := `
		UPDATE jobs SET status = ?, failure_reason = ?, exit_code = ?, coverage = ?, allow_failure = ?, canceling = ?, finished_at = ?,
			claimed_at = NULL, scheduled_at = NULL, updated_at = ? WHERE id = ? AND status = ?`,
		[]any{string(j.Status), string(j.FailureReason), j.ExitCode, j.Coverage, j.AllowFailure, j.Canceling, j.FinishedAt, j.UpdatedAt, j.ID, string(from)}
	if token != nil {
		query, args = query+` AND token_digest = ?`, append(args, token)
	}
	err := db.ExecOne(ctx, tx, query, args...)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("Job is no longer %s", from)
	}
	return err
}

func saveSettled(ctx context.Context, tx *db.Tx, j *Job, at time.Time) error {
	err := db.ExecOne(ctx, tx, `UPDATE jobs SET canceling = FALSE, exit_code = ?, coverage = ?, updated_at = ? WHERE id = ? AND canceling`,
		j.ExitCode, j.Coverage, at, j.ID)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("Job is canceled")
	}
	return err
}

// markRetried marks a job as retried. Conflict if it already is.
func markRetried(ctx context.Context, tx *db.Tx, id int64) error {
	err := db.ExecOne(ctx, tx, `UPDATE jobs SET retried = TRUE WHERE id = ? AND NOT retried`, id)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("Job has been retried already")
	}
	return err
}

// kindOf reports whether a job is a bridge and whether it has an environment.
func kindOf(ctx context.Context, q db.Q, id int64) (bridge, deploys bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT bridge, environment_id IS NOT NULL FROM jobs WHERE id = ?`, id).Scan(&bridge, &deploys)
	return bridge, deploys, err
}

func setScheduled(ctx context.Context, tx *db.Tx, id int64, at *time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE jobs SET scheduled_at = ? WHERE id = ?`, at, id)
}

func jobSealed(ctx context.Context, q db.Q, id int64) (sealed string, err error) {
	err = q.QueryRowContext(ctx, `SELECT variables FROM jobs WHERE id = ?`, id).Scan(&sealed)
	return sealed, err
}

func setJobSealed(ctx context.Context, tx *db.Tx, id int64, sealed string) error {
	return db.ExecOne(ctx, tx, `UPDATE jobs SET variables = ? WHERE id = ?`, sealed, id)
}
