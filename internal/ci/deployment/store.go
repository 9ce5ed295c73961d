package deployment

import (
	"context"
	"errors"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

const columns = `d.id, d.project_id, d.iid, d.environment_id, d.job_id, COALESCE((SELECT j.name FROM jobs j WHERE j.id = d.job_id), ''), d.user_id, d.status, d.ref, d.tag, d.sha, d.created_at, d.updated_at, d.finished_at`

func scan(s db.Scanner) (*Deployment, error) {
	d := &Deployment{}
	err := s.Scan(&d.ID, &d.ProjectID, &d.IID, &d.EnvironmentID, &d.JobID, &d.JobName, &d.UserID, &d.Status, &d.Ref, &d.Tag, &d.SHA,
		db.Time(&d.CreatedAt), db.Time(&d.UpdatedAt), db.NullTime(&d.FinishedAt))
	if err != nil {
		return nil, err
	}
	return d, nil
}

func find(ctx context.Context, q db.Q, projectID, id int64) (*Deployment, error) {
	d, err := scan(q.QueryRowContext(ctx, `
		SELECT `+columns+` FROM deployments d WHERE d.id = ? AND d.project_id = ?`, id, projectID))
	return d, db.NotFound(err, "Deployment")
}

// LastSuccessful returns the last successful deployment of an environment; nil if
// there is none.
func LastSuccessful(ctx context.Context, q db.Q, environmentID int64) (*Deployment, error) {
	d, err := scan(q.QueryRowContext(ctx, `
		SELECT `+columns+` FROM deployments d WHERE d.environment_id = ? AND d.status = 'success' ORDER BY d.id DESC LIMIT 1`, environmentID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return d, err
}

// shaBefore returns the commit of the last successful deployment of the
// environment before a deployment; empty if there is none.
func shaBefore(ctx context.Context, q db.Q, d *Deployment) (string, error) {
	var sha string
	err := q.QueryRowContext(ctx, `SELECT sha FROM deployments WHERE environment_id = ? AND id < ? AND status = 'success' ORDER BY id DESC LIMIT 1`,
		d.EnvironmentID, d.ID).Scan(&sha)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return sha, err
}

func list(ctx context.Context, d *db.DB, by actor.Actor, in *project.Project, f Filter, p db.Paging) (db.Page[*Deployment], error) {
	var where db.Where
	if f.Environment != "" {
		where.And("d.environment_id = (SELECT e.id FROM environments e WHERE e.project_id = ? AND e.name = ?)", in.ID, f.Environment)
	} else {
		where.And("d.project_id = ?", in.ID)
	}
	repo.WhereRefVisible(&where, by, in, "d.ref")
	if f.Status != "" {
		where.And("d.status = ?", string(f.Status))
	}
	where.Time("d.updated_at >= ?", f.UpdatedAfter)
	where.Time("d.updated_at <= ?", f.UpdatedBefore)
	where.Time("d.finished_at >= ?", f.FinishedAfter)
	where.Time("d.finished_at <= ?", f.FinishedBefore)
	order := []db.Order{{Name: "d.id"}}
	if f.OrderBy != "" && f.OrderBy != "id" {
		order = []db.Order{{Name: "d." + strings.ToLower(f.OrderBy)}, {Name: "d.id"}}
	}
	return db.List(ctx, d, db.Query[*Deployment]{
		Columns: columns, From: "deployments d", Where: where, Order: order, Desc: f.Desc,
		Scan: scan, Keys: func(d *Deployment) []any { return []any{d.ID} },
	}, p)
}

// lastSuccessful returns the last successful deployment of each environment.
func lastSuccessful(ctx context.Context, q db.Q, of []*Environment) ([]*Deployment, error) {
	if len(of) == 0 {
		return nil, nil
	}
	byID, ids := map[int64]*Environment{}, []int64{}
	for _, e := range of {
		byID[e.ID], ids = e, append(ids, e.ID)
	}
	list, err := db.All(ctx, q, scan, `
		SELECT `+columns+` FROM deployments d WHERE d.id IN (
			SELECT (SELECT l.id FROM deployments l WHERE l.environment_id = e.id AND l.status = 'success' ORDER BY l.id DESC LIMIT 1)
			FROM environments e WHERE e.id IN `+db.In(len(ids))+`)`, db.Any(ids)...)
	for _, d := range list {
		d.Environment = byID[d.EnvironmentID]
	}
	return list, err
}

func insert(ctx context.Context, tx *db.Tx, d *Deployment) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO deployments (project_id, iid, environment_id, user_id, status, ref, tag, sha, created_at, updated_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.ProjectID, d.IID, d.EnvironmentID, d.UserID, string(d.Status), d.Ref, d.Tag, d.SHA, d.CreatedAt, d.UpdatedAt, d.FinishedAt).Scan(&d.ID)
}

func save(ctx context.Context, tx *db.Tx, d *Deployment) error {
	return db.ExecOne(ctx, tx, `UPDATE deployments SET status = ?, updated_at = ?, finished_at = ? WHERE id = ?`,
		string(d.Status), d.UpdatedAt, d.FinishedAt, d.ID)
}

func deleteRow(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM deployments WHERE id = ?`, id), "Deployment")
}

// InsertOfJob creates the deployment of a job.
func InsertOfJob(ctx context.Context, tx *db.Tx, jobID, iid int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO deployments (project_id, iid, environment_id, job_id, user_id, status, ref, tag, sha, created_at, updated_at)
		SELECT j.project_id, CAST(? AS BIGINT), j.environment_id, j.id, j.user_id, 'created', j.ref, j.tag, p.sha, CAST(? AS BIGINT), CAST(? AS BIGINT)
		FROM jobs j JOIN pipelines p ON p.id = j.pipeline_id WHERE j.id = ?`, iid, at, at, jobID)
	return err
}

// SetStatusOfJob sets the status of the deployment of a job, if it has one.
func SetStatusOfJob(ctx context.Context, tx *db.Tx, jobID int64, status Status, at time.Time) error {
	var finished *time.Time
	if status != Created && status != Running && status != Blocked {
		finished = &at
	}
	err := db.ExecOne(ctx, tx, `UPDATE deployments SET status = ?, updated_at = ?, finished_at = ? WHERE job_id = ?`, string(status), at, finished, jobID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}

// OlderPendingJobs returns the pending jobs that would deploy an older version
// to the environment of a job than the job did.
func OlderPendingJobs(ctx context.Context, tx *db.Tx, jobID int64) ([]int64, error) {
	return db.All(ctx, tx, db.Value[int64], `
		SELECT o.job_id FROM deployments d JOIN deployments o ON o.environment_id = d.environment_id AND o.id < d.id JOIN jobs j ON j.id = o.job_id
		WHERE d.job_id = ? AND o.status = 'created' AND o.sha <> d.sha AND j.status = 'pending' AND j.claimed_at IS NULL`, jobID)
}

// IsOutdated reports whether the environment of a job has a newer deployment than
// that of the job.
func IsOutdated(ctx context.Context, q db.Q, jobID int64) (bool, error) {
	var own, last int64
	var sha, there string
	err := q.QueryRowContext(ctx, `
		SELECT d.id, d.sha, l.id, l.sha FROM deployments d JOIN deployments l ON l.environment_id = d.environment_id AND l.status = 'success'
		WHERE d.job_id = ? ORDER BY l.id DESC LIMIT 1`, jobID).Scan(&own, &sha, &last, &there)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil && own < last && sha != there, err
}

// replaceUser transfers the deployments of a user to another one.
func replaceUser(ctx context.Context, tx *db.Tx, from, to int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE deployments SET user_id = ? WHERE user_id = ?`, to, from)
	return err
}
