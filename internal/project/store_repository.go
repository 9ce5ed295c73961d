package project

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"svc/internal/db"
)

func savePushed(ctx context.Context, q db.Q, id int64, branch string, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		UPDATE projects SET last_activity_at = ?, default_branch = CASE WHEN default_branch = '' THEN CAST(? AS TEXT) ELSE default_branch END
		WHERE id = ?`, at, branch, id)
	return err
}

func saveReadme(ctx context.Context, q db.Q, id int64, path string) error {
	_, err := q.ExecContext(ctx, `UPDATE projects SET readme = ? WHERE id = ? AND readme <> ?`, path, id, path)
	return err
}

// saveLanguages replaces the languages of a project, unless it was deleted.
func saveLanguages(ctx context.Context, q db.Q, id int64, shares map[string]float64) error {
	if _, err := q.ExecContext(ctx, `DELETE FROM project_languages WHERE project_id = ?`, id); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		_, err := q.ExecContext(ctx, `
			INSERT INTO project_languages (project_id, name, share) SELECT p.id, CAST(? AS TEXT), CAST(? AS DOUBLE PRECISION) FROM projects p WHERE p.id = ?`,
			name, shares[name], id)
		if err != nil {
			return err
		}
	}
	return nil
}

// findLanguages returns the names of the languages of a project, the largest first.
func findLanguages(ctx context.Context, q db.Q, id int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT name FROM project_languages WHERE project_id = ? ORDER BY share DESC, name`, id)
}

func saveImported(ctx context.Context, q db.Q, id int64, status ImportStatus, failure, branch string, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		UPDATE projects SET import_status = ?, import_error = ?, default_branch = ?, last_activity_at = ? WHERE id = ?`,
		string(status), failure, branch, at, id)
	return err
}

func saveImportStatus(ctx context.Context, q db.Q, id int64, status ImportStatus, failure string) error {
	_, err := q.ExecContext(ctx, `UPDATE projects SET import_status = ?, import_error = ? WHERE id = ?`, string(status), failure, id)
	return err
}

func saveImportAgain(ctx context.Context, q db.Q, id int64, url string) error {
	_, err := q.ExecContext(ctx, `UPDATE projects SET import_status = ?, import_error = '', import_type = ?, import_url = ? WHERE id = ?`,
		string(ImportScheduled), FromGit, url, id)
	return err
}

func saveStatistics(ctx context.Context, q db.Q, id int64, m Statistics, at time.Time) error {
	// The project may have been deleted.
	_, err := q.ExecContext(ctx, `
		INSERT INTO project_statistics (project_id, repository_size, commit_count, updated_at)
		SELECT p.id, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM projects p WHERE p.id = ?
		ON CONFLICT (project_id) DO UPDATE SET
			repository_size = excluded.repository_size, commit_count = excluded.commit_count, updated_at = excluded.updated_at`,
		m.RepositorySize, m.CommitCount, at, id)
	return err
}

func saveAuxRepoSizes(ctx context.Context, q db.Q, id, wiki, snippets int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO project_statistics (project_id, repository_size, commit_count, wiki_size, snippets_size, updated_at)
		SELECT p.id, 0, 0, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM projects p WHERE p.id = ?
		ON CONFLICT (project_id) DO UPDATE SET
			wiki_size = excluded.wiki_size, snippets_size = excluded.snippets_size, updated_at = excluded.updated_at`, wiki, snippets, at, id)
	return err
}

// sumStatistics adds up the statistics of all projects in groups and their
// descendants.
func sumStatistics(ctx context.Context, q db.Q, groups []int64) (map[int64]Statistics, error) {
	type row struct {
		id int64
		Statistics
	}
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.id, &r.RepositorySize, &r.WikiSize, &r.SnippetsSize)
		return r, err
	}, `SELECT t.ancestor_id, CAST(SUM(m.repository_size) AS BIGINT), CAST(SUM(m.wiki_size) AS BIGINT), CAST(SUM(m.snippets_size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN project_statistics m ON m.project_id = p.id
		WHERE p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, db.Any(groups)...)
	found := make(map[int64]Statistics, len(rows))
	for _, r := range rows {
		found[r.id] = r.Statistics
	}
	return found, err
}

// findStatistics returns the statistics of projects. Projects without statistics
// are missing.
func findStatistics(ctx context.Context, q db.Q, ids []int64) (map[int64]Statistics, error) {
	type row struct {
		id int64
		Statistics
	}
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.id, &r.RepositorySize, &r.CommitCount, &r.WikiSize, &r.SnippetsSize)
		return r, err
	}, `SELECT project_id, repository_size, commit_count, wiki_size, snippets_size FROM project_statistics WHERE project_id IN `+db.In(len(ids)), db.Any(ids)...)
	found := make(map[int64]Statistics, len(rows))
	for _, r := range rows {
		found[r.id] = r.Statistics
	}
	return found, err
}

func saveOrigin(ctx context.Context, q db.Q, id int64, from *int64, at time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET forked_from_id = ?, updated_at = ? WHERE id = ? AND deleted_at IS NULL`, from, at, id)
}

// findWiderForks returns the forks of a project, recursively, that are more
// visible than a limit.
func findWiderForks(ctx context.Context, q db.Q, id int64, limit Visibility) ([]*Project, error) {
	var wider []string
	for _, v := range []Visibility{Internal, Public} {
		if v.width() > limit.width() {
			wider = append(wider, string(v))
		}
	}
	if len(wider) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, scanProject, `
		WITH RECURSIVE forks (id) AS (
			SELECT id FROM projects WHERE forked_from_id = ?
			UNION SELECT p.id FROM projects p JOIN forks f ON p.forked_from_id = f.id
		)
		SELECT `+projectColumns+` FROM `+projectTables+` WHERE p.id IN (SELECT id FROM forks) AND p.visibility IN `+db.In(len(wider))+` ORDER BY p.id`,
		append([]any{id}, db.Any(wider)...)...)
}

// findCodeVisibility returns the visibility of the code of a project, even if it
// is being deleted. ErrNoRows.
func findCodeVisibility(ctx context.Context, q db.Q, id int64) (Visibility, error) {
	var p Project
	err := q.QueryRowContext(ctx, `SELECT visibility, repository_access_level FROM projects WHERE id = ?`, id).Scan(&p.Visibility, &p.Repository)
	return p.CodeVisibility(), err
}

func saveVisibility(ctx context.Context, q db.Q, id int64, v Visibility, at time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE projects SET visibility = ?, updated_at = ? WHERE id = ?`, string(v), at, id)
}

// findOrigin returns the project that a project was forked from, even if it is
// being deleted: its forks remain in the same network.
func findOrigin(ctx context.Context, q db.Q, id int64) (*int64, error) {
	var from *int64
	err := q.QueryRowContext(ctx, `SELECT forked_from_id FROM projects WHERE id = ?`, id).Scan(&from)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return from, err
}

func findActive(ctx context.Context, q db.Q, since time.Time, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, func(s db.Scanner) (int64, error) {
		var id int64
		err := s.Scan(&id)
		return id, err
	}, `SELECT p.id FROM projects p WHERE p.deleted_at IS NULL AND p.last_activity_at >= ? AND p.id > ? ORDER BY p.id LIMIT ?`, since, after, limit)
}

func savePlace(ctx context.Context, q db.Q, id int64, storage string, readOnly bool) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE projects SET storage = ?, read_only = ? WHERE id = ?`, storage, readOnly, id), "Project")
}

// forkCount is the number of forks of a project.
type forkCount struct{ projectID, forks int64 }

func countForks(ctx context.Context, q db.Q, projects []int64) ([]forkCount, error) {
	return db.All(ctx, q, func(s db.Scanner) (forkCount, error) {
		var c forkCount
		err := s.Scan(&c.projectID, &c.forks)
		return c, err
	}, `SELECT forked_from_id, count(*) FROM projects WHERE deleted_at IS NULL AND forked_from_id IN `+db.In(len(projects))+` GROUP BY forked_from_id`, db.Any(projects)...)
}

// findStorage returns the storage of the repository of a project.
func findStorage(ctx context.Context, q db.Q, projectID int64) (name string, err error) {
	err = q.QueryRowContext(ctx, `SELECT storage FROM projects WHERE id = ?`, projectID).Scan(&name)
	return name, db.NotFound(err, "Project")
}
