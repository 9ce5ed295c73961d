package ci

import (
	"context"
	"errors"

	"svc/internal/db"
	"svc/internal/project"
)

// findEndedMirrors returns the jobs that mirror a pipeline which has ended or
// was deleted.
func findEndedMirrors(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT m.job_id FROM mirror_jobs m LEFT JOIN pipelines p ON p.id = m.pipeline_id
		WHERE p.id IS NULL OR p.status IN ('success', 'failed', 'canceled', 'skipped') ORDER BY m.job_id LIMIT ?`, limit)
}

func deleteMirror(ctx context.Context, q db.Q, jobID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM mirror_jobs WHERE job_id = ?`, jobID)
	return err
}

func insertMirror(ctx context.Context, tx *db.Tx, jobID, pipelineID int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO mirror_jobs (job_id, pipeline_id) VALUES (?, ?) ON CONFLICT (job_id) DO NOTHING`, jobID, pipelineID)
	return err
}

// mirrored returns the pipeline that a job mirrors; nil if it was deleted.
func mirrored(ctx context.Context, q db.Q, jobID int64) (*Pipeline, error) {
	p, err := scanPipeline(q.QueryRowContext(ctx, `
		SELECT `+pipelineColumns+` FROM pipelines p JOIN mirror_jobs m ON m.pipeline_id = p.id WHERE m.job_id = ?`, jobID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return p, err
}

// latestOf returns the newest pipeline of the default branch of a project; nil if
// there is none.
func latestOf(ctx context.Context, q db.Q, p *project.Project) (*Pipeline, error) {
	found, err := scanPipeline(q.QueryRowContext(ctx, `
		SELECT `+pipelineColumns+` FROM pipelines p WHERE p.project_id = ? AND p.ref = ? AND NOT p.tag AND NOT p.child ORDER BY p.id DESC LIMIT 1`,
		p.ID, p.DefaultBranch))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return found, err
}
