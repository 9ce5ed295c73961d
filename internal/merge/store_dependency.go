package merge

import (
	"context"

	"svc/internal/db"
	"svc/internal/errs"
)

const dependencyColumns = `b.id, b.blocked_id, b.blocking_id, b.created_at`

func scanDependency(s db.Scanner) (*Dependency, error) {
	var d Dependency
	err := s.Scan(&d.ID, &d.BlockedID, &d.BlockingID, db.Time(&d.CreatedAt))
	return &d, err
}

// findBlockers returns the dependencies of a merge request on others.
func findBlockers(ctx context.Context, q db.Q, id int64) ([]*Dependency, error) {
	return db.All(ctx, q, scanDependency, `SELECT `+dependencyColumns+` FROM merge_request_blocks b WHERE b.blocked_id = ? ORDER BY b.id`, id)
}

// findBlockees returns the dependencies of others on a merge request.
func findBlockees(ctx context.Context, q db.Q, id int64) ([]*Dependency, error) {
	return db.All(ctx, q, scanDependency, `SELECT `+dependencyColumns+` FROM merge_request_blocks b WHERE b.blocking_id = ? ORDER BY b.id`, id)
}

func findDependency(ctx context.Context, q db.Q, blockedID, id int64) (*Dependency, error) {
	return scanDependency(q.QueryRowContext(ctx, `SELECT `+dependencyColumns+` FROM merge_request_blocks b WHERE b.id = ? AND b.blocked_id = ?`, id, blockedID))
}

// blockersOf returns the IDs of the merge requests that any of the given ones depend
// on.
func blockersOf(ctx context.Context, q db.Q, ids []int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT DISTINCT blocking_id FROM merge_request_blocks WHERE blocked_id IN `+db.In(len(ids)), db.Any(ids)...)
}

func countDependencies(ctx context.Context, q db.Q, blockedID, blockingID int64) (blockers, blockees int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM merge_request_blocks WHERE blocked_id = ?), (SELECT count(*) FROM merge_request_blocks WHERE blocking_id = ?)`,
		blockedID, blockingID).Scan(&blockers, &blockees)
	return blockers, blockees, err
}

func insertDependency(ctx context.Context, tx *db.Tx, d *Dependency) error {
	err := tx.QueryRowContext(ctx, `INSERT INTO merge_request_blocks (blocked_id, blocking_id, created_at) VALUES (?, ?, ?) RETURNING id`,
		d.BlockedID, d.BlockingID, d.CreatedAt).Scan(&d.ID)
	if db.IsUnique(err, "merge_request_blocks_blocked_id_blocking_id") {
		return errs.Conflict("Block already exists")
	}
	return err
}

func deleteDependency(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM merge_request_blocks WHERE id = ?`, id), "")
}

// countBlockers counts the merge requests that block each of the given ones and are
// not merged.
func countBlockers(ctx context.Context, q db.Q, ids []int64) (map[int64]int64, error) {
	type row struct{ id, n int64 }
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, &r.n)
		return r, err
	}, `SELECT b.blocked_id, count(*) FROM merge_request_blocks b JOIN merge_requests i ON i.id = b.blocking_id
		WHERE i.state <> 'merged' AND b.blocked_id IN `+db.In(len(ids))+` GROUP BY b.blocked_id`, db.Any(ids)...)
	found := map[int64]int64{}
	for _, r := range list {
		found[r.id] = r.n
	}
	return found, err
}

// findSeen returns the merge requests among ids that meet the conditions.
func findSeen(ctx context.Context, q db.Q, w db.Where, ids []int64) ([]*MergeRequest, error) {
	w.And(`i.id IN `+db.In(len(ids)), db.Any(ids)...)
	w.And(`p.deleted_at IS NULL`)
	return db.All(ctx, q, scanRequest, `SELECT `+columns+` FROM `+tables+w.SQL(), w.Args()...)
}
