package bucket

import (
	"context"
	"errors"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/git"
)

// repository is a row of bucket_repositories.
type repository struct {
	id             int64
	head           string
	generation     int64
	packGeneration int64
	refFloor       int64

	epoch int64 // in which the row was read; set by Storage.find
}

func (r repository) version() version { return version{r.epoch, r.id, r.generation} }

const repositoryColumns = `id, head, generation, pack_generation, ref_floor`

func scanRepository(s db.Scanner) (r repository, err error) {
	err = s.Scan(&r.id, &r.head, &r.generation, &r.packGeneration, &r.refFloor)
	return r, err
}

func findRepository(ctx context.Context, q db.Q, storage, path string) (repository, error) {
	return scanRepository(q.QueryRowContext(ctx, `SELECT `+repositoryColumns+` FROM bucket_repositories WHERE storage = ? AND path = ?`, storage, path))
}

// lockRepository locks the row of a repository until the transaction ends and
// returns it.
func lockRepository(ctx context.Context, tx *db.Tx, id int64) (repository, error) {
	if err := tx.Lock(ctx, "bucket_repositories", id); err != nil {
		return repository{}, err
	}
	return scanRepository(tx.QueryRowContext(ctx, `SELECT `+repositoryColumns+` FROM bucket_repositories WHERE id = ?`, id))
}

func insertRepository(ctx context.Context, q db.Q, storage, path, head string, at time.Time) (id int64, err error) {
	err = q.QueryRowContext(ctx, `INSERT INTO bucket_repositories (storage, path, head, generation, pack_generation, created_at) VALUES (?, ?, ?, 1, 1, ?) RETURNING id`,
		storage, path, head, at).Scan(&id)
	return id, err
}

func saveGeneration(ctx context.Context, q db.Q, id, generation int64) error {
	return db.ExecOne(ctx, q, `UPDATE bucket_repositories SET generation = ? WHERE id = ?`, generation, id)
}

func savePackGeneration(ctx context.Context, q db.Q, id, generation int64) error {
	return db.ExecOne(ctx, q, `UPDATE bucket_repositories SET generation = ?, pack_generation = ? WHERE id = ?`, generation, generation, id)
}

func saveHead(ctx context.Context, q db.Q, id int64, head string, generation int64) error {
	return db.ExecOne(ctx, q, `UPDATE bucket_repositories SET head = ?, generation = ? WHERE id = ?`, head, generation, id)
}

func deleteRepository(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM bucket_repositories WHERE id = ?`, id)
}

// forgetDeleted deletes the rows of refs that were deleted up to a generation.
func forgetDeleted(ctx context.Context, tx *db.Tx, id, generation int64) error {
	forgotten, err := db.ExecAny(ctx, tx, `DELETE FROM bucket_refs WHERE repository_id = ? AND target = '' AND generation <= ?`, id, generation)
	if err != nil || !forgotten {
		return err
	}
	return db.ExecOne(ctx, tx, `UPDATE bucket_repositories SET ref_floor = ? WHERE id = ?`, generation, id)
}

// findOwner returns the owner of a storage. If it has none, id becomes the owner.
func findOwner(ctx context.Context, q db.Q, storage, id string) (owner string, err error) {
	if _, err = q.ExecContext(ctx, `INSERT INTO bucket_storages (storage, owner) VALUES (?, ?) ON CONFLICT (storage) DO NOTHING`, storage, id); err != nil {
		return "", err
	}
	err = q.QueryRowContext(ctx, `SELECT owner FROM bucket_storages WHERE storage = ?`, storage).Scan(&owner)
	return owner, err
}

// ref is a row of bucket_refs. The target is empty for a deleted ref.
type ref struct {
	name           string
	target, peeled git.OID
}

func scanRef(s db.Scanner) (r ref, err error) {
	var name []byte
	err = s.Scan(&name, &r.target, &r.peeled)
	r.name = string(name)
	return r, err
}

// findRefs returns the refs of a repository that changed after a generation,
// sorted by name.
func findRefs(ctx context.Context, q db.Q, id, after int64) ([]ref, error) {
	if after == 0 {
		return db.All(ctx, q, scanRef, `SELECT name, target, peeled FROM bucket_refs WHERE repository_id = ? ORDER BY name`, id)
	}
	return db.All(ctx, q, scanRef, `SELECT name, target, peeled FROM bucket_refs WHERE repository_id = ? AND generation > ? ORDER BY name`, id, after)
}

// refBatch is the number of refs in a statement.
const refBatch = 200

// findNamed returns the refs with some names that exist, by name.
func findNamed(ctx context.Context, q db.Q, id int64, names []string) (map[string]git.OID, error) {
	found := map[string]git.OID{}
	for len(names) > 0 {
		n := min(len(names), refBatch)
		args := []any{id}
		for _, name := range names[:n] {
			args = append(args, []byte(name))
		}
		names = names[n:]
		list, err := db.All(ctx, q, scanRef, `SELECT name, target, peeled FROM bucket_refs WHERE repository_id = ? AND target <> '' AND name IN `+db.In(n), args...)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			found[r.name] = r.target
		}
	}
	return found, nil
}

// findBelow returns the names of the refs below a name, as if it were a directory.
func findBelow(ctx context.Context, q db.Q, id int64, name string, limit int) ([]string, error) {
	list, err := db.All(ctx, q, scanRef, `SELECT name, target, peeled FROM bucket_refs WHERE repository_id = ? AND target <> '' AND name >= ? AND name < ? ORDER BY name LIMIT ?`,
		id, []byte(name+"/"), []byte(name+"0"), limit)
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.name
	}
	return names, err
}

// saveRefs inserts or updates refs.
func saveRefs(ctx context.Context, q db.Q, id, generation int64, refs []ref) error {
	for len(refs) > 0 {
		n := min(len(refs), refBatch)
		var args []any
		for _, r := range refs[:n] {
			args = append(args, id, []byte(r.name), string(r.target), string(r.peeled), generation)
		}
		_, err := q.ExecContext(ctx, `INSERT INTO bucket_refs (repository_id, name, target, peeled, generation) VALUES (?, ?, ?, ?, ?)`+
			strings.Repeat(`, (?, ?, ?, ?, ?)`, n-1)+
			` ON CONFLICT (repository_id, name) DO UPDATE SET target = excluded.target, peeled = excluded.peeled, generation = excluded.generation`, args...)
		if err != nil {
			return err
		}
		refs = refs[n:]
	}
	return nil
}

func insertMarks(ctx context.Context, q db.Q, id int64, mark string, names []string, at time.Time) error {
	for len(names) > 0 {
		n := min(len(names), refBatch)
		var args []any
		for _, name := range names[:n] {
			args = append(args, mark, []byte(name), id, at)
		}
		_, err := q.ExecContext(ctx, `INSERT INTO bucket_ref_marks (mark, name, repository_id, created_at) VALUES (?, ?, ?, ?)`+strings.Repeat(`, (?, ?, ?, ?)`, n-1), args...)
		if err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

func hasMark(ctx context.Context, q db.Q, id int64, mark, name string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM bucket_ref_marks WHERE mark = ? AND name = ? AND repository_id = ?`, mark, []byte(name), id)
}

func deleteMarks(ctx context.Context, q db.Q, before time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM bucket_ref_marks WHERE created_at < ?`, before)
	return err
}

// packRow is a row of bucket_packs without the content of the pack.
type packRow struct {
	id        int64
	hash      string
	object    string // key in the store without its suffix; empty if the pack is in the row
	size, idx int64
	bitmap    int64 // size; 0 if there is none
	created   time.Time
	// madeFrom is the generation whose packs housekeeping made this one from; it has no
	// other objects. It is 0 for a pack of new objects.
	madeFrom int64
	// leftover means that housekeeping found its objects unreachable, at the time of created.
	// No ref needs them: what becomes reachable again is packed again.
	leftover    bool
	inRow       bool
	pack, index []byte // contents, to insert
}

const packColumns = `id, hash, object, size, index_size, bitmap_size, created_at, made_from`

func scanPack(s db.Scanner) (p packRow, err error) {
	err = s.Scan(&p.id, &p.hash, &p.object, &p.size, &p.idx, &p.bitmap, db.Time(&p.created), &p.madeFrom)
	p.inRow = p.object == ""
	if p.madeFrom < 0 { // a negative value marks a leftover pack
		p.leftover, p.madeFrom = true, -p.madeFrom
	}
	return p, err
}

// findPacks returns the packs of a repository, the largest first.
func findPacks(ctx context.Context, q db.Q, repositoryID int64) ([]packRow, error) {
	return db.All(ctx, q, scanPack, `SELECT `+packColumns+` FROM bucket_packs WHERE repository_id = ? AND removed_at IS NULL ORDER BY size DESC, id`, repositoryID)
}

// findContent returns the content of a pack in the database.
func findContent(ctx context.Context, q db.Q, id int64) (pack, index []byte, err error) {
	err = q.QueryRowContext(ctx, `SELECT pack, pack_index FROM bucket_packs WHERE id = ? AND removed_at IS NULL`, id).Scan(&pack, &index)
	return pack, index, err
}

// insertPack inserts a pack, unless the repository has it. If that is a leftover pack, it becomes
// a pack like others.
func insertPack(ctx context.Context, q db.Q, storage string, repositoryID int64, p packRow) error {
	var pack, index any
	if p.inRow {
		pack, index = p.pack, p.index
	}
	from := p.madeFrom
	if p.leftover {
		from = -from
	}
	_, err := q.ExecContext(ctx, `INSERT INTO bucket_packs (storage, repository_id, hash, object, size, index_size, bitmap_size, pack, pack_index, created_at, made_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (repository_id, hash) WHERE removed_at IS NULL DO UPDATE SET made_from = 0 WHERE bucket_packs.made_from < 0 AND excluded.made_from >= 0`,
		storage, repositoryID, p.hash, p.object, p.size, p.idx, p.bitmap, pack, index, p.created, from)
	return err
}

// removePacks marks packs as removed, and returns how many were there. A leftover pack stays if
// an update has the same pack meanwhile.
func removePacks(ctx context.Context, q db.Q, packs []packRow, at time.Time) (int64, error) {
	ordinary, leftovers := withoutLeftovers(packs)
	removed, err := removeByID(ctx, q, ids(ordinary), ``, at)
	if err != nil {
		return removed, err
	}
	more, err := removeByID(ctx, q, ids(leftovers), ` AND made_from < 0`, at)
	return removed + more, err
}

func removeByID(ctx context.Context, q db.Q, ids []int64, where string, at time.Time) (int64, error) {
	var removed int64
	for len(ids) > 0 {
		n := min(len(ids), refBatch)
		count, err := db.ExecCount(ctx, q, `UPDATE bucket_packs SET removed_at = ? WHERE removed_at IS NULL`+where+` AND id IN `+db.In(n), append([]any{at}, db.Any(ids[:n])...)...)
		if err != nil {
			return removed, err
		}
		removed += count
		ids = ids[n:]
	}
	return removed, nil
}

func removeAllPacks(ctx context.Context, q db.Q, repositoryID int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE bucket_packs SET removed_at = ? WHERE removed_at IS NULL AND repository_id = ?`, at, repositoryID)
	return err
}

// sumPacks returns the total size of the packs of a repository.
func sumPacks(ctx context.Context, q db.Q, repositoryID int64) (sum int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(SUM(size + index_size + bitmap_size), 0) FROM bucket_packs WHERE repository_id = ? AND removed_at IS NULL`, repositoryID).Scan(&sum)
	return sum, err
}

// parts returns the files of the pack with their sizes. The index is last, because git
// considers a pack complete when its index exists.
func (p packRow) parts() []part {
	list := []part{{".pack", p.size}, {".idx", p.idx}}
	if p.bitmap > 0 {
		list = []part{{".pack", p.size}, {".bitmap", p.bitmap}, {".idx", p.idx}}
	}
	return list
}

// part is a file of a pack.
type part struct {
	suffix string
	size   int64
}

// suffixes are those of all files that a pack may have, the index first: without
// it, git does not look for the others.
func suffixes() []string { return []string{".idx", ".pack", ".bitmap", ".rev"} }

// total returns the size of all files of the pack.
func (p packRow) total() int64 { return p.size + p.idx + p.bitmap }

// findRemoved returns packs that were removed before a time.
func findRemoved(ctx context.Context, q db.Q, storage string, before time.Time, limit int) ([]packRow, error) {
	return db.All(ctx, q, scanPack, `SELECT `+packColumns+` FROM bucket_packs WHERE storage = ? AND removed_at < ? ORDER BY removed_at LIMIT ?`, storage, before, limit)
}

// sharesObject reports whether another pack, removed or not, has the same object.
func sharesObject(ctx context.Context, q db.Q, p packRow) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM bucket_packs WHERE object = ? AND object <> '' AND id <> ?`, p.object, p.id)
}

// copyPack inserts the pack of another repository into a repository. It returns db.ErrNoRows if
// the pack was removed.
func copyPack(ctx context.Context, q db.Q, p packRow, repositoryID int64) error {
	return db.ExecOne(ctx, q, `INSERT INTO bucket_packs (storage, repository_id, hash, object, size, index_size, bitmap_size, created_at)
		SELECT storage, ?, hash, object, size, index_size, bitmap_size, created_at FROM bucket_packs WHERE id = ? AND object = ? AND removed_at IS NULL`, repositoryID, p.id, p.object)
}

func deletePack(ctx context.Context, q db.Q, id int64) error {
	err := db.ExecOne(ctx, q, `DELETE FROM bucket_packs WHERE id = ?`, id)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}

// findObjects returns which of the objects belong to packs, including removed packs.
func findObjects(ctx context.Context, q db.Q, objects []string) (map[string]bool, error) {
	list, err := db.All(ctx, q, db.Value[string], `SELECT object FROM bucket_packs WHERE object <> '' AND object IN `+db.In(len(objects)), db.Any(objects)...)
	found := make(map[string]bool, len(list))
	for _, o := range list {
		found[o] = true
	}
	return found, err
}

// storedPack is a pack in the store, with the path of its repository, or an empty path if the
// repository was deleted.
type storedPack struct {
	packRow
	path string
}

// findStored returns packs of a storage that are in the store and have IDs greater than after.
func findStored(ctx context.Context, q db.Q, storage string, after int64, limit int) ([]storedPack, error) {
	return db.All(ctx, q, func(s db.Scanner) (p storedPack, err error) {
		err = s.Scan(&p.id, &p.object, &p.size, &p.idx, &p.bitmap, &p.path)
		return p, err
	}, `SELECT p.id, p.object, p.size, p.index_size, p.bitmap_size, COALESCE(r.path, '') FROM bucket_packs p LEFT JOIN bucket_repositories r ON r.id = p.repository_id
		WHERE p.id > ? AND p.storage = ? AND p.object <> '' AND p.removed_at IS NULL ORDER BY p.id LIMIT ?`, after, storage, limit)
}

// findPacksOf returns the packs with these objects that are not removed, by object.
func findPacksOf(ctx context.Context, q db.Q, storage string, objects []string) (map[string]packRow, error) {
	list, err := db.All(ctx, q, scanPack, `SELECT `+packColumns+` FROM bucket_packs WHERE storage = ? AND removed_at IS NULL AND object <> '' AND object IN `+db.In(len(objects)),
		append([]any{storage}, db.Any(objects)...)...)
	found := make(map[string]packRow, len(list))
	for _, p := range list {
		found[p.object] = p
	}
	return found, err
}
