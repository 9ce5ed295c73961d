package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
)

// tables are the tables of groups or those of projects.
type tables struct {
	exports, imports string
	owner            string // the column of the group or project
	description      string // of an export
	upload           string // of an export
	overrides        string // of an import
	source           string // of an import
}

func tablesOf(project bool) tables {
	if project {
		return tables{"project_exports", "project_file_imports", "project_id", "e.description", "e.upload", "i.overrides", "i.source"}
	}
	return tables{"group_exports", "group_imports", "namespace_id", "NULL", "''", "'{}'", "''"}
}

func (t tables) exportColumns() string {
	return `e.id, e.` + t.owner + `, e.user_id, e.state, e.tries, e.done, e.total, e.size, e.error, e.created_at, e.finished_at, e.expires_at, e.addresses, ` + t.description + `, ` + t.upload
}

func scanExport(project bool) func(s db.Scanner) (*Export, error) {
	return func(s db.Scanner) (*Export, error) {
		e := Export{Project: project}
		err := s.Scan(&e.ID, &e.OwnerID, &e.UserID, (*string)(&e.State), &e.tries, &e.Done, &e.Total, &e.Size, &e.Error,
			db.Time(&e.CreatedAt), db.NullTime(&e.FinishedAt), db.NullTime(&e.ExpiresAt), &e.addresses, &e.description, &e.upload)
		return &e, err
	}
}

// findExports returns the exports of a group or project, the newest first.
func findExports(ctx context.Context, q db.Q, project bool, ownerID int64) ([]*Export, error) {
	t := tablesOf(project)
	return db.All(ctx, q, scanExport(project), `SELECT `+t.exportColumns()+` FROM `+t.exports+` e WHERE e.`+t.owner+` = ? ORDER BY e.id DESC LIMIT 100`, ownerID)
}

// findExport returns nil if there is none.
func findExport(ctx context.Context, q db.Q, project bool, id int64) (*Export, error) {
	t := tablesOf(project)
	return orNone(scanExport(project)(q.QueryRowContext(ctx, `SELECT `+t.exportColumns()+` FROM `+t.exports+` e WHERE e.id = ?`, id)))
}

func orNone[T any](found *T, err error) (*T, error) {
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return found, err
}

// userOf returns the user who started an export or import; nil if they, or it, were
// deleted.
func userOf(ctx context.Context, q db.Q, table string, id int64) (user *int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT user_id FROM `+table+` WHERE id = ?`, id).Scan(&user)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return user, err
}

// countQueued returns the number of pending exports or imports of a user.
func countQueued(ctx context.Context, q db.Q, table string, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE user_id = ? AND state = 'queued'`, userID).Scan(&n)
	return n, err
}

// countFiles returns the number of pending and running imports of files of a user, without
// those of bulk imports.
func countFiles(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	of := func(project bool) string {
		return `(SELECT count(*) FROM ` + tablesOf(project).imports + ` i WHERE i.user_id = ? AND i.state IN ('uploading', 'queued', 'started')
			AND NOT EXISTS (SELECT 1 FROM bulk_import_entities e WHERE e.kind = '` + kindOf(project) + `' AND e.import_id = i.id))`
	}
	err = q.QueryRowContext(ctx, `SELECT `+of(false)+` + `+of(true), userID, userID).Scan(&n)
	return n, err
}

func insertExport(ctx context.Context, q db.Q, e *Export) error {
	if e.Project {
		return q.QueryRowContext(ctx, `INSERT INTO project_exports (project_id, user_id, state, addresses, description, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
			e.OwnerID, e.UserID, string(e.State), e.addresses, e.description, e.CreatedAt).Scan(&e.ID)
	}
	return q.QueryRowContext(ctx, `INSERT INTO group_exports (namespace_id, user_id, state, addresses, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		e.OwnerID, e.UserID, string(e.State), e.addresses, e.CreatedAt).Scan(&e.ID)
}

// startExport records the start of an attempt.
func startExport(ctx context.Context, q db.Q, e *Export) error {
	e.State = Started
	return db.ExecOne(ctx, q, `UPDATE `+tablesOf(e.Project).exports+` SET state = ?, tries = ?, done = 0, total = 0 WHERE id = ? AND state IN ('queued', 'started')`,
		string(e.State), e.tries, e.ID)
}

// saveUpload records where the file of a project is sent to.
func saveUpload(ctx context.Context, q db.Q, e *Export) error {
	return db.ExecOne(ctx, q, `UPDATE project_exports SET upload = ? WHERE id = ?`, e.upload, e.ID)
}

// saveSize records that the file of a project is complete, before it is sent.
func saveSize(ctx context.Context, q db.Q, e *Export) error {
	return db.ExecOne(ctx, q, `UPDATE project_exports SET size = ? WHERE id = ? AND state = 'started'`, e.Size, e.ID)
}

func endExport(ctx context.Context, q db.Q, e *Export) error {
	forget := ""
	if e.Project {
		forget = `, upload = ''`
	}
	return db.ExecOne(ctx, q, `
		UPDATE `+tablesOf(e.Project).exports+` SET state = ?, done = ?, total = ?, size = ?, error = ?, finished_at = ?, expires_at = ?`+forget+` WHERE id = ? AND state IN ('queued', 'started')`,
		string(e.State), e.Done, e.Total, e.Size, e.Error, e.FinishedAt, e.ExpiresAt, e.ID)
}

// outdateExports marks exports whose files are replaced by a newer one. A file without
// addresses does not replace one with them, nor the other way round: not all users who may
// download the one may download the other.
func outdateExports(ctx context.Context, q db.Q, by *Export, now time.Time) error {
	t := tablesOf(by.Project)
	_, err := q.ExecContext(ctx, `UPDATE `+t.exports+` SET expires_at = ? WHERE `+t.owner+` = ? AND addresses = ? AND id < ? AND expires_at > ?`, now, by.OwnerID, by.addresses, by.ID, now)
	return err
}

// pastExports returns exports that have expired, or whose group or project was
// deleted.
func pastExports(ctx context.Context, q db.Q, project bool, now time.Time) ([]*Export, error) {
	t := tablesOf(project)
	return db.All(ctx, q, scanExport(project), `
		SELECT `+t.exportColumns()+` FROM `+t.exports+` e WHERE e.expires_at <= ? OR e.`+t.owner+` IS NULL AND e.state IN ('finished', 'failed')
		ORDER BY e.id LIMIT 100`, now)
}

func deleteExport(ctx context.Context, q db.Q, e *Export) error {
	_, err := q.ExecContext(ctx, `DELETE FROM `+tablesOf(e.Project).exports+` WHERE id = ?`, e.ID)
	return err
}

// saveProgress saves the progress of an export or import.
func saveProgress(ctx context.Context, q db.Q, table string, id, done, total int64) error {
	_, err := q.ExecContext(ctx, `UPDATE `+table+` SET done = ?, total = ? WHERE id = ? AND state = 'started'`, done, total, id)
	return err
}

func (t tables) importColumns() string {
	return `i.id, i.user_id, i.name, i.path, i.parent_id, i.` + t.owner + `, i.state, i.tries, i.done, i.total, i.file, i.error, i.report, i.created_at, i.finished_at, ` + t.overrides + `, ` + t.source
}

func scanImport(project bool) func(s db.Scanner) (*Import, error) {
	return func(s db.Scanner) (*Import, error) {
		i := Import{Project: project}
		var report, overrides string
		err := s.Scan(&i.ID, &i.UserID, &i.Name, &i.Path, &i.ParentID, &i.draft, (*string)(&i.State), &i.tries, &i.Done, &i.Total, &i.file, &i.Error, &report,
			db.Time(&i.CreatedAt), db.NullTime(&i.FinishedAt), &overrides, &i.source)
		if err != nil {
			return nil, err
		}
		if i.State == Finished {
			i.OwnerID, i.draft = i.draft, nil
		}
		if err := json.Unmarshal([]byte(report), &i.Report); err != nil {
			return nil, fmt.Errorf("report of import %d: %w", i.ID, err)
		}
		if err := json.Unmarshal([]byte(overrides), &i.overrides); err != nil {
			return nil, fmt.Errorf("overrides of import %d: %w", i.ID, err)
		}
		return &i, nil
	}
}

// findImport returns nil if there is none.
func findImport(ctx context.Context, q db.Q, project bool, id int64) (*Import, error) {
	t := tablesOf(project)
	return orNone(scanImport(project)(q.QueryRowContext(ctx, `SELECT `+t.importColumns()+` FROM `+t.imports+` i WHERE i.id = ?`, id)))
}

// findImportOf returns the import of a project; nil if there is none.
func findImportOf(ctx context.Context, q db.Q, projectID int64) (*Import, error) {
	return orNone(scanImport(true)(q.QueryRowContext(ctx, `
		SELECT `+tablesOf(true).importColumns()+` FROM project_file_imports i WHERE i.project_id = ? ORDER BY i.id DESC LIMIT 1`, projectID)))
}

func listImports(ctx context.Context, d *db.DB, project bool, userID int64, p db.Paging) (db.Page[*Import], error) {
	t := tablesOf(project)
	var w db.Where
	w.And("i.user_id = ?", userID)
	return db.List(ctx, d, db.Query[*Import]{
		Columns: t.importColumns(), From: t.imports + " i", Where: w, Order: []db.Order{{Name: "i.id"}}, Desc: true, Scan: scanImport(project),
		Keys: func(i *Import) []any { return []any{i.ID} },
	}, p)
}

func insertImport(ctx context.Context, q db.Q, i *Import) error {
	if i.Project {
		overrides, err := json.Marshal(i.overrides)
		if err != nil {
			return err
		}
		return q.QueryRowContext(ctx, `
			INSERT INTO project_file_imports (user_id, name, path, parent_id, state, total, file, overrides, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			i.UserID, i.Name, i.Path, i.ParentID, string(i.State), i.Total, i.file, string(overrides), i.CreatedAt).Scan(&i.ID)
	}
	return q.QueryRowContext(ctx, `INSERT INTO group_imports (user_id, name, path, parent_id, state, total, file, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.UserID, i.Name, i.Path, i.ParentID, string(i.State), i.Total, i.file, i.CreatedAt).Scan(&i.ID)
}

// moveImport changes the state of an import.
func moveImport(ctx context.Context, q db.Q, i *Import, from State) error {
	return db.ExecOne(ctx, q, `UPDATE `+tablesOf(i.Project).imports+` SET state = ?, total = ? WHERE id = ? AND state = ?`, string(i.State), i.Total, i.ID, string(from))
}

// ofAttempt is the condition that another attempt has not taken over the import. Its argument
// is the attempt; NULL matches always.
const ofAttempt = ` AND tries = COALESCE(CAST(? AS BIGINT), tries)`

// startImport records the start of an attempt. ErrNoRows if another one has started
// meanwhile, or the import has ended.
func startImport(ctx context.Context, q db.Q, i *Import) error {
	i.State = Started
	return db.ExecOne(ctx, q, `UPDATE `+tablesOf(i.Project).imports+` SET state = ?, tries = ?, done = 0 WHERE id = ? AND state IN ('queued', 'started')`+ofAttempt,
		string(i.State), i.tries, i.ID, i.attempt)
}

// saveSource records where the file of the import of a project is fetched from.
func saveSource(ctx context.Context, q db.Q, i *Import) error {
	return db.ExecOne(ctx, q, `UPDATE project_file_imports SET source = ? WHERE id = ?`, i.source, i.ID)
}

// endFetch records that the file of the import of a project was fetched, and forgets
// where from. Its number of tries is reset.
func endFetch(ctx context.Context, q db.Q, i *Import) error {
	i.State, i.tries, i.source = Queued, 0, ""
	return db.ExecOne(ctx, q, `UPDATE project_file_imports SET state = ?, tries = 0, done = 0, total = ?, source = '' WHERE id = ? AND state = 'started'`+ofAttempt, string(i.State), i.Total, i.ID, i.attempt)
}

// saveDraft records the draft of the group or project.
func saveDraft(ctx context.Context, q db.Q, i *Import) error {
	t := tablesOf(i.Project)
	return db.ExecOne(ctx, q, `UPDATE `+t.imports+` SET `+t.owner+` = ? WHERE id = ? AND state IN ('queued', 'started')`+ofAttempt, i.draft, i.ID, i.attempt)
}

// stillGoing returns ErrNoRows for an import that was canceled, or taken over by another
// attempt.
func stillGoing(ctx context.Context, q db.Q, i *Import) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM `+tablesOf(i.Project).imports+` WHERE id = ? AND state = 'started'`+ofAttempt, i.ID, i.attempt).Scan(new(int64))
}

// importGoing returns ErrNoRows for an import that has ended.
func importGoing(ctx context.Context, q db.Q, i *Import) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM `+tablesOf(i.Project).imports+` WHERE id = ? AND state IN ('queued', 'started')`, i.ID).Scan(new(int64))
}

// attemptGoing returns ErrNoRows for an import that has ended, or was taken over by another
// attempt.
func attemptGoing(ctx context.Context, q db.Q, i *Import) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM `+tablesOf(i.Project).imports+` WHERE id = ? AND state IN ('queued', 'started')`+ofAttempt, i.ID, i.attempt).Scan(new(int64))
}

func endImport(ctx context.Context, q db.Q, i *Import) error {
	report, err := json.Marshal(i.Report)
	if err != nil {
		return err
	}
	t := tablesOf(i.Project)
	owner, forget := i.OwnerID, ""
	if i.Project {
		forget = `, source = ''`
		if owner == nil {
			owner = i.draft // the report of a hidden or deleted project is found by this ID
		}
	}
	return db.ExecOne(ctx, q, `
		UPDATE `+t.imports+` SET state = ?, `+t.owner+` = ?, done = ?, error = ?, report = ?, finished_at = ?`+forget+` WHERE id = ? AND state IN ('queued', 'started')`+ofAttempt,
		string(i.State), owner, i.Done, i.Error, string(report), i.FinishedAt, i.ID, i.attempt)
}

// forgetFile records that the file of an import was removed.
func forgetFile(ctx context.Context, q db.Q, i *Import) error {
	_, err := q.ExecContext(ctx, `UPDATE `+tablesOf(i.Project).imports+` SET file = '' WHERE id = ?`, i.ID)
	return err
}

// pastFiles returns imports whose files are no longer needed: of imports that have
// ended, and of uploads that began before a time.
func pastFiles(ctx context.Context, q db.Q, project bool, before time.Time) ([]*Import, error) {
	t := tablesOf(project)
	return db.All(ctx, q, scanImport(project), `
		SELECT `+t.importColumns()+` FROM `+t.imports+` i WHERE i.file <> '' AND (i.state IN ('finished', 'failed') OR i.state = 'uploading' AND i.created_at < ?)
		ORDER BY i.id LIMIT 100`, before)
}

// deleteUploading deletes an import whose file is being uploaded, and reports whether it
// still was.
func deleteUploading(ctx context.Context, q db.Q, i *Import) (bool, error) {
	n, err := db.ExecCount(ctx, q, `DELETE FROM `+tablesOf(i.Project).imports+` WHERE id = ? AND state = ?`, i.ID, string(Uploading))
	return n > 0, err
}

func deletePastImports(ctx context.Context, q db.Q, project bool, before time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM `+tablesOf(project).imports+` WHERE file = '' AND (finished_at < ? OR state = 'uploading')`, before)
	return err
}
