package codesearch

import (
	"context"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// index is the row of an indexed project.
type index struct {
	ProjectID    int64
	Branch       string
	Commit       string // empty: there is nothing to index
	Shards       []string
	Partial      bool
	Files        int64
	ContentBytes int64
	IndexBytes   int64
	Duration     time.Duration
	IndexedAt    time.Time
}

const indexColumns = `c.project_id, c.branch, c.commit_id, c.shards, c.partial, c.files, c.content_bytes, c.index_bytes, c.duration, c.indexed_at`

func scanIndex(s db.Scanner) (x index, err error) {
	var shards string
	var micros int64
	err = s.Scan(&x.ProjectID, &x.Branch, &x.Commit, &shards, &x.Partial, &x.Files, &x.ContentBytes, &x.IndexBytes, &micros, db.Time(&x.IndexedAt))
	x.Shards, x.Duration = strings.Fields(shards), time.Duration(micros)*time.Microsecond
	return x, err
}

// findIndex reads the index of a project in the current format. ErrNoRows.
func findIndex(ctx context.Context, q db.Q, projectID int64) (index, error) {
	return scanIndex(q.QueryRowContext(ctx, `SELECT `+indexColumns+` FROM code_indexes c WHERE c.project_id = ? AND c.format = ?`, projectID, format))
}

// saveIndex writes the row of a project, if it still exists.
func saveIndex(ctx context.Context, q db.Q, x index) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO code_indexes (project_id, format, branch, commit_id, shards, partial, files, content_bytes, index_bytes, duration, indexed_at)
		SELECT p.id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM projects p WHERE p.id = ?
		ON CONFLICT (project_id) DO UPDATE SET format = excluded.format, branch = excluded.branch, commit_id = excluded.commit_id, shards = excluded.shards,
			partial = excluded.partial, files = excluded.files, content_bytes = excluded.content_bytes, index_bytes = excluded.index_bytes,
			duration = excluded.duration, indexed_at = excluded.indexed_at`,
		format, x.Branch, x.Commit, strings.Join(x.Shards, " "), x.Partial, x.Files, x.ContentBytes, x.IndexBytes, x.Duration.Microseconds(), x.IndexedAt.UnixMicro(),
		x.ProjectID)
	return err
}

// condition returns the condition on the projects p of a search: those whose code the
// actor may read.
func (s *Service) condition(by actor.Actor, in Query) db.Where {
	var w db.Where
	seen, args := s.Projects.Readable(by, project.CodePart)
	w.And(seen, args...)
	w.And(`p.default_branch <> ''`)
	switch {
	case in.ProjectID != 0:
		w.And(`p.id = ?`, in.ProjectID)
	case in.GroupID != 0:
		w.And(`p.namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, in.GroupID)
	}
	if in.Live {
		w.And(`NOT p.archived`)
	}
	if in.NoForks {
		w.And(`p.forked_from_id IS NULL`)
	}
	return w
}

// listIndexes returns the indexes of the projects of a search, the most recently active
// projects first.
func (s *Service) listIndexes(ctx context.Context, by actor.Actor, in Query) ([]index, error) {
	w := s.condition(by, in)
	w.And(`c.format = ?`, format)
	return db.All(ctx, s.DB, scanIndex, `SELECT `+indexColumns+` FROM code_indexes c JOIN projects p ON p.id = c.project_id`+w.SQL()+`
		ORDER BY p.last_activity_at DESC, p.id DESC LIMIT ?`, w.Args(maxProjects)...)
}

// countPending counts the projects of a search that are not indexed yet.
func (s *Service) countPending(ctx context.Context, by actor.Actor, in Query) (n int, err error) {
	w := s.condition(by, in)
	w.And(`NOT EXISTS (SELECT 1 FROM code_indexes c WHERE c.project_id = p.id AND c.format = ?)`, format)
	err = s.DB.QueryRowContext(ctx, `SELECT count(*) FROM projects p`+w.SQL(), w.Args()...).Scan(&n)
	return n, err
}

// listOutdated returns the IDs of projects, greater than after, whose index is missing,
// has an old format or belongs to another branch.
func listOutdated(ctx context.Context, q db.Q, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT p.id FROM projects p LEFT JOIN code_indexes c ON c.project_id = p.id
		WHERE p.id > ? AND p.deleted_at IS NULL AND p.default_branch <> '' AND (c.project_id IS NULL OR c.format <> ? OR c.branch <> p.default_branch)
		ORDER BY p.id LIMIT ?`, after, format, limit)
}

// listAll returns the IDs of all projects with code that are greater than after.
func listAll(ctx context.Context, q db.Q, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT p.id FROM projects p WHERE p.id > ? AND p.deleted_at IS NULL AND p.default_branch <> '' ORDER BY p.id LIMIT ?`, after, limit)
}
