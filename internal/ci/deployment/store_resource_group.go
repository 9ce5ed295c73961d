package deployment

import (
	"context"
	"time"

	"svc/internal/db"
)

const resourceGroupColumns = `g.id, g.project_id, g.key, g.process_mode, g.created_at, g.updated_at`

func scanResourceGroup(s db.Scanner) (*ResourceGroup, error) {
	g := &ResourceGroup{}
	if err := s.Scan(&g.ID, &g.ProjectID, &g.Key, &g.Mode, db.Time(&g.CreatedAt), db.Time(&g.UpdatedAt)); err != nil {
		return nil, err
	}
	return g, nil
}

func findResourceGroup(ctx context.Context, q db.Q, projectID int64, key string) (*ResourceGroup, error) {
	g, err := scanResourceGroup(q.QueryRowContext(ctx, `
		SELECT `+resourceGroupColumns+` FROM resource_groups g WHERE g.project_id = ? AND g.key = ?`, projectID, key))
	return g, db.NotFound(err, "Resource Group")
}

func listResourceGroups(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*ResourceGroup], error) {
	var where db.Where
	where.And("g.project_id = ?", projectID)
	return db.List(ctx, d, db.Query[*ResourceGroup]{
		Columns: resourceGroupColumns, From: "resource_groups g", Where: where, Order: []db.Order{{Name: "g.id"}}, Scan: scanResourceGroup,
		Keys: func(g *ResourceGroup) []any { return []any{g.ID} },
	}, p)
}

func saveProcessMode(ctx context.Context, tx *db.Tx, g *ResourceGroup) error {
	return db.ExecOne(ctx, tx, `UPDATE resource_groups SET process_mode = ?, updated_at = ? WHERE id = ?`, string(g.Mode), g.UpdatedAt, g.ID)
}

// EnsureResourceGroup returns the ID of a resource group by its key. It creates
// the group if it does not exist.
func EnsureResourceGroup(ctx context.Context, tx *db.Tx, projectID int64, key string, at time.Time) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO resource_groups (project_id, key, created_at, updated_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id, key) DO UPDATE SET key = excluded.key RETURNING id`, projectID, key, at, at).Scan(&id)
	return id, err
}
