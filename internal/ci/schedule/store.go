package schedule

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const columns = `s.id, s.project_id, s.owner_id, s.description, s.ref, s.cron, s.cron_timezone, s.active, s.variables, s.next_run_at,
	s.last_pipeline_id, s.created_at, s.updated_at`

func scan(r db.Scanner) (*Schedule, error) {
	s := &Schedule{}
	err := r.Scan(&s.ID, &s.ProjectID, &s.OwnerID, &s.Description, &s.Ref, &s.Cron, &s.Timezone, &s.Active, &s.variables, db.NullTime(&s.NextRunAt),
		&s.LastPipelineID, db.Time(&s.CreatedAt), db.Time(&s.UpdatedAt))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func find(ctx context.Context, q db.Q, projectID, id int64) (*Schedule, error) {
	s, err := scan(q.QueryRowContext(ctx, `
		SELECT `+columns+` FROM pipeline_schedules s WHERE s.id = ? AND s.project_id = ?`, id, projectID))
	return s, db.NotFound(err, "Pipeline Schedule")
}

func list(ctx context.Context, d *db.DB, projectID int64, active *bool, p db.Paging) (db.Page[*Schedule], error) {
	var where db.Where
	where.And("s.project_id = ?", projectID)
	if active != nil {
		where.And("s.active = ?", *active)
	}
	return db.List(ctx, d, db.Query[*Schedule]{
		Columns: columns, From: "pipeline_schedules s", Where: where, Order: []db.Order{{Name: "s.id"}}, Scan: scan,
		Keys: func(s *Schedule) []any { return []any{s.ID} },
	}, p)
}

func insert(ctx context.Context, tx *db.Tx, s *Schedule) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO pipeline_schedules (project_id, owner_id, description, ref, cron, cron_timezone, active, next_run_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		s.ProjectID, s.OwnerID, s.Description, s.Ref, s.Cron, s.Timezone, s.Active, s.NextRunAt, s.CreatedAt, s.UpdatedAt).Scan(&s.ID)
}

// save writes a schedule. Conflict if another user changed it since.
func save(ctx context.Context, tx *db.Tx, s *Schedule, was time.Time) error {
	err := db.ExecOne(ctx, tx, `
		UPDATE pipeline_schedules SET owner_id = ?, description = ?, ref = ?, cron = ?, cron_timezone = ?, active = ?, variables = ?, next_run_at = ?, updated_at = ?
		WHERE id = ? AND updated_at = ?`,
		s.OwnerID, s.Description, s.Ref, s.Cron, s.Timezone, s.Active, s.variables, s.NextRunAt, s.UpdatedAt, s.ID, was)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The schedule was changed by another user")
	}
	return err
}

func remove(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM pipeline_schedules WHERE id = ?`, id), "Pipeline Schedule")
}

func findAny(ctx context.Context, q db.Q, id int64) (*Schedule, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM pipeline_schedules s WHERE s.id = ?`, id))
}

// findDue returns schedules whose next run is not after a time.
func findDue(ctx context.Context, q db.Q, now time.Time, limit int) ([]*Schedule, error) {
	return db.All(ctx, q, scan, `
		SELECT `+columns+` FROM pipeline_schedules s WHERE s.next_run_at IS NOT NULL AND s.next_run_at <= ? ORDER BY s.next_run_at LIMIT ?`, now, limit)
}

// advance sets the next run; db.ErrNoRows if the schedule was changed or run meanwhile.
func advance(ctx context.Context, tx *db.Tx, id int64, was time.Time, next *time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE pipeline_schedules SET next_run_at = ? WHERE id = ? AND next_run_at = ?`, next, id, was)
}

func setLastPipeline(ctx context.Context, q db.Q, id, pipelineID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE pipeline_schedules SET last_pipeline_id = ? WHERE id = ?`, pipelineID, id)
	return err
}

// deactivate deactivates the schedules of a user who is deleted.
func deactivate(ctx context.Context, tx *db.Tx, ownerID int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE pipeline_schedules SET active = FALSE, next_run_at = NULL, owner_id = NULL WHERE owner_id = ?`, ownerID)
	return err
}

func findPipelines(ctx context.Context, q db.Q, ids []int64) ([]*Pipeline, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, func(s db.Scanner) (*Pipeline, error) {
		p := &Pipeline{}
		return p, s.Scan(&p.ID, &p.SHA, &p.Ref, &p.Status)
	}, `SELECT id, sha, ref, status FROM pipelines WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
}
