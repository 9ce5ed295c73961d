package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
)

const columns = `a.id, a.job_id, a.project_id, a.kind, a.format, a.filename, a.size, a.sha256, a.blob, a.expires_at, a.created_at`

func sumByProject(ctx context.Context, q db.Q, projects []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `SELECT project_id, CAST(SUM(size) AS BIGINT) FROM job_artifacts WHERE kind <> 'test_cases' AND project_id IN `+db.In(len(projects))+` GROUP BY project_id`, projects)
}

func sumByGroup(ctx context.Context, q db.Q, groups []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `SELECT t.ancestor_id, CAST(SUM(a.size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN job_artifacts a ON a.project_id = p.id
		WHERE a.kind <> 'test_cases' AND p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, groups)
}

func scan(s db.Scanner) (*File, error) {
	a := &File{}
	err := s.Scan(&a.ID, &a.JobID, &a.ProjectID, &a.Kind, &a.Format, &a.Filename, &a.Size, &a.SHA256, &a.blob, db.NullTime(&a.ExpiresAt), db.Time(&a.CreatedAt))
	return a, err
}

func find(ctx context.Context, q db.Q, jobID int64, kind Kind) (*File, error) {
	a, err := scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM job_artifacts a WHERE a.job_id = ? AND a.kind = ?`, jobID, string(kind)))
	return a, db.NotFound(err, "")
}

func insert(ctx context.Context, tx *db.Tx, a *File) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO job_artifacts (job_id, project_id, kind, format, filename, size, sha256, blob, expires_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		a.JobID, a.ProjectID, string(a.Kind), string(a.Format), a.Filename, a.Size, a.SHA256, a.blob, a.ExpiresAt, a.CreatedAt).Scan(&a.ID)
}

// replace replaces a file; db.ErrNoRows if it was replaced or deleted meanwhile.
func replace(ctx context.Context, tx *db.Tx, old, now *File) error {
	now.ID = old.ID
	return db.ExecOne(ctx, tx, `UPDATE job_artifacts SET size = ?, sha256 = ?, blob = ? WHERE id = ? AND blob = ?`, now.Size, now.SHA256, now.blob, old.ID, old.blob)
}

func findByJobs(ctx context.Context, q db.Q, jobs []int64) ([]*File, error) {
	return db.All(ctx, q, scan, `SELECT `+columns+` FROM job_artifacts a WHERE a.kind <> 'test_cases' AND a.job_id IN `+db.In(len(jobs))+` ORDER BY a.id`, db.Any(jobs)...)
}

// findInputs returns the archives and dotenv reports of jobs.
func findInputs(ctx context.Context, q db.Q, jobs []int64) ([]*File, error) {
	return db.All(ctx, q, scan, `
		SELECT `+columns+` FROM job_artifacts a WHERE a.kind IN ('archive', 'dotenv') AND a.job_id IN `+db.In(len(jobs)), db.Any(jobs)...)
}

// keysOf returns the keys of the files of jobs, with or without those of their logs.
func keysOf(ctx context.Context, q db.Q, jobs []int64, logs bool) ([]string, error) {
	query := `SELECT blob FROM job_artifacts WHERE job_id IN ` + db.In(len(jobs))
	if !logs {
		query += ` AND kind <> 'trace'`
	}
	return db.All(ctx, q, db.Value[string], query, db.Any(jobs)...)
}

// insertUpload begins an upload: the file is removed if it gets no row.
func insertUpload(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO job_uploads (blob, created_at) VALUES (?, ?)`, blob, at)
	return err
}

// deleteUpload ends an upload whose file gets a row. Conflict if it took so long that
// the file was removed.
func deleteUpload(ctx context.Context, tx *db.Tx, blob string) error {
	err := db.ExecOne(ctx, tx, `DELETE FROM job_uploads WHERE blob = ?`, blob)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The upload took too long")
	}
	return err
}

// deleteUploads returns the keys of the uploads that it deleted.
func deleteUploads(ctx context.Context, tx *db.Tx, keys []string) ([]string, error) {
	return db.All(ctx, tx, db.Value[string], `DELETE FROM job_uploads WHERE blob IN `+db.In(len(keys))+` RETURNING blob`, db.Any(keys)...)
}

// findUploads returns the keys of uploads that began before a time.
func findUploads(ctx context.Context, q db.Q, before time.Time, limit int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM job_uploads WHERE created_at < ? ORDER BY created_at LIMIT ?`, before, limit)
}

// storedReport is the report of a job with the name of its suite.
type storedReport struct {
	suite string
	file  *File
}

// findReports returns the JUnit reports of a pipeline.
func findReports(ctx context.Context, q db.Q, pipelineID int64, limit int) ([]storedReport, error) {
	return db.All(ctx, q, scanReport, `
		SELECT j.options, `+columns+` FROM jobs j JOIN job_artifacts a ON a.job_id = j.id AND a.kind = 'junit'
		WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.stage_index, j.id LIMIT ?`, pipelineID, limit)
}

func scanReport(s db.Scanner) (storedReport, error) {
	a := &File{}
	var options string
	err := s.Scan(&options, &a.ID, &a.JobID, &a.ProjectID, &a.Kind, &a.Format, &a.Filename, &a.Size, &a.SHA256, &a.blob, db.NullTime(&a.ExpiresAt), db.Time(&a.CreatedAt))
	if err != nil {
		return storedReport{}, err
	}
	var job struct {
		Group string `json:"group"`
		Name  string `json:"name"`
	}
	if err := json.Unmarshal([]byte(options), &job); err != nil {
		return storedReport{}, fmt.Errorf("options of job %d: %w", a.JobID, err)
	}
	if job.Group == "" {
		job.Group = job.Name
	}
	return storedReport{suite: job.Group, file: a}, nil
}

// job is the part of a job that decides about its files.
type job struct {
	id, projectID, pipelineID int64
	status                    flow.Status
	canceling, erased         bool
	ref                       string
	tag                       bool
}

// running reports whether the runner of the job may upload files.
func (j *job) running() bool { return j.status == flow.Running || j.canceling }

func findJob(ctx context.Context, q db.Q, id int64) (*job, error) {
	j := &job{id: id}
	err := q.QueryRowContext(ctx, `
		SELECT project_id, pipeline_id, status, canceling, erased_at IS NOT NULL, ref, tag FROM jobs WHERE id = ?`, id).
		Scan(&j.projectID, &j.pipelineID, &j.status, &j.canceling, &j.erased, &j.ref, &j.tag)
	return j, db.NotFound(err, "Job")
}

// setJobExpiry sets the expiration time that is shown with a job.
func setJobExpiry(ctx context.Context, tx *db.Tx, jobID int64, at *time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE jobs SET artifacts_expire_at = ? WHERE id = ?`, at, jobID)
}

// unsettledJobs returns those of the jobs that have not ended, whose runner has not
// stopped, or that ended after a time.
func unsettledJobs(ctx context.Context, q db.Q, ids []int64, after time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM jobs WHERE id IN `+db.In(len(ids))+` AND (canceling OR finished_at IS NULL OR finished_at > ?)`, append(db.Any(ids), after)...)
}

// newestSuccess returns the newest successful pipeline of the ref of a job, nil if there
// is none.
func newestSuccess(ctx context.Context, q db.Q, j *job) (id *int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT MAX(id) FROM pipelines WHERE project_id = ? AND ref = ? AND tag = ? AND status = 'success' AND NOT child`, j.projectID, j.ref, j.tag).Scan(&id)
	return id, err
}
