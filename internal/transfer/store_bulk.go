package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
)

func isNoRows(err error) bool { return errors.Is(err, db.ErrNoRows) }

const bulkColumns = `b.id, b.user_id, b.source_url, b.token, b.state, b.created_at, b.updated_at,
	EXISTS (SELECT 1 FROM bulk_import_entities e WHERE e.bulk_import_id = b.id AND e.failures > 0)`

func scanBulkImport(s db.Scanner) (*BulkImport, error) {
	var b BulkImport
	err := s.Scan(&b.ID, &b.UserID, &b.SourceURL, &b.token, (*string)(&b.State), db.Time(&b.CreatedAt), db.Time(&b.UpdatedAt), &b.Failures)
	return &b, err
}

// findBulkImport returns nil if there is none.
func findBulkImport(ctx context.Context, q db.Q, id int64) (*BulkImport, error) {
	return orNone(scanBulkImport(q.QueryRowContext(ctx, `SELECT `+bulkColumns+` FROM bulk_imports b WHERE b.id = ?`, id)))
}

func listBulkImports(ctx context.Context, d *db.DB, userID *int64, f BulkFilter, p db.Paging) (db.Page[*BulkImport], error) {
	var w db.Where
	if userID != nil {
		w.And("b.user_id = ?", *userID)
	}
	if f.State != "" {
		w.And("b.state = ?", string(f.State))
	}
	return db.List(ctx, d, db.Query[*BulkImport]{
		Columns: bulkColumns, From: "bulk_imports b", Where: w, Order: []db.Order{{Name: "b.id"}}, Desc: !f.Ascending, Scan: scanBulkImport,
		Keys: func(b *BulkImport) []any { return []any{b.ID} },
	}, p)
}

// countActive returns the number of pending and running imports of a user.
func countActive(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM bulk_imports WHERE user_id = ? AND state IN ('created', 'started')`, userID).Scan(&n)
	return n, err
}

// countWaiting returns the number of pending entities of a user.
func countWaiting(ctx context.Context, q db.Q, userID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM bulk_import_entities e JOIN bulk_imports b ON b.id = e.bulk_import_id WHERE b.user_id = ? AND b.state IN ('created', 'started') AND e.state = 'created'`,
		userID).Scan(&n)
	return n, err
}

func insertBulkImport(ctx context.Context, q db.Q, b *BulkImport) error {
	return q.QueryRowContext(ctx, `INSERT INTO bulk_imports (user_id, source_url, token, state, created_at, updated_at) VALUES (?, ?, '', ?, ?, ?) RETURNING id`,
		b.UserID, b.SourceURL, string(b.State), b.CreatedAt, b.UpdatedAt).Scan(&b.ID)
}

func saveToken(ctx context.Context, q db.Q, b *BulkImport) error {
	return db.ExecOne(ctx, q, `UPDATE bulk_imports SET token = ? WHERE id = ?`, b.token, b.ID)
}

func startBulkImport(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE bulk_imports SET state = 'started', updated_at = ? WHERE id = ? AND state = 'created'`, now, id)
	return err
}

// endBulkImport ends an import that has not ended, and removes its token.
func endBulkImport(ctx context.Context, q db.Q, id int64, to State, now time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `UPDATE bulk_imports SET state = ?, token = '', updated_at = ? WHERE id = ? AND state IN ('created', 'started')`, string(to), now, id)
}

// countEntities returns how many entities of an import are pending or running, and
// how many have finished.
func countEntities(ctx context.Context, q db.Q, id int64) (going, finished int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(sum(CASE WHEN state IN ('created', 'started') THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN state = 'finished' THEN 1 ELSE 0 END), 0)
		FROM bulk_import_entities WHERE bulk_import_id = ?`, id).Scan(&going, &finished)
	return going, finished, err
}

// countProgress returns how many entities of an import have ended, and their total.
func countProgress(ctx context.Context, q db.Q, id int64) (over, all int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(sum(CASE WHEN state IN ('created', 'started') THEN 0 ELSE 1 END), 0), count(*) FROM bulk_import_entities WHERE bulk_import_id = ?`, id).
		Scan(&over, &all)
	return over, all, err
}

const entityColumns = `e.id, e.bulk_import_id, e.parent_id, e.kind, e.source_path, e.slug, e.namespace, e.projects, e.members, e.state, e.phase, e.steps, e.total, e.tries,
	e.runs, e.checkpoint_run, e.import_id, e.namespace_id, e.project_id, e.failures, e.stats, e.created_at, e.updated_at`

func scanEntity(s db.Scanner) (*Entity, error) {
	var e Entity
	var kind, stats string
	err := s.Scan(&e.ID, &e.ImportID, &e.ParentID, &kind, &e.SourcePath, &e.Slug, &e.Namespace, &e.Projects, &e.Members, (*string)(&e.State), &e.Phase, &e.Steps, &e.Total, &e.tries,
		&e.run, &e.stored, &e.fileID, &e.GroupID, &e.ProjectID, &e.Failures, &stats, db.Time(&e.CreatedAt), db.Time(&e.UpdatedAt))
	if err != nil {
		return nil, err
	}
	e.Project = kind == "project"
	if err := json.Unmarshal([]byte(stats), &e.Stats); err != nil {
		return nil, fmt.Errorf("stats of entity %d: %w", e.ID, err)
	}
	return &e, nil
}

func kindOf(project bool) string {
	if project {
		return "project"
	}
	return "group"
}

// findEntity returns nil if there is none.
func findEntity(ctx context.Context, q db.Q, id int64) (*Entity, error) {
	return orNone(scanEntity(q.QueryRowContext(ctx, `SELECT `+entityColumns+` FROM bulk_import_entities e WHERE e.id = ?`, id)))
}

// findEntityOf returns the entity of the file of an import; nil for a file that was
// uploaded.
func findEntityOf(ctx context.Context, q db.Q, i *Import) (*Entity, error) {
	return orNone(scanEntity(q.QueryRowContext(ctx, `SELECT `+entityColumns+` FROM bulk_import_entities e WHERE e.kind = ? AND e.import_id = ?`, kindOf(i.Project), i.ID)))
}

func listEntities(ctx context.Context, d *db.DB, userID *int64, importID int64, f BulkFilter, p db.Paging) (db.Page[*Entity], error) {
	var w db.Where
	if importID != 0 {
		w.And("e.bulk_import_id = ?", importID)
	} else if userID != nil {
		w.And("e.bulk_import_id IN (SELECT b.id FROM bulk_imports b WHERE b.user_id = ?)", *userID)
	}
	if f.State != "" {
		w.And("e.state = ?", string(f.State))
	}
	return db.List(ctx, d, db.Query[*Entity]{
		Columns: entityColumns, From: "bulk_import_entities e", Where: w, Order: []db.Order{{Name: "e.id"}}, Desc: !f.Ascending, Scan: scanEntity,
		Keys: func(e *Entity) []any { return []any{e.ID} },
	}, p)
}

func insertEntity(ctx context.Context, q db.Q, e *Entity) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO bulk_import_entities (bulk_import_id, parent_id, kind, source_path, slug, namespace, projects, members, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		e.ImportID, e.ParentID, kindOf(e.Project), e.SourcePath, e.Slug, e.Namespace, e.Projects, e.Members, string(e.State), e.CreatedAt, e.UpdatedAt).Scan(&e.ID)
}

// startEntity records the start of a run, which takes the entity over from earlier ones,
// and reads which steps they have stored. ErrNoRows for an entity that has ended.
func startEntity(ctx context.Context, q db.Q, e *Entity, now time.Time) error {
	e.State = Started
	return q.QueryRowContext(ctx, `
		UPDATE bulk_import_entities SET state = 'started', tries = ?, runs = runs + 1, files = TRUE, updated_at = ? WHERE id = ? AND state IN ('created', 'started') AND import_id IS NULL
		RETURNING runs, steps, checkpoint_run`, e.tries, now, e.ID).Scan(&e.run, &e.Steps, &e.stored)
}

// forgetTry records that an attempt was interrupted.
func forgetTry(ctx context.Context, q db.Q, e *Entity) error {
	_, err := q.ExecContext(ctx, `UPDATE bulk_import_entities SET tries = tries - 1 WHERE id = ? AND state = 'started' AND runs = ? AND tries > 0`, e.ID, e.run)
	return err
}

// savePhase records the current step. ErrNoRows for an entity that has ended, or was taken
// over by another run.
func savePhase(ctx context.Context, q db.Q, e *Entity, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE bulk_import_entities SET phase = ?, total = ?, updated_at = ? WHERE id = ? AND state = 'started' AND runs = ?`, e.Phase, e.Total, now, e.ID, e.run)
}

// entityGoing returns ErrNoRows for an entity that has ended, or was taken over by another
// run.
func entityGoing(ctx context.Context, q db.Q, e *Entity) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM bulk_import_entities WHERE id = ? AND state = 'started' AND runs = ?`, e.ID, e.run).Scan(new(int64))
}

// lastRun returns ErrNoRows for an entity that was taken over by another run.
func lastRun(ctx context.Context, q db.Q, e *Entity) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM bulk_import_entities WHERE id = ? AND runs = ?`, e.ID, e.run).Scan(new(int64))
}

// saveStep records that the run has completed a step. ErrNoRows for an entity that has
// ended, or was taken over by another run.
func saveStep(ctx context.Context, q db.Q, e *Entity, now time.Time) error {
	stats, err := json.Marshal(e.Stats)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `
		UPDATE bulk_import_entities SET steps = ?, checkpoint_run = runs, tries = 0, stats = ?, updated_at = ? WHERE id = ? AND state = 'started' AND steps = ? AND runs = ?`,
		e.Steps, string(stats), now, e.ID, e.Steps-1, e.run)
}

// saveFile records the import of the file of an entity. ErrNoRows for an entity that
// has ended or has one, or was taken over by another run.
func saveFile(ctx context.Context, q db.Q, e *Entity, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE bulk_import_entities SET phase = ?, import_id = ?, updated_at = ? WHERE id = ? AND state = 'started' AND import_id IS NULL AND runs = ?`,
		importing, e.fileID, now, e.ID, e.run)
}

// endEntity ends an entity that has not ended.
func endEntity(ctx context.Context, q db.Q, e *Entity, now time.Time) (bool, error) {
	stats, err := json.Marshal(e.Stats)
	if err != nil {
		return false, err
	}
	return db.ExecAny(ctx, q, `
		UPDATE bulk_import_entities SET state = ?, phase = '', namespace_id = ?, project_id = ?, stats = ?, updated_at = ? WHERE id = ? AND state IN ('created', 'started')`,
		string(e.State), e.GroupID, e.ProjectID, string(stats), now, e.ID)
}

// findCanceled returns the canceled entities of an import that have files.
func findCanceled(ctx context.Context, q db.Q, id int64) ([]*Entity, error) {
	return db.All(ctx, q, scanEntity, `
		SELECT `+entityColumns+` FROM bulk_import_entities e WHERE e.bulk_import_id = ? AND e.state = 'canceled' AND e.import_id IS NOT NULL ORDER BY e.id`, id)
}

func cancelEntities(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE bulk_import_entities SET state = 'canceled', phase = '', updated_at = ? WHERE bulk_import_id = ? AND state IN ('created', 'started')`, now, id)
	return err
}

// addFailures adds failures to an entity; all is their number, including those that
// are not listed.
func addFailures(ctx context.Context, q db.Q, e *Entity, list []*Failure, all int64) error {
	if all == 0 {
		return nil
	}
	there, err := countFailures(ctx, q, e.ID)
	if err != nil {
		return err
	}
	for _, f := range list[:max(0, min(len(list), MaxFailures-there))] {
		_, err := q.ExecContext(ctx, `INSERT INTO bulk_import_failures (entity_id, relation, title, path, message, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			e.ID, f.Relation, f.Title, f.Path, f.Message, f.CreatedAt)
		if err != nil {
			return err
		}
	}
	_, err = q.ExecContext(ctx, `UPDATE bulk_import_entities SET failures = failures + ? WHERE id = ?`, all, e.ID)
	return err
}

// countFailures returns the number of listed failures of an entity.
func countFailures(ctx context.Context, q db.Q, id int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM bulk_import_failures WHERE entity_id = ?`, id).Scan(&n)
	return n, err
}

func scanFailure(s db.Scanner) (*Failure, error) {
	var f Failure
	err := s.Scan(&f.ID, &f.Relation, &f.Title, &f.Path, &f.Message, db.Time(&f.CreatedAt))
	return &f, err
}

func listFailures(ctx context.Context, d *db.DB, entityID int64, p db.Paging) (db.Page[*Failure], error) {
	var w db.Where
	w.And("f.entity_id = ?", entityID)
	return db.List(ctx, d, db.Query[*Failure]{
		Columns: "f.id, f.relation, f.title, f.path, f.message, f.created_at", From: "bulk_import_failures f", Where: w, Order: []db.Order{{Name: "f.id"}}, Scan: scanFailure,
		Keys: func(f *Failure) []any { return []any{f.ID} },
	}, p)
}

// pastEntities returns the entities that have ended and have stored files.
func pastEntities(ctx context.Context, q db.Q, before time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM bulk_import_entities WHERE files AND state IN ('finished', 'failed', 'canceled') AND updated_at < ? ORDER BY id LIMIT 100`, before)
}

// rememberFiles records that a run may have stored files, after those of its entity were
// removed.
func rememberFiles(ctx context.Context, q db.Q, entityID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE bulk_import_entities SET files = TRUE WHERE id = ? AND NOT files`, entityID)
	return err
}

func forgetFiles(ctx context.Context, q db.Q, entityID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE bulk_import_entities SET files = FALSE WHERE id = ?`, entityID)
	return err
}

func deletePastBulkImports(ctx context.Context, q db.Q, before time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM bulk_imports WHERE state IN ('finished', 'failed', 'canceled') AND updated_at < ?
		AND NOT EXISTS (SELECT 1 FROM bulk_import_entities e WHERE e.bulk_import_id = bulk_imports.id AND e.files)`, before)
	return err
}
