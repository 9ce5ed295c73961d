package ci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

const jobColumns = `j.id, j.project_id, j.pipeline_id, j.status, j.bridge, j.retried, j.name, j.stage, j.stage_index, j.run_when, j.allow_failure,
	j.needs, j.ref, j.tag, j.protected, j.interruptible, j.user_id, j.tag_set_id, j.attempt, j.retry_of, j.timeout,
	j.resource_group_id, j.environment_id, j.runner_id, j.runner_manager_id, j.failure_reason, j.exit_code, j.coverage, j.canceling,
	j.created_at, j.updated_at, j.queued_at, j.claimed_at, j.started_at, j.heard_at, j.finished_at, j.scheduled_at, j.erased_at,
	j.artifacts_expire_at, j.options`

func scanJob(s db.Scanner) (*Job, error) {
	j := &Job{}
	var needs, options string
	var timeout int64
	var tags *int64
	err := s.Scan(&j.ID, &j.ProjectID, &j.PipelineID, &j.Status, &j.Bridge, &j.Retried, &j.Name, &j.Stage, &j.StageIndex, &j.When, &j.AllowFailure,
		&needs, &j.Ref, &j.Tag, &j.Protected, &j.Interruptible, &j.UserID, &tags, &j.Attempt, &j.RetryOf, &timeout,
		&j.ResourceGroupID, &j.EnvironmentID, &j.RunnerID, &j.ManagerID, &j.FailureReason, &j.ExitCode, &j.Coverage, &j.Canceling,
		db.Time(&j.CreatedAt), db.Time(&j.UpdatedAt), db.NullTime(&j.QueuedAt), db.NullTime(&j.ClaimedAt), db.NullTime(&j.StartedAt),
		db.NullTime(&j.HeardAt), db.NullTime(&j.FinishedAt), db.NullTime(&j.ScheduledAt), db.NullTime(&j.ErasedAt), db.NullTime(&j.ArtifactsExpireAt), &options)
	if err != nil {
		return nil, err
	}
	j.Timeout = time.Duration(timeout) * time.Second
	if tags != nil {
		j.TagSetID = *tags
	}
	if needs != "" {
		if err := json.Unmarshal([]byte(needs), &j.Needs); err != nil {
			return nil, fmt.Errorf("needs of job %d: %w", j.ID, err)
		}
	}
	if err := json.Unmarshal([]byte(options), &j.Options); err != nil {
		return nil, fmt.Errorf("options of job %d: %w", j.ID, err)
	}
	return j, nil
}

// heldJob is the part of a job that requests with its token need.
type heldJob struct {
	JobState
	token    []byte // digest, empty if no runner was assigned
	debugLog bool
}

func findHeld(ctx context.Context, q db.Q, id int64) (*heldJob, error) {
	h := &heldJob{}
	err := q.QueryRowContext(ctx, `
		SELECT id, project_id, pipeline_id, status, canceling, environment_id, claimed_at, heard_at, token_digest, debug_log FROM jobs WHERE id = ?`, id).
		Scan(&h.ID, &h.ProjectID, &h.PipelineID, &h.Status, &h.Canceling, &h.EnvironmentID, db.NullTime(&h.ClaimedAt), db.NullTime(&h.HeardAt), &h.token, &h.debugLog)
	return h, err
}

func findJob(ctx context.Context, q db.Q, projectID, id int64) (*Job, error) {
	j, err := scanJob(q.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.id = ? AND j.project_id = ?`, id, projectID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.NotFound("Job")
	}
	return j, err
}

func insertJob(ctx context.Context, tx *db.Tx, j *Job) error {
	var needs string
	if j.Needs != nil {
		text, err := json.Marshal(j.Needs)
		if err != nil {
			return err
		}
		needs = string(text)
	}
	options, err := json.Marshal(j.Options)
	if err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO jobs (project_id, pipeline_id, status, bridge, name, stage, stage_index, run_when, allow_failure, needs, ref, tag, protected,
			interruptible, user_id, tag_set_id, attempt, retry_of, timeout, resource_group_id, environment_id, failure_reason, created_at, updated_at, options)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		j.ProjectID, j.PipelineID, string(j.Status), j.Bridge, j.Name, j.Stage, j.StageIndex, string(j.When), j.AllowFailure, needs, j.Ref, j.Tag,
		j.Protected, j.Interruptible, j.UserID, j.TagSetID, j.Attempt, j.RetryOf, int64(j.Timeout/time.Second), j.ResourceGroupID, j.EnvironmentID,
		string(j.FailureReason), j.CreatedAt, j.UpdatedAt, string(options)).Scan(&j.ID)
}

// latestArchived finds the job with a name in the newest successful pipeline of
// a ref, if it has an archive. Older pipelines do not count: there may be any
// number of them without the job.
func latestArchived(ctx context.Context, q db.Q, projectID int64, ref string, tag bool, name string) (*Job, error) {
	return scanJob(q.QueryRowContext(ctx, `
		SELECT `+jobColumns+` FROM jobs j
		WHERE j.pipeline_id = (SELECT p.id FROM pipelines p
				WHERE p.project_id = ? AND p.ref = ? AND p.tag = ? AND p.status = 'success' AND NOT p.child ORDER BY p.id DESC LIMIT 1)
			AND j.name = ? AND NOT j.retried AND j.status = 'success'
			AND EXISTS (SELECT 1 FROM job_artifacts a WHERE a.job_id = j.id AND a.kind = 'archive')
		ORDER BY j.id DESC LIMIT 1`, projectID, ref, tag, name))
}

// digest returns the digest of a token as stored in a column of bytes.
func digest(token string) []byte { return []byte(secret.Digest(token)) }

// setPlayed records the user who started a manual or delayed job.
func setPlayed(ctx context.Context, tx *db.Tx, id int64, userID *int64) error {
	return db.ExecOne(ctx, tx, `UPDATE jobs SET user_id = ?, scheduled_at = NULL WHERE id = ?`, userID, id)
}

func setErased(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE jobs SET erased_at = ?, artifacts_expire_at = NULL, updated_at = ? WHERE id = ?`, at, at, id)
}

// setResumed sets a finished bridge back to running.
func setResumed(ctx context.Context, tx *db.Tx, j *Job, at time.Time) error {
	return db.ExecOne(ctx, tx, `
		UPDATE jobs SET status = 'running', failure_reason = '', finished_at = NULL, updated_at = ? WHERE id = ? AND status = ?`,
		at, j.ID, string(j.Status))
}

// setHeard records the last contact with the runner of a job.
func setHeard(ctx context.Context, q db.Q, id int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE jobs SET heard_at = ? WHERE id = ?`, at, id)
	return err
}

// findEarlier returns the jobs of earlier stages in the pipeline of a job, without
// bridges and retried ones.
func findEarlier(ctx context.Context, q db.Q, j *Job) ([]*Job, error) {
	return db.All(ctx, q, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? AND j.id <> ? AND NOT j.bridge AND NOT j.retried AND j.stage_index < ?
		ORDER BY j.stage_index, j.id`, j.PipelineID, j.ID, j.StageIndex)
}

// findNamed returns the jobs of some names in the pipeline of a job, without the
// job itself, bridges and retried ones.
func findNamed(ctx context.Context, q db.Q, j *Job, names []string) ([]*Job, error) {
	return db.All(ctx, q, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? AND j.id <> ? AND NOT j.bridge AND NOT j.retried AND j.name IN `+db.In(len(names))+`
		ORDER BY j.stage_index, j.id`, append([]any{j.PipelineID, j.ID}, db.Any(names)...)...)
}

func findPipelineJobs(ctx context.Context, q db.Q, pipelineID int64) ([]*Job, error) {
	return db.All(ctx, q, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? ORDER BY j.stage_index, j.id`, pipelineID)
}

// latestNamed finds the newest job with a name in a pipeline; nil if there is
// none.
func latestNamed(ctx context.Context, q db.Q, pipelineID int64, name string) (*Job, error) {
	j, err := scanJob(q.QueryRowContext(ctx, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? AND j.name = ? AND NOT j.retried ORDER BY j.id DESC LIMIT 1`, pipelineID, name))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return j, err
}

func findLatestSuccess(ctx context.Context, q db.Q, projectID int64, ref string, tag bool, name string) (*Job, error) {
	var id int64
	err := q.QueryRowContext(ctx, `
		SELECT id FROM pipelines WHERE project_id = ? AND ref = ? AND tag = ? AND status = 'success' AND NOT child ORDER BY id DESC LIMIT 1`, projectID, ref, tag).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return latestNamed(ctx, q, id, name)
}

func findJobByToken(ctx context.Context, q db.Q, token string) (*Job, error) {
	if token == "" {
		return nil, db.ErrNoRows
	}
	return scanJob(q.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs j WHERE j.token_digest = ?`, digest(token)))
}

func hasDebugLog(ctx context.Context, q db.Q, jobID int64) (debug bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT debug_log FROM jobs WHERE id = ?`, jobID).Scan(&debug)
	return debug, err
}

func setDebugLog(ctx context.Context, q db.Q, jobID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE jobs SET debug_log = TRUE WHERE id = ?`, jobID)
	return err
}

func findJobIDs(ctx context.Context, q db.Q, pipelineID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM jobs WHERE pipeline_id = ?`, pipelineID)
}
