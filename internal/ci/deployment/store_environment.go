package deployment

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const environmentColumns = `e.id, e.project_id, e.name, e.slug, e.external_url, e.description, e.tier, e.state, e.on_stop, e.auto_stop_at, e.created_at, e.updated_at`

func scanEnvironment(s db.Scanner) (*Environment, error) {
	e := &Environment{}
	err := s.Scan(&e.ID, &e.ProjectID, &e.Name, &e.Slug, &e.ExternalURL, &e.Description, &e.Tier, &e.State, &e.OnStop,
		db.NullTime(&e.AutoStopAt), db.Time(&e.CreatedAt), db.Time(&e.UpdatedAt))
	if err != nil {
		return nil, err
	}
	return e, nil
}

func FindEnvironment(ctx context.Context, q db.Q, projectID, id int64) (*Environment, error) {
	e, err := scanEnvironment(q.QueryRowContext(ctx, `
		SELECT `+environmentColumns+` FROM environments e WHERE e.id = ? AND e.project_id = ?`, id, projectID))
	return e, db.NotFound(err, "Environment")
}

func findEnvironmentByName(ctx context.Context, q db.Q, projectID int64, name string) (*Environment, error) {
	return scanEnvironment(q.QueryRowContext(ctx, `
		SELECT `+environmentColumns+` FROM environments e WHERE e.project_id = ? AND e.name = ?`, projectID, name))
}

func listEnvironments(ctx context.Context, d *db.DB, projectID int64, f EnvironmentFilter, p db.Paging) (db.Page[*Environment], error) {
	var where db.Where
	where.And("e.project_id = ?", projectID)
	if f.Name != "" {
		where.And("e.name = ?", f.Name)
	}
	if f.Search != "" {
		where.And(`lower(e.name) LIKE ? ESCAPE '\'`, db.Like(f.Search))
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, s := range f.States {
			states[i] = string(s)
		}
		where.And("e.state IN "+db.In(len(states)), states...)
	}
	return db.List(ctx, d, db.Query[*Environment]{
		Columns: environmentColumns, From: "environments e", Where: where, Order: []db.Order{{Name: "e.id"}}, Desc: true,
		Scan: scanEnvironment, Keys: func(e *Environment) []any { return []any{e.ID} },
	}, p)
}

func insertEnvironment(ctx context.Context, tx *db.Tx, e *Environment) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO environments (project_id, name, slug, external_url, description, tier, state, on_stop, auto_stop_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		e.ProjectID, e.Name, e.Slug, e.ExternalURL, e.Description, e.Tier, string(e.State), e.OnStop, e.AutoStopAt, e.CreatedAt, e.UpdatedAt).Scan(&e.ID)
	if db.IsUnique(err, "environments_project_id_name") {
		return errs.InvalidField("name", "has already been taken")
	}
	return err
}

// EnsureEnvironment creates an environment unless the project has one of its
// name, and reads it.
func EnsureEnvironment(ctx context.Context, tx *db.Tx, e *Environment) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO environments (project_id, name, slug, external_url, tier, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, 'available', ?, ?) ON CONFLICT (project_id, name) DO NOTHING`,
		e.ProjectID, e.Name, e.Slug, e.ExternalURL, e.Tier, e.CreatedAt, e.UpdatedAt)
	if err != nil {
		return err
	}
	found, err := findEnvironmentByName(ctx, tx, e.ProjectID, e.Name)
	if err != nil {
		return err
	}
	*e = *found
	return nil
}

func SaveEnvironment(ctx context.Context, tx *db.Tx, e *Environment) error {
	return db.ExecOne(ctx, tx, `
		UPDATE environments SET external_url = ?, description = ?, tier = ?, state = ?, on_stop = ?, auto_stop_at = ?, updated_at = ? WHERE id = ?`,
		e.ExternalURL, e.Description, e.Tier, string(e.State), e.OnStop, e.AutoStopAt, e.UpdatedAt, e.ID)
}

func deleteStopped(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM environments WHERE id = ? AND state = 'stopped'`, id), "Environment")
}

// StaleEnvironments returns the available environments of a project that were
// neither changed nor deployed to since a time.
func StaleEnvironments(ctx context.Context, q db.Q, projectID int64, before time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT e.id FROM environments e WHERE e.project_id = ? AND e.state = 'available' AND e.updated_at < ?
			AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.environment_id = e.id AND d.updated_at >= ?) ORDER BY e.id`, projectID, before, before)
}

// ExpiredEnvironments returns environments whose AutoStopAt has passed.
func ExpiredEnvironments(ctx context.Context, q db.Q, now time.Time) ([]*Environment, error) {
	return db.All(ctx, q, scanEnvironment, `
		SELECT `+environmentColumns+` FROM environments e WHERE e.auto_stop_at IS NOT NULL AND e.auto_stop_at <= ? ORDER BY e.auto_stop_at LIMIT 100`, now)
}
