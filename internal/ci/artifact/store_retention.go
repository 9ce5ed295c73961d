package artifact

import (
	"context"
	"time"

	"svc/internal/db"
)

// keep removes the expiration time of the files of a job.
func keep(ctx context.Context, tx *db.Tx, jobID int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE job_artifacts SET expires_at = NULL WHERE job_id = ? AND kind <> 'trace'`, jobID)
	return err
}

// deleteOfJobs deletes the files of jobs, with or without their logs.
func deleteOfJobs(ctx context.Context, tx *db.Tx, jobs []int64, logs bool) error {
	query := `DELETE FROM job_artifacts WHERE job_id IN ` + db.In(len(jobs))
	if !logs {
		query += ` AND kind <> 'trace'`
	}
	if _, err := tx.ExecContext(ctx, query, db.Any(jobs)...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE jobs SET artifacts_expire_at = NULL WHERE artifacts_expire_at IS NOT NULL AND id IN `+db.In(len(jobs)), db.Any(jobs)...)
	return err
}

// findFinishedWithArtifacts returns finished jobs of a project that have artifacts, in
// order from an ID on. COALESCE keeps SQLite from an index in another order.
func findFinishedWithArtifacts(ctx context.Context, q db.Q, projectID, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT j.id FROM jobs j WHERE j.project_id = ? AND j.bridge = FALSE AND j.id > ?
			AND COALESCE(j.status, '') IN ('success', 'failed', 'canceled', 'skipped')
			AND EXISTS (SELECT 1 FROM job_artifacts a WHERE a.job_id = j.id AND a.kind <> 'trace') ORDER BY j.id LIMIT ?`,
		projectID, after, limit)
}

func keysOfProject(ctx context.Context, q db.Q, projectID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT a.blob FROM job_artifacts a JOIN jobs j ON j.id = a.job_id WHERE j.project_id = ?`, projectID)
}

// findExpired returns the jobs of the artifacts that expired first.
func findExpired(ctx context.Context, q db.Q, now time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT e.job_id FROM (
			SELECT a.job_id FROM job_artifacts a WHERE a.expires_at <= ? AND a.kind <> 'trace' ORDER BY a.expires_at LIMIT ?) e`, now, limit)
}

// postpone sets the expiration time of the expired files of a job.
func postpone(ctx context.Context, tx *db.Tx, jobID int64, now, until time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE job_artifacts SET expires_at = ? WHERE job_id = ? AND expires_at <= ?`, until, jobID, now)
	return err
}

// deleteExpired deletes the expired artifacts of a job and returns their keys.
func deleteExpired(ctx context.Context, tx *db.Tx, jobID int64, now time.Time) ([]string, error) {
	keys, err := db.All(ctx, tx, db.Value[string], `SELECT blob FROM job_artifacts WHERE job_id = ? AND kind <> 'trace' AND expires_at <= ?`, jobID, now)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM job_artifacts WHERE job_id = ? AND kind <> 'trace' AND expires_at <= ?`, jobID, now)
	return keys, err
}

// findLogsBefore returns packed logs that were stored before a time.
func findLogsBefore(ctx context.Context, q db.Q, before time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT a.id FROM job_artifacts a WHERE a.kind = 'trace' AND a.created_at < ? ORDER BY a.created_at LIMIT ?`, before, limit)
}

// deleteFiles deletes files and returns their keys.
func deleteFiles(ctx context.Context, tx *db.Tx, ids []int64) ([]string, error) {
	keys, err := db.All(ctx, tx, db.Value[string], `SELECT blob FROM job_artifacts WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM job_artifacts WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
	return keys, err
}
