package repo

import (
	"context"

	"svc/internal/db"
)

const statusColumns = `t.id, t.sha, t.ref, t.name, t.status, t.target_url, t.description, t.coverage, t.allow_failure, t.author_id,
	t.created_at, t.started_at, t.finished_at`

func scanStatus(s db.Scanner) (*Status, error) {
	var t Status
	err := s.Scan(&t.ID, &t.SHA, &t.Ref, &t.Name, &t.State, &t.TargetURL, &t.Description, &t.Coverage, &t.AllowFailure, &t.AuthorID,
		db.Time(&t.CreatedAt), db.NullTime(&t.StartedAt), db.NullTime(&t.FinishedAt))
	return &t, err
}

func listStatuses(ctx context.Context, d *db.DB, projectID int64, sha string, f StatusFilter, pg db.Paging) (db.Page[*Status], error) {
	var w db.Where
	w.And("t.project_id = ? AND t.sha = ?", projectID, sha)
	if !f.All {
		w.And("t.latest")
	}
	if f.Ref != "" {
		w.And("t.ref = ?", f.Ref)
	}
	if f.Name != "" {
		w.And("t.name = ?", f.Name)
	}
	return db.List(ctx, d, db.Query[*Status]{
		Columns: statusColumns, From: "commit_statuses t", Where: w, Order: []db.Order{{Name: "t.id"}}, Desc: f.Desc, Scan: scanStatus,
		Keys: func(t *Status) []any { return []any{t.ID} },
	}, pg)
}

func findLatest(ctx context.Context, q db.Q, projectID int64, sha, ref, name string) (*Status, error) {
	return scanStatus(q.QueryRowContext(ctx, `
		SELECT `+statusColumns+` FROM commit_statuses t WHERE t.project_id = ? AND t.sha = ? AND t.ref = ? AND t.name = ? AND t.latest`,
		projectID, sha, ref, name))
}

func latestStates(ctx context.Context, q db.Q, projectID int64, sha string) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT DISTINCT t.status FROM commit_statuses t WHERE t.project_id = ? AND t.sha = ? AND t.latest`, projectID, sha)
}

func insertStatus(ctx context.Context, q db.Q, projectID int64, t *Status) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO commit_statuses (project_id, sha, ref, name, status, target_url, description, coverage, allow_failure, author_id,
			created_at, started_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, t.SHA, t.Ref, t.Name, t.State, t.TargetURL, t.Description, t.Coverage, t.AllowFailure, t.AuthorID,
		t.CreatedAt, t.StartedAt, t.FinishedAt).Scan(&t.ID)
}

func saveStatus(ctx context.Context, q db.Q, t *Status) error {
	return db.ExecOne(ctx, q, `
		UPDATE commit_statuses SET status = ?, target_url = ?, description = ?, coverage = ?, started_at = ?, finished_at = ? WHERE id = ?`,
		t.State, t.TargetURL, t.Description, t.Coverage, t.StartedAt, t.FinishedAt, t.ID)
}

func retireStatus(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `UPDATE commit_statuses SET latest = FALSE WHERE id = ?`, id)
}
