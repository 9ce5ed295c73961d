package trigger

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
)

const columns = `t.id, t.project_id, t.owner_id, t.description, t.token, t.last_used, t.created_at, t.updated_at`

func scan(s db.Scanner) (*Trigger, error) {
	t := &Trigger{}
	err := s.Scan(&t.ID, &t.ProjectID, &t.OwnerID, &t.Description, &t.Token, db.NullTime(&t.LastUsed), db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt))
	if err != nil {
		return nil, err
	}
	return t, nil
}

func list(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Trigger], error) {
	var where db.Where
	where.And("t.project_id = ?", projectID)
	return db.List(ctx, d, db.Query[*Trigger]{
		Columns: columns, From: "pipeline_triggers t", Where: where, Order: []db.Order{{Name: "t.id"}}, Scan: scan,
		Keys: func(t *Trigger) []any { return []any{t.ID} },
	}, p)
}

func find(ctx context.Context, q db.Q, projectID, id int64) (*Trigger, error) {
	t, err := scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM pipeline_triggers t WHERE t.id = ? AND t.project_id = ?`, id, projectID))
	return t, db.NotFound(err, "Trigger")
}

func findByToken(ctx context.Context, q db.Q, token string) (*Trigger, error) {
	t, err := scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM pipeline_triggers t WHERE t.digest = ?`, []byte(secret.Digest(token))))
	return t, db.NotFound(err, "")
}

// insert inserts a trigger without its encrypted token.
func insert(ctx context.Context, tx *db.Tx, t *Trigger, token string) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO pipeline_triggers (project_id, owner_id, description, token, digest, created_at, updated_at) VALUES (?, ?, ?, '', ?, ?, ?) RETURNING id`,
		t.ProjectID, t.OwnerID, t.Description, []byte(secret.Digest(token)), t.CreatedAt, t.UpdatedAt).Scan(&t.ID)
}

func saveToken(ctx context.Context, tx *db.Tx, t *Trigger) error {
	return db.ExecOne(ctx, tx, `UPDATE pipeline_triggers SET token = ? WHERE id = ?`, t.Token, t.ID)
}

func saveDescription(ctx context.Context, tx *db.Tx, t *Trigger) error {
	return db.ExecOne(ctx, tx, `UPDATE pipeline_triggers SET description = ?, updated_at = ? WHERE id = ?`, t.Description, t.UpdatedAt, t.ID)
}

func setLastUsed(ctx context.Context, q db.Q, id int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE pipeline_triggers SET last_used = ? WHERE id = ?`, at, id)
	return err
}

func remove(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM pipeline_triggers WHERE id = ?`, id), "Trigger")
}
