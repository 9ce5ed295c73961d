package lfs

import (
	"context"
	"slices"
	"time"

	"svc/internal/db"
)

// held is a reference of a project to an object.
type held struct {
	id     int64
	oid    string
	size   int64
	blob   string // key in the object storage
	usedAt time.Time
}

func scanHeld(s db.Scanner) (held, error) {
	var h held
	err := s.Scan(&h.id, &h.oid, &h.size, &h.blob, db.Time(&h.usedAt))
	return h, err
}

// inStatement is the maximum number of values in one statement.
const inStatement = 500

// findHeld returns those of the objects that a project has, by their IDs.
func findHeld(ctx context.Context, q db.Q, projectID int64, oids []string) (map[string]held, error) {
	found := make(map[string]held, len(oids))
	for len(oids) > 0 {
		part := oids[:min(inStatement, len(oids))]
		oids = oids[len(part):]
		list, err := db.All(ctx, q, scanHeld, `
			SELECT o.id, o.oid, o.size, o.blob, l.used_at
			FROM lfs_objects o JOIN lfs_project_objects l ON l.object_id = o.id AND l.project_id = ?
			WHERE o.oid IN `+db.In(len(part)), append([]any{projectID}, db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		for _, h := range list {
			found[h.oid] = h
		}
	}
	return found, nil
}

// holdsAny reports whether a project has objects.
func holdsAny(ctx context.Context, q db.Q, projectID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM lfs_project_objects WHERE project_id = ? LIMIT 1`, projectID)
}

// touch records that objects of a project are used.
func touch(ctx context.Context, q db.Q, projectID int64, ids []int64, at time.Time) error {
	for len(ids) > 0 {
		part := ids[:min(inStatement, len(ids))]
		ids = ids[len(part):]
		_, err := q.ExecContext(ctx, `UPDATE lfs_project_objects SET used_at = ? WHERE project_id = ? AND object_id IN `+db.In(len(part)),
			append([]any{at, projectID}, db.Any(part)...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// object is an object: the content with a digest.
type object struct {
	id        int64
	oid       string
	size      int64
	blob      string
	createdAt time.Time
}

func scanObject(s db.Scanner) (object, error) {
	var o object
	err := s.Scan(&o.id, &o.oid, &o.size, &o.blob, db.Time(&o.createdAt))
	return o, err
}

const objectColumns = `id, oid, size, blob, created_at`

// findObject returns db.ErrNoRows if no project has the object.
func findObject(ctx context.Context, q db.Q, oid string) (object, error) {
	return scanObject(q.QueryRowContext(ctx, `SELECT `+objectColumns+` FROM lfs_objects WHERE oid = ?`, oid))
}

func insertObject(ctx context.Context, tx *db.Tx, o *object) error {
	return tx.QueryRowContext(ctx, `INSERT INTO lfs_objects (oid, size, blob, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		o.oid, o.size, o.blob, o.createdAt).Scan(&o.id)
}

// link adds an object to a project.
func link(ctx context.Context, tx *db.Tx, projectID int64, o object, at time.Time) error {
	n, err := db.ExecCount(ctx, tx, `
		INSERT INTO lfs_project_objects (project_id, object_id, used_at) VALUES (?, ?, ?) ON CONFLICT (project_id, object_id) DO NOTHING`,
		projectID, o.id, at)
	if err != nil {
		return err
	}
	if n == 0 {
		return touch(ctx, tx, projectID, []int64{o.id}, at)
	}
	return addSize(ctx, tx, projectID, o.size, at)
}

// addSize adds to the sum of the sizes of the objects of a project.
func addSize(ctx context.Context, tx *db.Tx, projectID, size int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO lfs_projects (project_id, size, checked_at) VALUES (?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET size = lfs_projects.size + excluded.size`, projectID, size, at)
	return err
}

// copyLinks adds objects of a project to another one, starting after an ID. It returns the
// last ID that it copied; 0 if there are no more.
func copyLinks(ctx context.Context, tx *db.Tx, from, to, after int64, limit int, at time.Time) (int64, error) {
	ids, err := db.All(ctx, tx, db.Value[int64], `
		SELECT object_id FROM lfs_project_objects WHERE project_id = ? AND object_id > ? ORDER BY object_id LIMIT ?`, from, after, limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	last := ids[len(ids)-1]
	var size int64
	err = tx.QueryRowContext(ctx, `
		SELECT CAST(coalesce(sum(o.size), 0) AS BIGINT) FROM lfs_project_objects l JOIN lfs_objects o ON o.id = l.object_id
		WHERE l.project_id = ? AND l.object_id > ? AND l.object_id <= ?
		AND NOT EXISTS (SELECT 1 FROM lfs_project_objects t WHERE t.project_id = ? AND t.object_id = l.object_id)`, from, after, last, to).Scan(&size)
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO lfs_project_objects (project_id, object_id, used_at)
		SELECT ?, l.object_id, ? FROM lfs_project_objects l WHERE l.project_id = ? AND l.object_id > ? AND l.object_id <= ?
		ON CONFLICT (project_id, object_id) DO NOTHING`, to, at, from, after, last)
	if err != nil {
		return 0, err
	}
	return last, addSize(ctx, tx, to, size, at)
}

// candidates returns objects of a project that were not used since a time, by ID.
func candidates(ctx context.Context, q db.Q, projectID, after int64, before time.Time, limit int) ([]held, error) {
	return db.All(ctx, q, scanHeld, `
		SELECT o.id, o.oid, o.size, o.blob, l.used_at FROM lfs_project_objects l JOIN lfs_objects o ON o.id = l.object_id
		WHERE l.project_id = ? AND l.object_id > ? AND l.used_at < ? ORDER BY l.object_id LIMIT ?`, projectID, after, before, limit)
}

// unlink removes an object from a project, unless it was used since a time.
func unlink(ctx context.Context, tx *db.Tx, projectID int64, h held, before time.Time) error {
	n, err := db.ExecCount(ctx, tx, `DELETE FROM lfs_project_objects WHERE project_id = ? AND object_id = ? AND used_at < ?`, projectID, h.id, before)
	if err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE lfs_projects SET size = size - ? WHERE project_id = ?`, h.size, projectID)
	return err
}

// findUnchecked returns projects whose repositories were not searched since a time.
func findUnchecked(ctx context.Context, q db.Q, before time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT project_id FROM lfs_projects WHERE checked_at < ? ORDER BY checked_at LIMIT ?`, before, limit)
}

func saveChecked(ctx context.Context, q db.Q, projectID int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE lfs_projects SET checked_at = ? WHERE project_id = ?`, at, projectID)
	return err
}

// findObjects returns objects by ID.
func findObjects(ctx context.Context, q db.Q, after int64, limit int) ([]object, error) {
	return db.All(ctx, q, scanObject, `SELECT `+objectColumns+` FROM lfs_objects WHERE id > ? ORDER BY id LIMIT ?`, after, limit)
}

// linked returns those of the objects that a project holds.
func linked(ctx context.Context, q db.Q, ids []int64) (map[int64]bool, error) {
	list, err := db.All(ctx, q, db.Value[int64], `SELECT DISTINCT object_id FROM lfs_project_objects WHERE object_id IN `+db.In(len(ids)), db.Any(ids)...)
	found := make(map[int64]bool, len(list))
	for _, id := range list {
		found[id] = true
	}
	return found, err
}

func deleteObject(ctx context.Context, tx *db.Tx, id int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM lfs_objects WHERE id = ?`, id)
	return err
}

// upload is a key in the object storage that does not belong to an object yet.
type upload struct {
	blob      string
	projectID int64
	oid       string
	size      int64
	createdAt time.Time
}

func insertUpload(ctx context.Context, q db.Q, u upload) error {
	_, err := q.ExecContext(ctx, `INSERT INTO lfs_uploads (blob, project_id, oid, size, created_at) VALUES (?, ?, ?, ?, ?)`,
		u.blob, u.projectID, u.oid, u.size, u.createdAt)
	return err
}

// findUpload returns db.ErrNoRows if there is no such upload.
func findUpload(ctx context.Context, q db.Q, blob string) (upload, error) {
	u := upload{blob: blob}
	err := q.QueryRowContext(ctx, `SELECT project_id, oid, size, created_at FROM lfs_uploads WHERE blob = ?`, blob).
		Scan(&u.projectID, &u.oid, &u.size, db.Time(&u.createdAt))
	return u, err
}

// findBegun returns the direct uploads of objects to a project by object ID.
func findBegun(ctx context.Context, q db.Q, projectID int64, oids []string) (map[string]upload, error) {
	found := make(map[string]upload, len(oids))
	for part := range slices.Chunk(oids, inStatement) {
		args := append([]any{projectID}, db.Any(part)...)
		list, err := db.All(ctx, q, func(s db.Scanner) (upload, error) {
			u := upload{projectID: projectID}
			err := s.Scan(&u.blob, &u.oid, &u.size, db.Time(&u.createdAt))
			return u, err
		}, `SELECT blob, oid, size, created_at FROM lfs_uploads WHERE project_id = ? AND oid IN `+db.In(len(part)), args...)
		if err != nil {
			return nil, err
		}
		for _, u := range list {
			found[u.oid] = u
		}
	}
	return found, nil
}

// begunSize returns the total size of the direct uploads to a project that are not
// verified.
func begunSize(ctx context.Context, q db.Q, projectID int64) (size int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM lfs_uploads WHERE project_id = ?`, projectID).Scan(&size)
	return size, err
}

// renewUpload records that an upload begins again.
func renewUpload(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE lfs_uploads SET created_at = ? WHERE blob = ?`, at, blob)
	return err
}

// shortenUpload makes an upload at least as old as one that began at a time.
func shortenUpload(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE lfs_uploads SET created_at = ? WHERE blob = ? AND created_at > ?`, at, blob, at)
	return err
}

// settleUpload records that the object of a direct upload is stored.
func settleUpload(ctx context.Context, q db.Q, blob string) error {
	_, err := q.ExecContext(ctx, `UPDATE lfs_uploads SET size = 0 WHERE blob = ?`, blob)
	return err
}

// deleteUpload returns db.ErrNoRows if the upload was removed.
func deleteUpload(ctx context.Context, q db.Q, blob string) error {
	return db.ExecOne(ctx, q, `DELETE FROM lfs_uploads WHERE blob = ?`, blob)
}

// deleteUploads returns the keys of the uploads that it deleted.
func deleteUploads(ctx context.Context, tx *db.Tx, keys []string) ([]string, error) {
	return db.All(ctx, tx, db.Value[string], `DELETE FROM lfs_uploads WHERE blob IN `+db.In(len(keys))+` RETURNING blob`, db.Any(keys)...)
}

// findUploads returns the keys of uploads that began before a time: an earlier one for those
// through the server than for direct ones.
func findUploads(ctx context.Context, q db.Q, before, directBefore time.Time, limit int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT blob FROM lfs_uploads WHERE created_at < ? AND (project_id <> 0 OR created_at < ?) ORDER BY created_at, blob LIMIT ?`, directBefore, before, limit)
}

func sizesOf(ctx context.Context, q db.Q, projects []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `SELECT project_id, size FROM lfs_projects WHERE project_id IN `+db.In(len(projects)), projects)
}

func sizesOfGroups(ctx context.Context, q db.Q, groups []int64) (map[int64]int64, error) {
	return db.Sums(ctx, q, `
		SELECT t.ancestor_id, CAST(sum(m.size) AS BIGINT)
		FROM namespace_tree t JOIN projects p ON p.namespace_id = t.descendant_id JOIN lfs_projects m ON m.project_id = p.id
		WHERE p.deleted_at IS NULL AND t.ancestor_id IN `+db.In(len(groups))+` GROUP BY t.ancestor_id`, groups)
}
