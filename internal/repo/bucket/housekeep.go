package bucket

import (
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

// needs returns the needs of packs, the largest of which is first. Nothing is to be done with
// leftover packs until they expire.
func needs(packs []packRow) git.Needs {
	packs, _ = withoutLeftovers(packs)
	n := git.Needs{Packs: len(packs)}
	bitmap := false
	for _, p := range packs {
		n.Largest = max(n.Largest, p.size)
		bitmap = bitmap || p.bitmap > 0
	}
	for _, p := range packs {
		// Those of the last time that all were combined do not get smaller.
		if p.created.After(packs[0].created) {
			n.Rest += p.size
		}
	}
	n.Bitmap = n.Largest >= largePack && !bitmap
	return n
}

// withoutLeftovers splits packs into ordinary and leftover ones.
func withoutLeftovers(packs []packRow) (ordinary, leftovers []packRow) {
	for _, p := range packs {
		if p.leftover {
			leftovers = append(leftovers, p)
		} else {
			ordinary = append(ordinary, p)
		}
	}
	return ordinary, leftovers
}

// Housekeep implements git.Backend. It combines small packs, so that the number of packs
// grows with the logarithm of the size. Full housekeeping, and housekeeping that writes a
// bitmap, writes packs of all reachable objects and removes those that have been unreachable
// for a while.
//
// It needs no lock, and pushes go on: the packs are replaced only if no other node was faster.
// Otherwise it returns git.ErrBusy.
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
		err = s.combineWhole(ctx, dir, row, packs)
	}
	if !whole || errors.Is(err, git.ErrBusy) && !o.Full {
		if row, packs, err = s.list(ctx, dir); err != nil {
			return done, err
		}
		ordinary, _ := withoutLeftovers(packs)
		if old := small(ordinary); len(old) > 1 {
			err = s.combineSmall(ctx, dir, row, old)
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

// combineSmall replaces packs by one pack of their objects.
func (s *Storage) combineSmall(ctx context.Context, dir string, row repository, old []packRow) error {
	e := s.entry(dir)
	e.writing.Add(1)
	defer e.writing.Add(-1)
	temp, err := s.temp(".pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	hash, err := s.Git.Local(dir).PackPacks(ctx, temp, hashes(old), nil)
	if err != nil {
		return s.whyUnpacked(ctx, row, old, err)
	}
	var made []packRow
	if hash != "" {
		p, err := s.store(ctx, temp, hash)
		if err != nil {
			return err
		}
		p.created, p.madeFrom = newest(old), row.generation
		made = append(made, p)
	}
	if err := s.replacePacks(ctx, dir, row, old, made); err != nil {
		return err
	}
	return s.installAll(ctx, dir, temp, made)
}

// whyUnpacked returns git.ErrBusy instead of the error of packing packs if another node has
// replaced them.
func (s *Storage) whyUnpacked(ctx context.Context, row repository, packs []packRow, err error) error {
	if now, failed := findPacks(ctx, s.DB, row.id); failed == nil && slices.ContainsFunc(hashes(packs), func(h string) bool { return !slices.Contains(hashes(now), h) }) {
		return git.ErrBusy
	}
	return err
}

// installAll adds packs that were made in a temporary directory to the cache.
func (s *Storage) installAll(ctx context.Context, dir, temp string, made []packRow) error {
	for _, p := range made {
		if !hasPack(dir, p) {
			_ = s.install(dir, temp, p) // otherwise it is fetched
		}
	}
	_, err := s.Refresh(ctx, dir)
	return err
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

// replacePacks replaces packs by others with the same objects.
func (s *Storage) replacePacks(ctx context.Context, dir string, row repository, old, made []packRow) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := s.lockForPacks(ctx, tx, row, row.version())
		if err != nil {
			return err
		}
		removed, err := removePacks(ctx, tx, old, s.Now())
		if err != nil {
			return err
		}
		if removed != int64(len(old)) {
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
		return saveGeneration(ctx, tx, row.id, now.generation+1)
	})
	if err != nil {
		return fmt.Errorf("replace packs: %w", err)
	}
	return nil
}

// lockForPacks locks a repository to replace packs. It returns git.ErrBusy if packs were removed
// since the row was read, or if the state that was read may have been lost.
func (s *Storage) lockForPacks(ctx context.Context, tx *db.Tx, row repository, read version) (repository, error) {
	now, err := lockRepository(ctx, tx, row.id)
	if errors.Is(err, db.ErrNoRows) {
		return now, git.ErrNoRepository
	}
	if err == nil && (s.lostCommits(now, read) || now.packGeneration != row.packGeneration) {
		err = git.ErrBusy
	}
	return now, err
}

func ids(packs []packRow) []int64 {
	list := make([]int64, len(packs))
	for i, p := range packs {
		list[i] = p.id
	}
	return list
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
