package ci

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const scheduleColumns = `s.id, s.project_id, s.owner_id, s.description, s.ref, s.cron, s.cron_timezone, s.active, s.variables, s.next_run_at,
	s.last_pipeline_id, s.created_at, s.updated_at`

func scanSchedule(r db.Scanner) (*Schedule, error) {
	s := &Schedule{}
	err := r.Scan(&s.ID, &s.ProjectID, &s.OwnerID, &s.Description, &s.Ref, &s.Cron, &s.Timezone, &s.Active, &s.variables, db.NullTime(&s.NextRunAt),
		&s.LastPipelineID, db.Time(&s.CreatedAt), db.Time(&s.UpdatedAt))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func findSchedule(ctx context.Context, q db.Q, projectID, id int64) (*Schedule, error) {
	s, err := scanSchedule(q.QueryRowContext(ctx, `
		SELECT `+scheduleColumns+` FROM pipeline_schedules s WHERE s.id = ? AND s.project_id = ?`, id, projectID))
	return s, db.NotFound(err, "Pipeline Schedule")
}

func listSchedules(ctx context.Context, d *db.DB, projectID int64, active *bool, p db.Paging) (db.Page[*Schedule], error) {
	var where db.Where
	where.And("s.project_id = ?", projectID)
	if active != nil {
		where.And("s.active = ?", *active)
	}
	return db.List(ctx, d, db.Query[*Schedule]{
		Columns: scheduleColumns, From: "pipeline_schedules s", Where: where, Order: []db.Order{{Name: "s.id"}}, Scan: scanSchedule,
		Keys: func(s *Schedule) []any { return []any{s.ID} },
	}, p)
}

func insertSchedule(ctx context.Context, tx *db.Tx, s *Schedule) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO pipeline_schedules (project_id, owner_id, description, ref, cron, cron_timezone, active, next_run_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		s.ProjectID, s.OwnerID, s.Description, s.Ref, s.Cron, s.Timezone, s.Active, s.NextRunAt, s.CreatedAt, s.UpdatedAt).Scan(&s.ID)
}

// saveSchedule writes a schedule unless a user changed it since.
func saveSchedule(ctx context.Context, tx *db.Tx, s *Schedule, was time.Time) error {
	err := db.ExecOne(ctx, tx, `
		UPDATE pipeline_schedules SET owner_id = ?, description = ?, ref = ?, cron = ?, cron_timezone = ?, active = ?, variables = ?, next_run_at = ?, updated_at = ?
		WHERE id = ? AND updated_at = ?`,
		s.OwnerID, s.Description, s.Ref, s.Cron, s.Timezone, s.Active, s.variables, s.NextRunAt, s.UpdatedAt, s.ID, was)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The schedule was changed by another user")
	}
	return err
}
