package ci

import (
	"context"
	"errors"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
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

func findEnvironment(ctx context.Context, q db.Q, projectID, id int64) (*Environment, error) {
	e, err := scanEnvironment(q.QueryRowContext(ctx, `
		SELECT `+environmentColumns+` FROM environments e WHERE e.id = ? AND e.project_id = ?`, id, projectID))
	return e, notFound(err, "Environment")
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

// ensureEnvironment makes an environment unless there is one of its name, and
// fills in the one that there is then.
func ensureEnvironment(ctx context.Context, tx *db.Tx, e *Environment) error {
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

func saveEnvironment(ctx context.Context, tx *db.Tx, e *Environment) error {
	return db.ExecOne(ctx, tx, `
		UPDATE environments SET external_url = ?, description = ?, tier = ?, state = ?, on_stop = ?, auto_stop_at = ?, updated_at = ? WHERE id = ?`,
		e.ExternalURL, e.Description, e.Tier, string(e.State), e.OnStop, e.AutoStopAt, e.UpdatedAt, e.ID)
}

const deploymentColumns = `d.id, d.project_id, d.iid, d.environment_id, d.job_id, d.user_id, d.status, d.ref, d.tag, d.sha, d.created_at, d.updated_at, d.finished_at`

func scanDeployment(s db.Scanner) (*Deployment, error) {
	d := &Deployment{}
	err := s.Scan(&d.ID, &d.ProjectID, &d.IID, &d.EnvironmentID, &d.JobID, &d.UserID, &d.Status, &d.Ref, &d.Tag, &d.SHA,
		db.Time(&d.CreatedAt), db.Time(&d.UpdatedAt), db.NullTime(&d.FinishedAt))
	if err != nil {
		return nil, err
	}
	return d, nil
}

func findDeployment(ctx context.Context, q db.Q, projectID, id int64) (*Deployment, error) {
	d, err := scanDeployment(q.QueryRowContext(ctx, `
		SELECT `+deploymentColumns+` FROM deployments d WHERE d.id = ? AND d.project_id = ?`, id, projectID))
	return d, notFound(err, "Deployment")
}

// lastDeployment finds the last one of an environment that succeeded; nil
// without one.
func lastDeployment(ctx context.Context, q db.Q, environmentID int64) (*Deployment, error) {
	d, err := scanDeployment(q.QueryRowContext(ctx, `
		SELECT `+deploymentColumns+` FROM deployments d WHERE d.environment_id = ? AND d.status = 'success' ORDER BY d.id DESC LIMIT 1`, environmentID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return d, err
}

func listDeployments(ctx context.Context, d *db.DB, by actor.Actor, in *project.Project, f DeploymentFilter, p db.Paging) (db.Page[*Deployment], error) {
	from := "deployments d"
	var where db.Where
	where.And("d.project_id = ?", in.ID)
	leaveOut(&where, by, in, "d")
	if f.Environment != "" {
		from += " JOIN environments e ON e.id = d.environment_id"
		where.And("e.name = ?", f.Environment)
	}
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
		Columns: deploymentColumns, From: from, Where: where, Order: order, Desc: f.Desc,
		Scan: scanDeployment, Keys: func(d *Deployment) []any { return []any{d.ID} },
	}, p)
}
