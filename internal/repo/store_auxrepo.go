package repo

import (
	"context"
	"time"

	"svc/internal/db"
)

const auxRepoColumns = `a.id, a.kind, a.snippet_id, a.project_id, a.namespace_id, a.storage, a.read_only, a.size`

func scanAuxRepo(s db.Scanner) (*AuxRepo, error) {
	var a AuxRepo
	err := s.Scan(&a.ID, (*string)(&a.Kind), &a.SnippetID, &a.ProjectID, &a.NamespaceID, &a.Storage, &a.ReadOnly, &a.Size)
	return &a, err
}

func insertAuxRepo(ctx context.Context, q db.Q, a *AuxRepo, at time.Time) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO annexes (kind, snippet_id, project_id, namespace_id, storage, read_only, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		string(a.Kind), a.SnippetID, a.ProjectID, a.NamespaceID, a.Storage, a.ReadOnly, at).Scan(&a.ID)
}

// findAuxRepo finds an auxiliary repository by its ID or that of its owner.
func findAuxRepo(ctx context.Context, q db.Q, column string, id int64) (*AuxRepo, error) {
	return scanAuxRepo(q.QueryRowContext(ctx, `SELECT `+auxRepoColumns+` FROM annexes a WHERE a.`+column+` = ?`, id))
}

func findSnippetAuxRepos(ctx context.Context, q db.Q, ids []int64) ([]*AuxRepo, error) {
	return db.All(ctx, q, scanAuxRepo, `SELECT `+auxRepoColumns+` FROM annexes a WHERE a.snippet_id IN `+db.In(len(ids)), db.Any(ids)...)
}

// findOrphans finds auxiliary repositories whose owner was deleted.
func findOrphans(ctx context.Context, q db.Q, limit int) ([]*AuxRepo, error) {
	return db.All(ctx, q, scanAuxRepo, `SELECT `+auxRepoColumns+` FROM annexes a
		WHERE a.snippet_id IS NULL AND a.project_id IS NULL AND a.namespace_id IS NULL ORDER BY a.id LIMIT ?`, limit)
}

// deleteAuxRepo deletes the row and returns the storage.
func deleteAuxRepo(ctx context.Context, q db.Q, id int64) (storage string, err error) {
	err = q.QueryRowContext(ctx, `DELETE FROM annexes WHERE id = ? RETURNING storage`, id).Scan(&storage)
	return storage, err
}

// touchAuxRepo records a change of an auxiliary repository other than by a
// push.
func touchAuxRepo(ctx context.Context, q db.Q, id int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE annexes SET changed_at = ?, pushes = pushes + 1 WHERE id = ?`, at, id)
	return err
}

// auxRepoPushes returns the number of recorded pushes to an auxiliary
// repository.
func auxRepoPushes(ctx context.Context, q db.Q, id int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT pushes FROM annexes WHERE id = ?`, id).Scan(&n)
	return n, err
}

// countAuxRepoPush increments the number of pushes by compare-and-set;
// ErrNoRows if the current number is not pushes.
func countAuxRepoPush(ctx context.Context, q db.Q, id, pushes int64, at time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE annexes SET changed_at = ?, pushes = pushes + 1 WHERE id = ? AND pushes = ?`, at, id, pushes)
}

func saveAuxRepoSize(ctx context.Context, q db.Q, id, size int64) error {
	_, err := q.ExecContext(ctx, `UPDATE annexes SET size = ? WHERE id = ?`, size, id)
	return err
}

// auxRepoSizes returns the total sizes of the auxiliary repositories of a
// project.
func auxRepoSizes(ctx context.Context, q db.Q, projectID int64) (wiki, snippets int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT CAST(COALESCE((SELECT a.size FROM annexes a WHERE a.project_id = ?), 0) AS BIGINT),
			CAST(COALESCE((SELECT sum(a.size) FROM annexes a JOIN snippets s ON s.id = a.snippet_id WHERE s.project_id = ?), 0) AS BIGINT)`,
		projectID, projectID).Scan(&wiki, &snippets)
	return wiki, snippets, err
}

// auxRepoProject returns the project of an auxiliary repository; nil if it has
// none.
func auxRepoProject(ctx context.Context, q db.Q, id int64) (*int64, error) {
	var projectID *int64
	err := q.QueryRowContext(ctx, `
		SELECT COALESCE(a.project_id, s.project_id) FROM annexes a LEFT JOIN snippets s ON s.id = a.snippet_id WHERE a.id = ?`, id).Scan(&projectID)
	return projectID, err
}

func changedAuxRepos(ctx context.Context, q db.Q, since time.Time, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT a.id FROM annexes a WHERE a.changed_at >= ? AND a.id > ? ORDER BY a.id LIMIT ?`, since, after, limit)
}

func auxReposAfter(ctx context.Context, q db.Q, after int64, limit int) ([]*AuxRepo, error) {
	return db.All(ctx, q, scanAuxRepo, `SELECT `+auxRepoColumns+` FROM annexes a WHERE a.id > ? ORDER BY a.id LIMIT ?`, after, limit)
}

func insertAuxRepoPush(ctx context.Context, q db.Q, auxRepoID int64, who, what, node string, at time.Time) (id int64, err error) {
	err = q.QueryRowContext(ctx, `INSERT INTO annex_pushes (annex_id, actor, push, node, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		auxRepoID, who, what, node, at).Scan(&id)
	return id, err
}

func deleteAuxRepoPush(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM annex_pushes WHERE id = ?`, id)
}

func findAuxRepoNodeLeftovers(ctx context.Context, q db.Q, before time.Time, living []string) ([]leftover, error) {
	return findOthers(ctx, q, `SELECT id, annex_id, actor, push FROM annex_pushes`, before, living)
}

func findAuxRepoLeftovers(ctx context.Context, q db.Q, before time.Time) ([]leftover, error) {
	return db.All(ctx, q, scanLeftover, `SELECT id, annex_id, actor, push FROM annex_pushes WHERE created_at <= ? ORDER BY id LIMIT 1000`, before)
}

func saveAuxRepoPlace(ctx context.Context, q db.Q, id int64, storage string, readOnly bool) error {
	return db.ExecOne(ctx, q, `UPDATE annexes SET storage = ?, read_only = ? WHERE id = ?`, storage, readOnly, id)
}

func countWriters(ctx context.Context, q db.Q, owner Owner) (n int, err error) {
	column, id := owner.column()
	err = q.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM pushes WHERE project_id = ?) +
			(SELECT count(*) FROM annex_pushes p JOIN annexes a ON a.id = p.annex_id WHERE a.`+column+` = ?)`,
		owner.ProjectID, id).Scan(&n)
	return n, err
}
