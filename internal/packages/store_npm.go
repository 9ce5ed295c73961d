package packages

import (
	"context"
	"time"

	"svc/internal/db"
)

// versionRow is a version without its metadata.
type versionRow struct {
	id                   int64
	version              string
	createdAt, updatedAt time.Time
}

func versionRows(ctx context.Context, q db.Q, projects []int64, name string) ([]versionRow, error) {
	return db.All(ctx, q, func(s db.Scanner) (r versionRow, err error) {
		err = s.Scan(&r.id, &r.version, db.Time(&r.createdAt), db.Time(&r.updatedAt))
		return r, err
	}, `SELECT k.id, k.version, k.created_at, k.updated_at FROM packages k WHERE k.project_id IN `+db.In(len(projects))+` AND k.type = 'npm' AND k.lookup = ?`,
		append(db.Any(projects), name)...)
}

// findNamedIn returns the newest file of a name of any version of a package.
func findNamedIn(ctx context.Context, q db.Q, projectID int64, t Type, lookup, name string) (*File, error) {
	f, err := scanFile(q.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM packages k JOIN package_files f ON f.package_id = k.id JOIN package_blobs b ON b.id = f.blob_id
		WHERE k.project_id = ? AND k.type = ? AND k.lookup = ? AND f.name = ? ORDER BY f.id DESC LIMIT 1`, projectID, string(t), lookup, name))
	return f, db.NotFound(err, "Package file")
}

func scanTag(s db.Scanner) (t Tag, err error) {
	err = s.Scan(&t.ID, &t.PackageID, &t.Name, db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt))
	return t, err
}

func tagsOf(ctx context.Context, q db.Q, packages []int64) ([]Tag, error) {
	return db.All(ctx, q, scanTag, `
		SELECT t.id, t.package_id, t.name, t.created_at, t.updated_at FROM package_tags t WHERE t.package_id IN `+db.In(len(packages))+` ORDER BY t.id`, db.Any(packages)...)
}

// tagsNamed returns the versions of the tags of a package in projects.
func tagsNamed(ctx context.Context, q db.Q, projects []int64, name string) (map[string]string, error) {
	found := map[string]string{}
	return found, db.Each(ctx, q, func(s db.Scanner) (pair [2]string, err error) {
		err = s.Scan(&pair[0], &pair[1])
		return pair, err
	}, func(pair [2]string) error {
		found[pair[0]] = pair[1]
		return nil
	}, `SELECT t.name, k.version FROM package_tags t JOIN packages k ON k.id = t.package_id
		WHERE t.project_id IN `+db.In(len(projects))+` AND t.package_name = ? ORDER BY t.id`, append(db.Any(projects), name)...)
}

func upsertTag(ctx context.Context, tx *db.Tx, k *Package, tag string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO package_tags (project_id, package_name, name, package_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id, package_name, name) DO UPDATE SET package_id = excluded.package_id, updated_at = excluded.updated_at`,
		k.ProjectID, k.Name, tag, k.ID, at, at)
	return err
}

func deleteTag(ctx context.Context, tx *db.Tx, projectID int64, name, tag string) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM package_tags WHERE project_id = ? AND package_name = ? AND name = ?`, projectID, name, tag), "Package tag")
}
