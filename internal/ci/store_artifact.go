package ci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const artifactColumns = `a.id, a.job_id, a.project_id, a.kind, a.format, a.filename, a.size, a.sha256, a.blob, a.expires_at, a.created_at`

func sumArtifacts(ctx context.Context, q db.Q, projects []int64) (map[int64]int64, error) {
	return sumSizes(ctx, q, `SELECT project_id, CAST(SUM(size) AS BIGINT) FROM job_artifacts WHERE kind <> 'test_cases' AND project_id IN `+db.In(len(projects))+` GROUP BY project_id`, projects)
}

func sumGroupArtifacts(ctx context.Context, q db.Q, groups []int64) (map[int64]int64, error) {
	return sumSizes(ctx, q, `SELECT t.ancestor_id, CAST(SUM(a.size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN job_artifacts a ON a.project_id = p.id
		WHERE a.kind <> 'test_cases' AND p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, groups)
}

// sumSizes reads pairs of an id and a sum.
func sumSizes(ctx context.Context, q db.Q, query string, ids []int64) (map[int64]int64, error) {
	found := make(map[int64]int64, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	_, err := db.All(ctx, q, func(s db.Scanner) (struct{}, error) {
		var id, size int64
		err := s.Scan(&id, &size)
		found[id] = size
		return struct{}{}, err
	}, query, db.Any(ids)...)
	return found, err
}

func scanArtifact(s db.Scanner) (*Artifact, error) {
	a := &Artifact{}
	err := s.Scan(&a.ID, &a.JobID, &a.ProjectID, &a.Kind, &a.Format, &a.Filename, &a.Size, &a.SHA256, &a.blob, db.NullTime(&a.ExpiresAt), db.Time(&a.CreatedAt))
	return a, err
}

func findArtifact(ctx context.Context, q db.Q, jobID int64, kind ArtifactKind) (*Artifact, error) {
	a, err := scanArtifact(q.QueryRowContext(ctx, `SELECT `+artifactColumns+` FROM job_artifacts a WHERE a.job_id = ? AND a.kind = ?`, jobID, string(kind)))
	return a, notFound(err, "")
}

func insertArtifact(ctx context.Context, tx *db.Tx, a *Artifact) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO job_artifacts (job_id, project_id, kind, format, filename, size, sha256, blob, expires_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		a.JobID, a.ProjectID, string(a.Kind), string(a.Format), a.Filename, a.Size, a.SHA256, a.blob, a.ExpiresAt, a.CreatedAt).Scan(&a.ID)
}

// replaceArtifact puts another file in place of one; db.ErrNoRows when it is not
// there any more.
func replaceArtifact(ctx context.Context, tx *db.Tx, old, now *Artifact) error {
	now.ID = old.ID
	return db.ExecOne(ctx, tx, `UPDATE job_artifacts SET size = ?, sha256 = ?, blob = ? WHERE id = ? AND blob = ?`, now.Size, now.SHA256, now.blob, old.ID, old.blob)
}

// handedOn names a file that jobs hand on to later ones.
type handedOn struct {
	job  int64
	kind ArtifactKind
}

// findHandedOn returns the archives and the reported variables of jobs.
func findHandedOn(ctx context.Context, q db.Q, jobs []int64) (map[handedOn]*Artifact, error) {
	found := map[handedOn]*Artifact{}
	list, err := db.All(ctx, q, scanArtifact, `
		SELECT `+artifactColumns+` FROM job_artifacts a WHERE a.kind IN ('archive', 'dotenv') AND a.job_id IN `+db.In(len(jobs)), db.Any(jobs)...)
	for _, a := range list {
		found[handedOn{a.JobID, a.Kind}] = a
	}
	return found, err
}

// Artifacts returns what jobs left behind, by job, in the order in which it
// came.
func (s *Service) Artifacts(ctx context.Context, jobs []int64) (map[int64][]*Artifact, error) {
	found := map[int64][]*Artifact{}
	if len(jobs) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, s.DB, scanArtifact, `SELECT `+artifactColumns+` FROM job_artifacts a WHERE a.kind <> 'test_cases' AND a.job_id IN `+db.In(len(jobs))+` ORDER BY a.id`, db.Any(jobs)...)
	for _, a := range list {
		found[a.JobID] = append(found[a.JobID], a)
	}
	return found, err
}

// latestArchived finds the job of a name with an archive in the newest
// successful pipeline of a ref that has one.
func latestArchived(ctx context.Context, q db.Q, projectID int64, ref string, tag bool, name string) (*Job, error) {
	return scanJob(q.QueryRowContext(ctx, `
		SELECT `+jobColumns+` FROM pipelines p JOIN jobs j ON j.pipeline_id = p.id AND j.name = ? AND NOT j.retried AND j.status = 'success'
		WHERE p.project_id = ? AND p.ref = ? AND p.tag = ? AND p.status = 'success' AND NOT p.child
			AND EXISTS (SELECT 1 FROM job_artifacts a WHERE a.job_id = j.id AND a.kind = 'archive')
		ORDER BY p.id DESC LIMIT 1`, name, projectID, ref, tag))
}

// artifactBlobs are the keys of the files of jobs, with those of their logs or
// without.
func artifactBlobs(ctx context.Context, q db.Q, jobs []int64, logs bool) ([]string, error) {
	query := `SELECT blob FROM job_artifacts WHERE job_id IN ` + db.In(len(jobs)) + ``
	if !logs {
		query += ` AND kind <> 'trace'`
	}
	return db.All(ctx, q, db.Value[string], query, db.Any(jobs)...)
}

func insertUpload(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO job_uploads (blob, created_at) VALUES (?, ?)`, blob, at)
	return err
}

// deleteUpload says that a file has come: Conflict when it took so long that it
// was removed.
func deleteUpload(ctx context.Context, tx *db.Tx, blob string) error {
	err := db.ExecOne(ctx, tx, `DELETE FROM job_uploads WHERE blob = ?`, blob)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The upload took too long")
	}
	return err
}

func forgetUpload(ctx context.Context, q db.Q, blob string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM job_uploads WHERE blob = ?`, blob)
	return err
}

// findUploads are files that have been under way since before a time.
func findUploads(ctx context.Context, q db.Q, before time.Time, limit int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM job_uploads WHERE created_at < ? ORDER BY created_at LIMIT ?`, before, limit)
}

// storedReport is the report of a job with the name of its suite.
type storedReport struct {
	suite string
	file  *Artifact
}

// findReports returns the JUnit reports of a pipeline.
func findReports(ctx context.Context, q db.Q, pipelineID int64, limit int) ([]storedReport, error) {
	return db.All(ctx, q, scanReport, `
		SELECT j.options, `+"`+artifactColumns+`"+` FROM jobs j JOIN job_artifacts a ON a.job_id = j.id AND a.kind = 'junit'
		WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.stage_index, j.id LIMIT ?`, pipelineID, limit)
}

func scanReport(s db.Scanner) (storedReport, error) {
	a := &Artifact{}
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
