package alert

import (
	"context"
	"fmt"

	"svc/internal/db"
)

const integrationColumns = `i.id, i.project_id, i.name, i.type, i.active, i.endpoint, i.token, i.payload_example, i.mappings, i.created_at, i.updated_at`

func scanIntegration(s db.Scanner) (*Integration, error) {
	var i Integration
	var mappings string
	err := s.Scan(&i.ID, &i.ProjectID, &i.Name, (*string)(&i.Type), &i.Active, &i.Endpoint, &i.Token, &i.Example, &mappings,
		db.Time(&i.CreatedAt), db.Time(&i.UpdatedAt))
	if err != nil || mappings == "" {
		return &i, err
	}
	if i.Mappings, err = ParseMappings([]byte(mappings), ""); err != nil {
		return nil, fmt.Errorf("mappings of alert integration %d: %s", i.ID, err.Error())
	}
	return &i, nil
}

func listIntegrations(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Integration], error) {
	var w db.Where
	w.And(`i.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*Integration]{
		Columns: integrationColumns, From: "alert_integrations i", Where: w, Order: []db.Order{{Name: "i.id"}}, Scan: scanIntegration,
		Keys: func(i *Integration) []any { return []any{i.ID} },
	}, p)
}

func findIntegration(ctx context.Context, q db.Q, projectID, id int64) (*Integration, error) {
	return scanIntegration(q.QueryRowContext(ctx, `SELECT `+integrationColumns+` FROM alert_integrations i WHERE i.project_id = ? AND i.id = ?`, projectID, id))
}

// findEndpoint finds the integration of a project that has a token.
func findEndpoint(ctx context.Context, q db.Q, projectID int64, digest string) (*Integration, error) {
	return scanIntegration(q.QueryRowContext(ctx, `SELECT `+integrationColumns+` FROM alert_integrations i WHERE i.digest = ? AND i.project_id = ?`, digest, projectID))
}

// hasEndpoint reports whether a project has an integration with this endpoint.
func hasEndpoint(ctx context.Context, q db.Q, projectID int64, endpoint string) (has bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) > 0 FROM alert_integrations WHERE endpoint = ? AND project_id = ?`, endpoint, projectID).Scan(&has)
	return has, err
}

func lockIntegration(ctx context.Context, tx *db.Tx, projectID, id int64) (*Integration, error) {
	if err := tx.Lock(ctx, "alert_integrations", id); err != nil {
		return nil, err
	}
	i, err := findIntegration(ctx, tx, projectID, id)
	if err != nil {
		return nil, db.NotFound(err, "Integration")
	}
	return i, nil
}

// countIntegrations returns the number of integrations of a type and of all types.
func countIntegrations(ctx context.Context, q db.Q, projectID int64, of Type) (same, all int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(sum(CASE WHEN type = ? THEN 1 ELSE 0 END), 0), count(*) FROM alert_integrations WHERE project_id = ?`,
		string(of), projectID).Scan(&same, &all)
	return same, all, err
}

// stored returns the mappings as they are stored: without the name of the service,
// which can change.
func stored(i *Integration) string {
	if len(i.Mappings) == 0 {
		return ""
	}
	return WriteMappings(i.Mappings, "")
}

func insertIntegration(ctx context.Context, q db.Q, i *Integration, digest string) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO alert_integrations (project_id, name, type, active, endpoint, digest, payload_example, mappings, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.ProjectID, i.Name, string(i.Type), i.Active, i.Endpoint, digest, i.Example, stored(i), i.CreatedAt, i.UpdatedAt).Scan(&i.ID)
}

func saveIntegration(ctx context.Context, q db.Q, i *Integration) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE alert_integrations SET name = ?, active = ?, payload_example = ?, mappings = ?, updated_at = ? WHERE id = ?`,
		i.Name, i.Active, i.Example, stored(i), i.UpdatedAt, i.ID), "Integration")
}

func saveToken(ctx context.Context, q db.Q, i *Integration, digest string) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE alert_integrations SET token = ?, digest = ?, updated_at = ? WHERE id = ?`, i.Token, digest, i.UpdatedAt, i.ID), "Integration")
}

func deleteIntegration(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM alert_integrations WHERE id = ?`, id), "Integration")
}
