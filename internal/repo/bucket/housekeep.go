package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/git"
)

// largePack is the size from which a pack should have a bitmap, which speeds up clones.
const largePack = 256 << 10

// Needs implements git.Backend.
func (s *Storage) Needs(ctx context.Context, dir string) (git.Needs, error) {
	row, err := s.find(ctx, dir)
	if err != nil {
		return git.Needs{}, err
	}
	packs, err := findPacks(ctx, s.DB, row.id)
	return needs(packs), err
}

// needs returns the needs of packs, the largest of which is first.
func needs(packs []packRow) git.Needs {
	n := git.Needs{Packs: len(packs)}
	bitmap := false
	for _, p := range packs {
		n.Largest = max(n.Largest, p.size)
		bitmap = bitmap || p.bitmap > 0
	}
	for _, p := range packs {
		// Older ones have what combining all would leave out again.
		if p.created.After(packs[0].created) {
			n.Rest += p.size
		}
	}
	n.Bitmap = n.Largest >= largePack && !bitmap
	return n
}

// Housekeep implements git.Backend. It combines small packs, so that the number of packs
// grows with the logarithm of the size. Full housekeeping, and housekeeping that writes a
// bitmap, writes packs of all reachable objects and removes the others.
//
// It needs no lock: the packs are replaced only if all of them still exist. If another node
// was faster, it returns git.ErrBusy.
func (s *Storage) Housekeep(ctx context.Context, dir string, o git.HousekeepOptions) (git.HousekeepReport, error) {
	var done git.HousekeepReport
	row, packs, err := s.list(ctx, dir)
	if err != nil {
		return done, err
	}
	for _, p := range packs {
		done.Before += p.total()
	}
	need := needs(packs)
	whole := o.Full || need.Bitmap || need.Rest > need.Largest/2 && need.Largest >= largePack
	if whole && len(packs) > 0 {
		err = s.combine(ctx, dir, row, packs, true)
	}
	if !whole || errors.Is(err, git.ErrBusy) && !o.Full { // a ref moved meanwhile
		if row, packs, err = s.list(ctx, dir); err != nil {
			return done, err
		}
		if old := small(packs); len(old) > 1 {
			err = s.combine(ctx, dir, row, old, false)
		}
	}
	if err != nil {
		return done, err
	}
	if done.After, err = sumPacks(ctx, s.DB, row.id); err != nil {
		return done, err
	}
	if done.After != done.Before {
		done.Did = append(done.Did, "repack")
	}
	return done, s.tidy(ctx, dir, row)
}

// list returns a repository and its packs, after it has updated the cache. None of the packs is
// newer than the generation of the repository.
func (s *Storage) list(ctx context.Context, dir string) (repository, []packRow, error) {
	before, err := s.find(ctx, dir)
	if err != nil {
		return before, nil, err
	}
	packs, err := findPacks(ctx, s.DB, before.id)
	if err != nil {
		return before, nil, err
	}
	row, err := s.find(ctx, dir)
	if err != nil {
		return row, nil, err
	}
	if err := s.refreshAll(ctx, dir); err != nil { // after the list, so that the cache has all packs in it
		return row, nil, err
	}
	after, err := s.find(ctx, dir)
	if err != nil {
		return row, nil, err
	}
	if after.id != before.id || after.packGeneration != before.packGeneration {
		return row, nil, git.ErrBusy
	}
	return row, packs, nil
}

// combine replaces packs by one pack of their objects or, with whole, by those of packWhole.
// Unreachable objects in packs younger than unreachableGrace are kept, because a pipeline may
// still need a commit after a forced push.
func (s *Storage) combine(ctx context.Context, dir string, row repository, old []packRow, whole bool) error {
	e := s.entry(dir)
	e.writing.Add(1)
	defer e.writing.Add(-1)
	temp, err := s.temp(".pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var made []packRow
	if whole {
		made, err = s.packWhole(ctx, dir, temp, row, old)
	} else {
		made, err = s.packSmall(ctx, dir, temp, row, old)
	}
	if err != nil {
		return err
	}
	if len(old) == len(made) && !slices.ContainsFunc(made, func(p packRow) bool {
		return !slices.ContainsFunc(old, func(o packRow) bool { return o.hash == p.hash && o.bitmap == p.bitmap })
	}) {
		return nil // nothing to combine
	}
	for i := range made {
		made[i].madeFrom = row.generation
	}
	if err := s.replacePacks(ctx, dir, row, old, made, whole); err != nil {
		return err
	}
	for _, p := range made {
		if !hasPack(dir, p) {
			_ = s.install(dir, temp, p) // otherwise it is fetched
		}
	}
	_, err = s.Refresh(ctx, dir)
	return err
}

func (s *Storage) packSmall(ctx context.Context, dir, temp string, row repository, old []packRow) ([]packRow, error) {
	hash, err := s.Git.Local(dir).PackPacks(ctx, temp, hashes(old), nil)
	if err != nil {
		// Another node may have replaced the packs.
		if now, failed := findPacks(ctx, s.DB, row.id); failed == nil && slices.ContainsFunc(hashes(old), func(h string) bool { return !slices.Contains(hashes(now), h) }) {
			err = git.ErrBusy
		}
		return nil, err
	}
	if hash == "" {
		return nil, nil
	}
	p, err := s.store(ctx, temp, hash)
	p.created = newest(old)
	return []packRow{p}, err
}

// unreachableGrace is the minimum time for which unreachable objects are kept.
const unreachableGrace = 14 * 24 * time.Hour

// packWhole writes up to three packs: of the objects of the default branch and tags, which
// rarely become unreachable, so that forks can share it; of the other reachable objects; and of
// young unreachable objects.
func (s *Storage) packWhole(ctx context.Context, dir, temp string, row repository, old []packRow) ([]packRow, error) {
	v, err := s.snapshot(ctx, dir, row)
	if err != nil {
		return nil, err
	}
	if v.generation != row.generation {
		return nil, git.ErrBusy
	}
	lasting, others := v.split(row.head)
	hash, err := s.packLasting(ctx, dir, temp, row.head, lasting)
	if err != nil {
		return nil, err
	}
	if now, err := s.find(ctx, dir); err != nil || now.generation != row.generation {
		return nil, cmp.Or(err, git.ErrBusy) // before it is uploaded
	}
	var made []packRow
	add := func(hash string, created time.Time) error {
		if hash == "" {
			return nil
		}
		p, err := s.store(ctx, temp, hash)
		if err != nil {
			return err
		}
		p.created = created
		made = append(made, p)
		return s.install(dir, temp, p) // git looks for it there
	}
	now := s.Now()
	if err := add(hash, now); err != nil {
		return nil, err
	}
	local := s.Git.Local(dir)
	if len(others.refs) > 0 {
		if hash, err = local.PackNew(ctx, temp, others.targets(), lasting.targets()); err == nil {
			err = add(hash, now)
		}
		if err != nil {
			return nil, err
		}
	}
	except := hashes(made)
	var young []packRow
	for _, p := range old {
		if s.Now().Sub(p.created) < unreachableGrace && !slices.Contains(except, p.hash) {
			young = append(young, p)
		}
	}
	if len(young) == 0 {
		return made, nil
	}
	rest, err := local.PackPacks(ctx, temp, hashes(young), except)
	if err != nil || rest == "" {
		return made, err
	}
	p, err := s.store(ctx, temp, rest)
	p.created = newest(young)
	return append(made, p), err
}

// split returns the default branch and the tags of a repository, and its other refs. Without a
// default branch and tags, it returns all refs and none.
func (v *snapshot) split(branch string) (lasting, others *snapshot) {
	lasting, others = &snapshot{}, &snapshot{}
	for _, r := range v.refs {
		if r.name == git.Heads+branch || strings.HasPrefix(r.name, git.Tags) {
			lasting.refs = append(lasting.refs, r)
		} else {
			others.refs = append(others.refs, r)
		}
	}
	if len(lasting.refs) == 0 {
		return others, lasting
	}
	return lasting, others
}

// targets returns the IDs of the refs.
func (v *snapshot) targets() []git.OID {
	list := make([]git.OID, len(v.refs))
	for i, r := range v.refs {
		list[i] = r.target
	}
	return list
}

// packLasting writes a pack with a bitmap of the objects that are reachable from some refs of
// a repository, and returns its hash. Git writes bitmaps only for all refs, so it works in a
// repository that has only these and borrows the objects.
func (s *Storage) packLasting(ctx context.Context, dir, temp, branch string, lasting *snapshot) (string, error) {
	view, err := s.temp(".view-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(view)
	if err := git.Layout(view, branch); err != nil {
		return "", err
	}
	if err := replace(filepath.Join(view, "objects", "info", "alternates"), filepath.Join(dir, "objects")+"\n"); err != nil {
		return "", err
	}
	if err := s.writeRefs(view, branch, lasting); err != nil {
		return "", err
	}
	local := s.Git.Local(view)
	defer local.Forget()
	hash, err := local.PackAll(ctx, temp, lasting.targets())
	if err == nil && hash == "" && len(lasting.refs) > 0 {
		err = fmt.Errorf("git packed none of %d refs: %w", len(lasting.refs), git.ErrCorrupt)
	}
	return hash, err
}

// install moves the files of a pack from a temporary directory to that of a
// repository.
func (s *Storage) install(dir, temp string, p packRow) error {
	for _, part := range p.parts() {
		if err := os.Rename(filepath.Join(temp, "pack-"+p.hash+part.suffix), packBase(dir, p.hash)+part.suffix); err != nil {
			return err
		}
	}
	return nil
}

func hashes(packs []packRow) []string {
	list := make([]string, len(packs))
	for i, p := range packs {
		list[i] = p.hash
	}
	return list
}

// newest returns the time of the newest pack.
func newest(packs []packRow) time.Time {
	var at time.Time
	for _, p := range packs {
		if p.created.After(at) {
			at = p.created
		}
	}
	return at
}

// small returns the packs to combine, from a list with the largest first: those after the
// last one that is at least twice as large as all packs after it together.
func small(packs []packRow) []packRow {
	var rest int64
	for i := len(packs) - 1; i >= 0; i-- {
		if packs[i].size >= 2*rest && rest > 0 {
			return packs[i+1:]
		}
		rest += packs[i].size
	}
	return packs
}

// replacePacks replaces packs by others with the same objects. With whole, unreachable
// objects may be missing; then no ref may have changed since they were packed.
func (s *Storage) replacePacks(ctx context.Context, dir string, row repository, old, made []packRow, whole bool) error {
	ids := make([]int64, len(old))
	for i, p := range old {
		ids[i] = p.id
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRepository(ctx, tx, row.id)
		if errors.Is(err, db.ErrNoRows) {
			return git.ErrNoRepository
		}
		if err != nil {
			return err
		}
		if now.packGeneration != row.packGeneration || whole && now.generation != row.generation || s.lostCommits(now, row.version()) {
			return git.ErrBusy
		}
		removed, err := removePacks(ctx, tx, ids, s.Now())
		if err != nil {
			return err
		}
		if removed != int64(len(ids)) {
			return git.ErrBusy
		}
		for _, p := range made {
			if err := insertPack(ctx, tx, s.Name, row.id, p); err != nil {
				return err
			}
		}
		if err := s.announce(ctx, tx, dir, made...); err != nil {
			return err
		}
		if !whole {
			return saveGeneration(ctx, tx, row.id, now.generation+1)
		}
		return savePackGeneration(ctx, tx, row.id, now.generation+1)
	})
	if err != nil {
		return fmt.Errorf("replace packs: %w", err)
	}
	return nil
}

// tidy deletes the rows of deleted refs, and removes files that git left in the cache.
func (s *Storage) tidy(ctx context.Context, dir string, row repository) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := lockRepository(ctx, tx, row.id); err != nil {
			return err
		}
		return forgetDeleted(ctx, tx, row.id, row.generation)
	})
	if errors.Is(err, db.ErrNoRows) {
		return git.ErrNoRepository
	}
	if err != nil {
		return err
	}
	local := s.Git.Local(dir)
	if err := local.PrunePacked(ctx); err != nil {
		return err
	}
	return local.WriteGraph(ctx)
}

const (
	// removedGrace is how long the objects of removed packs are kept, in case the database
	// is restored to an earlier time.
	removedGrace = 14 * 24 * time.Hour
	// orphanGrace is the age at which objects without a row are deleted. It is longer than
	// storing a pack takes.
	orphanGrace = 24 * time.Hour
	// markGrace is how long marks of updates are kept, much longer than pushes take to
	// be recorded.
	markGrace = 24 * time.Hour
)

// SweepEvery is how often Sweep should run.
const SweepEvery = 6 * time.Hour

// Sweep deletes objects that no repository needs: those of packs that were removed some time
// ago, and those without a row, which crashes leave behind.
func (s *Storage) Sweep(ctx context.Context) error {
	now := s.Now()
	if err := s.own(ctx); err != nil {
		return fmt.Errorf("sweep storage %s: %w", s.Name, err)
	}
	if err := deleteMarks(ctx, s.DB, now.Add(-markGrace)); err != nil {
		return fmt.Errorf("sweep storage %s: %w", s.Name, err)
	}
	for {
		list, err := findRemoved(ctx, s.DB, s.Name, now.Add(-removedGrace), 100)
		if err != nil {
			return fmt.Errorf("sweep storage %s: %w", s.Name, err)
		}
		for _, p := range list {
			if err := s.deletePack(ctx, p); err != nil {
				return fmt.Errorf("sweep storage %s: %w", s.Name, err)
			}
		}
		if len(list) < 100 {
			break
		}
	}
	if err := s.sweepOrphans(ctx, now.Add(-orphanGrace)); err != nil {
		return fmt.Errorf("sweep storage %s: %w", s.Name, err)
	}
	return nil
}

// deletePack deletes a removed pack, and its object unless a fork or the original of the
// repository shares it.
func (s *Storage) deletePack(ctx context.Context, p packRow) error {
	shared, err := sharesObject(ctx, s.DB, p)
	if err != nil {
		return err
	}
	if p.object != "" && !shared {
		for _, suffix := range suffixes() {
			if err := s.Store.Delete(ctx, p.object+suffix); err != nil {
				return err
			}
		}
	}
	return deletePack(ctx, s.DB, p.id)
}

// sweepOrphans deletes the objects without a row that were stored before a time.
func (s *Storage) sweepOrphans(ctx context.Context, before time.Time) error {
	old := func(o blob.Info) bool { return o.ModTime.Before(before) }
	return s.eachBatch(ctx, old, func(batch []blob.Info, names []string) error {
		known, err := findObjects(ctx, s.DB, names)
		if err != nil {
			return err
		}
		for _, o := range batch {
			if known[objectOf(o.Key)] {
				continue
			}
			if err := s.Store.Delete(ctx, o.Key); err != nil {
				return err
			}
			s.Log.InfoContext(ctx, "deleted an object that belongs to no repository", "storage", s.Name, "object", o.Key)
		}
		return nil
	})
}

// eachBatch calls f with batches of the objects of packs in the store that match a condition,
// and with their names without suffixes.
func (s *Storage) eachBatch(ctx context.Context, match func(blob.Info) bool, f func(batch []blob.Info, names []string) error) error {
	var batch []blob.Info
	var names []string
	for o, err := range s.Store.List(ctx, s.prefix()) {
		if err != nil {
			return err
		}
		if o.Key == s.prefix()+ownerObject || !match(o) {
			continue
		}
		batch, names = append(batch, o), append(names, objectOf(o.Key))
		if len(batch) < refBatch {
			continue
		}
		if err := f(batch, slices.Compact(names)); err != nil {
			return err
		}
		batch, names = batch[:0], names[:0]
	}
	if len(batch) == 0 {
		return nil
	}
	return f(batch, slices.Compact(names))
}

// objectOf returns the key of an object without its suffix.
func objectOf(key string) string {
	for _, suffix := range suffixes() {
		key = strings.TrimSuffix(key, suffix)
	}
	return key
}
