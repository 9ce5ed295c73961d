package ci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const pipelineColumns = `p.id, p.project_id, p.iid, p.status, p.source, p.ref, p.tag, p.sha, p.before_sha, p.name, p.user_id, p.protected,
	p.yaml_errors, p.stages, p.variables, p.auto_cancel, p.cancel_on_failure, p.parent_id, p.parent_job_id, p.child, p.schedule_id, p.facts, p.coverage, p.archived_at IS NOT NULL, p.outside,
	p.created_at, p.updated_at, p.started_at, p.finished_at`

func scanPipeline(s db.Scanner) (*Pipeline, error) {
	p := &Pipeline{}
	var stages, facts string
	err := s.Scan(&p.ID, &p.ProjectID, &p.IID, &p.Status, &p.Source, &p.Ref, &p.Tag, &p.SHA, &p.BeforeSHA, &p.Name, &p.UserID, &p.Protected,
		&p.YAMLErrors, &stages, &p.variables, &p.AutoCancel, &p.CancelOnFailure, &p.ParentID, &p.ParentJobID, &p.Child, &p.ScheduleID, &facts, &p.Coverage, &p.Archived, &p.outside,
		db.Time(&p.CreatedAt), db.Time(&p.UpdatedAt), db.NullTime(&p.StartedAt), db.NullTime(&p.FinishedAt))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(stages), &p.Stages); err != nil {
		return nil, fmt.Errorf("stages of pipeline %d: %w", p.ID, err)
	}
	if err := json.Unmarshal([]byte(facts), &p.facts); err != nil {
		return nil, fmt.Errorf("facts of pipeline %d: %w", p.ID, err)
	}
	return p, nil
}

func findPipeline(ctx context.Context, q db.Q, projectID, id int64) (*Pipeline, error) {
	p, err := scanPipeline(q.QueryRowContext(ctx, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.id = ? AND p.project_id = ?`, id, projectID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.NotFound("Pipeline")
	}
	return p, err
}

// insertPipeline inserts a pipeline. The origin is unique unless nil.
func insertPipeline(ctx context.Context, tx *db.Tx, p *Pipeline, origin *string) error {
	stages, err := json.Marshal(p.Stages)
	if err != nil {
		return err
	}
	facts, err := json.Marshal(p.facts)
	if err != nil {
		return err
	}
	if p.IID, err = project.NextNumber(ctx, tx, p.ProjectID, "pipeline"); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO pipelines (project_id, iid, status, source, ref, tag, sha, before_sha, name, user_id, protected, yaml_errors, stages, variables,
			auto_cancel, cancel_on_failure, parent_id, parent_job_id, child, schedule_id, origin, facts, created_at, updated_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		p.ProjectID, p.IID, string(p.Status), string(p.Source), p.Ref, p.Tag, p.SHA, p.BeforeSHA, p.Name, p.UserID, p.Protected, p.YAMLErrors,
		string(stages), p.variables, string(p.AutoCancel), p.CancelOnFailure, p.ParentID, p.ParentJobID, p.Child, p.ScheduleID, origin, string(facts), p.CreatedAt,
		p.UpdatedAt, p.FinishedAt).
		Scan(&p.ID)
}

// savePipelineState saves the fields of a pipeline that depend on its jobs.
func savePipelineState(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	return db.ExecOne(ctx, tx, `UPDATE pipelines SET status = ?, started_at = ?, finished_at = ?, coverage = ?, updated_at = ? WHERE id = ?`,
		string(p.Status), p.StartedAt, p.FinishedAt, p.Coverage, p.UpdatedAt, p.ID)
}

// averageCoverage returns the mean coverage of the jobs and external statuses
// of a pipeline; nil if none has a coverage.
func averageCoverage(ctx context.Context, q db.Q, pipelineID int64) (mean *float64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT avg(a.coverage) FROM (SELECT coverage FROM jobs WHERE pipeline_id = ? AND NOT retried
			UNION ALL SELECT coverage FROM commit_statuses WHERE pipeline_id = ? AND latest) a`, pipelineID, pipelineID).Scan(&mean)
	return mean, err
}

// failedBefore reports whether the previous pipeline of the ref that succeeded
// or failed has failed.
func failedBefore(ctx context.Context, q db.Q, p *Pipeline) (bool, error) {
	var status flow.Status
	err := q.QueryRowContext(ctx, `
		SELECT status FROM pipelines WHERE project_id = ? AND ref = ? AND id < ? AND tag = ? AND NOT child AND status IN ('success', 'failed')
		ORDER BY id DESC LIMIT 1`, p.ProjectID, p.Ref, p.ID, p.Tag).Scan((*string)(&status))
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return status == flow.Failed, err
}

// findFailed returns the names of the failed jobs that made a pipeline fail.
func findFailed(ctx context.Context, q db.Q, pipelineID int64, most int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT j.name FROM jobs j WHERE j.pipeline_id = ? AND j.status = 'failed' AND NOT j.retried AND NOT j.allow_failure ORDER BY j.stage_index, j.id LIMIT ?`,
		pipelineID, most)
}

// findWarned returns those of some pipelines that have jobs which failed and are
// allowed to fail.
func findWarned(ctx context.Context, q db.Q, pipelines []int64) ([]int64, error) {
	if len(pipelines) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT j.pipeline_id FROM jobs j
		WHERE j.pipeline_id IN `+db.In(len(pipelines))+` AND j.status = 'failed' AND NOT j.retried AND j.allow_failure`, db.Any(pipelines)...)
}

// findFlow reads the jobs of a pipeline for flow.Advance, without retried jobs.
func findFlow(ctx context.Context, q db.Q, pipelineID int64) ([]flow.Job, error) {
	return db.All(ctx, q, func(s db.Scanner) (flow.Job, error) {
		var j flow.Job
		var needs string
		err := s.Scan(&j.ID, &j.Name, &j.Stage, &j.Status, &j.When, &j.AllowFailure, &needs, &j.Grouped)
		if err == nil && needs != "" {
			err = json.Unmarshal([]byte(needs), &j.Needs)
		}
		return j, err
	}, `SELECT id, name, stage_index, status, run_when, allow_failure, needs, resource_group_id IS NOT NULL
		FROM jobs WHERE pipeline_id = ? AND NOT retried ORDER BY id`, pipelineID)
}

// moveJob changes the status of a job by compare-and-set. It returns false if
// the status was no longer from.
func moveJob(ctx context.Context, tx *db.Tx, id int64, from, to flow.Status, at time.Time) (bool, error) {
	if !flow.Can(from, to) {
		return false, fmt.Errorf("job %d cannot go from %s to %s", id, from, to)
	}
	err := db.ExecOne(ctx, tx, `
		UPDATE jobs SET status = ?, updated_at = ?,
			queued_at = CASE WHEN CAST(? AS TEXT) = 'pending' THEN CAST(? AS BIGINT) ELSE queued_at END,
			finished_at = CASE WHEN CAST(? AS TEXT) IN ('success', 'failed', 'canceled', 'skipped') THEN CAST(? AS BIGINT) ELSE NULL END
		WHERE id = ? AND status = ?`, string(to), at, string(to), at, string(to), at, id, string(from))
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func listSchedulePipelines(ctx context.Context, d *db.DB, scheduleID int64, p db.Paging) (db.Page[*Pipeline], error) {
	var where db.Where
	where.And("p.schedule_id = ?", scheduleID)
	return db.List(ctx, d, db.Query[*Pipeline]{
		Columns: pipelineColumns, From: "pipelines p", Where: where, Order: []db.Order{{Name: "p.id"}}, Scan: scanPipeline,
		Keys: func(p *Pipeline) []any { return []any{p.ID} },
	}, p)
}

// readPipeline returns a pipeline of any project; db.ErrNoRows if there is none.
func readPipeline(ctx context.Context, q db.Q, id int64) (*Pipeline, error) {
	return scanPipeline(q.QueryRowContext(ctx, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.id = ?`, id))
}

// countDownstream counts the downstream pipelines of a commit.
func countDownstream(ctx context.Context, q db.Q, projectID int64, sha string) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM pipelines WHERE project_id = ? AND sha = ? AND parent_id IS NOT NULL`, projectID, sha).Scan(&n)
	return n, err
}

// findActiveChildren returns the child pipelines of a pipeline that have not ended.
func findActiveChildren(ctx context.Context, q db.Q, id int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM pipelines WHERE parent_id = ? AND child AND status NOT IN ('success', 'failed', 'canceled', 'skipped')`, id)
}

// findRedundant returns the older pipelines of the same ref that a pipeline may
// cancel. Those of the head of the ref remain: pushes can be processed in another
// order, so that the pipeline of the head is not always the newest.
func findRedundant(ctx context.Context, q db.Q, p *Pipeline, head string) ([]*Pipeline, error) {
	return db.All(ctx, q, scanPipeline, `
		SELECT `+pipelineColumns+` FROM pipelines p WHERE p.ref = ? AND p.tag = ? AND p.sha NOT IN (?, ?)
			AND NOT p.child AND p.auto_cancel <> 'none' AND p.source NOT IN ('schedule', 'external')
			AND p.id IN (SELECT l.id FROM pipelines l WHERE l.project_id = ? AND l.id < ?
				AND l.status IN ('created', 'waiting_for_resource', 'pending', 'running', 'manual', 'scheduled'))
		ORDER BY p.id DESC LIMIT 100`, p.Ref, p.Tag, p.SHA, head, p.ProjectID, p.ID)
}

// findFinishedBefore returns pipelines that were created and ended before a
// time.
func findFinishedBefore(ctx context.Context, q db.Q, at time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM pipelines WHERE created_at < ? AND finished_at IS NOT NULL AND finished_at < ? ORDER BY created_at LIMIT 20`, at, at)
}

func deletePipeline(ctx context.Context, tx *db.Tx, id int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM pipelines WHERE id = ?`, id)
	return err
}

func findChildren(ctx context.Context, q db.Q, id int64) ([]*Pipeline, error) {
	return db.All(ctx, q, scanPipeline, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.parent_id = ? AND p.child`, id)
}

// findLatestPipeline returns the newest pipeline of a commit on a ref; NotFound.
func findLatestPipeline(ctx context.Context, q db.Q, projectID int64, ref string, tag bool, sha string) (*Pipeline, error) {
	p, err := scanPipeline(q.QueryRowContext(ctx, `
		SELECT `+pipelineColumns+` FROM pipelines p WHERE p.project_id = ? AND p.ref = ? AND p.tag = ? AND p.sha = ? AND NOT p.child ORDER BY p.id DESC LIMIT 1`,
		projectID, ref, tag, sha))
	return p, db.NotFound(err, "Pipeline")
}

func renamePipeline(ctx context.Context, q db.Q, projectID, id int64, name string, at time.Time) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE pipelines SET name = ?, updated_at = ? WHERE id = ? AND project_id = ?`, name, at, id, projectID), "Pipeline")
}

// setOutside records that a pipeline has external commit statuses.
func setOutside(ctx context.Context, tx *db.Tx, id int64) error {
	return db.ExecOne(ctx, tx, `UPDATE pipelines SET outside = TRUE WHERE id = ?`, id)
}

func setVariables(ctx context.Context, tx *db.Tx, id int64, sealed string) error {
	return db.ExecOne(ctx, tx, `UPDATE pipelines SET variables = ? WHERE id = ?`, sealed, id)
}

func findPipelines(ctx context.Context, q db.Q, ids []int64) ([]*Pipeline, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, scanPipeline, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.id IN `+db.In(len(ids)), db.Any(ids)...)
}

// findDownstream returns the pipelines that bridges created, by the ID of the
// bridge.
func findDownstream(ctx context.Context, q db.Q, bridges []int64) (map[int64]*Pipeline, error) {
	found := map[int64]*Pipeline{}
	if len(bridges) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, scanPipeline, `
		SELECT `+pipelineColumns+` FROM pipelines p WHERE p.parent_job_id IN `+db.In(len(bridges))+` ORDER BY p.id`, db.Any(bridges)...)
	for _, p := range list {
		found[*p.ParentJobID] = p
	}
	return found, err
}

// replaceUser transfers the pipelines and jobs of a user to another one.
func replaceUser(ctx context.Context, tx *db.Tx, from, to int64) error {
	for _, table := range []string{"pipelines", "jobs"} {
		if _, err := tx.ExecContext(ctx, `UPDATE `+table+` SET user_id = ? WHERE user_id = ?`, to, from); err != nil {
			return err
		}
	}
	return nil
}
