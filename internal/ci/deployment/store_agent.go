package deployment

import (
	"context"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const agentColumns = `a.id, a.project_id, a.name, a.created_by, a.created_at`

func scanAgent(s db.Scanner) (*Agent, error) {
	a := &Agent{}
	err := s.Scan(&a.ID, &a.ProjectID, &a.Name, &a.CreatedBy, db.Time(&a.CreatedAt))
	return a, err
}

func findAgent(ctx context.Context, q db.Q, p *project.Project, id int64) (*Agent, error) {
	a, err := scanAgent(q.QueryRowContext(ctx, `SELECT `+agentColumns+` FROM cluster_agents a WHERE a.id = ? AND a.project_id = ?`, id, p.ID))
	a.Project = p
	return a, db.NotFound(err, "Agent")
}

func listAgents(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Agent], error) {
	var w db.Where
	w.And("a.project_id = ?", projectID)
	return db.List(ctx, d, db.Query[*Agent]{
		Columns: agentColumns, From: "cluster_agents a", Where: w, Order: []db.Order{{Name: "a.id"}},
		Scan: scanAgent, Keys: func(a *Agent) []any { return []any{a.ID} },
	}, p)
}

// agentsBelowRoot returns the agents of all projects with the same root namespace. An
// agent cannot be used from other root namespaces.
func agentsBelowRoot(ctx context.Context, q db.Q, namespaceID int64) ([]*Agent, error) {
	return db.All(ctx, q, scanAgent, `
		SELECT `+agentColumns+` FROM cluster_agents a JOIN projects p ON p.id = a.project_id AND p.deleted_at IS NULL
			JOIN namespace_tree t ON t.descendant_id = p.namespace_id
		WHERE t.ancestor_id = (
			SELECT r.ancestor_id FROM namespace_tree r JOIN namespaces n ON n.id = r.ancestor_id
			WHERE r.descendant_id = ? AND n.parent_id IS NULL) ORDER BY a.id`, namespaceID)
}

func insertAgent(ctx context.Context, tx *db.Tx, a *Agent) error {
	err := tx.QueryRowContext(ctx, `INSERT INTO cluster_agents (project_id, name, created_by, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		a.ProjectID, a.Name, a.CreatedBy, a.CreatedAt).Scan(&a.ID)
	if db.IsUnique(err, "cluster_agents_project_id_name") {
		return errs.Invalid("Name has already been taken")
	}
	return err
}

func deleteAgent(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM cluster_agents WHERE id = ?`, id), "Agent")
}

// placed is a group ID with its path.
type placed struct {
	id   int64
	path string
}

// groupsAbove returns the groups that contain a namespace, the nearest first.
func groupsAbove(ctx context.Context, q db.Q, namespaceID int64) ([]placed, error) {
	return db.All(ctx, q, func(s db.Scanner) (p placed, err error) { return p, s.Scan(&p.id, &p.path) }, `
		SELECT n.id, n.full_path FROM namespace_tree t JOIN namespaces n ON n.id = t.ancestor_id
		WHERE t.descendant_id = ? AND n.kind = 'group' ORDER BY t.depth`, namespaceID)
}
