package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
)

const exportColumns = `e.id, e.namespace_id, e.user_id, e.state, e.tries, e.done, e.total, e.size, e.error, e.created_at, e.finished_at, e.expires_at,
	e.addresses`

func scanExport(s db.Scanner) (*Export, error) {
	var e Export
	err := s.Scan(&e.ID, &e.GroupID, &e.UserID, (*string)(&e.State), &e.tries, &e.Done, &e.Total, &e.Size, &e.Error,
		db.Time(&e.CreatedAt), db.NullTime(&e.FinishedAt), db.NullTime(&e.ExpiresAt), &e.addresses)
	return &e, err
}

// findExports returns the exports of a group, the newest first.
func findExports(ctx context.Context, q db.Q, groupID int64) ([]*Export, error) {
	return db.All(ctx, q, scanExport, `SELECT `+exportColumns+` FROM group_exports e WHERE e.namespace_id = ? ORDER BY e.id DESC LIMIT 100`, groupID)
}

// findExport returns nil when there is none.
func findExport(ctx context.Context, q db.Q, id int64) (*Export, error) {
	return orNone(scanExport(q.QueryRowContext(ctx, `SELECT `+exportColumns+` FROM group_exports e WHERE e.id = ?`, id)))
}

func orNone[T any](found *T, err error) (*T, error) {
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return found, err
}

func insertExport(ctx context.Context, q db.Q, e *Export) error {
	return q.QueryRowContext(ctx, `INSERT INTO group_exports (namespace_id, user_id, state, addresses, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		e.GroupID, e.UserID, string(e.State), e.addresses, e.CreatedAt).Scan(&e.ID)
}

// startExport notes that a try has begun.
func startExport(ctx context.Context, q db.Q, e *Export) error {
	e.State = Started
	return db.ExecOne(ctx, q, `UPDATE group_exports SET state = ?, tries = ?, done = 0, total = 0 WHERE id = ? AND state IN ('queued', 'started')`,
		string(e.State), e.tries, e.ID)
}

func endExport(ctx context.Context, q db.Q, e *Export) error {
	return db.ExecOne(ctx, q, `
		UPDATE group_exports SET state = ?, done = ?, total = ?, size = ?, error = ?, finished_at = ?, expires_at = ? WHERE id = ? AND state IN ('queued', 'started')`,
		string(e.State), e.Done, e.Total, e.Size, e.Error, e.FinishedAt, e.ExpiresAt, e.ID)
}

// outdateExports has the files go that a newer one replaces.
func outdateExports(ctx context.Context, q db.Q, by *Export, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE group_exports SET expires_at = ? WHERE namespace_id = ? AND id < ? AND expires_at > ?`, now, by.GroupID, by.ID, now)
	return err
}

// pastExports are those whose time is over, or whose group is gone.
func pastExports(ctx context.Context, q db.Q, now time.Time) ([]*Export, error) {
	return db.All(ctx, q, scanExport, `
		SELECT `+exportColumns+` FROM group_exports e WHERE e.expires_at <= ? OR e.namespace_id IS NULL AND e.state IN ('finished', 'failed')
		ORDER BY e.id LIMIT 100`, now)
}

func deleteExport(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM group_exports WHERE id = ?`, id)
	return err
}

// saveProgress notes how far something is, in the table of exports or imports.
func saveProgress(ctx context.Context, q db.Q, table string, id, done, total int64) error {
	_, err := q.ExecContext(ctx, `UPDATE `+table+` SET done = ?, total = ? WHERE id = ? AND state = 'started'`, done, total, id)
	return err
}

const importColumns = `i.id, i.user_id, i.name, i.path, i.parent_id, i.namespace_id, i.state, i.tries, i.done, i.total, i.file, i.error, i.report, i.created_at, i.finished_at`

func scanImport(s db.Scanner) (*Import, error) {
	var i Import
	var report string
	err := s.Scan(&i.ID, &i.UserID, &i.Name, &i.Path, &i.ParentID, &i.draft, (*string)(&i.State), &i.tries, &i.Done, &i.Total, &i.file, &i.Error, &report,
		db.Time(&i.CreatedAt), db.NullTime(&i.FinishedAt))
	if err != nil {
		return nil, err
	}
	if i.State == Finished {
		i.GroupID, i.draft = i.draft, nil
	}
	if err := json.Unmarshal([]byte(report), &i.Report); err != nil {
		return nil, fmt.Errorf("report of import %d: %w", i.ID, err)
	}
	return &i, nil
}

// findImport returns nil when there is none.
func findImport(ctx context.Context, q db.Q, id int64) (*Import, error) {
	return orNone(scanImport(q.QueryRowContext(ctx, `SELECT `+importColumns+` FROM group_imports i WHERE i.id = ?`, id)))
}

func listImports(ctx context.Context, d *db.DB, userID int64, p db.Paging) (db.Page[*Import], error) {
	var w db.Where
	w.And("i.user_id = ?", userID)
	return db.List(ctx, d, db.Query[*Import]{
		Columns: importColumns, From: "group_imports i", Where: w, Order: []db.Order{{Name: "i.id"}}, Desc: true, Scan: scanImport,
		Keys: func(i *Import) []any { return []any{i.ID} },
	}, p)
}

func insertImport(ctx context.Context, q db.Q, i *Import) error {
	return q.QueryRowContext(ctx, `INSERT INTO group_imports (user_id, name, path, parent_id, state, total, file, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.UserID, i.Name, i.Path, i.ParentID, string(i.State), i.Total, i.file, i.CreatedAt).Scan(&i.ID)
}

// moveImport brings an import from one state into the next.
func moveImport(ctx context.Context, q db.Q, i *Import, from State) error {
	return db.ExecOne(ctx, q, `UPDATE group_imports SET state = ?, total = ? WHERE id = ? AND state = ?`, string(i.State), i.Total, i.ID, string(from))
}

// startImport notes that a try has begun.
func startImport(ctx context.Context, q db.Q, i *Import) error {
	i.State = Started
	return db.ExecOne(ctx, q, `UPDATE group_imports SET state = ?, tries = ?, done = 0 WHERE id = ? AND state IN ('queued', 'started')`, string(i.State), i.tries, i.ID)
}

// saveDraft notes which group is being put together.
func saveDraft(ctx context.Context, q db.Q, i *Import) error {
	return db.ExecOne(ctx, q, `UPDATE group_imports SET namespace_id = ? WHERE id = ? AND state IN ('queued', 'started')`, i.draft, i.ID)
}

func endImport(ctx context.Context, q db.Q, i *Import) error {
	report, err := json.Marshal(i.Report)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `
		UPDATE group_imports SET state = ?, namespace_id = ?, done = ?, error = ?, report = ?, finished_at = ? WHERE id = ? AND state IN ('queued', 'started')`,
		string(i.State), i.GroupID, i.Done, i.Error, string(report), i.FinishedAt, i.ID)
}

// forgetFile notes that the file of an import is gone.
func forgetFile(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `UPDATE group_imports SET file = '' WHERE id = ?`, id)
	return err
}

// pastFiles are the imports whose files no one needs: of those that are over, and
// of those whose file has been on the way since before.
func pastFiles(ctx context.Context, q db.Q, before time.Time) ([]*Import, error) {
	return db.All(ctx, q, scanImport, `
		SELECT `+importColumns+` FROM group_imports i WHERE i.file <> '' AND (i.state IN ('finished', 'failed') OR i.state = 'uploading' AND i.created_at < ?)
		ORDER BY i.id LIMIT 100`, before)
}

func deleteImport(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM group_imports WHERE id = ?`, id)
	return err
}

func deletePastImports(ctx context.Context, q db.Q, before time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM group_imports WHERE file = '' AND (finished_at < ? OR state = 'uploading')`, before)
	return err
}
