package packages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const packageColumns = `k.id, k.project_id, k.type, k.name, k.lookup, k.version, k.status, k.metadata, k.creator_id, k.created_at, k.updated_at, k.last_downloaded_at`

// listedColumns are packageColumns without the metadata, which can be long.
const listedColumns = `k.id, k.project_id, k.type, k.name, k.lookup, k.version, k.status, '', k.creator_id, k.created_at, k.updated_at, k.last_downloaded_at`

func scanPackage(s db.Scanner) (*Package, error) {
	k := &Package{}
	return k, s.Scan(packageFields(k)...)
}

func packageFields(k *Package) []any {
	return []any{
		&k.ID, &k.ProjectID, &k.Type, &k.Name, &k.lookup, &k.Version, &k.Status, &k.metadata, &k.CreatorID,
		db.Time(&k.CreatedAt), db.Time(&k.UpdatedAt), db.NullTime(&k.LastDownloadedAt),
	}
}

// scanListed scans a package with the path of its project.
func scanListed(s db.Scanner) (*Package, error) {
	k := &Package{}
	return k, s.Scan(append(packageFields(k), &k.ProjectPath)...)
}

func findPackage(ctx context.Context, q db.Q, projectID, id int64) (*Package, error) {
	k, err := scanListed(q.QueryRowContext(ctx, `
		SELECT `+packageColumns+`, p.full_path FROM packages k JOIN projects p ON p.id = k.project_id WHERE k.project_id = ? AND k.id = ?`, projectID, id))
	return k, db.NotFound(err, "Package")
}

func findVersion(ctx context.Context, q db.Q, projectID int64, t Type, lookup, version string) (*Package, error) {
	k, err := scanPackage(q.QueryRowContext(ctx, `
		SELECT `+packageColumns+` FROM packages k WHERE k.project_id = ? AND k.type = ? AND k.lookup = ? AND k.version = ?`,
		projectID, string(t), lookup, version))
	return k, db.NotFound(err, "Package")
}

// findVersions returns the versions of a package in projects whose IDs are greater than after.
func findVersions(ctx context.Context, q db.Q, projects []int64, t Type, lookup string, after int64, limit int) ([]*Package, error) {
	args := append(db.Any(projects), string(t), lookup, after, limit)
	return db.All(ctx, q, scanPackage, `
		SELECT `+packageColumns+` FROM packages k WHERE k.project_id IN `+db.In(len(projects))+` AND k.type = ? AND k.lookup = ? AND k.id > ?
		ORDER BY k.id LIMIT ?`, args...)
}

// newestVersions returns the newest versions of a package in a project.
func newestVersions(ctx context.Context, q db.Q, projectID int64, t Type, lookup string, limit int) ([]*Package, error) {
	return db.All(ctx, q, scanPackage, `
		SELECT `+listedColumns+` FROM packages k WHERE k.project_id = ? AND k.type = ? AND k.lookup = ? AND k.status = 'default'
		ORDER BY k.id DESC LIMIT ?`, projectID, string(t), lookup, limit)
}

// findProjectsWith returns the IDs of projects p that have a package and match the
// condition.
func findProjectsWith(ctx context.Context, q db.Q, t Type, lookup, cond string, limit int, args ...any) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT k.project_id FROM packages k JOIN projects p ON p.id = k.project_id
		WHERE k.type = ? AND k.lookup = ? AND p.deleted_at IS NULL AND `+cond+` ORDER BY k.project_id LIMIT ?`,
		append(append([]any{string(t), lookup}, args...), limit)...)
}

// findProjectsOf returns the projects of a group that have packages of a type.
func findProjectsOf(ctx context.Context, q db.Q, groupID int64, t Type, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT p.id FROM projects p WHERE p.deleted_at IS NULL AND p.namespace_id IN (SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ?)
			AND EXISTS (SELECT 1 FROM packages k WHERE k.project_id = p.id AND k.type = ?)
		ORDER BY p.id LIMIT ?`, groupID, string(t), limit)
}

// findProjectsWithFile returns the projects of a group that have a file of a name
// with this content.
func findProjectsWithFile(ctx context.Context, q db.Q, groupID int64, sha256, name string, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT f.project_id FROM package_blobs b JOIN package_files f ON f.blob_id = b.id JOIN projects p ON p.id = f.project_id
		WHERE b.sha256 = ? AND f.name = ? AND p.deleted_at IS NULL AND `+inGroup+` ORDER BY f.project_id LIMIT ?`, sha256, name, groupID, limit)
}

// both joins two conditions.
func both(a, b string) string { return a + " AND " + b }

const (
	inProject  = `k.project_id = ?`
	directlyIn = `p.namespace_id = ?`
	inGroup    = `p.namespace_id IN (SELECT d.descendant_id FROM namespace_tree d WHERE d.ancestor_id = ?)`
	belowPath  = `lower(p.full_path) LIKE ? ESCAPE '\'`
)

// names returns the names of packages of projects that follow after, in the order of
// the form in which names are compared.
func names(ctx context.Context, q db.Q, projects []int64, t Type, after string, limit int) ([]string, error) {
	args := append(db.Any(projects), string(t), after, limit)
	return db.All(ctx, q, db.Value[string], `
		SELECT DISTINCT k.lookup FROM packages k WHERE k.project_id IN `+db.In(len(projects))+` AND k.type = ? AND k.lookup > ? AND k.status = 'default'
		ORDER BY k.lookup LIMIT ?`, args...)
}

// insertPackage inserts a package, or finds the one that is there. The row is
// locked until the transaction ends.
func insertPackage(ctx context.Context, tx *db.Tx, k *Package) (found *Package, added bool, err error) {
	n, err := db.ExecCount(ctx, tx, `
		INSERT INTO packages (project_id, type, name, lookup, version, status, metadata, creator_id, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_id, type, lookup, version) DO NOTHING`,
		k.ProjectID, string(k.Type), k.Name, k.lookup, k.Version, string(k.Status), k.metadata, k.CreatorID, k.CreatedAt, k.UpdatedAt)
	if err != nil {
		return nil, false, err
	}
	found, err = findVersion(ctx, tx, k.ProjectID, k.Type, k.lookup, k.Version)
	if err != nil {
		return nil, false, err
	}
	return found, n > 0, tx.Lock(ctx, "packages", found.ID)
}

func updatePackage(ctx context.Context, tx *db.Tx, id int64, status Status, metadata string, at time.Time) error {
	return db.ExecOne(ctx, tx, `UPDATE packages SET status = ?, metadata = ?, updated_at = ? WHERE id = ?`, string(status), metadata, at, id)
}

func touchPackage(ctx context.Context, q db.Q, id int64, at, before time.Time) error {
	due, err := db.Exists(ctx, q, `SELECT 1 FROM packages WHERE id = ? AND (last_downloaded_at IS NULL OR last_downloaded_at < ?)`, id, before)
	if err != nil || !due {
		return err
	}
	_, err = q.ExecContext(ctx, `UPDATE packages SET last_downloaded_at = ? WHERE id = ?`, at, id)
	return err
}

// deletePackage deletes a package with its files.
func deletePackage(ctx context.Context, tx *db.Tx, k *Package) error {
	var size int64
	err := tx.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM package_files WHERE package_id = ?`, k.ID).Scan(&size)
	if err != nil {
		return err
	}
	if err := db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM packages WHERE id = ?`, k.ID), "Package"); err != nil {
		return err
	}
	_, err = addSize(ctx, tx, k.ProjectID, -size)
	return err
}

const fileColumns = `f.id, f.package_id, f.project_id, f.name, f.size, f.metadata, f.created_at, b.id, b.sha256, b.sha1, b.md5, b.blob`

const fileTables = `package_files f JOIN package_blobs b ON b.id = f.blob_id`

func scanFile(s db.Scanner) (*File, error) {
	f := &File{}
	return f, s.Scan(&f.ID, &f.PackageID, &f.ProjectID, &f.Name, &f.Size, &f.metadata, db.Time(&f.CreatedAt), &f.blobID, &f.SHA256, &f.SHA1, &f.MD5, &f.blob)
}

func findFile(ctx context.Context, q db.Q, projectID, id int64) (*File, error) {
	f, err := scanFile(q.QueryRowContext(ctx, `SELECT `+fileColumns+` FROM `+fileTables+` WHERE f.id = ? AND f.project_id = ?`, id, projectID))
	return f, db.NotFound(err, "Package file")
}

// findFileNamed returns the newest file of a name.
func findFileNamed(ctx context.Context, q db.Q, packageID int64, name string) (*File, error) {
	f, err := scanFile(q.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM `+fileTables+` WHERE f.package_id = ? AND f.name = ? ORDER BY f.id DESC LIMIT 1`, packageID, name))
	return f, db.NotFound(err, "Package file")
}

// findFileByDigest returns a file of a package type with this content.
func findFileByDigest(ctx context.Context, q db.Q, projects []int64, t Type, sha256, name string) (*File, error) {
	args := append([]any{sha256}, db.Any(projects)...)
	f, err := scanFile(q.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM package_blobs b JOIN package_files f ON f.blob_id = b.id JOIN packages k ON k.id = f.package_id
		WHERE b.sha256 = ? AND f.project_id IN `+db.In(len(projects))+` AND f.name = ? AND k.type = ? ORDER BY f.id LIMIT 1`,
		append(args, name, string(t))...))
	return f, db.NotFound(err, "Package file")
}

// filesOf returns the files of packages, the oldest first.
func filesOf(ctx context.Context, q db.Q, packages []int64) ([]*File, error) {
	return db.All(ctx, q, scanFile, `SELECT `+fileColumns+` FROM `+fileTables+` WHERE f.package_id IN `+db.In(len(packages))+` ORDER BY f.id`, db.Any(packages)...)
}

func countFiles(ctx context.Context, q db.Q, packageID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM package_files WHERE package_id = ?`, packageID).Scan(&n)
	return n, err
}

func insertFile(ctx context.Context, tx *db.Tx, f *File) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO package_files (package_id, project_id, blob_id, name, size, metadata, created_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		f.PackageID, f.ProjectID, f.blobID, f.Name, f.Size, f.metadata, f.CreatedAt).Scan(&f.ID)
}

func deleteFile(ctx context.Context, tx *db.Tx, f *File) error {
	if err := db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM package_files WHERE id = ?`, f.ID), "Package file"); err != nil {
		return err
	}
	_, err := addSize(ctx, tx, f.ProjectID, -f.Size)
	return err
}

func sumByProject(ctx context.Context, q db.Q, projects []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `SELECT project_id, size FROM package_sizes WHERE project_id IN `+db.In(len(projects)), projects)
}

func sumByGroup(ctx context.Context, q db.Q, groups []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `SELECT t.ancestor_id, CAST(SUM(z.size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN package_sizes z ON z.project_id = p.id
		WHERE p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, groups)
}

// addSize adds to the size of the packages of a project, and returns it.
func addSize(ctx context.Context, tx *db.Tx, projectID, size int64) (sum int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO package_sizes (project_id, size) VALUES (?, ?)
		ON CONFLICT (project_id) DO UPDATE SET size = package_sizes.size + excluded.size RETURNING size`, projectID, size).Scan(&sum)
	return sum, err
}

// insertPipeline records the pipeline that published a package.
func insertPipeline(ctx context.Context, tx *db.Tx, packageID, pipelineID int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO package_pipelines (package_id, pipeline_id) VALUES (?, ?) ON CONFLICT (package_id, pipeline_id) DO NOTHING`, packageID, pipelineID)
	return err
}

// pipelineOf is a pipeline that published a package.
type pipelineOf struct{ packageID, pipelineID int64 }

// maxPipelines is the number of pipelines that are read per package.
const maxPipelines = 20

func pipelinesOf(ctx context.Context, d *db.DB, packages []int64) ([]pipelineOf, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	from, args := d.Among("package_pipelines x", "x.package_id", packages)
	return db.All(ctx, d, func(s db.Scanner) (p pipelineOf, err error) {
		err = s.Scan(&p.packageID, &p.pipelineID)
		return p, err
	}, `SELECT x.package_id, x.pipeline_id FROM `+from+`
		WHERE x.pipeline_id >= COALESCE((SELECT y.pipeline_id FROM package_pipelines y WHERE y.package_id = among.id
			ORDER BY y.pipeline_id DESC LIMIT 1 OFFSET `+fmt.Sprint(maxPipelines-1)+`), 0)
		ORDER BY x.pipeline_id DESC`, args...)
}

func listPipelineIDs(ctx context.Context, d *db.DB, packageID int64, pg db.Paging) (db.Page[int64], error) {
	var w db.Where
	w.And(`x.package_id = ?`, packageID)
	return db.List(ctx, d, db.Query[int64]{
		Columns: "x.pipeline_id", From: "package_pipelines x", Where: w, Order: []db.Order{{Name: "x.pipeline_id"}}, Desc: true, Scan: db.Value[int64],
		Keys: func(id int64) []any { return []any{id} },
	}, pg)
}

// Content of files.

func insertUpload(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO package_uploads (blob, created_at) VALUES (?, ?)`, blob, at)
	return err
}

// takeUpload ends an upload whose content gets a row. Conflict if it took so long
// that the content was removed.
func takeUpload(ctx context.Context, tx *db.Tx, blob string) error {
	err := deleteUpload(ctx, tx, blob)
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("The upload took too long")
	}
	return err
}

// deleteUpload returns db.ErrNoRows if the upload was taken or removed.
func deleteUpload(ctx context.Context, tx *db.Tx, blob string) error {
	return db.ExecOne(ctx, tx, `DELETE FROM package_uploads WHERE blob = ?`, blob)
}

func findUploads(ctx context.Context, q db.Q, before time.Time, limit int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM package_uploads WHERE created_at < ? ORDER BY created_at LIMIT ?`, before, limit)
}

// upsertBlob inserts the row of content, or finds the row of the same content. The
// row is locked until the transaction ends, so that it is not swept meanwhile.
func upsertBlob(ctx context.Context, tx *db.Tx, c *content, at time.Time) (id int64, blob string, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO package_blobs (sha256, sha1, md5, size, blob, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (sha256) DO UPDATE SET released_at = NULL RETURNING id, blob`, c.sha256, c.sha1, c.md5, c.size, c.blob, at).Scan(&id, &blob)
	return id, blob, err
}

// findBlob returns the key of the content with a digest.
func findBlob(ctx context.Context, q db.Q, sha256 string) (blob string, err error) {
	err = q.QueryRowContext(ctx, `SELECT blob FROM package_blobs WHERE sha256 = ?`, sha256).Scan(&blob)
	return blob, err
}

func replaceBlob(ctx context.Context, tx *db.Tx, id int64, blob string) error {
	return db.ExecOne(ctx, tx, `UPDATE package_blobs SET blob = ? WHERE id = ?`, blob, id)
}

func releasePackage(ctx context.Context, tx *db.Tx, packageID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE package_blobs SET released_at = ? WHERE id IN (SELECT f.blob_id FROM package_files f WHERE f.package_id = ?)`, at, packageID)
	return err
}

func releaseProject(ctx context.Context, tx *db.Tx, projectID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE package_blobs SET released_at = ? WHERE id IN (SELECT f.blob_id FROM package_files f WHERE f.project_id = ?)`, at, projectID)
	return err
}

func releaseBlob(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE package_blobs SET released_at = ? WHERE id = ?`, at, id)
	return err
}

// findReleased returns content that was released before a time.
func findReleased(ctx context.Context, q db.Q, before time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM package_blobs WHERE released_at < ? ORDER BY released_at LIMIT ?`, before, limit)
}

// deleteReleased deletes the rows of released content that no file refers to, and
// returns their keys. The others are no longer released. The time is compared
// again: content that is released meanwhile waits for the next sweep.
func deleteReleased(ctx context.Context, tx *db.Tx, ids []int64, before time.Time) ([]string, error) {
	args := append(db.Any(ids), before)
	keys, err := db.All(ctx, tx, db.Value[string], `
		DELETE FROM package_blobs WHERE id IN `+db.In(len(ids))+` AND released_at < ?
			AND NOT EXISTS (SELECT 1 FROM package_files f WHERE f.blob_id = package_blobs.id)
		RETURNING blob`, args...)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE package_blobs SET released_at = NULL WHERE id IN `+db.In(len(ids))+` AND released_at < ?`, args...)
	return keys, err
}
