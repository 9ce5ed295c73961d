package repo

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
)

func insertPush(ctx context.Context, q db.Q, projectID int64, who, what, node string, at time.Time) (id int64, err error) {
	err = q.QueryRowContext(ctx, `INSERT INTO pushes (project_id, actor, push, node, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		projectID, who, what, node, at).Scan(&id)
	return id, err
}

func deletePush(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM pushes WHERE id = ?`, id)
}

// deletePushAs is deletePush for a row whose text must match, if one is given.
func deletePushAs(ctx context.Context, q db.Q, id int64, text string) error {
	if text == "" {
		return deletePush(ctx, q, id)
	}
	return db.ExecOne(ctx, q, `DELETE FROM pushes WHERE id = ? AND push = ?`, id, text)
}

func savePush(ctx context.Context, q db.Q, id int64, text string) error {
	return db.ExecOne(ctx, q, `UPDATE pushes SET push = ? WHERE id = ?`, text, id)
}

// findBegun finds the pushes to a project that are in progress.
func findBegun(ctx context.Context, q db.Q, projectID int64) ([]leftover, error) {
	return db.All(ctx, q, scanLeftover, `SELECT id, project_id, actor, push FROM pushes WHERE project_id = ? ORDER BY id LIMIT 1000`, projectID)
}

// leftover is a push that was started but not recorded.
type leftover struct {
	id, projectID int64 // for an auxiliary repository, its ID
	who, what     string
}

func scanLeftover(s db.Scanner) (l leftover, err error) {
	err = s.Scan(&l.id, &l.projectID, &l.who, &l.what)
	return l, err
}

func findLeftovers(ctx context.Context, q db.Q, before time.Time) ([]leftover, error) {
	return db.All(ctx, q, scanLeftover, `SELECT id, project_id, actor, push FROM pushes WHERE created_at <= ? ORDER BY id LIMIT 1000`, before)
}

// findNodeLeftovers is findLeftovers for the pushes of nodes that are not among living.
func findNodeLeftovers(ctx context.Context, q db.Q, before time.Time, living []string) ([]leftover, error) {
	return findOthers(ctx, q, `SELECT id, project_id, actor, push FROM pushes`, before, living)
}

func findOthers(ctx context.Context, q db.Q, query string, before time.Time, living []string) ([]leftover, error) {
	args := []any{before}
	for _, node := range living {
		args = append(args, node)
	}
	return db.All(ctx, q, scanLeftover, query+` WHERE created_at <= ? AND node NOT IN (''`+strings.Repeat(", ?", len(living))+`) ORDER BY id LIMIT 1000`, args...)
}

// touchPush updates the time of a row.
func touchPush(ctx context.Context, q db.Q, table string, id int64, at time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE `+table+` SET created_at = ? WHERE id = ?`, at, id)
}

// place is the location of a repository.
type place struct {
	storage  string
	readOnly bool
}

// lockPlace locks the row of a project or an auxiliary repository until the
// transaction ends, and returns the location of its repository.
func lockPlace(ctx context.Context, tx *db.Tx, table string, id int64) (place, error) {
	if err := tx.Lock(ctx, table, id); err != nil {
		return place{}, err
	}
	return findPlace(ctx, tx, table, id)
}

func findPlace(ctx context.Context, q db.Q, table string, id int64) (p place, err error) {
	err = q.QueryRowContext(ctx, `SELECT storage, read_only FROM `+table+` WHERE id = ?`, id).Scan(&p.storage, &p.readOnly)
	return p, err
}
